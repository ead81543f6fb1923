package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
)

// TestFaults fails the n-th call, for every n (-short: each third) until a run is clean.
func TestFaults(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 3
	}
	scenes := map[string]struct{ old, leftover, marked bool }{
		"nothing there":                     {},
		"leftovers of a killed run":         {leftover: true, marked: true},
		"leftovers without a mark":          {leftover: true},
		"a finished run, to be overwritten": {old: true, leftover: true, marked: true},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n += step {
				out := filepath.Join(t.TempDir(), "out")
				if scene.old {
					run(t, out, false, "old")
				}
				if scene.leftover {
					leaveBehind(t, out, scene.marked)
				}
				operation := faultyRun(t, out, n)
				checkPartial(t, out, scene.leftover, scene.marked, operation)
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

// Whoever may rename the partial folder can put a link to another one in its place, at
// any moment: nothing is removed there, though it has names that a run writes.
func TestAnotherFolderInItsPlace(t *testing.T) {
	for n, swapped := 1, true; swapped; n++ {
		dir := t.TempDir()
		out, other := filepath.Join(dir, "out"), filepath.Join(dir, "other")
		run(t, out, false, "old")
		leaveBehind(t, out, false)
		for _, name := range []string{"a", "b", lastPrefix + "1.json"} {
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

// What somebody puts into the partial folder once it is claimed is not removed as a
// killed run's.
func TestPutIntoAClaimedFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	leaveBehind(t, out, true)
	f := claim(t, out, ClaimOptions{})
	notes := filepath.Join(f.partial, "notes.txt")
	if err := os.WriteFile(notes, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := f.Own(unread(exampleManifest())); !errors.Is(err, ErrNotOurs) {
		t.Error(err)
	}
	if err := f.Abandon(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(notes); err != nil {
		t.Error(err)
	}
}

// A claim that fails holds nothing, and neither does a folder that was abandoned, even
// if nothing can be removed any more.
func TestFailedClaim(t *testing.T) {
	for n, failed := 1, true; failed; n++ {
		out := filepath.Join(t.TempDir(), "out")
		run(t, out, false, "old")
		leaveBehind(t, out, false)
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
func leaveBehind(t *testing.T, out string, marked bool) {
	t.Helper()
	f, err := Claim(out, ClaimOptions{Overwrite: true})
	if err == nil && marked {
		err = f.Own(exampleManifest())
	}
	if err == nil {
		err = errors.Join(os.MkdirAll(f.inner, 0o777), os.WriteFile(filepath.Join(f.inner, "left"), nil, 0o666), f.held.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unread is a manifest before the inputs are read.
func unread(m *Manifest) *Manifest {
	for i := range m.Inputs {
		m.Inputs[i].SHA256, m.Inputs[i].RecordsSHA256 = "", ""
	}
	return m
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

// checkPartial wants no partial folder, or that of the killed run with its mark.
func checkPartial(t *testing.T, out string, leftover, marked bool, operation string) {
	t.Helper()
	partial := PartialOf(out)
	if _, err := os.Stat(partial); errors.Is(err, os.ErrNotExist) {
		return
	}
	if !leftover {
		t.Fatalf("fault at %q: the partial folder is left", operation)
	}
	var want bytes.Buffer
	if err := WriteManifest(&want, exampleManifest()); err != nil {
		t.Fatal(err)
	}
	mark, err := os.ReadFile(filepath.Join(partial, markName))
	if marked && (err != nil || !bytes.Equal(mark, want.Bytes())) {
		t.Fatalf("fault at %q: mark %q, %v", operation, mark, err)
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

func TestFullDisk(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	left := 1 << 30
	f, err := Claim(out, ClaimOptions{FS: fsystest.FS{Before: func(string) error {
		if left--; left == 0 {
			return syscall.ENOSPC
		}
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := create(t, f, "mapping.csv")
	left = 3 // create, write, write
	want := "write " + filepath.Join(out, "mapping.csv") + ": no space left on device"
	big := make([]byte, fileBlock)
	for range maxPending + 1 { // the second of them fails, which the next one meets
		if _, err := file.Write(big); err != nil {
			t.Fatal(err)
		}
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

// A folder of an unfinished run is refused to a run that differs, and named is
// what differs; the folder stays as it is until the same run, or a new one,
// takes it.
func TestUnfinishedRunIsOthers(t *testing.T) {
	text := func(s string) *Text { t := Text(s); return &t }
	tests := map[string]func(m *Manifest){
		`version: "1.2.3" then, "1.2.4" now`:                        func(m *Manifest) { m.Version = "1.2.4" },
		`profile: "linkforge-1" then, "linkforge-1+userinfo"`:       func(m *Manifest) { m.Profile += "+userinfo" },
		`unicode_version: "15.0.0" then, "16.0.0" now`:              func(m *Manifest) { m.UnicodeVersion = "16.0.0" },
		`scheme: "sha256-base58" then, "other" now`:                 func(m *Manifest) { m.Scheme.Name = "other" },
		`code_length: 10 then, 12 now`:                              func(m *Manifest) { m.Scheme.CodeLength = 12 },
		`max_retries: 10 then, 0 now`:                               func(m *Manifest) { m.Scheme.MaxRetries = 0 },
		`option carry: true then, false now`:                        func(m *Manifest) { m.Options["carry"] = false },
		`option limit: 5 then, 6 now`:                               func(m *Manifest) { m.Options["limit"] = int64(6) },
		`option base_url: "https://sho.rt/?a=1&b=<2>" then, "" now`: func(m *Manifest) { m.Options["base_url"] = "" },
		`option later: null then, "x" now`:                          func(m *Manifest) { m.Options["later"] = "x" },
		`as_of: 2026-01-02T02:04:05.678901Z then, not given now`:    func(m *Manifest) { m.AsOf = time.Time{} },
		"input -: not there now":                                    func(m *Manifest) { m.Inputs = m.Inputs[:1] },
		"input x.csv: not there then":                               func(m *Manifest) { m.Inputs = append(m.Inputs, Input{Name: "x.csv"}) },
		"input -: other format":                                     func(m *Manifest) { m.Inputs[1].Format = "csv" },
		": other compression":                                       func(m *Manifest) { m.Inputs[0].Compression = "" },
		": other dialect":                                           func(m *Manifest) { m.Inputs[0].Dialect = nil },
		": other columns":                                           func(m *Manifest) { m.Inputs[0].Columns = m.Inputs[0].Columns[1:] },
		": other columns of URL or workspace":                       func(m *Manifest) { m.Inputs[0].WorkspaceColumn = text("url") },
		".csv: other columns of URL or workspace":                   func(m *Manifest) { m.Inputs[0].URLColumns = []Text{"note"} },
		": other content":                                           func(m *Manifest) { m.Inputs[0].SHA256 = strings.Repeat("00", 32) },
		"input -: other content":                                    func(m *Manifest) { m.Inputs[1].RecordsSHA256 = strings.Repeat("00", 32) },
		".csv: other content":                                       func(m *Manifest) { unread(m).Inputs[0].Size++ },
	}
	for want, change := range tests {
		out := filepath.Join(t.TempDir(), "out")
		leaveBehind(t, out, true)
		before := tree(t, filepath.Dir(out))
		f := claim(t, out, ClaimOptions{})
		m := exampleManifest()
		change(m)
		err := f.Own(m)
		if !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--new-run") || !strings.Contains(err.Error(), out) {
			t.Errorf("%s: got %v", want, err)
		}
		if err := f.Abandon(); err != nil {
			t.Error(err)
		}
		if after := tree(t, filepath.Dir(out)); !slices.Equal(after, before) {
			t.Errorf("%s: there was %q, now %q", want, before, after)
		}
		for _, newRun := range []bool{false, true} {
			f, err := Claim(out, ClaimOptions{NewRun: newRun})
			if err == nil && newRun {
				err = f.Own(m)
			} else if err == nil {
				err = f.Own(unread(exampleManifest()))
			}
			if err != nil {
				t.Fatalf("%s: new run %v: %v", want, newRun, err)
			}
			if err := f.Abandon(); err != nil {
				t.Fatal(err)
			}
			if names, _ := list(t, filepath.Dir(out)); len(names) != 0 && newRun {
				t.Errorf("left %q", names)
			}
		}
	}
}

// A mark that says less, because its run was killed while it read, is met by
// all that agrees with it.
func TestMarkOfAnUnreadRun(t *testing.T) {
	for _, then := range []int64{1 << 40, 0} { // 0: not known, as of a pipe
		out := filepath.Join(t.TempDir(), "out")
		for _, size := range []int64{then, 7, 0} {
			f := claim(t, out, ClaimOptions{})
			m := unread(exampleManifest())
			m.Inputs[0].Size = size
			err := f.Own(m)
			if refused := then != 0 && size == 7; errors.Is(err, ErrUnfinished) != refused {
				t.Fatalf("size %d, then %d: %v", size, then, err)
			}
			if err := f.held.Close(); err != nil { // as if killed
				t.Fatal(err)
			}
		}
		run(t, out, false, "x")
		wantRun(t, out, "x")
	}
}

// A mark without options, which no run writes, is one that differs.
func TestMarkWithoutOptions(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	leaveBehind(t, out, true)
	mark := filepath.Join(PartialOf(out), markName)
	if err := os.WriteFile(mark, []byte(`{"profile": "linkforge-1"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	f := claim(t, out, ClaimOptions{})
	if err := f.Own(unread(exampleManifest())); !errors.Is(err, ErrUnfinished) {
		t.Error(err)
	}
	if err := f.Abandon(); err != nil {
		t.Error(err)
	}
}

// A mark that cannot be read is a reason to ask.
func TestDamagedMark(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	leaveBehind(t, out, true)
	mark := filepath.Join(PartialOf(out), markName)
	for _, damage := range []func() error{
		func() error { return os.WriteFile(mark, []byte("{"), 0o666) },
		func() error { return errors.Join(os.Remove(mark), syscall.Mkfifo(mark, 0o666)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := Claim(out, ClaimOptions{}); !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), "--new-run") {
			t.Error(err)
		}
	}
	f := claim(t, out, ClaimOptions{NewRun: true})
	if err := f.Abandon(); err != nil {
		t.Fatal(err)
	}
	if names, _ := list(t, filepath.Dir(out)); len(names) != 0 {
		t.Errorf("left %q", names)
	}
}

// What an output is that the store does not know as finished: that of its run,
// whether or not its as_of was asked for.
func TestOutputOfAnUnfinishedRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for i, length := range []int{10, 10, 11} {
		f := claim(t, out, ClaimOptions{Unfinished: true})
		m := exampleManifest()
		m.AsOf, m.Scheme.CodeLength = time.Time{}, length
		err := f.Own(m)
		if errors.Is(err, ErrUnfinished) != (length == 11) {
			t.Fatal(err)
		}
		if err == nil {
			err = writeRun(f, fmt.Sprint(i))
		} else {
			err = f.Abandon()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	wantRun(t, out, "1")
}

// A syncFS knows what has changes that were not synced: files, and folders in which a
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

// Files and their names are on the disk before they become the output, its own name is
// when the run ends, and the mark before there is a file.
func TestSynced(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for range 2 { // new, then overwritten
		files := &syncFS{t: t, dirty: map[string]bool{}}
		f, err := Claim(out, ClaimOptions{FS: files, Overwrite: true})
		if err == nil {
			err = f.Own(exampleManifest())
			files.all(f.partial, "the folder has its mark")
		}
		if err == nil {
			err = writeRun(f, "x")
		}
		if err != nil {
			t.Fatal(err)
		}
		if files.dirty[filepath.Dir(out)] {
			t.Error("the folder around the output is not synced")
		}
	}
}
