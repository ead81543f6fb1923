package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/shorturl"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/stage"
)

// PlanStages plans a run that is done in tasks (package stage), with shards of about so many rows. In place
// of a store it has the links of exports, which are files or patterns. It refuses what only Run can do.
func PlanStages(ctx context.Context, cfg Config, links []string, rows int64) (*stage.Job, error) {
	cfg, err := cfg.withDefaults()
	if err == nil {
		err = cfg.staged()
	}
	if err != nil {
		return nil, err
	}
	cfg.Out = filepath.Clean(cfg.Out)
	if !stage.IsPlain(cfg.Out) {
		return nil, &UsageError{fmt.Errorf("output directory %q: the commands of the tasks have its name: give one of letters, digits, / . _ and -", cfg.Out)}
	}
	if _, err := os.Stat(filepath.Join(cfg.Out, manifest.StageDir)); err == nil {
		return nil, fmt.Errorf("output directory %s: it %w", cfg.Out, errPlanned)
	}
	if err := outdir.Look(cfg.Out, outdir.ClaimOptions{FS: cfg.fs}); err != nil {
		return nil, err
	}
	names, err := nameInputs(&cfg)
	if err != nil {
		return nil, err
	}
	there, err := findLinks(ctx, &cfg, links, rows)
	if err != nil {
		return nil, err
	}
	j := newJob(&cfg)
	inputs, err := j.open(ctx, names)
	if err != nil {
		return nil, err
	}
	m := describe(&cfg, inputs)
	m.AsOf = asOf(&cfg, j.meter.started)
	if err := errors.Join(stagedInputs(inputs), inputs.Close()); err != nil {
		return nil, err
	}
	return stage.Make(ctx, cfg.Out, m, stage.ReadingOf(&cfg.Source, cfg.AllowEmpty, inputs, rows), there, rows, cfg.stageOptions())
}

// findLinks finds the exports whose links count.
func findLinks(ctx context.Context, cfg *Config, links []string, rows int64) ([]stage.Links, error) {
	if len(links) == 0 {
		return nil, nil
	}
	names, err := source.Expand(links, nil, false)
	if err != nil {
		return nil, err
	}
	list, err := stage.FindLinks(ctx, names, cfg.Profile.Name(), cfg.Scheme.Stored(cfg.CodeLength), rows)
	if err != nil {
		err = &UsageError{err}
	}
	return list, err
}

var errPlanned = fmt.Errorf("%w, or a plan of bulk stage: give another with Config.Out", outdir.ErrExists)

func (c *Config) stageOptions() stage.Options {
	return stage.Options{Version: c.Version, Workers: c.Workers, TempDir: c.TempDir, Secret: func(string) (codegen.Secret, error) { return c.Scheme.Secret, nil }}
}

// staged refuses what only Run can do.
func (c *Config) staged() error {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, f := range []struct {
		field string
		given bool
	}{
		{"Legacy", c.Legacy != legacy.Off},
		{"Rules", c.Rules != nil},
		{"Campaign", c.Campaign != nil},
		{"Attrs", c.Attrs != "" && c.Attrs != along.None && c.Legacy == legacy.Off},
		{"KeepCreated", c.KeepCreated},
		{"Domains", c.Domains != legacy.DomainsOff},
		{"ShortDomains", len(c.ShortDomains) > 0},
		{"DefaultDomain", c.DefaultDomain != ""},
		{"BaseURL " + c.BaseURL, c.base().Has(shorturl.Domain)},
		{"Hygiene", c.Hygiene != nil && *c.Hygiene != hygiene.Defaults()},
		{"Source.Map", len(c.Source.Map) > 0},
		{"Source.Profile", c.Source.Profile != "" && c.Source.Profile != "auto"},
		{"Scheme.Name " + c.Scheme.Name, c.Scheme.counts()},
		{"Scheme.Words", c.Scheme.Words != nil},
		{"ReportFormat " + string(c.ReportFormat), c.ReportFormat != report.CSV},
		{"ReportOrder " + string(c.ReportOrder), c.ReportOrder != report.SortOrder},
		{"Limit", c.Limit > 0},
		{"Source.Encoding", c.Source.Encoding != ""},
		{"TargetBase", c.TargetBase != nil},
		{"Store", c.Store != nil},
		{"Overwrite", c.Overwrite},
	} {
		if f.given {
			complain("Config.%s cannot be used in stages: give it to a run on one machine", f.field)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return &UsageError{err}
	}
	return nil
}

// stagedInputs refuses inputs that no task can read by itself.
func stagedInputs(inputs *intake.Inputs) error {
	var problems []error
	for _, in := range inputs.List {
		if in.Name == "-" {
			problems = append(problems, errors.New("standard input cannot be read in stages: give files"))
			continue
		}
		if !slices.Contains([]string{"csv", "text", "parquet", "arrow"}, in.Format) {
			problems = append(problems, fmt.Errorf("input %s is %s, which cannot be read in stages: give files of CSV, text, Parquet or Arrow", in.Name, in.Format))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return &UsageError{err}
	}
	return nil
}

// CommitStages publishes what the tasks did. If the rejects, or the number of rows, forbid the run, the error
// is a *TooManyRejectsError.
func CommitStages(ctx context.Context, job *stage.Job) (*stage.Run, error) {
	run, err := job.Commit(ctx)
	if err != nil || !run.Refused {
		return run, err
	}
	m := run.Manifest
	refused := &TooManyRejectsError{Rejected: m.Counts.Rejected, Read: m.Counts.Read, Limit: run.Limit, Out: run.Out}
	if run.Expected > 0 && run.Expected != m.Counts.Read {
		refused.Rows, refused.Expected = m.Counts.Read, run.Expected
	}
	if m.Counts.Rejected == m.Counts.Read && run.First != nil {
		refused.First = hygiene.Redact(fmt.Sprintf("%s, row %d: %s: %s", run.First.Source, run.First.Row, run.First.Reason, run.First.Detail))
	}
	return run, refused
}
