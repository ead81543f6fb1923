package report

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileSystem is all that this package asks of the operating system, so that a
// test can make the n-th call fail. Paths are absolute; errors are those of
// package os.
type fileSystem interface {
	Mkdir(path string) error
	OpenDir(path string) (handle, error) // follows no symbolic link
	Create(path string) (handle, error)  // the file must not exist
	ReadFile(path string) ([]byte, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	Lstat(path string) (fs.FileInfo, error)
	Remove(path string) error
	RemoveAll(path string) error
	Rename(from, to string) error // a folder may take the place of an empty one
	Exchange(a, b string) error   // ErrUnsupported: the file system cannot
}

// A handle is an open file or folder.
type handle interface {
	io.WriteCloser
	Stat() (fs.FileInfo, error)
	// Lock takes an exclusive lock that dies with the process. If somebody else
	// has it, it waits, or fails with EWOULDBLOCK.
	Lock(wait bool) error
	Sync() error
	// StartSync begins to bring a range to the disk and returns at once. It is
	// advice: what goes wrong is told by Sync.
	StartSync(offset, n int64)
}

type osFS struct{}

func (osFS) Mkdir(path string) error                    { return os.Mkdir(path, 0o777) }
func (osFS) ReadFile(path string) ([]byte, error)       { return os.ReadFile(path) }
func (osFS) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }
func (osFS) Lstat(path string) (fs.FileInfo, error)     { return os.Lstat(path) }
func (osFS) Remove(path string) error                   { return os.Remove(path) }
func (osFS) RemoveAll(path string) error                { return os.RemoveAll(path) }

func (osFS) OpenDir(path string) (handle, error) {
	return open(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW)
}

func (osFS) Create(path string) (handle, error) {
	return open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
}

func open(path string, flag int) (handle, error) {
	f, err := os.OpenFile(path, flag, 0o666)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Rename is not os.Rename, which refuses an empty folder as target.
func (osFS) Rename(from, to string) error {
	return retry(func() error { return unix.Rename(from, to) })
}

// Exchange swaps two names in one step.
func (osFS) Exchange(a, b string) error {
	err := retry(func() error { return exchange(a, b) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return errors.ErrUnsupported
	}
	return err
}

type osFile struct{ *os.File }

func (f osFile) Lock(wait bool) error {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	return retry(func() error { return unix.Flock(int(f.Fd()), how) })
}

func (f osFile) StartSync(offset, n int64) { startSync(int(f.Fd()), offset, n) }

func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// device tells on which file system a file lies.
func device(info fs.FileInfo) uint64 {
	return uint64(info.Sys().(*syscall.Stat_t).Dev)
}

// cause strips the operation and the path that package os puts before an error:
// this package names the folder as its user did.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
