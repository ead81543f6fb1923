package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/page"
)

// A new fact is told by every medium: no renderer knows the facts.
func TestNewFact(t *testing.T) {
	a := (&account.Run{Manifest: manifest.Manifest{Counts: manifest.Counts{Read: 3, Created: 3}}, ID: 7, Stored: true, Out: "out"}).Account()
	a.Facts = append(a.Facts, account.Fact{In: "legacy", Key: "echoes", Name: "rows heard twice", Noun: "row", Value: int64(1234),
		By: []account.Part{{Name: "loud", Count: 1000}, {Name: "quiet", Count: 234}}, Example: &account.Example{Source: "a.csv", Row: 5, Text: "http://a.example/"}, Note: "listen again"})
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info(a.Title, logAttrs(a)...)
	s := &screen{width: 200, most: 200, sources: 2}
	s.account(a, 2)
	var object strings.Builder
	must(t, printFacts(&object, a))
	var html strings.Builder
	must(t, page.Write(&html, &page.Report{Facts: pageFacts(a), Manifest: new(manifest.Manifest)}))
	for medium, c := range map[string]struct{ text, want string }{
		"sentence": {strings.Join(sentences(a), "\n"), "rows heard twice: 1,234 (loud 1,000, quiet 234), for example http://a.example/ (a.csv, row 5); listen again"},
		"log":      {logged.String(), `echoes=1234 echoes_by="loud 1,000, quiet 234" echoes_example=http://a.example/`},
		"screen":   {s.String(), "  rows heard twice  1,234  a.csv, row 5: http://a.example/; loud 1,000, quiet 234 (listen again)\n"},
		"page":     {regexp.MustCompile(`(<[^>]*>)+`).ReplaceAllString(html.String(), "|"), "|rows heard twice|1,234|loud 1,000, quiet 234|a.csv, row 5: |http://a.example/|Listen again.|"},
		"json":     {object.String(), `"legacy":{"echoes":{"rows":1234,"by":{"loud":1000,"quiet":234},"example":{"source":"a.csv","row":5,"text":"http://a.example/"}}}`},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%s: %s\nwant %s", medium, c.text, c.want)
		}
	}
}

// The files of a finished run tell the same as the run did. What they do not have, is known.
func TestAccountOfDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", "old.csv", "keyword,url,expires_at\na,https://a.example/x?b&a,2099-01-01\nb,https://a.example/x?a&b,\nA,ftp://b.example/,\n,https://c.example/#top,\n")
	code, told, said := inProcess(t, strings.Fields("run old.csv -w w --legacy keep --rules --out out --db sqlite:links.db --summary json")...)
	if code != exitRejected {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var run, dir map[string]any
	must(t, json.Unmarshal([]byte(told), &run))
	m, sum, err := manifest.ReadDir("out")
	must(t, err)
	data, err := os.ReadFile(filepath.Join("out", manifest.TimingsName))
	must(t, err)
	timings := new(manifest.Timings)
	must(t, json.Unmarshal(data, timings))
	var read bytes.Buffer
	must(t, printFacts(&read, account.OfDirectory("out", m, sum, timings).Account()))
	must(t, json.Unmarshal(read.Bytes(), &dir))
	onlyProcess := strings.Fields("new_store exit_code command rejected rejects_file seconds resumed repeated refused")
	for _, key := range onlyProcess {
		delete(run, key)
		delete(dir, key)
	}
	if a, b := indented(t, run), indented(t, dir); a != b {
		t.Errorf("the run told\n%s\nits directory\n%s", a, b)
	}
}

func indented(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	must(t, err)
	return string(text)
}

// A screen does not wrap, except what is for copying: that stands on a line of its own.
func TestScreenFits(t *testing.T) {
	long := strings.Repeat("長い", 40)
	r := &account.Run{Manifest: manifest.Manifest{Counts: manifest.Counts{Read: 1e8, Created: 1e8, Rejected: 12}, Reasons: map[string]int64{"unsupported_scheme": 12},
		MergedDiffers: &manifest.MergedDiffers{Rows: 1e8, By: map[string]int64{"fragment": 1e8, "query order": 3}, Example: [2]manifest.Spelling{{Source: "a", URL: manifest.Text(long)}, {Source: "b", URL: "https://b.example/"}}}},
		Rejected: map[string]account.Example{"unsupported_scheme": {Source: long, Row: 7, Text: "scheme"}}, ID: 1, Out: long, Command: "bulk verify " + long, ManifestSHA256: strings.Repeat("0", 64),
		Timings: &manifest.Timings{Stages: []manifest.Stage{{Name: "read", Rows: 1e9, Seconds: 100}}}, Told: manifest.Told{Workspaces: []string{long}}, Store: "sqlite:" + long, Took: time.Hour}
	for _, width := range []int{40, 80, 200} {
		s := &screen{width: width, most: width, sources: 2, wraps: true}
		s.account(r.Account(), 2)
		for line := range strings.Lines(s.String()) {
			line = strings.TrimSuffix(line, "\n")
			if exact := strings.Contains(line, "bulk verify") || strings.Contains(line, "00000000"); !exact && cells(line) > width {
				t.Errorf("%d columns: %d: %s", width, cells(line), line)
			}
		}
	}
}

