package outdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// TestFaults fails the n-th call, for every n (-short: each third) until a run is clean.
func TestFaults(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 3
	}
	scenes := map[string]struct{ old, leftover bool }{
		"nothing there":                     {},
		"leftovers of a killed run":         {leftover: true},
		"a finished run, to be overwritten": {old: true, leftover: true},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n += step {
				out := filepath.Join(t.TempDir(), "out")
				if scene.old {
					run(t, out, false, "old")
				}
				if scene.leftover {
					leaveBehind(t, out)
				}
				operation := faultyRun(t, out, n)
				checkPartial(t, out, scene.leftover, operation)
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

// Whoever may rename the partial directory can put a link to another one in its place, at
// any moment: nothing is removed there, though it has names that a run writes.
func TestAnotherFolderInItsPlace(t *testing.T) {
	for n, swapped := 1, true; swapped; n++ {
		dir := t.TempDir()
		out, other := filepath.Join(dir, "out"), filepath.Join(dir, "other")
		run(t, out, false, "old")
		leaveBehind(t, out)
		for _, name := range []string{"a", "b"} {
			if err := os.MkdirAll(filepath.Join(other, name, "x"), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		before, left := tree(t, other), n
		f, err := Claim(out, ClaimOptions{Overwrite: true, FS: fsystest.FS{Before: func(string) error {
			if left--; left == 0 && os.Rename(PartialOf(out), filepath.Join(dir, "away")) == nil {
				return os.Symlink(other, PartialOf(out))
			}
			return nil
		}}})
		if err == nil {
			err = errors.Join(writeRun(f, "new"), f.Abandon())
		}
		after := tree(t, other)
		for _, path := range before {
			if !slices.Contains(after, path) {
				t.Errorf("before call %d: %s is gone (%v)", n, path, err)
			}
		}
		swapped = left <= 0
	}
}

// What somebody else puts into the partial directory is not deleted with what a killed run left.
func TestPutIntoAPartialFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	leaveBehind(t, out)
	notes := filepath.Join(PartialOf(out), "notes.txt")
	if err := os.WriteFile(notes, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(out, ClaimOptions{}); !errors.Is(err, manifest.ErrNotOurs) {
		t.Error(err)
	}
	if _, err := os.Stat(notes); err != nil {
		t.Error(err)
	}
}

// A claim that fails holds nothing, and neither does a directory that was abandoned, even
// if nothing can be removed any more.
func TestFailedClaim(t *testing.T) {
	for n, failed := 1, true; failed; n++ {
		out := filepath.Join(t.TempDir(), "out")
		run(t, out, false, "old")
		leaveBehind(t, out)
		left, opened := n, new(atomic.Int64)
		f, err := Claim(out, ClaimOptions{Overwrite: true, FS: fsystest.FS{Opened: opened, Before: func(string) error {
			if left--; left <= 0 {
				return syscall.ENOSPC
			}
			return nil
		}}})
		if failed = err != nil; !failed {
			err = f.Abandon()
		}
		if !errors.Is(err, syscall.ENOSPC) || opened.Load() != 0 {
			t.Errorf("from call %d on: %d files are open: %v", n, opened.Load(), err)
		}
	}
}

// leaveBehind leaves what a killed run does.
func leaveBehind(t *testing.T, out string) {
	t.Helper()
	f, err := Claim(out, ClaimOptions{Overwrite: true})
	if err == nil {
		err = errors.Join(os.MkdirAll(f.inner, 0o777), os.WriteFile(filepath.Join(f.inner, "left"), nil, 0o666), f.held.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// faultyRun runs with a fault at call n and returns what failed, "" if nothing.
func faultyRun(t *testing.T, out string, n int) (operation string) {
	t.Helper()
	fsys := fsystest.FS{Before: func(op string) error {
		if n--; n != 0 {
			return nil
		}
		operation = op
		return syscall.ENOSPC
	}}
	f, err := Claim(out, ClaimOptions{FS: fsys, Overwrite: true})
	if err == nil {
		err = errors.Join(writeRun(f, "new"), f.Abandon())
	}
	switch {
	case (err == nil) != (operation == ""):
		t.Fatalf("fault at %q: error %v", operation, err)
	case err != nil && (!errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), out)):
		t.Errorf("fault at %q: error %v", operation, err)
	}
	return operation
}

// checkPartial wants no partial directory, unless a killed run left one.
func checkPartial(t *testing.T, out string, leftover bool, operation string) {
	t.Helper()
	partial := PartialOf(out)
	if _, err := os.Stat(partial); errors.Is(err, os.ErrNotExist) {
		return
	}
	if !leftover {
		t.Fatalf("fault at %q: the partial directory is left", operation)
	}
	if err := os.RemoveAll(partial); err != nil {
		t.Fatal(err)
	}
}

// checkOutput wants the old output, or none, or the new one, whole, and
// nothing beside it.
func checkOutput(t *testing.T, out string, old bool, operation string) {
	t.Helper()
	names, _ := list(t, filepath.Dir(out))
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

// A syncFS knows what has changes that were not synced: files, and directories in which a
// name is new.
type syncFS struct {
	fsys.OS
	t     *testing.T
	mu    sync.Mutex
	dirty map[string]bool
}

type syncFile struct {
	fsys.File
	fs   *syncFS
	path string
}

func (f *syncFS) note(path string, dirty bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirty[path] = dirty
}

// all wants nothing at or below a path to be dirty.
func (f *syncFS) all(path, when string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p, dirty := range f.dirty {
		if dirty && (p == path || strings.HasPrefix(p, path+"/")) {
			f.t.Errorf("%s, and %s is not synced", when, p)
		}
	}
}

func (f *syncFS) open(path string, h fsys.File, err error) (fsys.File, error) {
	if err != nil {
		return nil, err
	}
	return syncFile{h, f, path}, nil
}

func (f *syncFS) Open(path string) (fsys.File, error) {
	h, err := f.OS.Open(path)
	return f.open(path, h, err)
}

func (f *syncFS) OpenDir(path string) (fsys.File, error) {
	h, err := f.OS.OpenDir(path)
	return f.open(path, h, err)
}

func (f *syncFS) Create(path string) (fsys.File, error) {
	f.note(filepath.Dir(path), true)
	h, err := f.OS.Create(path)
	return f.open(path, h, err)
}

func (f *syncFS) Rename(from, to string) error {
	f.all(from, from+" is renamed")
	f.note(filepath.Dir(to), true)
	return f.OS.Rename(from, to)
}

func (f *syncFS) Exchange(a, b string) error {
	if filepath.Base(b) != "b" { // of tryExchange
		f.all(a, a+" is exchanged")
		f.note(filepath.Dir(b), true)
	}
	return f.OS.Exchange(a, b)
}

func (f syncFile) Write(p []byte) (int, error) {
	f.fs.note(f.path, true)
	return f.File.Write(p)
}

func (f syncFile) Sync() error {
	f.fs.note(f.path, false)
	return f.File.Sync()
}

// Files and their names are on the disk before they become the output, and its own name is
// when the run ends.
func TestSynced(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for range 2 { // new, then overwritten
		files := &syncFS{t: t, dirty: map[string]bool{}}
		f, err := Claim(out, ClaimOptions{FS: files, Overwrite: true})
		if err == nil {
			err = writeRun(f, "x")
		}
		if err != nil {
			t.Fatal(err)
		}
		if files.dirty[filepath.Dir(out)] {
			t.Error("the directory around the output is not synced")
		}
	}
}
