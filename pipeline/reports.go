package pipeline

import (
	"errors"
	"fmt"
	"io"

	"github.com/linkforge/bulk/pipeline/emit"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
)

// reports are the files that are written while links are loaded.
type reports struct {
	mapping    report.Mapping
	collisions *report.Collisions
	files      [2]*outdir.File
}

// openReports makes these files in place of those of an earlier attempt.
func openReports(dir *outdir.Dir, cfg *Config, columns report.Columns, carried []string) (out *reports, err error) {
	out = new(reports)
	for i, name := range cfg.reportNames() {
		if out.files[i], err = dir.Create(name); err != nil {
			return nil, err
		}
	}
	opts := report.MappingOptions{BaseURL: cfg.BaseURL, ExcelSafe: cfg.ExcelSafe, Workers: cfg.Workers, Columns: columns}
	if !cfg.NoCarry {
		opts.Carried = report.CarriedNames(columns.Names(), carried)
	}
	out.mapping, err = report.NewMapping(out.files[0], cfg.ReportFormat, opts)
	out.collisions = report.NewCollisions(out.files[1], cfg.ExcelSafe, columns.Parts)
	return out, err
}

func (c *Config) reportNames() []string {
	return []string{c.ReportFormat.FileName(), manifest.CollisionsName}
}

// close ends both files and describes them.
func (out *reports) close(w emit.Written) ([]manifest.FileSum, error) {
	rows := w.Rows[outcome.Created] + w.Rows[outcome.Existing] + w.Rows[outcome.Duplicate]
	mapping, err := closeReport(out.mapping, out.files[0], rows)
	collisions, err2 := closeReport(out.collisions, out.files[1], w.Collisions)
	mapping.RowDigest = w.Digest
	return []manifest.FileSum{mapping, collisions}, errors.Join(err, err2)
}

// closeReport ends a report and its file.
func closeReport(w io.Closer, file *outdir.File, rows int64) (manifest.FileSum, error) {
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		return manifest.FileSum{}, err
	}
	return manifest.FileSum{Name: file.Name(), Rows: rows, SHA256: file.SHA256()}, nil
}

// balance compares the books as settled with what was read and written.
func balance(read int64, settled sink.Counts, rows [outcome.Count]int64, rejects int64) error {
	w := sink.Counts{Read: read, Created: rows[outcome.Created], Existing: rows[outcome.Existing],
		Duplicate: rows[outcome.Duplicate], Rejected: rejects}
	if w != settled || w.Read != w.Created+w.Existing+w.Duplicate+w.Rejected {
		return fmt.Errorf("the books do not balance: settled %+v, written %+v", settled, w)
	}
	return nil
}
