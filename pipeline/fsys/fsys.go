// Package fsys is the file system as a run uses it. Inputs, spill files and the output
// directory go through it, so that a test can make the n-th call fail, or end the process
// there. Only checks of arguments, for wrong usage, bypass it.
package fsys

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An FS opens files and changes names. Errors and fs.FileInfo are those of package os.
type FS interface {
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
	// ReadFile reads a regular file of at most so many bytes. For a larger file and for
	// anything else, such as a FIFO, the error is ErrNotRegular; it does not wait.
	ReadFile(path string, most int64) ([]byte, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	Open(path string) (File, error)    // for reading
	OpenDir(path string) (File, error) // follows no symbolic link
	Create(path string) (File, error)  // for writing; the file must not exist
	// Temp makes a file without a name, for reading and writing, in a directory
	// ("": that of the system). Nothing is left of it once it is closed.
	Temp(dir string) (File, error)
	Mkdir(path string) error
	Remove(path string) error
	Rename(from, to string) error // a directory may replace an empty one
	Exchange(a, b string) error   // errors.ErrUnsupported: the file system cannot
	Writable(path string) error   // why this process may not write it; nil: it may
}

// ErrNotRegular is the error of FS.ReadFile for what it does not read.
var ErrNotRegular = errors.New("not a regular file")

// A File is an open file or directory.
type File interface {
	io.ReadWriteCloser
	io.ReaderAt
	io.WriterAt
	Stat() (fs.FileInfo, error)
	SetReadDeadline(t time.Time) error
	// Lock takes an exclusive lock that ends with the process. If another File has
	// it, the error is EWOULDBLOCK.
	Lock() error
	Sync() error
	// RemoveAll removes an entry of a directory and all that is in it. It fails if
	// another directory has this one's path by now, and follows no link out of it.
	RemoveAll(name string) error
	// Direct makes reads and writes bypass the page cache, or go through it again. They
	// bypass it only if offset, length and address of the memory are multiples of
	// BlockAlign and the file system can do it; otherwise they go through it.
	Direct(on bool)
}

// BlockAlign suits every file system that can bypass the page cache.
const BlockAlign = 4096

// NewBlock returns a slice of length 0 and capacity n, aligned for File.Direct.
func NewBlock(n int) []byte {
	b := make([]byte, n+BlockAlign)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (BlockAlign - 1)
	return b[skip : skip : skip+n]
}

// OS is the FS of the operating system.
type OS struct{}

// Or returns f, or OS if f is nil.
func Or(f FS) FS {
	if f == nil {
		return OS{}
	}
	return f
}

func (OS) Stat(path string) (fs.FileInfo, error)      { return os.Stat(path) }
func (OS) Lstat(path string) (fs.FileInfo, error)     { return os.Lstat(path) }
func (OS) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }
func (OS) Mkdir(path string) error                    { return os.Mkdir(path, 0o777) }
func (OS) Remove(path string) error                   { return os.Remove(path) }

func (OS) Open(path string) (File, error) { return open(path, os.O_RDONLY) }

func (OS) OpenDir(path string) (File, error) {
	return open(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW)
}

func (OS) ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w of at most %d bytes", ErrNotRegular, most)}
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = data.ReadFrom(io.LimitReader(f, most)) // it may grow meanwhile
	return data.Bytes(), err
}

func (OS) Create(path string) (File, error) {
	return open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
}

func open(path string, flag int) (File, error) {
	f, err := os.OpenFile(path, flag, 0o666)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Temp makes a file that never has a name where the system can; elsewhere a
// process that is killed within this call leaves an empty file.
func (OS) Temp(dir string) (File, error) {
	dir = cmp.Or(dir, os.TempDir())
	if f, err := unnamed(dir); err == nil {
		return file{f}, nil
	}
	f, err := os.CreateTemp(dir, ".bulk-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return file{f}, nil
}

// Rename is not os.Rename, which refuses an empty directory as target.
func (OS) Rename(from, to string) error {
	return retry(func() error { return unix.Rename(from, to) })
}

func (OS) Writable(path string) error {
	return retry(func() error { return unix.Access(path, unix.W_OK) })
}

// Exchange swaps two names in one step.
func (OS) Exchange(a, b string) error {
	err := retry(func() error { return exchange(a, b) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return errors.ErrUnsupported
	}
	return err
}

type file struct{ *os.File }

func (f file) Lock() error {
	return retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
}

func (f file) RemoveAll(name string) error {
	root, err := os.OpenRoot(f.Name())
	if err != nil {
		return err
	}
	defer root.Close()
	held, err := f.Stat()
	if err != nil {
		return err
	}
	found, err := root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(held, found) {
		return &fs.PathError{Op: "remove", Path: filepath.Join(f.Name(), name), Err: errors.New("another directory has taken its place")}
	}
	return root.RemoveAll(name)
}

func (f file) Direct(on bool) { _ = direct(int(f.Fd()), on) }

func (f file) Write(p []byte) (int, error) {
	return f.cached(func() (int, error) { return f.File.Write(p) })
}

func (f file) WriteAt(p []byte, off int64) (int, error) {
	return f.cached(func() (int, error) { return f.File.WriteAt(p, off) })
}

func (f file) ReadAt(p []byte, off int64) (int, error) {
	return f.cached(func() (int, error) { return f.File.ReadAt(p, off) })
}

// cached repeats a call through the page cache if that cannot be bypassed: some file
// systems fail only when they read or write.
func (f file) cached(call func() (int, error)) (int, error) {
	n, err := call()
	if n == 0 && errors.Is(err, unix.EINVAL) && direct(int(f.Fd()), false) == nil {
		return call()
	}
	return n, err
}

// retry repeats a call as long as a signal interrupts it.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// Abs is filepath.Abs without symbolic links in the path of the working directory: after
// such a link, the system takes .. for another directory than package filepath does.
func Abs(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	return filepath.Join(dir, path), err
}

// Cause removes the operation and the path that package os puts before an error,
// for callers that give the path as their user wrote it.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
