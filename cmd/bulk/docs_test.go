package main

import (
	"bytes"
	"image/png"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	readme     = "../../README.md"
	auditPage  = "../../pipeline/verify/README.md"
	legacyPage = "../../pipeline/legacy/README.md"
	rulesPage  = "../../pipeline/rules/README.md"
	deletePage = "../../pipeline/remove/README.md"
	reportPage = "../../pipeline/report/README.md"
	sourcePage = "../../pipeline/source/README.md"
	storePage  = "../../sink/README.md"
	expandPage = "../../pipeline/campaign/README.md"
	goOnPage   = "../../codegen/elsewhere/README.md"
	stagePage  = "../../pipeline/stage/README.md"
	nightPage  = "../../testdata/deploy/README.md"
)

// runPages are the pages whose commands a test of this file runs.
var runPages = []string{readme, auditPage, legacyPage, rulesPage, deletePage, reportPage, sourcePage, storePage, expandPage, goOnPage, stagePage}

// pages returns the text of each page of the repository, by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "README.md" {
			list[path] = string(read(t, path))
		}
		return err
	})
	must(t, err)
	if len(list) < 15 {
		t.Fatalf("%d pages", len(list))
	}
	return list
}

// Each page with commands is one whose commands are run, its links lead somewhere, and the
// flags that it names exist.
func TestPages(t *testing.T) {
	flags := map[string]bool{}
	for _, c := range rootCommand(newUI(io.Discard, io.Discard)).Commands() {
		for _, f := range append([]*cobra.Command{c}, c.Commands()...) {
			f.InheritedFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
			f.LocalFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		}
	}
	all := pages(t)
	link := regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)]*)?\)`)
	flag := regexp.MustCompile("bulk [a-z]+[^`\n]*")
	for path, page := range all {
		if len(examples(page)) > 0 && !slices.Contains(runPages, path) {
			t.Errorf("nobody runs the commands of %s", path)
		}
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s leads to %s, which does not exist", path, m[0])
			}
			if m[2] != "" && !slices.Contains(anchors(all[target]), m[2][1:]) {
				t.Errorf("%s leads to %s, which is no title there", path, m[0])
			}
		}
		for _, command := range flag.FindAllString(page, -1) {
			for _, m := range regexp.MustCompile(`(?:^| )--([a-z][a-z0-9-]*)`).FindAllStringSubmatch(command, -1) {
				if !flags[m[1]] && m[1] != "help" && m[1] != "version" {
					t.Errorf("%s names --%s, which no command has: %s", path, m[1], command)
				}
			}
		}
	}
	if n := len(strings.Fields(all[readme])); n > 2500 {
		t.Errorf("README has %d words: it is to be read in five minutes, so a page beside its law takes the rest", n)
	}
}

// anchors returns what links to the titles of a page are called.
func anchors(page string) (list []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(name, " ", "-"))
	}
	return list
}

// An example is a command of a page and what it must write to stdout.
type example struct{ command, want string }

// examples finds the commands of a page: indented lines that begin with "$ ",
// which go on in lines that begin with "> ", and their output below them, in which there may
// be empty lines.
func examples(page string) (list []example) {
	var in string    // indentation of the block in hand; "": none
	var empty string // lines after it
	for _, line := range strings.SplitAfter(page, "\n") {
		text := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(text)]
		command, begins := strings.CutPrefix(text, "$ ")
		switch {
		case len(indent) >= 4 && begins:
			in, empty = indent, ""
			list = append(list, example{command: command})
		case in != "" && line == "\n":
			empty += line
		case in == "" || !strings.HasPrefix(line, in):
			in = ""
		case empty == "" && strings.HasPrefix(text, "> "):
			list[len(list)-1].command += strings.TrimPrefix(text, "> ")
		default:
			list[len(list)-1].want += empty + strings.TrimPrefix(line, in)
			empty = ""
		}
	}
	return list
}

// The worked campaign gives what stands there.
func TestWorkedCampaign(t *testing.T) {
	list := examples(string(read(t, expandPage)))
	if len(list) < 10 {
		t.Fatalf("only %d commands", len(list))
	}
	runExamples(t, t.TempDir(), list)
}

