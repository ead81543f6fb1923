package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// What surrounds a run may be hostile too: names, links, rights, a full disk.

const goodCSV = "url\nhttp://example.com/\n"

// Names may be any bytes: they come back in the reports, and no line of the log
// is torn by them.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"new\nline.csv", "escape\x1b]0;x\a.csv", "quote\",\"x.csv", " .csv", "-- .csv", "=1+1.csv", "\xff.csv"} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, name, goodCSV)
			out := does(t, dir, exitDone, "read=1 created=1", runArgs("./"+name)...)
			out += does(t, dir, exitDone, "OK: 1 row and 0 rejects checked against files and inputs; no problems", "verify", "out", "--inputs", "./"+name)
			os.Remove(filepath.Join(dir, name))
			out += does(t, dir, exitUsage, "no such file or directory", append(runArgs("./"+name), "--overwrite")...)
			for _, line := range strings.Split(out, "\n") {
				if strings.Contains(line, "\x1b") || line != "" && !strings.HasPrefix(line, "time=") && !strings.HasPrefix(line, "kind,") && !strings.HasPrefix(line, "summary,") {
					t.Errorf("a line of its own: %q", line)
				}
			}
		})
	}
}

// The output takes the place of nothing that is not the output of a run, and of no
// input.
func TestHostileLinks(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, in func(string) string)
		args    []string
		code    int
		message string
	}{
		"to a finished run": {func(t *testing.T, in func(string) string) { link(t, "other", in("out")) },
			nil, exitUsage, "output directory out: not the output of a run: it is a symbolic link"},
		"to nothing": {func(t *testing.T, in func(string) string) { link(t, "nowhere", in("out")) },
			nil, exitUsage, "output directory out: not the output of a run: it is a symbolic link"},
		"to the input": {func(t *testing.T, in func(string) string) { link(t, "good.csv", in("out")) },
			nil, exitUsage, "output directory out: not the output of a run: it is a symbolic link"},
		"to itself": {func(t *testing.T, in func(string) string) { link(t, "out", in("out")) },
			nil, exitUsage, "output directory out: not the output of a run: it is a symbolic link"},
		"in place of the partial folder": {func(t *testing.T, in func(string) string) { link(t, "other", in(".out.partial")) },
			nil, exitFailed, "output directory out: open "},
		"in the folder": {func(t *testing.T, in func(string) string) {
			must(t, os.CopyFS(in("out"), os.DirFS(in("other"))))
			link(t, "../good.csv", in("out/more"))
		}, nil, exitUsage, "output directory out: not the output of a run: it also holds more"},
		"in place of a report": {func(t *testing.T, in func(string) string) {
			must(t, os.CopyFS(in("out"), os.DirFS(in("other"))))
			must(t, os.Remove(in("out/mapping.csv")))
			link(t, "../good.csv", in("out/mapping.csv"))
		}, nil, exitUsage, "output directory out: not the output of a run: "},
		"from the input into the output": {func(t *testing.T, in func(string) string) {
			must(t, os.CopyFS(in("out"), os.DirFS(in("other"))))
			link(t, "out/mapping.csv", in("in.csv"))
		}, []string{"in.csv", "--url-column", "canonical_url"}, exitUsage, "in.csv: lies in the output directory out, which the run replaces: give another with --out"},
		"from the input to where the output is written": {func(t *testing.T, in func(string) string) {
			must(t, os.Mkdir(in(".out.partial"), 0o777))
			must(t, os.Rename(in("good.csv"), in(".out.partial/x.csv")))
			link(t, ".out.partial/x.csv", in("good.csv"))
		}, nil, exitUsage, "good.csv: lies in the output directory out, which the run replaces: give another with --out"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "good.csv", goodCSV)
			does(t, dir, exitDone, "created=1", "run", "good.csv", "--workspace", "w", "--out", "other", "--db", "sqlite:links.db")
			tt.prepare(t, func(name string) string { return filepath.Join(dir, name) })
			before := tree(t, dir)
			does(t, dir, tt.code, tt.message, append(runArgs("good.csv", "--overwrite"), tt.args...)...)
			if after := tree(t, dir); after != before {
				t.Errorf("was\n%s\nis\n%s", before, after)
			}
		})
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	must(t, os.Symlink(to, at))
}

// tree lists a folder, with what the files say and where the links go, but for
// the store.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(d.Name(), "links.db") {
			return err
		}
		text, _ := os.Readlink(path)
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data)
		}
		fmt.Fprintf(&b, "%s %s %q\n", path, d.Type(), text)
		return nil
	}))
	return b.String()
}

