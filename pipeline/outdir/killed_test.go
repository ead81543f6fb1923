package outdir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/fsys"
)

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
		t.Errorf("claim of a directory in use: %v", err)
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

func (d *dyingFS) Remove(path string) error {
	if d.n <= 0 {
		return errDead
	}
	return d.OS.Remove(path)
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

// A run that is killed before its files have their name leaves the output as it was, and one
// that is killed after that the new one. The next claim leaves nothing beside it, whether it
// may replace the output or not.
func TestKilledAroundTheRename(t *testing.T) {
	for _, before := range []string{"", "before"} {
		for n, named := 1, false; !named; n++ {
			for _, after := range []bool{false, true} {
				out := killedAt(t, before, &dyingFS{n: n, after: after})
				mapping, err := os.ReadFile(filepath.Join(out, "mapping.csv"))
				if named = string(mapping) == "old"; !named && string(mapping) != before {
					t.Fatalf("rename %d, after it %v: mapping %q, %v", n, after, mapping, err)
				}
				f, err := Claim(out, ClaimOptions{})
				switch {
				case len(mapping) > 0 != errors.Is(err, ErrExists):
					t.Fatalf("rename %d, after it %v: mapping %q, and claiming it gives %v", n, after, mapping, err)
				case err == nil:
					err = f.Abandon()
				default:
					err = nil
					wantRun(t, out, string(mapping))
				}
				if err != nil {
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
