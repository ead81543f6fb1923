package report

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
)

// writeRun makes the files of a run, the manifest too, and commits them.
func writeRun(f *Folder, content string) error {
	m := exampleManifest()
	for _, m := range []*Manifest{unread(exampleManifest()), m} {
		if err := f.Own(m); err != nil {
			return err
		}
	}
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
		m.Files = append(m.Files, FileSum{Name: name, Rows: 1, SHA256: file.SHA256()})
	}
	file, err := f.Create(ManifestName)
	if err != nil {
		return err
	}
	if err := errors.Join(WriteManifest(file, m), file.Close()); err != nil {
		return err
	}
	return f.Commit()
}

func claim(t testing.TB, out string, opts ClaimOptions) *Folder {
	t.Helper()
	f, err := Claim(out, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func create(t testing.TB, f *Folder, name string) *File {
	t.Helper()
	file, err := f.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// What would leave the folder is no name of a file in it.
func TestCreateStaysInTheFolder(t *testing.T) {
	f := claim(t, filepath.Join(t.TempDir(), "out"), ClaimOptions{})
	defer f.Abandon()
	for _, name := range []string{"../x", "..", ".", "", "/x", "a/x", "x/"} {
		if _, err := f.Create(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// list returns what is in a folder, with the content of the mapping.
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

func TestFolderLife(t *testing.T) {
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
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "--overwrite") || !strings.Contains(err.Error(), out) {
		t.Errorf("claim of a finished run: %v", err)
	}
	wantRun(t, out, "one")
	run(t, out, true, "two")
	wantRun(t, out, "two")
}

func TestFolderRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	run(t, "out", false, "one")
	run(t, "./out", true, "two")
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	wantRun(t, filepath.Join(dir, "out"), "two")
}

// The folder around the output may be a symbolic link, to another file system too.
func TestFolderBehindALink(t *testing.T) {
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

// shared is a new folder in the memory of the machine, where it has one.
func shared(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "bulk-test-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestFolderTakesAnEmptyOne(t *testing.T) {
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

// foreign are outputs that are not ours, each with a word of the refusal.
func foreign() map[string]func(out string) error {
	write := func(path, content string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666))
	}
	const manifest = `{"profile": "linkforge-1", "files": [{"name": "mapping.csv"}, {"name": "d"}, {"name": "contract.docx"}]}`
	return map[string]func(string) error{
		"no folder": func(out string) error { return write(out, "x") },
		"is no folder": func(out string) error {
			return errors.Join(os.Mkdir(out+".real", 0o777), os.Symlink(out+".real", out))
		},
		"it is no folder":  func(out string) error { return os.Symlink("nowhere", out) },
		"no manifest.json": func(out string) error { return write(out+"/notes.txt", "x") },
		"manifest.json: not a regular file": func(out string) error {
			return errors.Join(os.Mkdir(out, 0o777), syscall.Mkfifo(out+"/manifest.json", 0o666))
		},
		"of at most 1073741824 bytes": func(out string) error {
			return errors.Join(write(out+"/manifest.json", manifest), os.Truncate(out+"/manifest.json", MaxManifest+1))
		},
		"no profile":        func(out string) error { return write(out+"/manifest.json", `{"name": "a web application"}`) },
		"invalid character": func(out string) error { return write(out+"/manifest.json", "no json") },
		"also holds notes.txt": func(out string) error {
			return errors.Join(write(out+"/manifest.json", manifest), write(out+"/notes.txt", "x"))
		},
		"also holds contract.docx": func(out string) error {
			return errors.Join(write(out+"/manifest.json", manifest), write(out+"/contract.docx", "x"))
		},
		"also holds d": func(out string) error {
			return errors.Join(write(out+"/manifest.json", manifest), write(out+"/d/x", "x"))
		},
		"also holds mapping.csv": func(out string) error {
			return errors.Join(write(out+"/manifest.json", manifest), os.Symlink("elsewhere", out+"/mapping.csv"))
		},
		".out.partial, where it is written, also holds notes.txt": func(out string) error {
			return write(PartialOf(out)+"/notes.txt", "x")
		},
	}
}

func TestFolderRefusesWhatIsNotOurs(t *testing.T) {
	for want, make := range foreign() {
		for _, overwrite := range []bool{false, true} {
			out := filepath.Join(t.TempDir(), "out")
			if err := make(out); err != nil {
				t.Fatal(err)
			}
			before := tree(t, filepath.Dir(out))
			_, err := Claim(out, ClaimOptions{Overwrite: overwrite})
			if !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), out) {
				t.Errorf("%s: got %v", want, err)
			}
			if after := tree(t, filepath.Dir(out)); !slices.Equal(after, before) {
				t.Errorf("%s: there was %q, now %q", want, before, after)
			}
		}
	}
}

// A usersFS has folders and new files belong to some user.
type usersFS struct {
	fsys.OS
	folder, file uint32
}

type userFile struct {
	fsys.File
	user uint32
}

func (f usersFS) OpenDir(path string) (fsys.File, error) {
	h, err := f.OS.OpenDir(path)
	return userFile{h, f.folder}, err
}

func (f usersFS) Temp(dir string) (fsys.File, error) {
	h, err := f.OS.Temp(dir)
	return userFile{h, f.file}, err
}

func (f userFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	if err == nil {
		info.Sys().(*syscall.Stat_t).Uid = f.user
	}
	return info, err
}

// A partial folder of another user is not ours, unless new files are that user's too.
func TestFolderOfAnotherUser(t *testing.T) {
	me := uint32(os.Geteuid())
	for users, ours := range map[usersFS]bool{{folder: me, file: me + 1}: true, {folder: me + 1, file: me}: false, {folder: me + 1, file: me + 1}: true} {
		for _, leftover := range []bool{false, true} {
			out := filepath.Join(t.TempDir(), "out")
			if leftover {
				leaveBehind(t, out, true)
			}
			f, err := Claim(out, ClaimOptions{FS: users, NewRun: true})
			if ours && err == nil {
				err = f.Abandon()
			}
			if ours != (err == nil) || !ours && (!errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), "another user")) {
				t.Errorf("%+v: leftover %v: %v", users, leftover, err)
			}
			if names, _ := list(t, filepath.Dir(out)); (len(names) > 0) != (leftover && !ours) {
				t.Errorf("%+v: leftover %v: left %q", users, leftover, names)
			}
		}
	}
}

