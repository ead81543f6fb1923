package pipeline

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/remove"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/terms"
	"github.com/linkforge/bulk/sink"
)

// DeleteConfig says what a delete does. Set Inputs, Workspace, Store and Out. Zero in any other field
// means its default.
type DeleteConfig struct {
	Inputs       []string            // as of Config
	Source       source.Options      // of these; as of Options.ByCode
	Workspace    string              // of all rows
	Owner        string              // if it is not blank, only links of this owner are deleted
	AssumeScheme canon.AssumedScheme // of URLs without one; the store tells all else about them

	Store  sink.Store
	DryRun bool      // change nothing; write the reports to the .dry of Out
	NoWait bool      // as of Config
	AsOf   time.Time // of the marks; zero: now
	// Confirm is told what the delete would do before it does it, and asked whether it shall. It
	// may be nil.
	Confirm func(*DeleteResult) (bool, error)

	Out       string // output directory
	Overwrite bool
	Version   string // of the tool, for the manifest

	Logger *slog.Logger        // nil: silent
	Status *Status             // nil: nobody watches
	Opened func([]DeleteInput) // told what the inputs are, before their rows are read; nil: nobody is

	sortMemory int64 // for tests; 0: the usual
}

// A DeleteInput is an input whose rows name links by URLs or codes. The names are those of columns.
type DeleteInput struct {
	Name        string
	Codes, URLs string // blank: it has none
}

// A DeleteResult says how a delete went.
type DeleteResult struct {
	Links          int64     // that were deleted; of a dry run: that would be
	AsOf           time.Time // of their marks: a sweep deletes the links when its grace has passed since
	Counts         manifest.DeletionCounts
	Reasons        map[string]int64 // rejects by reason
	BlankRows      int64            // records of the inputs that are no rows
	Declined       bool             // Confirm said no, and nothing was done
	Out            string           // where the files are
	ManifestSHA256 string           // of manifest.json, hexadecimal; "" until the output has its name
}

// deleteMemory is how many bytes of records each sort of a delete holds.
const deleteMemory = 64 << 20

// Delete marks the links as deleted that the rows of the inputs name, and writes what became of each
// row. The result is valid, as far as the delete got, also with an error: Links is then what was
// deleted. Errors to tell apart are those of Run. Rows that were rejected are no error.
//
// If a delete is interrupted, the same delete again does the rest. Its rows do not tell what the
// first one has deleted.
func Delete(ctx context.Context, cfg DeleteConfig) (_ *DeleteResult, err error) {
	d := &deletion{DeleteConfig: cfg}
	if err := d.check(); err != nil {
		return &d.result, err
	}
	d.Status.begin()
	d.asOf = asOf(&Config{AsOf: cfg.AsOf}, time.Now())
	names, err := nameInputs(&Config{Inputs: cfg.Inputs, Source: d.Source, Store: cfg.Store, Out: d.Out, DryRun: true, ReportFormat: report.CSV})
	if err == nil {
		err = unlessBusy(ctx, d.NoWait, d.look)
	}
	if err != nil {
		return &d.result, err
	}
	d.inputs, err = intake.Open(ctx, names, d.Source, "", d.Logger)
	if err != nil {
		return &d.result, err
	}
	defer func() { err = errors.Join(err, d.inputs.Close()) }()
	d.Opened(d.opened())
	if d.profile, err = d.profileOfStore(ctx); err != nil {
		return &d.result, err
	}
	if err := unlessBusy(ctx, d.NoWait, d.claim); err != nil {
		return &d.result, err
	}
	defer func() { err = errors.Join(err, d.dir.Abandon()) }()
	return &d.result, d.do(ctx)
}

// A deletion is what the steps of a delete share.
type deletion struct {
	DeleteConfig
	asOf    time.Time
	inputs  *intake.Inputs
	profile canon.Profile // of the workspace
	folds   bool          // the workspace folds case
	dir     *outdir.Dir
	rows    *remove.Rows
	result  DeleteResult
}

// Validate returns a UsageError that joins all that is wrong with the configuration, or nil. Delete
// does so too.
func (c DeleteConfig) Validate() error { return (&deletion{DeleteConfig: c}).check() }