// What may not be read or written is named. Root may do anything, so that it lets
// nobody run the command.
func TestHostileRights(t *testing.T) {
	if os.Getuid() == 0 {
		t.Setenv("TMPDIR", "/tmp") // root's own may be for root alone
		t.Setenv("GOTMPDIR", "")
	}
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, in func(string) string)
		args    []string
		code    int
		message string
	}{
		"input": {func(t *testing.T, in func(string) string) { must(t, os.Chmod(in("good.csv"), 0)) },
			runArgs("good.csv"), exitFailed, "open good.csv: permission denied"},
		"folder of the input": {func(t *testing.T, in func(string) string) { must(t, os.Chmod(in("sub"), 0)) },
			runArgs("sub/good.csv"), exitFailed, "open sub/good.csv: permission denied"},
		"output": {func(t *testing.T, in func(string) string) { must(t, os.Chmod(in("sub"), 0o555)) },
			append(runArgs("good.csv"), "--out", "sub/out"), exitFailed, "output directory sub/out: mkdir "},
		"store": {func(t *testing.T, in func(string) string) { must(t, os.Chmod(in("sub"), 0o555)) },
			append(runArgs("good.csv"), "--db", "sqlite:sub/links.db"), exitFailed, "sub/links.db"},
		"temporary files": {func(t *testing.T, in func(string) string) { must(t, os.Chmod(in("sub"), 0o555)) },
			append(runArgs("links.parquet.gz"), "--tmp", "sub"), exitFailed, "permission denied"},
		"report": {func(t *testing.T, in func(string) string) { must(t, os.Chmod(in("other/mapping.csv"), 0)) },
			[]string{"verify", "other"}, exitFailed, "mapping.csv: permission denied"},
		"manifest": {func(t *testing.T, in func(string) string) { must(t, os.Chmod(in("other/manifest.json"), 0)) },
			[]string{"diff", "other", "other"}, exitFailed, "manifest.json: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			must(t, os.Mkdir(in("sub"), 0o777))
			write(t, dir, "good.csv", goodCSV)
			write(t, dir, "sub/good.csv", goodCSV)
			must(t, os.WriteFile(in("links.parquet.gz"), gzipped(append([]byte("PAR1"), make([]byte, 1<<20)...)), 0o666))
			does(t, dir, exitDone, "created=1", "run", "good.csv", "--workspace", "w", "--out", "other", "--db", "sqlite:first.db")
			tt.prepare(t, in)
			t.Cleanup(func() { os.Chmod(in("sub"), 0o777) })
			c := newChild(t, dir, tt.args...)
			asNobody(t, c, dir)
			must(t, c.Start())
			c.ends(t, tt.code, tt.message)
			if _, err := os.Lstat(in("out")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("out: %v", err)
			}
		})
	}
}

// asNobody takes root's rights from a command, in a folder that it may write.
func asNobody(t *testing.T, c *child, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	must(t, os.Chmod(filepath.Dir(dir), 0o755)) // the folder of the test is for its owner alone
	must(t, os.Chown(dir, nobody, nobody))
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}))
	self := filepath.Join(t.TempDir(), "bulk") // so is that of the test's program
	copyFile(t, c.Path, self)
	must(t, errors.Join(os.Chmod(filepath.Dir(self), 0o755), os.Chmod(self, 0o755))) // whatever the umask
	c.Path = self
	c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	r, err := os.Open(from)
	must(t, err)
	defer r.Close()
	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(w, r)
	must(t, errors.Join(err, w.Close()))
}

// onFullDisk is set in the environment of the test binary to make it run bulk on
// a disk that is full; see fullDisk.
const onFullDisk = "BULK_TEST_ON_FULL_DISK"

const diskSize = 256 << 10

// A full disk is named with the file that it has no room for. Nothing of the run
// is left, and what was there before is as it was.
func TestHostileFullDisk(t *testing.T) {
	for name, tt := range map[string]struct {
		args    []string
		message string
	}{
		"output":            {[]string{"run", "big.csv", "--out", "disk/new", "--db", "sqlite:links.db"}, "/mapping.csv: "},
		"output in Parquet": {[]string{"run", "big.csv", "--out", "disk/new", "--db", "sqlite:links.db", "--report-format", "parquet"}, "/mapping.parquet: "},
		"overwritten":       {[]string{"run", "big.csv", "--out", "disk/out", "--db", "sqlite:links.db", "--overwrite"}, "/mapping.csv: "},
		"rejects":           {[]string{"run", "bad.csv", "--out", "disk/new", "--db", "sqlite:links.db"}, "/rejects.csv: "},
		"store":             {[]string{"run", "big.csv", "--out", "out", "--db", "sqlite:disk/links.db"}, "disk/links.db"},
		"temporary files":   {[]string{"run", "links.parquet.gz", "--out", "out", "--db", "sqlite:links.db", "--tmp", "disk"}, "open links.parquet.gz: copy to a temporary file: "},
	} {
		t.Run(name, func(t *testing.T) {
			for _, way := range []string{"mounted", "limited"} {
				t.Run(way, func(t *testing.T) { testFullDisk(t, way, tt.args, tt.message) })
			}
		})
	}
}

