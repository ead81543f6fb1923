package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "--version") {
		fmt.Println("bulk version v1.2.3")
		return
	}
	os.Exit(m.Run())
}

func TestMedianAndRatio(t *testing.T) {
	if m := Median([]float64{3, 1, 2}); m != 2 {
		t.Errorf("median of three: %v", m)
	}
	if m := Median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Errorf("median of four: %v", m)
	}
	if m := Median(nil); !math.IsNaN(m) {
		t.Errorf("median of none: %v", m)
	}
	samples := []Sample{
		{Step: "a", Round: 1, Usage: Usage{Seconds: 1}}, {Step: "b", Round: 1, Usage: Usage{Seconds: 2}, Fsync: 2},
		{Step: "a", Round: 2, Usage: Usage{Seconds: 10}}, {Step: "b", Round: 2, Usage: Usage{Seconds: 40}, Fsync: 10, FsyncInside: true},
	}
	if r := Ratio(samples, "b", "a", Sample.Total); r != 4 {
		t.Errorf("ratio of totals: %v", r)
	}
	if r := Ratio(samples, "b", "a", Sample.Work); r != 2.5 {
		t.Errorf("ratio of work: %v", r)
	}
}

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	ctx := context.Background()
	u, err := Command{Args: []string{"tr", "a-z", "A-Z"}, Feed: []string{"echo", "fed"}, Stdout: out}.Run(ctx)
	if err != nil || u.Seconds <= 0 || u.RSS <= 0 {
		t.Fatalf("%+v, %v", u, err)
	}
	if data, _ := os.ReadFile(out); string(data) != "FED\n" {
		t.Errorf("wrote %q", data)
	}
	exit3 := []string{"sh", "-c", "echo oh dear >&2; exit 3"}
	if _, err := (Command{Args: exit3}).Run(ctx); err == nil || !strings.Contains(err.Error(), "oh dear") {
		t.Errorf("exit 3: %v", err)
	}
	if _, err := (Command{Args: exit3, Accept: 3}).Run(ctx); err != nil {
		t.Errorf("exit 3, accepted: %v", err)
	}
	if _, err := (Command{Args: []string{"no such program"}}).Run(ctx); err == nil {
		t.Error("a program that is not there ran")
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := (Command{Args: []string{"sleep", "60"}}).Run(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The rounds go forth and back, and output that changes is an error.
func TestMeasure(t *testing.T) {
	var order string
	step := func(name string, digest func() string) Group {
		return Group{{Name: name, Rows: 1, Command: func() Command {
			order += name
			return Command{Args: []string{"true"}}
		}, Done: func(_ context.Context, s *Sample) error {
			s.Digest = digest()
			return nil
		}}}
	}
	b := &Bench{Out: io.Discard}
	same := func() string { return "same" }
	samples, err := b.rounds(context.Background(), 3, []Group{step("a", same), step("b", same)})
	if err != nil || len(samples) != 6 || order != "abbaab" {
		t.Errorf("%s, %d samples, %v", order, len(samples), err)
	}
	n := 0
	other := func() string { n++; return strings.Repeat("x", n) }
	if _, err := b.rounds(context.Background(), 2, []Group{step("c", other)}); err == nil {
		t.Error("other output was taken")
	}
}

// What cannot be measured as it was asked for is refused.
func TestOptions(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"BENCH_ROWS", "20", ""},
		{"BENCH_PARTS", "b,a", ""},
		{"BENCH_PARTS", "a,c", `no part "c"; there are a, b`},
		{"BENCH_PARTS", "a,", `no part ""`},
		{"BENCH_ROWS", "3M", "BENCH_ROWS=3M: "},
		{"BENCH_GO_COUNT", "x", "BENCH_GO_COUNT=x: "},
		{"BENCH_LARGE", "much", "BENCH_LARGE=much: "},
		{"BENCH_COUNT", "0", "at least 1"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			o := Options{Known: []string{"a", "b"}, Count: 3, Name: "bench"}
			err := o.parse(flag.NewFlagSet("bench", flag.ContinueOnError), nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if c.name == "BENCH_ROWS" && c.want == "" && o.Rows != 20 {
				t.Errorf("%d rows", o.Rows)
			}
		})
	}
}

func TestMake(t *testing.T) {
	for name, value := range map[string]string{"BENCH_ROWS": "20", "BENCH_BULK": "/nowhere/bulk", "BENCH_OLD": "/nowhere/old", "BENCH_GO_COUNT": "5", "BENCH_TMP": "/tmp"} {
		t.Setenv(name, value)
	}
	o := Options{Count: 3}
	if err := o.parse(flag.NewFlagSet("bench", flag.ContinueOnError), nil); err != nil {
		t.Fatal(err)
	}
	const want = "make bench BENCH_ROWS=20 BENCH_COUNT=3 BENCH_BULK=… BENCH_OLD=… BENCH_GO_COUNT=5"
	if got := o.Make("bench"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	o.built = true
	if got := o.Make("bench"); got != strings.Replace(want, " BENCH_BULK=…", "", 1) {
		t.Errorf("%s", got)
	}
}

// A program that was given tells its revision itself.
func TestMeasured(t *testing.T) {
	b := Bench{Options: Options{Bulk: os.Args[0]}}
	if err := b.measured(context.Background()); err != nil {
		t.Fatal(err)
	}
	if m := b.Result.Machine; m.Revision != "v1.2.3" || m.Go != runtime.Version() {
		t.Errorf("revision %s, %s", m.Revision, m.Go)
	}
}

func TestWrite(t *testing.T) {
	r := Result{Name: "name", Command: "make bench", Machine: Inspect(context.Background(), "."), Sections: []Section{{
		Title: "title", Reference: "a",
		Samples: []Sample{{Step: "a", Round: 1, Rows: 1000, Usage: Usage{Seconds: 1}}, {Step: "b", Round: 1, Rows: 1000, Usage: Usage{Seconds: 2}}},
		Aims:    []Aim{{"b / a", 2, 1.5, "×"}, {"a / b", 0.5, 0.5, "×"}},
	}}}
	dir := filepath.Join(t.TempDir(), "results")
	page, err := r.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## title", "| b | 2.000 (2.000–2.000) |", " 2.000 |\n", "| b / a | 2 × | 1.5 × | **missed** |", "| a / b | 0.5 × | 0.5 × | met |"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "name.json")); err != nil {
		t.Error(err)
	}
}

// What a run tells of itself is in the sample, the time for the disk apart.
func TestBulkOutput(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"manifest.json": `{"counts": {"read": 7}, "files": [{"name": "mapping.csv", "sha256": "abc"}]}`,
		"timings.json": `{"stages": [{"name": "read", "seconds": 1.5, "busy_seconds": 2}, {"name": "write", "seconds": 1},
			{"name": "write", "seconds": 2}, {"name": "fsync", "seconds": 0.25}], "details": {"batches": 3, "path": "x"}}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s := Sample{Usage: Usage{Seconds: 5}}
	if err := s.BulkOutput(folder); err != nil {
		t.Fatal(err)
	}
	if s.Rows != 7 || s.Digest != "abc" || s.Fsync != 0.25 || s.Work() != 4.75 || s.Total() != 5 {
		t.Errorf("%+v", s)
	}
	if s.Stages["write"] != 3 || s.Stages["batches"] != 3 || fsync([]Sample{s}) != "0.250" {
		t.Errorf("stages %v", s.Stages)
	}
}
