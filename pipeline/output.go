package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/emit"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
)

// reports are the files that are written while links are loaded.
type reports struct {
	mapping    report.Mapping
	collisions *report.Collisions
	files      [2]*outdir.File
}

// openReports makes these files in place of those of an earlier attempt.
func openReports(dir *outdir.Dir, cfg *Config, carried []string) (out *reports, err error) {
	out = new(reports)
	for i, name := range cfg.reportNames() {
		if out.files[i], err = dir.Create(name); err != nil {
			return nil, err
		}
	}
	opts := report.MappingOptions{BaseURL: cfg.BaseURL, ExcelSafe: cfg.ExcelSafe, Workers: cfg.Workers}
	if !cfg.NoCarry {
		opts.Carried = report.CarriedNames(report.MappingColumns(), carried)
	}
	out.mapping, err = report.NewMapping(out.files[0], cfg.ReportFormat, opts)
	out.collisions = report.NewCollisions(out.files[1], cfg.ExcelSafe)
	return out, err
}

func (c *Config) reportNames() []string {
	return []string{c.ReportFormat.FileName(), manifest.CollisionsName}
}

// discardReports removes what an earlier attempt wrote of these files.
func discardReports(dir *outdir.Dir, cfg *Config) error {
	for _, name := range cfg.reportNames() {
		if err := dir.Discard(name); err != nil {
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
func reasons(rows *intake.Rows, settled *settle.Settlement) map[string]int64 {
	reasons := maps.Clone(rows.Reasons)
	for reason, n := range settled.Rejected {
		reasons[reason] += n
	}
	return reasons
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