// In a sticky folder only root, its owner and that of the output may replace the output.
func TestStickyFolder(t *testing.T) {
	dir := t.TempDir()
	info, err := os.Stat(dir)
	me := uint32(os.Geteuid())
	for _, sticky := range []bool{false, true} {
		mode := fs.FileMode(0o777)
		if sticky {
			mode |= fs.ModeSticky
		}
		err = errors.Join(err, os.Chmod(dir, mode))
		parent, perr := os.Stat(dir)
		if err = errors.Join(err, perr); err != nil {
			t.Fatal(err)
		}
		for user, want := range map[uint32]bool{0: false, me: false, me + 1: sticky} {
			if got := stuck(user, parent, info); got != want {
				t.Errorf("sticky %v, user %d of %d: %v", sticky, user, me, got)
			}
		}
	}
}

// Files are written to no folder that somebody else made.
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

func TestFolderLooksAgainBeforeItCommits(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(out string) error
		want      string
	}{
		"a finished run": {func(out string) error {
			return errors.Join(os.Mkdir(out, 0o777), os.WriteFile(out+"/manifest.json", []byte(`{"profile": "p"}`), 0o666))
		}, "holds a finished run"},
		"a file": {func(out string) error { return os.WriteFile(out, nil, 0o666) }, "it is no folder"},
	}
	for name, test := range tests {
		out := filepath.Join(t.TempDir(), "out")
		f := claim(t, out, ClaimOptions{})
		if err := test.meanwhile(out); err != nil {
			t.Fatal(err)
		}
		err := writeRun(f, "x")
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "run again") ||
			errors.Is(err, ErrExists) || errors.Is(err, ErrNotOurs) {
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
		folders, errs := make([]*Folder, 8), make([]error, 8)
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

// Before a claim has the lock of a partial folder, the run that it was of may end, and
// another claim it anew: then it is that one's.
func TestClaimIsOvertaken(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	var other *Folder
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
// folder that is left is that of one run, whole.
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

// TestKilledRun kills a process that is writing.
func TestKilledRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperWrites$")
	cmd.Env = append(os.Environ(), "REPORT_TEST_OUT="+out)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // the child lives as long as it is open
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "writing\n" {
		t.Fatalf("child says %q, %v", line, err)
	}
	if _, err := Claim(out, ClaimOptions{}); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), out) {
		t.Errorf("claim of a folder in use: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("child was not killed")
	}
	if names, _ := list(t, filepath.Join(PartialOf(out), "files")); !slices.Equal(names, []string{"leftover.csv"}) {
		t.Errorf("the child left %q", names)
	}
	run(t, out, false, "new")
	wantRun(t, out, "new")
}