// check fills in the defaults, and fails as Validate does.
func (d *deletion) check() error {
	d.Source.ByCode = true
	d.Source.MaxField = cmp.Or(d.Source.MaxField, source.DefaultMaxField)
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	d.Status = cmp.Or(d.Status, new(Status))
	if d.Opened == nil {
		d.Opened = func([]DeleteInput) {}
	}
	d.sortMemory = cmp.Or(d.sortMemory, deleteMemory)
	problems := []error{d.Source.Validate()}
	if d.Out == "" {
		problems = append(problems, errors.New("no output directory"))
	}
	if d.Out = filepath.Clean(d.Out); d.DryRun {
		d.Out, d.Overwrite = outdir.DryOf(d.Out), true
	}
	check := func(field string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", "Config."+field, err))
		}
	}
	if err := codegen.CheckWorkspace([]byte(d.Workspace)); d.Workspace == "" {
		problems = append(problems, errors.New("no workspace: give one with Config.Workspace"))
	} else {
		check("Workspace", err)
	}
	check("Owner", (&rules.Flags{Owner: []byte(d.Owner)}).Check())
	if d.Source.URLColumn == columns.NoColumn && d.Source.CodeColumn == columns.NoColumn {
		problems = append(problems, errors.New("Config.Source.URLColumn none and Config.Source.CodeColumn none: a row names its links by one of them"))
	}
	if profile.ParseColumn(d.Source.CodeColumn).List {
		problems = append(problems, errors.New("Config.Source.CodeColumn: a row names one code, and list(…) may have several"))
	}
	if y := d.AsOf.UTC().Year(); y < 1 || y > 9999 { // JSON has no others
		problems = append(problems, fmt.Errorf("Config.AsOf %s is out of range", d.AsOf.Format(time.RFC3339)))
	}
	if err := errors.Join(problems...); err != nil {
		return &UsageError{err}
	}
	return nil
}

// look refuses an output directory that the delete may not replace: not one with the reports of a
// run either, since the settings of a nightly run may give its directory and say that it may be
// replaced.
func (d *deletion) look() error {
	if _, _, err := manifest.ReadDir(d.Out); err == nil {
		return &UsageError{fmt.Errorf("output directory %s: it has the reports of a run; give another with Config.Out", d.Out)}
	}
	err := outdir.Look(d.Out, outdir.ClaimOptions{Overwrite: d.Overwrite})
	if errors.Is(err, outdir.ErrExists) {
		err = &UsageError{fmt.Errorf("output directory %s: it has the reports of an earlier delete; give another with Config.Out, or replace it with Config.Overwrite", d.Out)}
	}
	return err
}

func (d *deletion) claim() (err error) {
	d.dir, err = outdir.Claim(d.Out, outdir.ClaimOptions{Overwrite: d.Overwrite})
	return err
}

// opened describes the inputs.
func (d *deletion) opened() (list []DeleteInput) {
	for _, in := range d.inputs.List {
		o, urls := DeleteInput{Name: in.Name}, in.URLs
		if in.Code >= 0 {
			o.Codes, urls = in.Columns[in.Code], in.Beside
		}
		if len(urls) > 0 {
			o.URLs = in.Columns[urls[0]]
		}
		list = append(list, o)
	}
	return list
}

// profileOfStore returns the profile of the links of the workspace. It notes whether the workspace folds
// case.
func (d *deletion) profileOfStore(ctx context.Context) (p canon.Profile, err error) {
	session, err := d.Store.Peek(ctx)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	set, err := session.Profiles(ctx, []string{d.Workspace})
	if err != nil {
		return p, err
	}
	if p, err = canon.ParseProfile(cmp.Or(set[d.Workspace], canon.Profile{}.Name())); err != nil {
		return p, fmt.Errorf("workspace %q: %w that this version of bulk knows", d.Workspace, err)
	}
	p.AssumeScheme = d.AssumeScheme
	schemes, err := session.Schemes(ctx, []string{d.Workspace})
	d.folds = schemes[d.Workspace].Fold
	return p, err
}

// do reads, asks, marks and writes.
func (d *deletion) do(ctx context.Context) (err error) {
	status := d.Status
	status.TotalBytes.Store(d.inputs.Size)
	status.enter(StageRead)
	d.rows, err = remove.Read(ctx, d.inputs, remove.Config{
		Profile: d.profile, Fold: d.folds, Workspace: d.Workspace, Store: d.Store, Sorter: extsort.Config{Memory: d.sortMemory, Loads: 2},
		Bytes: &status.Bytes, Read: &status.Read, Rejected: &status.Rejected, Seen: &status.Written,
	})
	defer func() { err = errors.Join(err, d.rows.Close()) }()
	if err != nil {
		return err
	}
	opts := sink.DeleteOptions{Workspace: d.Workspace, Owner: d.Owner, AsOf: d.asOf, DryRun: d.DryRun, Lock: sink.LockOptions{
		NoWait: d.NoWait, Wait: func(holder string) { d.Logger.Info("waiting for another run", "holder", holder) },
	}}
	if d.Confirm != nil && !d.DryRun {
		status.enter(StageCount)
		marked, err := d.rows.Count(ctx, d.Store, opts)
		if err != nil {
			return err
		}
		would := d.books(&marked)
		yes, err := d.Confirm(&would)
		if d.result.Declined = !yes; err != nil || !yes {
			return err
		}
		status.Written.Store(0)
	}
	status.enter(StageDelete)
	marked, err := d.rows.Mark(ctx, d.Store, opts)
	d.result = d.books(&marked)
	if err != nil {
		return err
	}
	status.enter(StageFinish)
	return d.write(ctx, &marked)
}