func testFullDisk(t *testing.T, way string, args []string, message string) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "disk"), 0o777))
	write(t, dir, "good.csv", goodCSV)
	var big, bad strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&big, "http://example.com/%x\n", i*7919%20_000*1_000_003)
		fmt.Fprintf(&bad, "example.com/%x\n", i)
	}
	write(t, dir, "big.csv", "url\n"+big.String())
	write(t, dir, "bad.csv", "url\n"+bad.String())
	must(t, os.WriteFile(filepath.Join(dir, "links.parquet.gz"), gzipped(append([]byte("PAR1"), make([]byte, 2*diskSize)...)), 0o666))
	c := newChild(t, dir, append(slices.Clone(args), "--workspace", "w", "--memory", "320MiB", "--workers", "1")...)
	c.Env = append(c.Env, onFullDisk+"="+way)
	apart(c)
	must(t, c.Start())
	c.ends(t, exitFailed, message)
	out := c.out.String()
	if way == "mounted" && strings.Contains(out, "files are limited") {
		t.Skip("nothing may be mounted here")
	}
	full := "no space left on device|file too large|disk is full"
	if strings.Contains(out, "files are limited") {
		full += "|check the disk and its free space" // SQLite's words for a file that is too large
	}
	if !regexp.MustCompile(full).MatchString(out) {
		t.Errorf("the disk is not named:\n%s", out)
	}
	if !strings.Contains(out, "the disk is as it was") {
		t.Errorf("%s", out)
	}
	if _, err := os.Lstat(filepath.Join(dir, "out")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("out: %v", err)
	}
}

// fullDisk makes a run on the disk that is mounted as "disk", fills it up but for a
// little, runs the command and compares. One that may not mount has all its files
// limited in length, and no store that would be the first to get there.
func fullDisk(args []string) (code int) {
	if os.Getenv(onFullDisk) == "limited" || mountDisk("disk") != nil {
		limitFiles()
		fmt.Fprintln(os.Stderr, "files are limited")
		if slices.Contains(args, "sqlite:links.db") {
			args = append(args, "--dry-run")
		}
	}
	run := func(args ...string) int { return bulk(args, nil, io.Discard, os.Stderr) }
	if code := run("run", "good.csv", "--workspace", "w", "--out", "disk/out", "--db", "sqlite:disk/links.db"); code != exitDone {
		return 99
	}
	list := func() (all string) {
		filepath.WalkDir("disk", func(path string, d os.DirEntry, err error) error {
			if strings.Contains(path, "links.db") {
				return nil
			}
			data, _ := os.ReadFile(path)
			all += fmt.Sprintf("%s %q %v\n", path, data, err)
			return nil
		})
		return all
	}
	before := list()
	code = run(args...)
	if after := list(); after != before {
		fmt.Fprintf(os.Stderr, "was\n%s\nis\n%s", before, after)
	} else {
		fmt.Fprintln(os.Stderr, "the disk is as it was")
	}
	return code
}

// limitFiles bounds every file that this process writes.
func limitFiles() {
	signal.Ignore(syscall.SIGXFSZ)
	syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: diskSize, Max: diskSize})
}

// A service file that is a pipe, such as of a secret that a shell substitutes, can be read
// only once.
func TestServiceFileIsAPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", "links.txt", "http://example.com/\n")
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	_, err = w.WriteString("[links]\nhost=/nonexistent\n")
	must(t, errors.Join(err, w.Close()))
	cmd := process(t, "run", "links.txt", "--workspace", "demo", "--retry-for", "1ms", "--db", "postgres:///?service=links")
	cmd.Env = append(cmd.Env, "PGSERVICEFILE=/dev/fd/3")
	cmd.ExtraFiles = []*os.File{r}
	if output, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitStore || !strings.Contains(string(output), "/nonexistent") {
		t.Errorf("%v: %s", cmd.ProcessState, output)
	}
}
