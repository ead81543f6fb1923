package harness

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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
	if _, err := (Command{Args: []string{"true"}, Feed: exit3}).Run(ctx); err == nil || !strings.Contains(err.Error(), "oh dear") {
		t.Errorf("exit 3 of the feeder: %v", err)
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

// Every second round is in reverse order, and output that changes is an error.
func TestRounds(t *testing.T) {
	var order string
	step := func(name string, digest func() string) Group {
		return Group{{Name: name, Rows: 1, Command: Command{Args: []string{"true"}}, Done: func(_ context.Context, s *Sample) error {
			order += name
			s.Digest = digest()
			return nil
		}}}
	}
	b := &Bench{Options: Options{Count: 3}}
	same := func() string { return "same" }
	samples, err := b.rounds(context.Background(), []Group{step("a", same), step("b", same)})
	if err != nil || len(samples) != 6 || order != "abbaab" {
		t.Errorf("%s, %d samples, %v", order, len(samples), err)
	}
	n := 0
	other := func() string { n++; return strings.Repeat("x", n) }
	if _, err := b.rounds(context.Background(), []Group{step("c", other)}); err == nil {
		t.Error("other output was accepted")
	}
}

// A step has an aim against the other bulk, if there is one. An aim whose steps were not
// measured is left out.
func TestBoth(t *testing.T) {
	for old, want := range map[string]bool{"": false, "/nowhere/bulk": true} {
		b := &Bench{Options: Options{Count: 2, Old: old}, Bulk: "bulk"}
		samples, err := b.Section(context.Background(), Section{}, b.Both(func(program, suffix string) Group {
			return Group{{Name: "a" + suffix, Command: Command{Args: []string{"sh", "-c", ":", program}}}}
		})...)
		if err != nil {
			t.Fatal(err)
		}
		b.Aim(Aim{Name: "nothing", Value: Ratio(samples, "a", "b", Sample.Total)})
		aims := b.Result.Sections[0].Aims
		if got := slices.ContainsFunc(aims, func(a Aim) bool { return a.Name == "a / old" }); got != want {
			t.Errorf("old %q: %v", old, aims)
		}
		if slices.ContainsFunc(aims, func(a Aim) bool { return a.Name == "nothing" }) {
			t.Errorf("old %q: %v", old, aims)
		}
	}
}

// Settings that cannot be used are rejected.
func TestOptions(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"BENCH_ROWS", "20", ""},
		{"BENCH_PARTS", "b,a", ""},
		{"BENCH_WARM", "0", ""},
		{"BENCH_PARTS", "a,c", `no part "c"; there are a, b`},
		{"BENCH_PARTS", "a,", `no part ""`},
		{"BENCH_ROWS", "3M", "BENCH_ROWS=3M: "},
		{"BENCH_WARM", "-1", "at least 0"},
		{"BENCH_COUNT", "0", "at least 1"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			o := Options{Known: []string{"a", "b"}, Count: 3}
			err := o.read()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if c.name == "BENCH_ROWS" && c.want == "" && o.Rows != 20 {
				t.Errorf("%d rows", o.Rows)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	for name, value := range map[string]string{"BENCH_ROWS": "20", "BENCH_OLD": "/nowhere/old", "BENCH_WARM": "5", "BENCH_TMP": "/tmp"} {
		t.Setenv(name, value)
	}
	o := Options{Target: "bench", Count: 3}
	if err := o.read(); err != nil {
		t.Fatal(err)
	}
	if got, want := o.command(), "make bench BENCH_ROWS=20 BENCH_COUNT=3 BENCH_OLD=… BENCH_WARM=5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWrite(t *testing.T) {
	r := Result{Name: "name", Command: "make bench", Machine: Inspect(context.Background()), Sections: []Section{{
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

// A sample has what the run reports. The time for the disk is apart.
func TestBulkOutput(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"manifest.json": `{"files": [{"name": "mapping.csv", "sha256": "abc"}]}`,
		"timings.json": `{"stages": [{"name": "read", "seconds": 1.5, "busy_seconds": 2}, {"name": "write", "seconds": 1},
			{"name": "write", "seconds": 2}, {"name": "fsync", "seconds": 0.25}], "details": {"batches": 3, "path": "x"}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s := Sample{Usage: Usage{Seconds: 5}}
	if err := s.BulkOutput(dir); err != nil {
		t.Fatal(err)
	}
	if s.Digest != "abc" || s.Fsync != 0.25 || s.Work() != 4.75 || s.Total() != 5 {
		t.Errorf("%+v", s)
	}
	if s.Stages["write"] != 3 || s.Stages["batches"] != 3 || fsync([]Sample{s}) != "0.250" {
		t.Errorf("stages %v", s.Stages)
	}
}