// So do the commands about going on from other systems.
func TestGoingOn(t *testing.T) {
	list := examples(string(read(t, goOnPage)))
	if len(list) < 14 {
		t.Fatalf("only %d commands", len(list))
	}
	runExamples(t, t.TempDir(), list)
}

// The worked example of stages gives what stands there.
func TestWorkedStages(t *testing.T) {
	list := examples(string(read(t, stagePage)))
	if len(list) < 10 {
		t.Fatalf("only %d commands", len(list))
	}
	runExamples(t, t.TempDir(), list)
}

// Every command of the page for auditors gives what stands below it. They are
// run by one shell, one after the other.
func TestAuditPage(t *testing.T) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip(err)
	}
	list := examples(string(read(t, auditPage)))
	if len(list) < 15 {
		t.Fatalf("only %d commands", len(list))
	}
	runExamples(t, t.TempDir(), list)
}

func runExamples(t *testing.T, dir string, list []example) {
	t.Helper()
	const end = "\x00"
	var script strings.Builder
	for _, e := range list {
		script.WriteString(e.command + "code=$?; printf '\\0'; (exit $code)\n")
	}
	cmd := exec.Command("sh")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(script.String())
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

// The worked example of README gives what stands there; the messages, which are those of a
// terminal, are compared with such.
func TestWorkedExample(t *testing.T) {
	_, page, _ := strings.Cut(string(read(t, readme)), "\n## A worked example\n")
	page, _, _ = strings.Cut(page, "\n## ")
	blocks := regexp.MustCompile(`(?m)(^    .*\n)+`).FindAllString(page, -1)
	list := examples(page)
	if len(blocks) != 4 || len(list) != 2 {
		t.Fatalf("%d blocks, %d commands", len(blocks), len(list))
	}
	for i := range blocks {
		blocks[i] = strings.ReplaceAll(blocks[i][4:], "\n    ", "\n")
	}
	messages := list[0].want // a run has nothing to say on stdout
	list[0].want = ""
	var said strings.Builder
	u := newUI(nil, &said)
	u.lines = false
	u.began = time.Now()
	var o runOptions
	o.newStore, o.Inputs, o.Out, o.StoreName, o.BaseURL = true, []string{"links.csv"}, "links.bulk", "sqlite:bulk.db", "https://sho.rt"
	u.summary(&o, &pipeline.Result{
		RunID: 1, Counts: sink.Counts{Read: 4, Created: 2, Duplicate: 1, Rejected: 1}, Reasons: map[string]int64{"unsupported_scheme": 1},
		Rejected: map[string]*pipeline.PreviewRow{"unsupported_scheme": {Source: "links.csv", Row: 4, URL: "ftp://example.com/pub/readme.txt", Detail: `scheme "ftp" is not http or https`}},
		Files:    []manifest.FileSum{{Name: "mapping.csv", Rows: 3}, {Name: "collisions.csv"}, {Name: "rejects.csv", Rows: 1}},
		Timings:  &manifest.Timings{Stages: []manifest.Stage{{Name: "read", Rows: 4, Seconds: 4.0 / 5912}, {Name: "settle", Rows: 3, Seconds: 3.0 / 15318}, {Name: "write", Rows: 3, Seconds: 3.0 / 4407}}},
		Out:      "links.bulk", ManifestSHA256: regexp.MustCompile(`[0-9a-f]{64}`).FindString(messages),
		Told: manifest.Told{Workspaces: []string{"demo"}, NewWorkspaces: []string{"demo"}, Rewritten: 3, RewrittenBy: map[string]int64{"escapes": 1, "fragment": 1, "host": 1,
			"port": 1, "query order": 1, "scheme": 1, "trailing slash": 1}},
		MergedDiffers: &manifest.MergedDiffers{Rows: 1, By: map[string]int64{"fragment": 1, "query order": 1, "trailing slash": 1},
			Example: [2]manifest.Spelling{
				{Source: "links.csv", Row: 2, URL: "HTTPS://Example.COM:443/spring/?utm_medium=news&utm_source=mail#top"},
				{Source: "links.csv", Row: 1, URL: "https://example.com/spring?utm_source=mail&utm_medium=news"},
			}},
	}, nil)
	if said.String() != messages {
		t.Errorf("a terminal shows\n%swant\n%s", &said, messages)
	}
	dir := t.TempDir()
	write(t, dir, "links.csv", blocks[0])
	runExamples(t, dir, list)
	for i, name := range []string{"mapping.csv", "rejects.csv"} {
		if got := string(read(t, dir, "links.bulk", name)); got != blocks[2+i] {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, blocks[2+i])
		}
	}
}

