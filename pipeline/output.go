package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/emit"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
)

// linkChunks are links on their way to the store.
type linkChunks = iter.Seq2[[]sink.Link, error]

// reports are the files that are written while links are loaded.
type reports struct {
	mapping    report.Mapping
	collisions *report.Collisions
	files      [2]*outdir.File
}

// openReports makes these files in place of those of an earlier attempt.
func (r *run) openReports() (out *reports, err error) {
	out = new(reports)
	for i, name := range r.reportNames() {
		if out.files[i], err = r.output.dir.Create(name); err != nil {
			return nil, err
		}
	}
	opts := report.MappingOptions{BaseURL: r.cfg.BaseURL, ExcelSafe: r.cfg.ExcelSafe, Workers: r.cfg.Workers}
	if !r.cfg.NoCarry {
		opts.Carried = report.CarriedNames(report.MappingColumns(), r.rows.Carried)
	}
	out.mapping, err = report.NewMapping(out.files[0], r.cfg.ReportFormat, opts)
	out.collisions = report.NewCollisions(out.files[1], r.cfg.ExcelSafe)
	return out, err
}

func (r *run) reportNames() []string {
	return []string{r.cfg.ReportFormat.FileName(), manifest.CollisionsName}
}

// discardReports removes what an earlier attempt wrote of these files.
func (r *run) discardReports() error {
	for _, name := range r.reportNames() {
		if err := r.output.dir.Discard(name); err != nil {
			return err
		}
	}
	return nil
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

// account writes the rejects and, if the books balance, the manifest, whose digest it
// notes. Rows are those of the mapping by outcome, and files what is written before.
func (r *run) account(ctx context.Context, row *sink.Run, settled *settle.Settlement, rows [outcome.Count]int64, files []manifest.FileSum) error {
	rejects, err := r.writeRejects(ctx, settled)
	if err != nil {
		return err
	}
	if err := balance(r.rows.RecordsRead(), row.Counts, rows, rejects.Rows); err != nil {
		return err
	}
	m := describe(r.cfg, r.rows.Inputs)
	m.AsOf, m.Counts, m.Reasons, m.Files = r.result.AsOf, manifest.Counts(row.Counts), r.reasons(settled), append(files, rejects)
	file, err := r.output.dir.Create(manifest.Name)
	if err != nil {
		return err
	}
	err = errors.Join(manifest.Write(file, m), file.Close())
	row.ManifestSHA256 = file.SHA256()
	return err
}

// writeRejects writes all rejects.
func (r *run) writeRejects(ctx context.Context, settled *settle.Settlement) (_ manifest.FileSum, err error) {
	file, err := r.output.dir.Create(manifest.RejectsName)
	if err != nil {
		return manifest.FileSum{}, err
	}
	w := report.NewRejects(file, r.rows.Columns)
	late := record.NewPlaceSorter(r.sorter(r.budget.rejects, 2))
	defer func() { err = errors.Join(err, r.meter.close(late)) }()
	n, err := emit.Rejects(ctx, r.rows, settled, late, w)
	if err != nil {
		return manifest.FileSum{}, err
	}
	return closeReport(w, file, n)
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

// reasons counts the rejects by reason.
func (r *run) reasons(settled *settle.Settlement) map[string]int64 {
	reasons := maps.Clone(r.rows.Reasons)
	for reason, n := range settled.Rejected {
		reasons[reason] += n
	}
	return reasons
}

// commit writes timings.json and gives the directory its name.
func (r *run) commit(row sink.Run, settled *settle.Settlement) error {
	if err := r.writeTimings(row); err != nil {
		return err
	}
	if err := r.output.dir.Commit(); err != nil {
		return err
	}
	r.result.ManifestSHA256, r.result.Reasons = row.ManifestSHA256, r.reasons(settled)
	return nil
}

// writeTimings writes all that may differ between two equal runs.
func (r *run) writeTimings(row sink.Run) error {
	now := time.Now()
	records, rejects := r.rows.Records, r.rows.Rejects
	t := &manifest.Timings{
		RunID: row.ID, Fingerprint: row.Fingerprint, Store: r.cfg.StoreName,
		Started: r.meter.started, Finished: now, Seconds: now.Sub(r.meter.started).Seconds(),
		Workers: r.cfg.Workers, Memory: r.cfg.Memory, PeakMemory: peakMemory(),
		Sorted: records.Size() + rejects.Size() + r.meter.sorted, Spilled: records.Spilled() + rejects.Spilled() + r.meter.spilled,
		GC: collected(), Stages: append(r.meter.stages, r.meter.finished(now, r.output.dir.Files())...),
	}
	if r.cfg.Store != nil {
		t.Details = r.cfg.Store.Stats()
	}
	file, err := r.output.dir.Create(manifest.TimingsName)
	if err != nil {
		return err
	}
	return errors.Join(manifest.WriteTimings(file, t), file.Close())
}

// describe returns the manifest as far as it tells what the run was given. Its as_of is
// there only if it was asked for.
func describe(cfg *Config, in *intake.Inputs) *manifest.Manifest {
	return &manifest.Manifest{
		Version: cfg.Version, Profile: cfg.Profile.Name(), UnicodeVersion: canon.UnicodeVersion,
		Scheme:  manifest.Scheme{Name: codegen.Name, CodeLength: cfg.CodeLength, MaxRetries: cfg.MaxRetries},
		Options: cfg.options(), AsOf: cfg.AsOf, Inputs: in.Manifest(),
	}
}

// options are those that can change a result.
func (c *Config) options() manifest.Options {
	return manifest.Options{
		"report_format": string(c.ReportFormat), "report_order": string(c.ReportOrder), "base_url": c.BaseURL,
		"excel_safe": c.ExcelSafe, "carry": !c.NoCarry, "dry_run": c.DryRun,
		"max_rejects": c.MaxRejects.String(), "limit": c.Limit,
		"workspace": c.Workspace, "max_url_length": int64(c.Profile.MaxLength),
		"max_field": int64(c.Source.MaxField),
	}
}

// fingerprint tells runs apart that could have different results. The clock is no part of
// it: a run that resumes an unfinished one takes over its as_of.
func fingerprint(cfg *Config, in *intake.Inputs) (string, error) {
	m := describe(cfg, in)
	m.Version = ""
	var buf bytes.Buffer
	if err := manifest.Write(&buf, m); err != nil {
		return "", err
	}
	sum := sha256.Sum256(buf.Bytes())
	return hex.EncodeToString(sum[:]), nil
}
