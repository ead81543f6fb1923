package outdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
	"github.com/linkforge/bulk/pipeline/manifest"
)

// A manifest with something in every field. (Tests change the working directory later.)
var manifestJSON, _ = os.ReadFile("../manifest/testdata/manifest.json")

func exampleManifest() *manifest.Manifest {
	m, err := manifest.Read(manifestJSON)
	if err != nil {
		panic(err)
	}
	return m
}

// writeRun makes the files of a run, the manifest too, and commits them.
func writeRun(f *Dir, content string) error {
	m := exampleManifest()
	m.Files = nil
	for _, name := range []string{"mapping.csv", "rejects.csv"} {
		file, err := f.Create(name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(file, content); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
		m.Files = append(m.Files, manifest.FileSum{Name: name, Rows: 1, SHA256: file.SHA256()})
	}
	file, err := f.Create(manifest.Name)
	if err != nil {
		return err
	}
	if err := errors.Join(manifest.Write(file, m), file.Close()); err != nil {
		return err
	}
	return f.Commit()
}

func claim(t testing.TB, out string, opts ClaimOptions) *Dir {
	t.Helper()
	f, err := Claim(out, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func create(t testing.TB, f *Dir, name string) *File {
	t.Helper()
	file, err := f.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// What would leave the directory is no name of a file in it.
func TestCreateStaysInTheFolder(t *testing.T) {
	f := claim(t, filepath.Join(t.TempDir(), "out"), ClaimOptions{})
	defer f.Abandon()
	for _, name := range []string{"../x", "..", ".", "", "/x", "a/x", "x/"} {
		if _, err := f.Create(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// list returns what is in a directory, with the content of the mapping.
func list(t *testing.T, dir string) (names []string, mapping string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	data, err := os.ReadFile(filepath.Join(dir, "mapping.csv"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names, string(data)
}

func run(t *testing.T, out string, overwrite bool, content string) {
	t.Helper()
	f := claim(t, out, ClaimOptions{Overwrite: overwrite})
	if err := writeRun(f, content); err != nil {
		t.Fatal(err)
	}
	if err := f.Abandon(); err != nil {
		t.Errorf("abandon after commit: %v", err)
	}
}

func wantRun(t *testing.T, out, content string) {
	t.Helper()
	names, mapping := list(t, out)
	if want := []string{"manifest.json", "mapping.csv", "rejects.csv"}; !slices.Equal(names, want) || mapping != content {
		t.Errorf("%s holds %q with mapping %q, want %q", filepath.Base(out), names, mapping, content)
	}
	if names, _ := list(t, filepath.Dir(out)); !slices.Equal(names, []string{filepath.Base(out)}) {
		t.Errorf("beside it: %q", names)
	}
}

func TestDirLife(t *testing.T) {
	out := filepath.Join(t.TempDir(), "links.bulk")
	f := claim(t, out+"/", ClaimOptions{})
	if names, _ := list(t, filepath.Dir(out)); !slices.Equal(names, []string{".links.bulk.partial"}) {
		t.Errorf("while it is written: %q", names)
	}
	if err := writeRun(f, "one"); err != nil {
		t.Fatal(err)
	}
	wantRun(t, out, "one")
	if err := f.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second commit: %v", err)
	}

	_, err := Claim(out, ClaimOptions{})
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "Config.Overwrite") || !strings.Contains(err.Error(), out) {
		t.Errorf("claim of a finished run: %v", err)
	}
	wantRun(t, out, "one")
	run(t, out, true, "two")
	wantRun(t, out, "two")
}

// What a look at the directory leaves there goes with it, be it there before the run or only
// at its end.
func TestDirWithLitter(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	leave := func(names ...string) {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(out, name), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(t, out, false, "one")
	leave(".DS_Store", "Thumbs.db", manifest.PageName, "."+manifest.PageName+".17.tmp")
	f := claim(t, out, ClaimOptions{Overwrite: true})
	leave("._mapping.csv", "~$mapping.csv", ".~lock.mapping.csv#")
	if err := writeRun(f, "two"); err != nil {
		t.Fatal(err)
	}
	wantRun(t, out, "two")
}

func TestDirRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	run(t, "out", false, "one")
	run(t, "./out", true, "two")
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	wantRun(t, filepath.Join(dir, "out"), "two")
}

// The directory around the output may be a symbolic link, to another file system too.
func TestDirBehindALink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	for _, around := range []string{t.TempDir(), shared(t)} {
		if err := os.Symlink(around, link); err != nil {
			t.Fatal(err)
		}
		run(t, filepath.Join(link, "out"), false, "one")
		run(t, filepath.Join(link, "out"), true, "two")
		wantRun(t, filepath.Join(around, "out"), "two")
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}

// shared is a new directory in the memory of the machine, where it has one.
func shared(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "bulk-test-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestDirTakesAnEmptyOne(t *testing.T) {
	for _, overwrite := range []bool{false, true} {
		out := filepath.Join(t.TempDir(), "out")
		if err := os.Mkdir(out, 0o777); err != nil {
			t.Fatal(err)
		}
		run(t, out, overwrite, "one")
		wantRun(t, out, "one")
	}
}

func TestAbandon(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	run(t, out, false, "old")
	f := claim(t, out, ClaimOptions{Overwrite: true})
	file := create(t, f, "mapping.csv")
	if _, err := file.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Abandon(); err != nil {
			t.Error(err)
		}
	}
	if _, err := file.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("write to an abandoned file: %v", err)
	}
	wantRun(t, out, "old")
}

// Files are written to no directory that somebody else made.
func TestFilesOfSomebodyElse(t *testing.T) {
	f := claim(t, filepath.Join(t.TempDir(), "out"), ClaimOptions{})
	defer f.Abandon()
	if err := os.Mkdir(f.inner, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create("x"); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}

func tree(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestDirLooksAgainBeforeItCommits(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(out string) error
		want      string
	}{
		"a finished run": {func(out string) error {
			return errors.Join(os.Mkdir(out, 0o777), os.WriteFile(out+"/manifest.json", []byte(`{"profile": "p"}`), 0o666))
		}, "holds a finished run"},
		"a file": {func(out string) error { return os.WriteFile(out, nil, 0o666) }, "it is a file"},
	}
	for name, test := range tests {
		out := filepath.Join(t.TempDir(), "out")
		f := claim(t, out, ClaimOptions{})
		if err := test.meanwhile(out); err != nil {
			t.Fatal(err)
		}
		err := writeRun(f, "x")
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "run again") ||
			errors.Is(err, ErrExists) || errors.Is(err, manifest.ErrNotOurs) {
			t.Errorf("%s: got %v", name, err)
		}
		if err := f.Abandon(); err != nil {
			t.Error(err)
		}
		if names, _ := list(t, filepath.Dir(out)); !slices.Equal(names, []string{"out"}) {
			t.Errorf("%s: left %q", name, names)
		}
	}
}

func TestParentMustExist(t *testing.T) {
	if _, err := Claim(filepath.Join(t.TempDir(), "no", "out"), ClaimOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestOneOfManyClaims(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	run(t, out, false, "old")
	for range 50 {
		folders, errs := make([]*Dir, 8), make([]error, 8)
		var wg sync.WaitGroup
		for i := range folders {
			wg.Go(func() { folders[i], errs[i] = Claim(out, ClaimOptions{Overwrite: true}) })
		}
		wg.Wait()
		winner := slices.Index(errs, nil)
		for i, err := range errs {
			if i != winner && !errors.Is(err, ErrBusy) {
				t.Errorf("claim %d: %v", i, err)
			}
		}
		if winner < 0 {
			t.Fatal("nobody has it")
		}
		if err := folders[winner].Abandon(); err != nil {
			t.Fatal(err)
		}
	}
	wantRun(t, out, "old")
}

// Before a claim has the lock of a partial directory, the run that it was of may end, and
// another claim it anew: then it is that one's.
func TestClaimIsOvertaken(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	var other *Dir
	overtaken := fsystest.FS{Before: func(operation string) (err error) {
		if operation == "lock" && other == nil {
			err = os.Remove(PartialOf(out))
			if err == nil {
				other, err = Claim(out, ClaimOptions{})
			}
		}
		return err
	}}
	if _, err := Claim(out, ClaimOptions{FS: overtaken}); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	if err := writeRun(other, "other"); err != nil {
		t.Fatal(err)
	}
	wantRun(t, out, "other")
}

// TestManyRuns has runs overwrite each other: whatever a claim meets, the
// directory that is left is that of one run, whole.
func TestManyRuns(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for done := 0; done < 10; {
				f, err := Claim(out, ClaimOptions{Overwrite: true})
				if errors.Is(err, ErrBusy) {
					continue
				}
				if err == nil {
					err = writeRun(f, fmt.Sprint(i))
				}
				if err != nil {
					t.Error(err)
					return
				}
				done++
			}
		})
	}
	wg.Wait()
	_, mapping := list(t, out)
	wantRun(t, out, mapping)
	if rejects, err := os.ReadFile(filepath.Join(out, "rejects.csv")); err != nil || string(rejects) != mapping {
		t.Errorf("mapping of run %q, rejects of run %q (%v)", mapping, rejects, err)
	}
}
