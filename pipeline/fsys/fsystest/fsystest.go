// Package fsystest has a file system for tests: a test sees every call and can make it
// fail.
package fsystest

import (
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// An FS is the file system of the operating system with a test in between. Several
// goroutines may call Before and After at once.
type FS struct {
	// Before is called before each operation. If it returns an error, the operation
	// fails with it in the middle: a write has written half, a read has read half, a
	// close has closed.
	Before func(operation string) error
	// After is called after each operation for which Before returned nil; may be nil.
	After func(operation string)
	// Opened counts the files that are open; may be nil.
	Opened *atomic.Int64
}

var _ fsys.FS = FS{}

func (f FS) do(operation, path string, call func(path string) error) error {
	if err := f.Before(operation); err != nil {
		return &fs.PathError{Op: operation, Path: path, Err: err}
	}
	err := call(path)
	if f.After != nil {
		f.After(operation)
	}
	return err
}

// get does an operation that returns something of a path.
func get[T any](f FS, operation, path string, call func(path string) (T, error)) (v T, err error) {
	err = f.do(operation, path, func(string) error { v, err = call(path); return err })
	return v, err
}

func (f FS) open(operation, path string, call func(path string) (fsys.File, error)) (fsys.File, error) {
	opened, err := get(f, operation, path, call)
	if err != nil {
		return nil, err
	}
	if f.Opened != nil {
		f.Opened.Add(1)
	}
	return file{opened, f, path}, nil
}

func (f FS) Stat(path string) (fs.FileInfo, error)  { return get(f, "stat", path, fsys.OS{}.Stat) }
func (f FS) Lstat(path string) (fs.FileInfo, error) { return get(f, "lstat", path, fsys.OS{}.Lstat) }
func (f FS) ReadDir(path string) ([]fs.DirEntry, error) {
	return get(f, "readdir", path, fsys.OS{}.ReadDir)
}
func (f FS) Open(path string) (fsys.File, error) { return f.open("open", path, fsys.OS{}.Open) }
func (f FS) OpenDir(path string) (fsys.File, error) {
	return f.open("opendir", path, fsys.OS{}.OpenDir)
}
func (f FS) Create(path string) (fsys.File, error) { return f.open("create", path, fsys.OS{}.Create) }
func (f FS) Temp(dir string) (fsys.File, error)    { return f.open("temp", dir, fsys.OS{}.Temp) }

func (f FS) ReadFile(path string, most int64) ([]byte, error) {
	return get(f, "readfile", path, func(path string) ([]byte, error) { return fsys.OS{}.ReadFile(path, most) })
}

func (f FS) Mkdir(path string) error  { return f.do("mkdir", path, fsys.OS{}.Mkdir) }
func (f FS) Remove(path string) error { return f.do("remove", path, fsys.OS{}.Remove) }

func (f FS) Rename(from, to string) error {
	return f.do("rename", from, func(string) error { return fsys.OS{}.Rename(from, to) })
}

func (f FS) Exchange(a, b string) error {
	return f.do("exchange", a, func(string) error { return fsys.OS{}.Exchange(a, b) })
}

func (f FS) Writable(path string) error { return f.do("writable", path, fsys.OS{}.Writable) }

type file struct {
	fsys.File
	fs   FS
	path string
}

// piece does a read or a write, or half of it.
func (f file) piece(operation string, p []byte, call func(p []byte) (int, error)) (n int, err error) {
	failed := f.fs.do(operation, f.path, func(string) error { n, err = call(p); return nil })
	if failed != nil {
		n, err = call(p[:len(p)/2])
		return n, errors.Join(failed, err)
	}
	return n, err
}

func (f file) Read(p []byte) (int, error)  { return f.piece("read", p, f.File.Read) }
func (f file) Write(p []byte) (int, error) { return f.piece("write", p, f.File.Write) }

func (f file) ReadAt(p []byte, off int64) (int, error) {
	return f.piece("readat", p, func(p []byte) (int, error) { return f.File.ReadAt(p, off) })
}
func (f file) WriteAt(p []byte, off int64) (int, error) {
	return f.piece("writeat", p, func(p []byte) (int, error) { return f.File.WriteAt(p, off) })
}
func (f file) Stat() (fs.FileInfo, error) {
	return get(f.fs, "fstat", f.path, func(string) (fs.FileInfo, error) { return f.File.Stat() })
}

// Sync does not wait for the disk.
func (f file) Sync() error { return f.fs.do("sync", f.path, func(string) error { return nil }) }
func (f file) RemoveAll(name string) error {
	return f.fs.do("removeall", f.path, func(string) error { return f.File.RemoveAll(name) })
}
func (f file) Lock() error {
	return f.fs.do("lock", f.path, func(string) error { return f.File.Lock() })
}
func (f file) Close() error {
	err := f.File.Close()
	if f.fs.Opened != nil && err == nil {
		f.fs.Opened.Add(-1)
	}
	return f.fs.do("close", f.path, func(string) error { return err })
}
