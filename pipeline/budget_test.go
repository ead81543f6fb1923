package pipeline

import (
	"testing"

	"github.com/linkforge/bulk/pipeline/report"
)

// What the parts of a run may hold is Config.Memory, all of it and no more.
func TestBudget(t *testing.T) {
	for _, workers := range []int{1, 2, 16} {
		for _, format := range []report.Format{report.CSV, report.Parquet, report.Arrow} {
			for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
				c := Config{Workers: workers, ReportFormat: format, ReportOrder: order}
				for _, c.Memory = range []int64{c.leastMemory(), c.leastMemory() + 12345, 100 << 30} {
					b := c.budget()
					sum := c.overhead() + b.records + b.rejects + b.contested + b.placed
					if sum != c.Memory || min(b.records, b.rejects, b.contested) <= 0 || (b.placed > 0) != (order == report.InputOrder) {
						t.Errorf("%d workers, %s, %s order: %+v of %d", workers, format, order, b, c.Memory)
					}
				}
			}
		}
	}
}
