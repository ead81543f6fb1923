package main

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/sink"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\ttext, ä\ufffd": "plain\n\ttext, ä\ufffd",
		"\x1b]0;title\a":         `\x1b]0;title\x07`,
		"a\rb\x7f\u009b":         `a\x0db\u007f\u009b`,
		"\x00\xff":               `\x00\xff`,
		"\u202egpj.exe\u2066":    `\u202egpj.exe\u2066`,
		"\x9b2J\xe2\x80":         `\x9b2J\xe2\x80`,
	} {
		if got := visible(text); got != want {
			t.Errorf("visible(%q) = %q, want %q", text, got, want)
		}
	}
}

// A terminal gets data in pieces that may end within a character.
func TestShown(t *testing.T) {
	const text = "ä\x1b€\u202e\xe2\x80𐍈\n"
	for cut := range len(text) {
		var said strings.Builder
		w := &shown{Writer: &said}
		io.WriteString(w, text[:cut])
		io.WriteString(w, text[cut:])
		if want := "ä\\x1b€\\u202e\\xe2\\x80𐍈\n"; said.String() != want {
			t.Errorf("cut at %d: %q, want %q", cut, &said, want)
		}
	}
}

// full is a place where nothing can be written.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A command whose output cannot be written fails.
func TestOutputFails(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", "a.csv", "url\nhttp://a.example/\nhttp://b.example/\n")
	write(t, ".", "b.csv", "url\nhttp://a.example/\n")
	for _, name := range []string{"a", "b"} {
		if code, _, said := inProcess(t, "run", name+".csv", "--workspace", "w", "--out", name, "--db", "sqlite:links.db"); code != exitDone {
			t.Fatalf("exit code %d: %s", code, said)
		}
	}
	for _, args := range []string{
		"verify a", "verify a --json", "diff a b", "diff a b --json", "explain http://a.example/ --workspace w", "explain http://a.example/ --workspace w --json",
		"estimate --links 1000", "estimate --links 1000 --json", "runs --db sqlite:links.db", "stats --db sqlite:links.db", "stats --db sqlite:links.db --json",
		"resolve abc -w w --db sqlite:links.db", "resolve abc -w w --db sqlite:links.db --json", "sweep --db sqlite:links.db --json", "sweep --db sqlite:links.db --report -", "undo 1 --yes --db sqlite:links.db",
		"completion bash",
	} {
		var stderr strings.Builder
		if code := bulk(strings.Fields(args), nil, full{}, &stderr); code != exitFailed || strings.Count(stderr.String(), syscall.ENOSPC.Error()) != 1 {
			t.Errorf("%s: exit code %d, %s", args, code, &stderr)
		}
	}
}

// On a terminal, too, a run shows its number, for bulk undo, and says whether it resumed a
// killed run and whether it stored nothing.
func TestSummary(t *testing.T) {
	for _, c := range []struct {
		run     int32
		resumed bool
		dry     bool
		err     error
		want    string
	}{
		{1, false, false, nil, "run 1 finished in under 0.1 s"},
		{3, true, false, nil, "run 3, resumed, finished in under 0.1 s"},
		{0, false, true, nil, "this was a dry run: no links were stored; it took under 0.1 s"},
		{0, false, false, &pipeline.TooManyRejectsError{}, "no links were stored; the run took under 0.1 s"},
		{1, false, false, &pipeline.TooManyRejectsError{Stored: 1, Run: 1}, "run 1 was refused in part; it took under 0.1 s"},
	} {
		var said strings.Builder
		u := newUI(nil, &said)
		u.lines, u.began = false, time.Now()
		must(t, u.summary(&runOptions{Config: pipeline.Config{DryRun: c.dry, BaseURL: "https://sho.rt"}}, &pipeline.Result{
			RunID: c.run, Resumed: c.resumed, Counts: sink.Counts{Read: 4000, Created: 2, Duplicate: 1, Rejected: 1}, Out: "out", ManifestSHA256: "00",
		}, c.err))
		want := "bulk: " + c.want + "\n  rows         4,000\n    created        2\n    existing       0\n    duplicate      1\n    rejected       1\n"
		if c.run == 0 {
			want = "bulk: " + c.want + "\n  rows                4,000\n    would be created      2\n    existing              0\n    duplicate             1\n    rejected              1\n"
		}
		if !strings.HasPrefix(said.String(), want) {
			t.Errorf("it said:\n%swant:\n%s", &said, want)
		}
	}
}

// A run whose metrics cannot be written any more fails, unless it has failed anyway.
func TestMetricsNotWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	must(t, os.Mkdir(dir, 0o777))
	m, err := openMetrics(filepath.Join(dir, "a.prom"))
	must(t, err)
	must(t, os.Remove(dir))
	for _, c := range []struct {
		err  error
		want int
	}{{nil, exitFailed}, {errRejected, exitFailed}, {sink.ErrLocked, exitStore}} {
		var said strings.Builder
		u := newUI(nil, &said)
		u.metrics = m
		if code := u.end(c.err); code != c.want || !strings.Contains(said.String(), "the run ended, but its metrics were not written: open ") {
			t.Errorf("%v: exit code %d, want %d: %s", c.err, code, c.want, &said)
		}
	}
}

// Durations have their unit, whatever the format of the log.
func TestDurations(t *testing.T) {
	for format, want := range map[string]string{"": "in=50ms", "text": "in=50ms", "json": `"in":"50ms"`} {
		var said strings.Builder
		u := newUI(nil, &said)
		must(t, u.logAs(format))
		if u.log.Warn("trying again", "in", 50*time.Millisecond); !strings.Contains(said.String(), want) {
			t.Errorf("%q: %s", format, &said)
		}
	}
}