func TestHelperWrites(t *testing.T) {
	out := os.Getenv("REPORT_TEST_OUT")
	if out == "" {
		t.Skip("is run by TestKilledRun")
	}
	f := claim(t, out, ClaimOptions{})
	file := create(t, f, "leftover.csv")
	// The last block waits until the first is written.
	if _, err := file.Write(make([]byte, (maxPending+1)*fileBlock)); err != nil {
		t.Fatal(err)
	}
	fmt.Println("writing")
	io.Copy(io.Discard, os.Stdin)
}

// A dyingFS does nothing any more after, or from before, the n-th change of a name.
type dyingFS struct {
	fsys.OS
	n     int
	after bool
}

var errDead = errors.New("killed")

func (d *dyingFS) Rename(from, to string) error {
	if d.n--; d.n < 0 || d.n == 0 && !d.after {
		return errDead
	}
	return d.OS.Rename(from, to)
}

func (d *dyingFS) Exchange(a, b string) error {
	if filepath.Base(b) == "b" { // of tryExchange
		return d.OS.Exchange(a, b)
	}
	if d.n--; d.n < 0 || d.n == 0 && !d.after {
		return errDead
	}
	return d.OS.Exchange(a, b)
}

func (d *dyingFS) OpenDir(path string) (fsys.File, error) {
	h, err := d.OS.OpenDir(path)
	return dyingFile{h, d}, err
}

type dyingFile struct {
	fsys.File
	fs *dyingFS
}

func (f dyingFile) RemoveAll(name string) error {
	if f.fs.n <= 0 {
		return errDead
	}
	return f.File.RemoveAll(name)
}

// A run that is killed before its files have their name still owns the folder, and
// one that is killed after that does not: the next one finds an output and nothing
// beside it, whether it may replace that or not. So it is where the files are
// exchanged for those of a run before.
func TestKilledAroundTheRename(t *testing.T) {
	other := exampleManifest()
	other.Scheme.CodeLength++
	for _, before := range []string{"", "before"} {
		for n, named := 3, false; !named; n++ { // the first two are those of the mark
			for _, after := range []bool{false, true} {
				out := killedAt(t, before, &dyingFS{n: n, after: after})
				mapping, err := os.ReadFile(filepath.Join(out, "mapping.csv"))
				if named = string(mapping) == "old"; !named && string(mapping) != before {
					t.Fatalf("rename %d, after it %v: mapping %q, %v", n, after, mapping, err)
				}
				f, err := Claim(out, ClaimOptions{})
				if named {
					wantRun(t, out, "old")
					out = killedAt(t, before, &dyingFS{n: n, after: after})
				}
				if len(mapping) > 0 {
					if !errors.Is(err, ErrExists) {
						t.Fatalf("rename %d, after it %v: the output is there, but %v", n, after, err)
					}
					f, err = Claim(out, ClaimOptions{Overwrite: true})
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := f.Own(other); named == errors.Is(err, ErrUnfinished) {
					t.Errorf("rename %d, after it %v: before it %q; the files have their name: %v; for another run: %v", n, after, before, named, err)
				}
				if err := f.Abandon(); err != nil {
					t.Error(err)
				}
				run(t, out, true, "again")
				wantRun(t, out, "again")
			}
		}
	}
}

// killedAt is the output of a run, over that of one before if there is any, which was
// killed as d says.
func killedAt(t *testing.T, before string, d *dyingFS) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	if before != "" {
		run(t, out, false, before)
	}
	f := claim(t, out, ClaimOptions{FS: d, Overwrite: true})
	if err := errors.Join(writeRun(f, "old"), f.Abandon()); !errors.Is(err, errDead) {
		t.Fatalf("killed: %v", err)
	}
	return out
}

