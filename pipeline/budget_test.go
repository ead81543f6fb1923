package pipeline

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
)

// The defaults are those that the documentation states.
func TestDefaults(t *testing.T) {
	c, err := Config{Inputs: []string{"a.csv"}, Out: "out", Workspace: "ws"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string][2]any{
		"CodeLength":        {c.CodeLength, 10},
		"MaxRetries":        {c.MaxRetries, 10},
		"Profile.MaxLength": {c.Profile.MaxLength, 8192},
		"Source.MaxField":   {c.Source.MaxField, 1 << 20},
		"RetryFor":          {c.RetryFor, 2 * time.Minute},
		"ReportFormat":      {c.ReportFormat, report.CSV},
		"ReportOrder":       {c.ReportOrder, report.SortOrder},
		"Workers":           {c.Workers, runtime.GOMAXPROCS(0)},
	} {
		if value[0] != value[1] {
			t.Errorf("%s: %v, want %v", name, value[0], value[1])
		}
	}
}

// What the parts of a run may hold is Config.Memory, all of it and no more.
func TestBudget(t *testing.T) {
	for _, workers := range []int{1, 2, 16} {
		for _, format := range []report.Format{report.CSV, report.Parquet, report.Arrow} {
			for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
				c := Config{Workers: workers, ReportFormat: format, ReportOrder: order}
				if workers == 2 {
					c.Rules = new(rules.Flags)
				}
				for _, c.Memory = range []int64{c.LeastMemory(), c.LeastMemory() + 12345, 100 << 30} {
					b := c.budget()
					sum := c.overhead() + b.records + b.rejects + b.contested + b.placed + b.changes + b.shown
					if sum != c.Memory || min(b.records, b.rejects, b.contested, b.changes, b.shown) <= 0 || (b.placed > 0) != (order == report.InputOrder) {
						t.Errorf("%d workers, %s, %s order: %+v of %d", workers, format, order, b, c.Memory)
					}
				}
			}
		}
	}
}

// A large plan of a campaign has its part of Config.Memory; a small one has none.
func TestBudgetOfPlan(t *testing.T) {
	plain := Config{Workers: 2}
	for values, more := range map[int]bool{10: false, 500: false, 100_000: true} {
		var list strings.Builder
		for i := range values {
			fmt.Fprintf(&list, ",%d", i)
		}
		c := plain
		var err error
		if c.Campaign, err = campaign.Parse([]string{"x=" + list.String()[1:]}, "", nil, campaign.MaxMost); err != nil {
			t.Fatal(err)
		}
		if plan := c.LeastMemory() - plain.LeastMemory(); more != (plan > 40<<20) || !more && plan != 0 || plan%(1<<20) != 0 {
			t.Errorf("%d values: %d bytes more", values, plan)
		}
	}
}
