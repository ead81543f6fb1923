package pipeline_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/report"
)

// A run whose rows cannot fit into the directory for spilled rows ends early, and says
// what it needs. Where nobody can know that, it goes on.
func TestRoom(t *testing.T) {
	list := make([]string, 30_000) // rows spill once there are more than a sample
	for i := range list {
		list[i] = fmt.Sprintf("http://example.com/%d/%s,,", i, strings.Repeat("x", 700))
	}
	input := csvFile(list)
	const unknown, plenty = -1, 1 << 30
	for name, c := range map[string]struct {
		free, later int64 // while rows are read, and afterwards
		order       report.Order
		stream      bool
		limit       int64
		spill       bool
		fails       bool
	}{
		"none":                   {free: 0, spill: true, fails: true},
		"little":                 {free: 100 << 10, spill: true, fails: true},
		"enough":                 {free: plenty, spill: true},
		"unknown":                {free: unknown, spill: true},
		"a stream":               {free: 40 << 20, spill: true, stream: true},
		"a part":                 {free: 40 << 20, spill: true, limit: 30_000},
		"to be divided":          {free: 16 << 20, spill: true, fails: true},
		"nothing spills":         {free: 0},
		"the order needs more":   {free: plenty, later: 10 << 20, order: report.InputOrder, spill: true, fails: true},
		"the order has enough":   {free: plenty, later: 40 << 20, order: report.InputOrder, spill: true},
		"the order fits at once": {free: 0, order: report.InputOrder},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !c.fails {
				t.Skip("other tests spill, too")
			}
			t.Chdir(t.TempDir())
			cfg := base(10)
			cfg.Workers, cfg.Source.BatchRows, cfg.Out, cfg.TempDir = 1, 50, "out", t.TempDir()
			cfg.ReportOrder, cfg.Limit, cfg.Status = c.order, c.limit, new(pipeline.Status)
			if c.spill {
				cfg.SpillAt(1)
			}
			cfg.FreeRoom(func(dir string) (int64, error) {
				free := c.free
				if cfg.Status.Stage() != pipeline.StageRead {
					free = c.later
				}
				if free < 0 || dir != cfg.TempDir {
					return 0, os.ErrInvalid
				}
				return free, nil
			})
			cfg.Inputs = []string{"a.csv"}
			if c.stream {
				cfg.Inputs, cfg.Source.Stdin = []string{"-"}, strings.NewReader(input)
			} else {
				write(t, "a.csv", input)
			}
			_, err := pipeline.Run(context.Background(), cfg)
			if !c.fails {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), cfg.TempDir+" is too small") || !strings.Contains(err.Error(), " MiB are free; name another directory with Config.TempDir") {
				t.Fatalf("got %v", err)
			}
			if entries, err := os.ReadDir("."); err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}
