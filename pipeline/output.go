package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"sync"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
)

// written is the mapping and the collisions as far as they are written.
type written struct {
	settled    *settlement
	mapping    report.Mapping
	collisions *report.Collisions
	files      [2]*outdir.File
	rows       [3]int64 // of the mapping, by outcome.Outcome
	collided   int64

	mu     sync.Mutex // guards digest
	digest report.RowDigest
}

// digested counts in the rows that one worker formatted.
func (w *written) digested(d *report.RowDigest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.digest.Merge(d)
}

// linkReports are the names of the reports that are written while links are loaded.
func (r *run) linkReports() []string {
	return []string{r.cfg.ReportFormat.FileName(), manifest.CollisionsName}
}

// openReports makes the files of one attempt in place of those of an earlier one.
func (r *run) openReports() (*written, error) {
	w := &written{settled: r.settled}
	for i, name := range r.linkReports() {
		file, err := r.folder.Create(name)
		if err != nil {
			return nil, err
		}
		w.files[i] = file
	}
	opts := report.MappingOptions{BaseURL: r.cfg.BaseURL, ExcelSafe: r.cfg.ExcelSafe, Workers: r.cfg.Workers, Worked: r.timings.worked}
	if !r.cfg.NoCarry {
		opts.Carried = report.CarriedNames(report.MappingColumns(), r.inputs.carried)
	}
	var err error
	w.mapping, err = report.NewMapping(w.files[0], r.cfg.ReportFormat, opts)
	w.collisions = report.NewCollisions(w.files[1], r.cfg.ExcelSafe)
	return w, err
}

// add writes a piece. The caller gives the pieces in order.
func (w *written) add(p *piece) error {
	if p.block != nil {
		if err := w.mapping.Write(p.block); err != nil {
			return err
		}
	}
	for i := range p.salted {
		for c := range w.settled.collisions(&p.salted[i]) {
			if err := w.collisions.Append(&c); err != nil {
				return err
			}
			w.collided++
		}
	}
	for as, n := range p.rows {
		w.rows[as] += n
	}
	return nil
}

// close ends both files and describes them.
func (w *written) close() ([]manifest.FileSum, error) {
	mapping, err := closeReport(w.mapping, w.files[0], w.rows[0]+w.rows[1]+w.rows[2])
	collisions, err2 := closeReport(w.collisions, w.files[1], w.collided)
	mapping.RowDigest = w.digest.Sum()
	return []manifest.FileSum{mapping, collisions}, errors.Join(err, err2)
}

// closeReport ends a report and its file.
func closeReport(w io.Closer, file *outdir.File, rows int64) (manifest.FileSum, error) {
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		return manifest.FileSum{}, err
	}
	return manifest.FileSum{Name: file.Name(), Rows: rows, SHA256: file.SHA256()}, nil
}

// options are those that can change a result, as manifest and fingerprint hold them.
func (c *Config) options() manifest.Options {
	return manifest.Options{
		"report_format": string(c.ReportFormat), "report_order": string(c.ReportOrder), "base_url": c.BaseURL,
		"excel_safe": c.ExcelSafe, "carry": !c.NoCarry, "dry_run": c.DryRun,
		"max_rejects": c.MaxRejects.String(), "limit": c.Limit,
		"workspace": c.Workspace, "max_url_length": int64(c.Profile.MaxLength),
		"max_field": int64(c.Source.MaxField),
	}
}

// reasons counts the rejects, those of the settlement too once it is made.
func (r *run) reasons() map[string]int64 {
	reasons := map[string]int64{}
	for _, w := range r.workers {
		for reason, n := range w.counted {
			reasons[reason] += n
		}
	}
	if r.settled != nil && r.settled.rejected > 0 {
		reasons[outcome.CodeSpaceExhausted] = r.settled.rejected
	}
	return reasons
}

func (r *run) manifest(counts sink.Counts, files []manifest.FileSum) *manifest.Manifest {
	return &manifest.Manifest{
		Version: r.cfg.Version, Profile: r.cfg.Profile.Name(), UnicodeVersion: canon.UnicodeVersion,
		Scheme:  manifest.Scheme{Name: codegen.Name, CodeLength: r.cfg.CodeLength, MaxRetries: r.cfg.MaxRetries},
		Options: r.cfg.options(), AsOf: r.result.AsOf, Inputs: r.inputs.manifest(),
		Counts: manifest.Counts(counts), Reasons: r.reasons(), Files: files,
	}
}

// fingerprint tells runs apart that could have different results. The clock is
// no part of it: a run that goes on with an unfinished one takes over its as_of.
func (r *run) fingerprint() (string, error) {
	m := r.description()
	m.Version = ""
	var buf bytes.Buffer
	if err := manifest.Write(&buf, m); err != nil {
		return "", err
	}
	sum := sha256.Sum256(buf.Bytes())
	return hex.EncodeToString(sum[:]), nil
}
