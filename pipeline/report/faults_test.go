package report

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// faultFS makes one call of the real file system fail: the one at which left
// counts down to zero. A write that fails has written half.
type faultFS struct {
	osFS
	left *int
	last *string
}

func (f faultFS) fails(operation string) bool {
	if *f.left--; *f.left == 0 {
		*f.last = operation
		return true
	}
	return false
}

func (f faultFS) do(operation string, call func() error) error {
	if f.fails(operation) {
		return &fs.PathError{Op: operation, Path: "somewhere", Err: syscall.ENOSPC}
	}
	return call()
}

func (f faultFS) open(operation string, call func() (handle, error)) (h handle, err error) {
	err = f.do(operation, func() error { h, err = call(); return err })
	return faultFile{h, f}, err
}

func (f faultFS) Mkdir(p string) error { return f.do("mkdir", func() error { return f.osFS.Mkdir(p) }) }
func (f faultFS) Remove(p string) error {
	return f.do("remove", func() error { return f.osFS.Remove(p) })
}
func (f faultFS) RemoveAll(p string) error {
	return f.do("removeall", func() error { return f.osFS.RemoveAll(p) })
}
func (f faultFS) Rename(a, b string) error {
	return f.do("rename", func() error { return f.osFS.Rename(a, b) })
}
func (f faultFS) Exchange(a, b string) error {
	return f.do("exchange", func() error { return f.osFS.Exchange(a, b) })
}
func (f faultFS) OpenDir(p string) (handle, error) {
	return f.open("opendir", func() (handle, error) { return f.osFS.OpenDir(p) })
}
func (f faultFS) Create(p string) (handle, error) {
	return f.open("create", func() (handle, error) { return f.osFS.Create(p) })
}
func (f faultFS) ReadFile(p string) (data []byte, err error) {
	err = f.do("readfile", func() error { data, err = f.osFS.ReadFile(p); return err })
	return data, err
}
func (f faultFS) ReadDir(p string) (entries []fs.DirEntry, err error) {
	err = f.do("readdir", func() error { entries, err = f.osFS.ReadDir(p); return err })
	return entries, err
}
func (f faultFS) Lstat(p string) (info fs.FileInfo, err error) {
	err = f.do("lstat", func() error { info, err = f.osFS.Lstat(p); return err })
	return info, err
}

type faultFile struct {
	handle
	fs faultFS
}

func (f faultFile) Write(p []byte) (int, error) {
	if f.fs.fails("write") {
		n, err := f.handle.Write(p[:len(p)/2])
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return f.handle.Write(p)
}
func (f faultFile) Lock(wait bool) error {
	return f.fs.do("lock", func() error { return f.handle.Lock(wait) })
}
func (f faultFile) Sync() error { return f.fs.do("sync", f.handle.Sync) }
func (f faultFile) Stat() (info fs.FileInfo, err error) {
	err = f.fs.do("stat", func() error { info, err = f.handle.Stat(); return err })
	return info, err
}

// Close closes in any case, as the system does.
func (f faultFile) Close() error {
	err := f.handle.Close()
	return f.fs.do("close", func() error { return err })
}

// TestFaults fails the n-th call, for every n until a run is clean.
func TestFaults(t *testing.T) {
	scenes := map[string]struct{ old, leftover bool }{
		"nothing there":                     {},
		"leftovers of a killed run":         {leftover: true},
		"a finished run, to be overwritten": {old: true, leftover: true},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				out := filepath.Join(t.TempDir(), "out")
				if scene.old {
					run(t, out, false, "old")
				}
				if scene.leftover {
					partial := filepath.Join(filepath.Dir(out), ".out.partial")
					if err := errors.Join(os.Mkdir(partial, 0o777), os.WriteFile(filepath.Join(partial, "left"), nil, 0o666)); err != nil {
						t.Fatal(err)
					}
				}
				operation := faultyRun(t, out, n)
				checkOutput(t, out, scene.old, operation)
				if operation == "" {
					t.Logf("%d calls", n-1)
					break
				}
				run(t, out, true, "next")
				wantRun(t, out, "next")
			}
		})
	}
}

// faultyRun runs with a fault at call n and returns what failed, "" if nothing.
func faultyRun(t *testing.T, out string, n int) string {
	t.Helper()
	var operation string
	fsys := faultFS{left: &n, last: &operation}
	f, err := claim(fsys, out, true)
	if err == nil {
		err = writeRun(f, "new")
		if aerr := f.Abandon(); aerr != nil {
			err = errors.Join(err, aerr, f.Abandon())
		}
	}
	switch {
	case (err == nil) != (operation == ""):
		t.Fatalf("fault at %q: error %v", operation, err)
	case err != nil && (!errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), out)):
		t.Errorf("fault at %q: error %v", operation, err)
	}
	return operation
}

// checkOutput wants the old output, or none, or the new one, whole, and
// nothing beside it but what an earlier run left and a claim that failed did not
// come to remove.
func checkOutput(t *testing.T, out string, old bool, operation string) {
	t.Helper()
	names, _ := list(t, filepath.Dir(out))
	if i := slices.Index(names, ".out.partial"); i >= 0 {
		if left, _ := list(t, filepath.Join(filepath.Dir(out), ".out.partial")); !slices.Equal(left, []string{"left"}) {
			t.Errorf("fault at %q: partial folder holds %q", operation, left)
		}
		names = slices.Delete(names, i, i+1)
	}
	if len(names) == 0 && !old && operation != "" {
		return
	}
	if !slices.Equal(names, []string{"out"}) {
		t.Fatalf("fault at %q: left %q", operation, names)
	}
	files, mapping := list(t, out)
	if len(files) != 3 || mapping != "new" && !(old && operation != "" && mapping == "old") {
		t.Errorf("fault at %q: output holds %q with mapping %q", operation, files, mapping)
	}
}

func TestFullDisk(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	var operation string
	left := 1 << 30
	f, err := claim(faultFS{left: &left, last: &operation}, out, false)
	if err != nil {
		t.Fatal(err)
	}
	file, err := f.Create("mapping.csv")
	if err != nil {
		t.Fatal(err)
	}
	left = 3 // create, write, write
	want := "write " + filepath.Join(out, "mapping.csv") + ": no space left on device"
	big := make([]byte, smallWrite)
	if _, err := file.Write(big); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := file.Write(big); err == nil || err.Error() != want {
			t.Errorf("write: got %v, want %s", err, want)
		}
	}
	if err := file.Close(); err == nil || err.Error() != want {
		t.Errorf("close: got %v, want %s", err, want)
	}
	if err := f.Commit(); err == nil || err.Error() != want {
		t.Errorf("commit: got %v, want %s", err, want)
	}
	if err := f.Abandon(); err != nil {
		t.Error(err)
	}
	if names, _ := list(t, filepath.Dir(out)); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}
