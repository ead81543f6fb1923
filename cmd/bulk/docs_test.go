package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const auditPage = "../../pipeline/audit/README.md"

// An example is a command of a page and what it must write to stdout.
type example struct{ command, want string }

// examples finds the commands of a page: indented lines that begin with "$ ",
// which go on in lines that begin with "> ", and their output below them.
func examples(page string) (list []example) {
	var in string // indentation of the block in hand; "": none
	for _, line := range strings.SplitAfter(page, "\n") {
		text := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(text)]
		command, begins := strings.CutPrefix(text, "$ ")
		switch {
		case len(indent) >= 4 && begins:
			in = indent
			list = append(list, example{command: command})
		case in == "" || !strings.HasPrefix(line, in):
			in = ""
		case strings.HasPrefix(text, "> "):
			list[len(list)-1].command += strings.TrimPrefix(text, "> ")
		default:
			list[len(list)-1].want += strings.TrimPrefix(line, in)
		}
	}
	return list
}

// Every command of the page for auditors gives what stands below it. They are
// run by one shell, one after the other.
func TestAuditPage(t *testing.T) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip(err)
	}
	page, err := os.ReadFile(auditPage)
	if err != nil {
		t.Fatal(err)
	}
	list := examples(string(page))
	if len(list) < 15 {
		t.Fatalf("only %d commands", len(list))
	}
	const end = "\x00"
	var script strings.Builder
	for _, e := range list {
		script.WriteString(e.command + "code=$?; printf '\\0'; (exit $code)\n")
	}
	cmd := exec.Command("sh")
	cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader(script.String())
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatal(err)
	}
	got := strings.Split(string(out), end)
	for i, e := range list {
		if i >= len(got) || got[i] != e.want {
			t.Fatalf("$ %sgave\n%s\nwant\n%s\nstderr: %s", e.command, got[min(i, len(got)-1)], e.want, stderr.String())
		}
	}
}

// Every test and script that README and the page for auditors name exists.
func TestNamedTests(t *testing.T) {
	exist := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(source, -1) {
			exist[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+|\\w+\\.txtar)`")
	for _, name := range []string{"../../README.md", auditPage} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllSubmatch(page, -1) {
			what := string(m[1])
			if strings.HasSuffix(what, ".txtar") {
				_, err = os.Stat(filepath.Join("testdata/script", what))
				exist[what] = err == nil
			}
			if !exist[what] {
				t.Errorf("%s names %s, which does not exist", name, what)
			}
		}
	}
}