// So do the commands about moving from another shortener, of README and of the page about it.
func TestWorkedMigration(t *testing.T) {
	_, short, _ := strings.Cut(string(read(t, readme)), "\n## Moving from another shortener\n")
	short, _, _ = strings.Cut(short, "\n## ")
	migration(t, short, 3)
	rows := string(read(t, migration(t, string(read(t, legacyPage)), 6), "links.bulk", "mapping.csv"))
	if strings.Count(rows, ",created,") != 5 {
		t.Errorf("the way back: %s", rows)
	}
}

// migration runs the commands of a page in a directory that has its list, and returns that.
func migration(t *testing.T, page string, count int) (dir string) {
	t.Helper()
	_, list, _ := strings.Cut(page, "\n\n    ")
	list, _, _ = strings.Cut(list, "\n\n")
	commands := examples(page)
	if len(commands) != count {
		t.Fatalf("%d commands", len(commands))
	}
	for i := range commands {
		commands[i].want = regexp.MustCompile(`(?m)^bulk: .*\n`).ReplaceAllString(commands[i].want, "") // for stderr
		if strings.HasPrefix(commands[i].command, "bulk run ") {
			commands[i].want = ""
		}
	}
	dir = t.TempDir()
	write(t, dir, "old.csv", strings.ReplaceAll(list, "\n    ", "\n")+"\n")
	runExamples(t, dir, commands)
	return dir
}

// So do the commands about links that end.
func TestLinksThatEnd(t *testing.T) {
	page := string(read(t, rulesPage))
	commands := examples(page)
	if len(commands) != 8 {
		t.Fatalf("%d commands", len(commands))
	}
	_, list, _ := strings.Cut(page, "\n\n    ")
	list, _, _ = strings.Cut(list, "\n\n")
	commands[5].want = "" // it is for stderr
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "campaign.csv", strings.ReplaceAll(list, "\n    ", "\n")+"\n")
	write(t, dir, "june.csv", "long_url,expires_at,owner_id\nhttps://example.com/spring,2026-07-01,ann\nhttps://example.com/menu,2026-12-31,\n")
	runExamples(t, dir, commands[:5])
	for _, set := range []string{ // as a redirect service does
		"access_count = 1204, avg_redirect_ms = 2.4 WHERE short_code = 'W76GsfnNqa'",
		"access_count = 500, avg_redirect_ms = 3.1 WHERE short_code = 'D9q58tYn9R'",
		"access_count = 87, avg_redirect_ms = 2.9 WHERE short_code = '7J4yDp4URM'",
	} {
		_, err := statement("sqlite:bulk.db", "UPDATE links SET "+set)
		must(t, err)
	}
	runExamples(t, dir, commands[5:])
}

// So do those that delete a link of the worked example.
func TestWorkedDelete(t *testing.T) {
	_, shop, _ := strings.Cut(string(read(t, readme)), "\n## A worked example\n")
	page := string(read(t, deletePage))
	commands := examples(page)
	if len(commands) != 3 {
		t.Fatalf("%d commands", len(commands))
	}
	// The page answers the question.
	commands[0].command = strings.TrimSpace(commands[0].command) + " --yes\n"
	commands[0].want = regexp.MustCompile(`(?m)^(bulk: |Delete ).*\n`).ReplaceAllString(commands[0].want, "") // for stderr
	dir := t.TempDir()
	for name, text := range map[string]string{"links.csv": shop, "gone.csv": page} {
		_, list, _ := strings.Cut(text, "\n\n    ")
		list, _, _ = strings.Cut(list, "\n\n")
		write(t, dir, name, strings.ReplaceAll(list, "\n    ", "\n")+"\n")
	}
	runExamples(t, dir, append([]example{{command: "bulk run links.csv --workspace demo\n"}}, commands...))
}

