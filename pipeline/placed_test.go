package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
)

// In the order of the input the mapping has the same rows, and neither workers nor
// memory show in it; the other reports are the same.
func TestReportOrder(t *testing.T) {
	formats, workers := []report.Format{report.CSV, report.Parquet, report.Arrow}, []int{1, 3}
	if testing.Short() {
		formats, workers = []report.Format{report.Parquet}, []int{3}
	}
	inputs := map[string]string{"b.csv": longCells(csvFile(rows(1, 3000))), "a.csv": "link,extra,team\n" + strings.Join(rows(2, 500), "\n")}
	for _, format := range formats {
		t.Run(fmt.Sprintf("format=%s", format), func(t *testing.T) {
			cfg, mapping := base(2), "out/mapping."+string(format)
			cfg.ReportFormat, cfg.Store = format, openStore(t, t.TempDir())
			run(t, cfg, inputs)
			want, _ := mappingRows(t, mapping)
			rejects, collisions, digest := read(t, "out/rejects.csv"), read(t, "out/collisions.csv"), readManifest(t).Files[0].RowDigest
			if digest == "" {
				t.Error("the manifest has no digest of the rows")
			}
			var first string
			for _, workers := range workers {
				for _, spill := range []int64{0, 1} {
					cfg := cfg
					cfg.ReportOrder, cfg.Workers, cfg.Store = report.InputOrder, workers, openStore(t, t.TempDir())
					cfg.SpillAt(spill)
					run(t, cfg, inputs)
					if first == "" {
						first = read(t, mapping)
					}
					if read(t, mapping) != first {
						t.Errorf("%d workers, spilling at %d: other bytes", workers, spill)
					}
					if read(t, "out/rejects.csv") != rejects || read(t, "out/collisions.csv") != collisions {
						t.Error("rejects or collisions differ")
					}
					if m := readManifest(t); m.Files[0].RowDigest != digest || m.Options["report_order"] != manifest.Text("input") {
						t.Errorf("manifest: %+v", m)
					}
				}
			}
			got, places := mappingRows(t, mapping)
			if !slices.IsSorted(places) {
				t.Error("not in the order of the input")
			}
			slices.Sort(want)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Error("other rows")
			}
		})
	}
}

// mappingRows reads a mapping: its rows as text, and their places.
func mappingRows(t *testing.T, path string) (rows, places []string) {
	t.Helper()
	m, err := readback.OpenMapping(context.Background(), path, readback.Options{})
	must(t, err)
	defer m.Close()
	for r, err := range m.Rows() {
		must(t, err)
		places = append(places, fmt.Sprintf("%s %08d", r.Source, r.Row.Row))
		rows = append(rows, fmt.Sprintf("%s %q %q %q %q %q %v %d %q", places[len(places)-1], r.Workspace, r.Original,
			r.Canonical, r.Code, r.ShortURL, r.Outcome, r.Salt, r.Carried))
	}
	return rows, places
}
