// Package fsystest has a file system for tests, which sees every call and can
// make it fail.
package fsystest

import (
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// An FS is the file system of the operating system with a test in between. Both
// functions are called by several goroutines at once.
type FS struct {
	// Before is called before each operation. With its error the operation
	// fails, in the middle: a write has written half, a read has read half, a
	// close has closed.
	Before func(operation string) error
	// After is called after each operation that Before let pass; may be nil.
	After func(operation string)
	// Opened counts the files that are open; may be nil.
	Opened *atomic.Int64
}

var _ fsys.FS = FS{}

func (f FS) do(operation, path string, call func() error) error {
	if err := f.Before(operation); err != nil {
		return &fs.PathError{Op: operation, Path: path, Err: err}
	}
	err := call()
	if f.After != nil {
		f.After(operation)
	}
	return err
}

// get does an operation that returns something.
func get[T any](f FS, operation, path string, call func() (T, error)) (v T, err error) {
	err = f.do(operation, path, func() error { v, err = call(); return err })
	return v, err
}

func (f FS) open(operation, path string, call func() (fsys.File, error)) (fsys.File, error) {
	opened, err := get(f, operation, path, call)
	if err != nil {
		return nil, err
	}
	if f.Opened != nil {
		f.Opened.Add(1)
	}
	return file{opened, f, path}, nil
}

func (f FS) Stat(path string) (fs.FileInfo, error) {
	return get(f, "stat", path, func() (fs.FileInfo, error) { return fsys.OS{}.Stat(path) })
}
func (f FS) Lstat(path string) (fs.FileInfo, error) {
	return get(f, "lstat", path, func() (fs.FileInfo, error) { return fsys.OS{}.Lstat(path) })
}
func (f FS) ReadFile(path string, most int64) ([]byte, error) {
	return get(f, "readfile", path, func() ([]byte, error) { return fsys.OS{}.ReadFile(path, most) })
}
func (f FS) ReadDir(path string) ([]fs.DirEntry, error) {
	return get(f, "readdir", path, func() ([]fs.DirEntry, error) { return fsys.OS{}.ReadDir(path) })
}
func (f FS) Open(path string) (fsys.File, error) {
	return f.open("open", path, func() (fsys.File, error) { return fsys.OS{}.Open(path) })
}
func (f FS) OpenDir(path string) (fsys.File, error) {
	return f.open("opendir", path, func() (fsys.File, error) { return fsys.OS{}.OpenDir(path) })
}
func (f FS) Create(path string) (fsys.File, error) {
	return f.open("create", path, func() (fsys.File, error) { return fsys.OS{}.Create(path) })
}
func (f FS) Temp(dir string) (fsys.File, error) {
	return f.open("temp", dir, func() (fsys.File, error) { return fsys.OS{}.Temp(dir) })
}
func (f FS) Mkdir(path string) error {
	return f.do("mkdir", path, func() error { return fsys.OS{}.Mkdir(path) })
}
func (f FS) Remove(path string) error {
	return f.do("remove", path, func() error { return fsys.OS{}.Remove(path) })
}
func (f FS) Rename(from, to string) error {
	return f.do("rename", from, func() error { return fsys.OS{}.Rename(from, to) })
}
func (f FS) Exchange(a, b string) error {
	return f.do("exchange", a, func() error { return fsys.OS{}.Exchange(a, b) })
}

func (f FS) Writable(path string) error {
	return f.do("writable", path, func() error { return fsys.OS{}.Writable(path) })
}

type file struct {
	fsys.File
	fs   FS
	path string
}

// piece does a read or a write, or half of it.
func (f file) piece(operation string, p []byte, call func(p []byte) (int, error)) (n int, err error) {
	failed := f.fs.do(operation, f.path, func() error { n, err = call(p); return nil })
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
func (f file) Stat() (fs.FileInfo, error) { return get(f.fs, "fstat", f.path, f.File.Stat) }

// Sync saves the time of the disk.
func (f file) Sync() error { return f.fs.do("sync", f.path, func() error { return nil }) }
func (f file) RemoveAll(name string) error {
	return f.fs.do("removeall", f.path, func() error { return f.File.RemoveAll(name) })
}
func (f file) Lock() error { return f.fs.do("lock", f.path, f.File.Lock) }
func (f file) Close() error {
	err := f.File.Close()
	if f.fs.Opened != nil && err == nil {
		f.fs.Opened.Add(-1)
	}
	return f.fs.do("close", f.path, func() error { return err })
}