// books returns what became of the rows.
func (d *deletion) books(m *remove.Marked) DeleteResult {
	return DeleteResult{Links: m.Links, AsOf: d.asOf, Reasons: m.Reasons, BlankRows: d.rows.BlankRows(), Counts: manifest.DeletionCounts{
		Read: d.rows.RowsRead(), Existing: m.Rows[outcome.Existing], Duplicate: m.Rows[outcome.Duplicate], Rejected: m.Rejected(),
	}}
}

// write writes the reports and, if the books balance, the manifest, and gives the directory its name.
func (d *deletion) write(ctx context.Context, marked *remove.Marked) error {
	c := &d.result.Counts
	written := manifest.DeletionCounts{Read: c.Read}
	mapping, err := d.file(report.CSV.FileName(), func(f *outdir.File) (int64, error) {
		columns := remove.Columns()
		to := report.NewCSVExport(f, append(columns, report.CarriedNames(columns, d.inputs.Carried)...))
		rows, err := d.rows.WriteAccepted(ctx, to)
		written.Existing, written.Duplicate = rows[outcome.Existing], rows[outcome.Duplicate]
		return written.Existing + written.Duplicate, errors.Join(err, to.Close())
	})
	if err != nil {
		return err
	}
	rejects, err := d.file(manifest.RejectsName, func(f *outdir.File) (rows int64, err error) {
		to := report.NewRejects(f, d.inputs.Names)
		written.Rejected, err = d.rows.WriteRejects(ctx, to)
		return written.Rejected, errors.Join(err, to.Close())
	})
	if err != nil {
		return err
	}
	if written != *c || c.Read != c.Existing+c.Duplicate+c.Rejected {
		return fmt.Errorf("the books do not balance: settled %+v, written %+v", *c, written)
	}
	m := d.describe(marked)
	m.Files = manifest.Files{mapping, rejects}
	sum, err := d.file(manifest.Name, func(f *outdir.File) (int64, error) { return 0, manifest.WriteDeletion(f, m) })
	if err != nil {
		return err
	}
	if err := d.dir.Commit(); err != nil {
		return err
	}
	d.result.Out, d.result.ManifestSHA256 = d.dir.Name(), sum.SHA256
	return nil
}

// file writes a file of the output directory. The function write returns the number of its rows.
func (d *deletion) file(name string, write func(*outdir.File) (rows int64, err error)) (sum manifest.FileSum, err error) {
	file, err := d.dir.Create(name)
	if err != nil {
		return sum, err
	}
	rows, err := write(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return sum, err
	}
	return manifest.FileSum{Name: name, Rows: rows, SHA256: file.SHA256()}, nil
}

// describe returns the manifest without its files.
func (d *deletion) describe(marked *remove.Marked) *manifest.Deletion {
	inputs := d.inputs.Manifest()
	for i, in := range d.inputs.List {
		sum := in.SHA256()
		inputs[i].SHA256 = hex.EncodeToString(sum[:])
		if in.Code >= 0 {
			inputs[i].URLColumns = nil
			for _, c := range in.Beside {
				inputs[i].URLColumns = append(inputs[i].URLColumns, inputs[i].Columns[c])
			}
		}
	}
	told := terms.Terms{Workspace: d.Workspace, DryRun: d.DryRun, MaxField: int64(d.Source.MaxField), Encoding: d.Source.Encoding, PadRows: d.Source.PadRows, URLs: canon.Profile{AssumeScheme: d.AssumeScheme}, CodeFrom: d.Source.CodeColumn}
	changes := map[string]int64{}
	if marked.Deleted > 0 {
		changes[rules.Deleted.String()] = marked.Deleted
	}
	return &manifest.Deletion{
		Version: d.Version, Profile: d.profile.Name(), UnicodeVersion: canon.UnicodeVersion, Options: told.OfDelete(d.Owner), AsOf: d.asOf, Inputs: inputs,
		Counts: d.result.Counts, LinksDeleted: d.result.Links, Changes: changes, Reasons: d.result.Reasons,
	}
}