// So do those of the pages that go on where the worked example ends.
func TestAfterTheWorkedExample(t *testing.T) {
	_, shop, _ := strings.Cut(string(read(t, readme)), "\n## A worked example\n")
	_, list, _ := strings.Cut(shop, "\n\n    ")
	list, _, _ = strings.Cut(list, "\n\n")
	for _, page := range []string{reportPage, sourcePage, storePage} {
		commands := examples(string(read(t, page)))
		if len(commands) < 3 {
			t.Fatalf("%s: %d commands", page, len(commands))
		}
		dir := t.TempDir()
		write(t, dir, "links.csv", strings.ReplaceAll(list, "\n    ", "\n")+"\n")
		runExamples(t, dir, append([]example{{command: "bulk run links.csv --workspace demo\n"}}, commands...))
	}
}

// The nightly job of README and of its page is one, and bulk takes it.
func TestWorkedNight(t *testing.T) {
	block := regexp.MustCompile(`(?m)^    inputs: .*\n(    .*\n)+`)
	job := block.FindString(string(read(t, readme)))
	if job == "" || job != block.FindString(string(read(t, nightPage))) {
		t.Errorf("README has the job\n%s\nits page\n%s", job, block.FindString(string(read(t, nightPage))))
	}
	dir := t.TempDir()
	write(t, dir, "nightly.yaml", regexp.MustCompile(`(?m)^    `).ReplaceAllString(job, ""))
	var out strings.Builder
	if code := bulk([]string{"config", "run", "--config", filepath.Join(dir, "nightly.yaml")}, nil, &out, io.Discard); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(out.String(), "nightly.yaml:"); n != strings.Count(job, "\n") {
		t.Errorf("%d settings are taken: %s", n, &out)
	}
}

// The demo shows whole records: each line of its tables has the source before all else.
func TestDemo(t *testing.T) {
	cmd := exec.Command("sh", "-c", string(read(t, "../../testdata/demo.sh"))) // read, so that its changes count
	cmd.Dir = "../.."
	out, err := cmd.Output()
	must(t, err)
	tables := regexp.MustCompile(`(?m)^\$ cut .*\n(.+\n)+`).FindAllString(string(out), -1)
	if len(tables) != 2 {
		t.Fatalf("%d tables: %s", len(tables), out)
	}
	for _, line := range strings.Split(tables[0]+tables[1], "\n") {
		if !regexp.MustCompile(`^(\$ cut |source,row,|links\.csv,\d+,|$)`).MatchString(line) {
			t.Errorf("a line of its own: %s", line)
		}
	}
}

// README and --help say the same of the exit codes.
func TestExitCodes(t *testing.T) {
	help := strings.Join(strings.Fields(exitCodes), " ")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \|$`).FindAllStringSubmatch(string(read(t, readme)), -1)
	if codes := regexp.MustCompile(`(?m)^  \d`).FindAllString(exitCodes, -1); len(rows) != len(codes) {
		t.Errorf("README has %d codes, --help %d", len(rows), len(codes))
	}
	for _, row := range rows {
		if said := row[1] + " " + strings.ReplaceAll(row[2], "`", ""); !strings.Contains(help, said) {
			t.Errorf("--help does not say: %s", said)
		}
	}
}

// Every test and script that a page names exists.
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
	must(t, err)
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+|\\w+\\.txtar)`")
	for name, page := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(page, -1) {
			what := m[1]
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

// The picture of README is one, and small.
func TestPicture(t *testing.T) {
	const name = "testdata/readme/report.png"
	if !strings.Contains(string(read(t, readme)), "]("+name+")") {
		t.Error("README does not show it")
	}
	data := read(t, "../../"+name)
	if _, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || len(data) >= 150<<10 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