// A run has the keys of its preview, and what both tell is the same. (Only a preview tells of kinds of
// links that there are none of.)
func TestKeysOfPreview(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", "before.csv", "keyword,url\nold,https://old.example/\n")
	write(t, ".", "old.csv", "keyword,url,title,expires_at\na,https://a.example/x?b&a,A,\nb,https://a.example/x?a&b,,2099-01-01\nA,ftp://b.example/,,\nA,https://a.example/other,,\n,https://c.example/?token=x,,\n,https://d.example/#top,,\n,https://d.example/,,\nold,https://old.example/,Old,2098-01-01\n")
	told := func(want int, args string) map[string]any {
		t.Helper()
		code, out, said := inProcess(t, strings.Fields(args)...)
		if code != want {
			t.Fatalf("%s: exit code %d: %s", args, code, said)
		}
		o := map[string]any{}
		if out != "" {
			must(t, json.Unmarshal([]byte(out), &o))
		}
		return o
	}
	told(exitDone, "run before.csv -w w --legacy keep --db sqlite:links.db")
	const flags = "old.csv -w w --legacy keep --rules --db sqlite:links.db"
	preview, run := told(exitRejected, "preview "+flags+" --json"), told(exitRejected, "run "+flags+" --summary json")
	shared := 0
	for key, value := range preview {
		if also, there := run[key]; there && key != "command" && key != "migration" {
			shared++
			if a, b := indented(t, value), indented(t, also); a != b {
				t.Errorf("%s: the preview told\n%s\nthe run\n%s", key, a, b)
			}
		}
	}
	for _, key := range strings.Fields("counts links_created reasons rejected merged_differs legacy rules links_unchanged dates_without_time store new_store workspaces new_workspaces exit_code") {
		if run[key] == nil || preview[key] == nil {
			t.Errorf("%s: in the preview %v, in the run %v", key, preview[key], run[key])
		}
	}
	if shared < 14 {
		t.Errorf("only %d keys of both", shared)
	}
}

// Each kind of link that the store cannot keep has words, and a line in the help.
func TestKindsHaveWords(t *testing.T) {
	for kind := range hygiene.Kind(hygiene.KindCount) {
		r := account.Run{Manifest: manifest.Manifest{Migration: &manifest.Migration{Hygiene: map[string]manifest.Hygiene{
			kind.String(): {Decision: "warn", Rows: 1, Example: &manifest.Spelling{Source: "a.csv", Row: 1, URL: "http://a.example/"}},
		}}}}
		for _, f := range r.Account().Facts {
			if f.Key == kind.String() && strings.HasSuffix(strings.TrimSpace(f.Note), "that") {
				t.Errorf("%s: %q", kind, f.Note)
			}
		}
		if !strings.Contains(migrationTopic, "  "+kind.String()+"=") {
			t.Errorf("bulk help migration does not have %s", kind)
		}
	}
}

// What a run did to the counter is told in words.
func TestCounterInWords(t *testing.T) {
	for _, c := range []struct {
		run  account.Run
		want string
	}{
		{account.Run{Told: manifest.Told{Counter: manifest.Counter{Last: 12346}}}, "last number given out: 12346"},
		{account.Run{Told: manifest.Told{Counter: manifest.Counter{Last: 12346, Start: 12345, Was: 1, Moved: true}}}, "--counter-start 12345 moved the counter: its next number was 1"},
		{account.Run{Told: manifest.Told{Counter: manifest.Counter{Start: 12345, Was: 1, Moved: true}}, DryRun: true}, "--counter-start 12345 would move the counter: its next number was 1"},
		{account.Run{Told: manifest.Told{Counter: manifest.Counter{Last: 12347, Start: 12345, Was: 12347}}}, "--counter-start 12345 changes nothing: the next number was 12347"},
		{account.Run{Told: manifest.Told{Counter: manifest.Counter{Start: 20001, Was: 12348, Moved: true}}, Repeated: true}, "--counter-start 20001 moved the counter: its next number was 12348"},
	} {
		c.run.Numbers = &manifest.Numbers{}
		if list := sentences(c.run.Account()); !slices.Contains(list, c.want) {
			t.Errorf("%q is not told: %q", c.want, list)
		}
	}
}