// A directFS counts what is written past the page cache and through it.
type directFS struct {
	fsys.OS
	direct, cached int64 // bytes
}

type directFile struct {
	fsys.File
	fs *directFS
	on bool
}

func (f *directFS) Create(path string) (fsys.File, error) {
	h, err := f.OS.Create(path)
	return &directFile{File: h, fs: f}, err
}

func (f *directFile) Direct(on bool) {
	f.on = on
	f.File.Direct(on)
}

func (f *directFile) Write(p []byte) (int, error) {
	if f.on {
		f.fs.direct += int64(len(p))
	} else {
		f.fs.cached += int64(len(p))
	}
	return f.File.Write(p)
}

func TestFile(t *testing.T) {
	files := &directFS{}
	f := claim(t, filepath.Join(t.TempDir(), "out"), ClaimOptions{FS: files})
	defer f.Abandon()
	files.cached = 0
	var want bytes.Buffer
	file := create(t, f, "x")
	for i, size := range []int{0, 1, 100, fileBlock - 101, fileBlock, 3, 2*fileBlock + 5, 40_000, 40_000, 7} {
		piece := bytes.Repeat([]byte{byte(i)}, size)
		want.Write(piece)
		if n, err := file.Write(piece); n != size || err != nil {
			t.Fatalf("write of %d: %d, %v", size, n, err)
		}
		clear(piece) // it is the caller's again
	}
	if file.Size() != int64(want.Len()) {
		t.Errorf("size %d, want %d", file.Size(), want.Len())
	}
	for range 2 {
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(f.inner, "x"))
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("other content (%v)", err)
	}
	if sum := sha256.Sum256(want.Bytes()); file.SHA256() != hex.EncodeToString(sum[:]) {
		t.Errorf("other digest")
	}
	tail := file.Size() % fileBlock
	if files.direct != file.Size()-tail || files.cached != tail {
		t.Errorf("%d bytes past the cache, %d through it, of %d", files.direct, files.cached, file.Size())
	}
	again, err := f.Create("x")
	if _, staterr := os.Stat(filepath.Join(f.inner, "x")); err != nil || !errors.Is(staterr, fs.ErrNotExist) || !slices.Equal(f.Files(), []*File{again}) {
		t.Errorf("a file in place of the first: %v, and there %v", err, staterr)
	}
}

func TestFileWithoutBytesIsNotCreated(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	f := claim(t, out, ClaimOptions{})
	for _, name := range []string{"closed", "forgotten"} {
		file := create(t, f, name)
		if name == "closed" && file.Close() != nil {
			t.Error("close")
		}
	}
	if err := writeRun(f, "x"); err != nil {
		t.Fatal(err)
	}
	wantRun(t, out, "x")
}

func TestCommitWantsClosedFiles(t *testing.T) {
	f := claim(t, filepath.Join(t.TempDir(), "out"), ClaimOptions{})
	defer f.Abandon()
	file := create(t, f, "open.csv")
	if _, err := file.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil || !strings.Contains(err.Error(), "open.csv") {
		t.Errorf("got %v", err)
	}
}
