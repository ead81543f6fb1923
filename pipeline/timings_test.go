package pipeline_test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
)

// longCells makes a list so large that its records, of one worker, do not fit in
// the least memory of a sort.
func longCells(list string) string {
	return strings.ReplaceAll(list, ",x\n", ","+strings.Repeat("x", 20_000)+"\n")
}

// A run of a few rows does not pay for many.
func TestFewRows(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	job(t, base(10), map[string]string{"a.csv": csvFile(rows(1, 3))})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// What is sorted to reject rows whose URLs find no code counts, too: their cells are the
// most of it here, and are in the sort of all rows before.
func TestTimingsOfLateRejects(t *testing.T) {
	const urls, cell = 200, 20_000
	var list []string
	for i := range urls {
		list = append(list, fmt.Sprintf("http://example.com/%d,,%s", i, strings.Repeat("x", cell)))
	}
	cfg := base(1)
	cfg.SpillAt(1)
	_, result := job(t, cfg, map[string]string{"a.csv": csvFile(list)})
	var got manifest.Timings
	must(t, json.Unmarshal([]byte(read(t, "out/timings.json")), &got))
	if least := (urls + result.Counts.Rejected) * cell; result.Counts.Rejected < 100 || got.Sorted < least || got.Spilled < least {
		t.Errorf("%d rows were rejected, %d bytes sorted and %d spilled, want %d", result.Counts.Rejected, got.Sorted, got.Spilled, least)
	}
}

// timings.json tells what each stage read, sorted, spilled and wrote.
func TestTimings(t *testing.T) {
	input := longCells(csvFile(rows(1, 3000)))
	status := new(pipeline.Status) // of the first run, then of the next
	for order, stages := range map[report.Order][]string{
		report.SortOrder:  {"read", "settle", "write", "finish", "fsync"},
		report.InputOrder: {"read", "settle", "order", "write", "finish", "fsync"},
	} {
		cfg := base(10)
		cfg.ReportOrder, cfg.Workers, cfg.Status = order, 1, status
		cfg.SpillAt(1)
		_, result := job(t, cfg, map[string]string{"a.csv": input})
		var got manifest.Timings
		must(t, json.Unmarshal([]byte(read(t, "out/timings.json")), &got))
		size := func(names ...string) (n int64) {
			for _, name := range names {
				info, err := os.Stat("out/" + name)
				must(t, err)
				n += info.Size()
			}
			return n
		}
		var names []string
		at := map[string]manifest.Stage{}
		for _, s := range got.Stages {
			names = append(names, s.Name)
			at[s.Name] = s
		}
		if !slices.Equal(names, stages) {
			t.Fatalf("stages %v, want %v", names, stages)
		}
		accepted := result.Counts.Read - result.Counts.Rejected
		for stage, want := range map[string][2]int64{
			"read":   {result.Counts.Read, int64(len(input))},
			"settle": {accepted, 0},
			"write":  {accepted, size("mapping.csv", "collisions.csv")},
			"finish": {0, size(reports...)},
		} {
			if s := at[stage]; s.Rows != want[0] || s.Bytes != want[1] {
				t.Errorf("%s: %s: %d rows, %d bytes, want %v", order, stage, s.Rows, s.Bytes, want)
			}
		}
		c := result.Counts
		seen := [...]int64{status.Read.Load(), status.Rejected.Load(), status.Settled.Load(), status.Written.Load()}
		if want := [...]int64{c.Read, c.Rejected, accepted, accepted}; seen != want {
			t.Errorf("%s: read, rejected, settled and written are %v, want %v", order, seen, want)
		}
		if got.Sorted < size("mapping.csv") || got.Spilled < got.Sorted {
			t.Errorf("%s: sorted %d bytes and spilled %d, for a mapping of %d", order, got.Sorted, got.Spilled, size("mapping.csv"))
		}
		if got.PeakMemory == 0 && runtime.GOOS == "linux" || got.GC.Allocated == 0 {
			t.Errorf("peak memory %d, %+v", got.PeakMemory, got.GC)
		}
	}
}