// A terminal shows durations and times as people read them.
func TestReadable(t *testing.T) {
	for v, want := range map[any]string{
		70_890_428 * time.Nanosecond: "70.9ms", 39_374_772 * time.Nanosecond: "39.4ms", 412 * time.Microsecond: "412µs",
		72_345 * time.Millisecond: "1m12.3s", 2*time.Hour + 34_567*time.Millisecond: "2h0m35s", time.Duration(0): "0s",
		time.Date(2026, 11, 23, 18, 54, 42, 456_224_000, time.FixedZone("", 3600)): "2026-11-23T17:54:42Z",
		int64(7): "7", "way": "way",
	} {
		var said strings.Builder
		u := newUI(nil, &said)
		u.lines = false
		u.logAs("")
		if u.log.Info("a", "b", v); said.String() != "bulk: a (b: "+want+")\n" {
			t.Errorf("%v: %s, want %s", v, &said, want)
		}
	}
}

// A long run says in its log, now and then, how far it is.
func TestProgressInLog(t *testing.T) {
	status := new(pipeline.Status)
	status.Read.Store(1000)
	status.TotalBytes.Store(400)
	status.Bytes.Store(129)
	r, w := io.Pipe()
	u := newUI(nil, w)
	must(t, u.logAs("text"))
	u.every = time.Millisecond
	stop := u.watch(status)
	line, err := bufio.NewReader(r).ReadString('\n')
	r.Close() // lines that nobody reads hold up nothing
	if stop(); err != nil || !strings.HasSuffix(line, " level=INFO msg=progress stage=opening read=1000\n") {
		t.Errorf("%q, %v", line, err)
	}
	var said strings.Builder
	u = newUI(nil, &said)
	must(t, u.logAs("text"))
	if u.logProgress(status, pipeline.StageRead); !strings.HasSuffix(said.String(), " stage=reading read=1000 percent=32\n") {
		t.Error(&said)
	}
}

// A stage without rows is shown, without a rate of them, and so is every stage where
// a rate has no room. The cursor is left where a ^C has room.
func TestBar(t *testing.T) {
	status := new(pipeline.Status)
	status.Read.Store(1000)
	status.TotalBytes.Store(1000)
	status.Bytes.Store(1)
	status.Written.Store(1)
	for stage, rate := range map[pipeline.Stage]string{
		pipeline.StageRead: "B/s", pipeline.StageWait: "", pipeline.StageFinish: "", pipeline.StageWrite: "rows/",
	} {
		for _, narrow := range []bool{false, true} {
			var said strings.Builder
			u := newUI(nil, &said)
			u.bar = newBar(&said, status, stage, stage.String(), narrow)
			u.moveBar(status, stage, stage.String())
			text, moved := strings.CutSuffix(said.String(), "\r")
			shown := strings.Contains(text, "B/s") || strings.Contains(text, "rows/")
			if !strings.Contains(text, stage.String()) || !moved || !narrow && !strings.Contains(text, rate) || shown != (rate != "" && !narrow) {
				t.Errorf("narrow %t: %q", narrow, text)
			}
		}
	}
}

// A store that does not answer is one line on a terminal, in place of the stage, and one
// message when it answers again. Elsewhere a warning comes before.
func TestOutage(t *testing.T) {
	const problem = "PostgreSQL at db does not answer (connection refused)"
	synctest.Test(t, func(t *testing.T) {
		for _, lines := range []bool{false, true} {
			var said strings.Builder
			u := newUI(nil, &said)
			u.lines = lines
			must(t, u.logAs(""))
			down, until := u.outages(), time.Now().Add(2*time.Minute)
			down("", time.Time{})
			for range 8 {
				down(problem, until)
				time.Sleep(time.Second)
			}
			if !lines {
				for width, want := range map[int]string{80: problem + ": trying for 1m52s more", 40: problem[:17] + ": trying for 1m52s more"} {
					if got := u.outageLine(width); got != want {
						t.Errorf("%d columns: %q, want %q", width, got, want)
					}
				}
			}
			down("", time.Time{})
			want := "bulk: the database answers again (after: 8s)\n"
			if lines {
				want = `level=WARN msg="` + problem + `; trying for up to 2 minutes"` + "\n" + `level=INFO msg="the database answers again" after=8s` + "\n"
			}
			if got := regexp.MustCompile(`time=\S+ `).ReplaceAllString(said.String(), ""); got != want || u.outageLine(80) != "" {
				t.Errorf("%q, want %q", got, want)
			}
		}
	})
}

// With --quiet nothing is said but warnings and the result.
func TestQuiet(t *testing.T) {
	for _, lines := range []bool{false, true} {
		var said strings.Builder
		u := newUI(nil, &said)
		u.lines, u.quiet = lines, true
		must(t, u.logAs(""))
		u.log.Info("reading")
		u.log.Warn("slow")
		u.tell(slog.LevelInfo, "3,520 rows", "result", "rows", 3520)
		want := "bulk: slow\nbulk: 3,520 rows\n"
		if lines {
			want = "level=WARN msg=slow\nlevel=INFO msg=result rows=3520\n"
		}
		if got := regexp.MustCompile(`time=\S+ `).ReplaceAllString(said.String(), ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A long text is broken into lines in time that grows as it does.
func TestBroken(t *testing.T) {
	for _, tt := range []struct {
		text string
		room int
		want []string
	}{
		{"", 5, []string{""}}, {"one two  three", 7, []string{"one two", " three"}}, {"longer words", 3, []string{"longer", "words"}}, {"a b c", 80, []string{"a b c"}}, {"a ", 1, []string{"a", ""}},
	} {
		if got := broken(tt.text, tt.room); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
	if got := broken(strings.Repeat("word ", 200_000), 1<<30); len(got) != 1 {
		t.Errorf("%d lines", len(got))
	}
}
