package verify_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/verify"
)

// BenchmarkRun verifies a run of URLs of usual length, and does the run itself
// for comparison.
func BenchmarkRun(b *testing.B) {
	const rows = 400_000
	var input strings.Builder
	input.WriteString("url,id\n")
	for i := range rows {
		fmt.Fprintf(&input, "https://Www.example.com/catalogue/section-%d/item?page=%d&sort=price&ref=mail,%d\n", i%977, i*7919%(rows*9/10), i)
	}
	for _, format := range []report.Format{report.CSV, report.Parquet, report.Arrow} {
		b.Run(fmt.Sprintf("rows=400K/format=%s", format), func(b *testing.B) {
			cfg := pipeline.Config{Workspace: "demo", ReportFormat: format, BaseURL: "https://sho.rt"}
			job(b, cfg, map[string]string{"a.csv": input.String()})
			cfg.Inputs, cfg.Out, cfg.Overwrite = []string{"a.csv"}, "out", true
			report := func(b *testing.B) {
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			}
			b.Run("run", func(b *testing.B) {
				for b.Loop() {
					if _, err := pipeline.Run(context.Background(), cfg); err != nil {
						b.Fatal(err)
					}
				}
				report(b)
			})
			for name, v := range map[string]verify.Config{"verify": {}, "verify-inputs": {Inputs: []string{"a.csv"}}} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						if v := verified(b, v); v.Failed() > 0 || v.Rows != rows {
							b.Fatal(v.Findings)
						}
					}
					report(b)
				})
			}
		})
	}
}
