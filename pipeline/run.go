package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/emit"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/pipeline/shorturl"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
)

// A Result says how a run went.
type Result struct {
	Counts         sink.Counts            // zero until all rows are settled
	Reasons        map[string]int64       // rejects by reason; nil until the output has its name
	Rejected       map[string]*PreviewRow // the first reject of each reason, in the order of the input
	Files          []manifest.FileSum     // also in the manifest
	Out            string                 // where the files are: Config.Out, or its .dry or .failed
	ManifestSHA256 string                 // of manifest.json, hexadecimal; "" until the output has its name
	RunID          int32                  // 0: nothing was to be stored
	Resumed        bool                   // resumed a run that another process did not finish
	Repeated       bool                   // the run was finished before: nothing was written or stored
	AsOf           time.Time
	Timings        *manifest.Timings // with an error perhaps only Started, PeakMemory and Stages; nil: nothing was done

	manifest.Told // with all workspaces; what is told once the rows are read, settled or written is zero until then

	MergedDiffers *manifest.MergedDiffers // also in the manifest; nil: none
	Legacy        *manifest.Legacy        // also in the manifest; nil: legacy codes were not looked at
	LinksCreated  int64                   // with aliases
	Migration     *manifest.Migration     // also in the manifest; nil: it was not looked at
	BlankRows     int64                   // records of the inputs that are no rows; also in the manifest
	Rules         *manifest.Rules         // also in the manifest; nil: there are no link rules
	Numbers       *manifest.Numbers       // also in the manifest; nil: the scheme has no counter
	Campaign      *manifest.Campaign      // also in the manifest; nil: a row is one link
}

// Run does the whole job. The result is valid, as far as the run got, also with an error.
// Errors to tell apart: UsageError and columns.UsageError, outdir.ErrExists and ErrBusy,
// manifest.ErrNotOurs, sink.ErrOldTables (nothing was done); TooManyRejectsError (rejects and
// manifest are written); sink.ErrRetryable, sink.ErrLocked and the cause of ctx (the same
// run again finishes the job). Rows that were rejected are no error.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return &Result{}, err
	}
	cfg.Out = filepath.Clean(cfg.Out) // so that all read it alike
	if cfg.DryRun {
		cfg.Out = outdir.DryOf(cfg.Out)
	}
	j := newJob(&cfg)
	j.result.Out, j.result.AsOf = cfg.Out, asOf(&cfg, j.meter.started)
	err = j.do(ctx)
	if j.result.Timings == nil {
		j.result.Timings = &manifest.Timings{Started: j.meter.started, PeakMemory: peakMemory(), Stages: j.meter.stages}
	}
	return &j.result, err
}

// asOf returns the as_of of a run that was started at a time.
func asOf(cfg *Config, started time.Time) time.Time {
	if !cfg.AsOf.IsZero() {
		started = cfg.AsOf
	}
	return started.UTC().Truncate(time.Microsecond)
}

// A job is what the steps of a run share: what it was told, and what is there once the rows are
// read. It is not known to the stages.
type job struct {
	cfg         *Config
	budget      budget
	room        room
	arenas      extsort.Arenas
	meter       meter
	result      Result
	out         outputDir
	rows        *intake.Rows
	others      *intake.Others  // of a preview
	ruled       bool            // rows are held against links: the run has link rules, or a workspace has links with any
	unruled     []string        // workspaces of rows with parameters that have no links with link rules yet
	limited     manifest.Counts // by which the rejects are limited
	unset       []string        // workspaces whose profile the store is to be told before their first link
	otherScheme []string        // the same of their scheme
	again       bool            // the rows are read once more
	toldFold    bool            // the run was told to fold case; Config.Scheme.Fold is also what the store says
	moved       bool            // tellMoved has told
}

// newJob begins a job of a configuration that has its defaults.
func newJob(cfg *Config) *job {
	if cfg.fs != nil {
		cfg.Source.FS = cfg.fs
	}
	cfg.Status.begin()
	return &job{cfg: cfg, toldFold: cfg.Scheme.Fold, budget: cfg.budget(), room: room{cfg.TempDir, cfg.freeRoom}, meter: meter{started: time.Now()}}
}

// do claims the output, reads, stores and writes. If it fails before the output directory has
// been renamed, the output is as it was before.
func (j *job) do(ctx context.Context) (err error) {
	names, err := nameInputs(j.cfg)
	if err != nil {
		return err
	}
	if err := j.out.look(ctx, j.cfg); err != nil { // before an input is waited for
		return err
	}
	inputs, err := j.open(ctx, names)
	if err != nil {
		return err
	}
	if err := j.out.claim(ctx, j.cfg, inputs); err != nil {
		return errors.Join(err, inputs.Close())
	}
	defer func() { err = errors.Join(err, j.out.abandon()) }()
	err = j.process(ctx, inputs)
	for readAgain(err) {
		if inputs, err = j.reopen(ctx, names, err); err == nil {
			err = j.process(ctx, inputs)
		}
	}
	return err
}

// onlyOnce reports whether an input is no regular file, so that it can be read only once.
func onlyOnce(name string) bool {
	info, err := os.Stat(name)
	return name == "-" || err == nil && !info.Mode().IsRegular()
}

// readAgain reports whether the rows are to be read once more.
func readAgain(err error) bool { return errors.Is(err, errOtherTime) || errors.Is(err, errOtherFold) }

// reopen opens the inputs once more, because of an error of readAgain. What there is to tell of them was
// told when they were opened first.
func (j *job) reopen(ctx context.Context, names []string, because error) (*intake.Inputs, error) {
	if i := slices.IndexFunc(names, onlyOnce); i >= 0 && errors.Is(because, errOtherFold) {
		return nil, j.foldUnknown(names[i])
	} else if i >= 0 {
		return nil, fmt.Errorf("the unfinished run of this command began at %s; links may have expired since, so the rows must be read again, and %s cannot: add Config.NewRun to start over",
			j.result.AsOf.Format(time.RFC3339), names[i])
	}
	j.again = true
	j.cfg.Status.begin()
	log, opened := j.cfg.Logger, j.cfg.Opened
	j.cfg.Logger, j.cfg.Opened = slog.New(slog.DiscardHandler), func([]Input) {}
	defer func() { j.cfg.Logger, j.cfg.Opened = log, opened }()
	return j.open(ctx, names)
}

// errOtherTime: the rows were judged by another as_of than that of the run that is resumed, which
// the job has now. They are to be read once more.
var errOtherTime = errors.New("links may have expired meanwhile")

// process reads the inputs, which it closes, and does everything from there.
func (j *job) process(ctx context.Context, inputs *intake.Inputs) (err error) {
	defer func() { err = errors.Join(err, inputs.Close()) }()
	err = j.readRows(ctx, inputs)
	defer func() { err = errors.Join(err, j.rows.Close()) }()
	if err != nil {
		return err
	}
	if err := j.out.identify(j.cfg, inputs); err != nil {
		return err
	}
	return retry(ctx, j.cfg, &j.meter, j.attempt)
}

// open opens the inputs, which the caller closes.
func (j *job) open(ctx context.Context, names []string) (*intake.Inputs, error) {
	inputs, err := intake.Open(ctx, names, j.cfg.Source, j.cfg.Attrs, j.cfg.Logger)
	if err != nil {
		return nil, err
	}
	if j.cfg.Workspace == "" && j.cfg.Source.WorkspaceColumn == "" && j.cfg.Domains != legacy.DomainsKeep && slices.ContainsFunc(inputs.List, func(in *intake.Input) bool { return in.Workspace < 0 && !in.Blank }) {
		return nil, errors.Join(&UsageError{errNoWorkspace}, inputs.Close())
	}
	if err := checkWhole(j.cfg, inputs); err != nil {
		return nil, errors.Join(err, inputs.Close())
	}
	j.keepEnds(inputs)
	if err := checkMigration(j.cfg, inputs); err != nil {
		return nil, errors.Join(err, inputs.Close())
	}
	if err := checkParams(j.cfg, inputs); err != nil {
		return nil, errors.Join(err, inputs.Close())
	}
	inputs.Resolves = j.cfg.TargetBase != nil
	if j.cfg.Campaign != nil {
		if err := inputs.Expand(j.cfg.Campaign); err != nil {
			return nil, errors.Join(err, inputs.Close())
		}
		for _, m := range j.cfg.Campaign.Misspelled() {
			j.cfg.Logger.Warn(fmt.Sprintf("the parameter %s is one letter off %s", m.Name, m.Known))
		}
	}
	j.cfg.Opened(describeInputs(inputs, j.cfg.identity()))
	return inputs, nil
}

// checkWhole refuses documents of a program that are not all of its links: whose total is above that of
// all inputs of the program, or which say that more follow, and no input says that it is the last.
func checkWhole(cfg *Config, inputs *intake.Inputs) error {
	if cfg.Partial {
		return nil
	}
	type pages struct {
		source.Page
		first *intake.Input // that says that it is not all
	}
	of := map[string]*pages{}
	for _, in := range inputs.List {
		p := in.Page()
		if p == nil {
			continue
		}
		if p.Unread {
			cfg.Logger.Warn("whether the document is whole is not known: too much stands beside its links", "input", in.Name)
		}
		all := of[in.Profile]
		if all == nil {
			all = &pages{Page: source.Page{Total: -1}}
			of[in.Profile] = all
		}
		all.Records, all.Total = all.Records+p.Records, max(all.Total, p.Total)
		all.More, all.Last = all.More || p.More, all.Last || p.Last
		if all.first == nil && (p.More || p.Total > p.Records) {
			all.first = in
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		switch all := of[name]; {
		case all.Total > all.Records:
			return &columns.UsageError{Input: all.first.Name, Msg: fmt.Sprintf("is not all: the inputs of the profile %s have %d of %d links. Give all pages, or add Config.Partial to take what is there", name, all.Records, all.Total)}
		case all.More && !all.Last:
			return &columns.UsageError{Input: all.first.Name, Msg: "is not all: it says that more links follow. Give all pages, or add Config.Partial to take what is there"}
		}
	}
	return nil
}

// keepEnds has links end as the inputs say, if they say so and the run was told nothing of it.
func (j *job) keepEnds(inputs *intake.Inputs) {
	if j.cfg.mayEnd() && slices.ContainsFunc(inputs.List, func(in *intake.Input) bool { return in.HasEnds() }) {
		j.cfg.Rules = &rules.Flags{TemporaryTTL: rules.DefaultTemporaryTTL}
		j.budget = j.cfg.budget()
	}
}

// checkMigration refuses to keep what no input tells.
func checkMigration(cfg *Config, inputs *intake.Inputs) error {
	none := func(tells func(*intake.Input) bool) bool { return !slices.ContainsFunc(inputs.List, tells) }
	if cfg.Domains == legacy.DomainsKeep && !none(func(in *intake.Input) bool { return in.Workspace >= 0 }) {
		return &UsageError{errors.New("Config.Domains keep cannot be used with a workspace column")}
	}
	if cfg.Domains == legacy.DomainsKeep && none(func(in *intake.Input) bool { return in.HasDomains() || in.Blank }) {
		return &UsageError{errors.New("Config.Domains keep: no column is known to have the domain; give it with Config.Source.Map domain=COLUMN")}
	}
	if cfg.base().Has(shorturl.Domain) && none(func(in *intake.Input) bool { return in.HasDomains() || in.Blank }) {
		return &UsageError{errors.New("Config.BaseURL has {domain}: no column is known to have the domain; give it with Config.Source.Map domain=COLUMN, or one for all rows with Config.DefaultDomain")}
	}
	if cfg.KeepCreated && none(func(in *intake.Input) bool { return in.Along.HasCreated() || in.Blank }) {
		return &UsageError{errors.New("Config.KeepCreated: no column is known to have the creation time; give it with Config.Source.Map created_at=COLUMN")}
	}
	return nil
}

// checkParams refuses link rules that no column and no flag tells, since the links would just have
// none. Where columns may be missing for another reason it only says so.
func checkParams(cfg *Config, inputs *intake.Inputs) error {
	has := func(tells func(*intake.Input) bool) bool { return slices.ContainsFunc(inputs.List, tells) }
	if cfg.Rules == nil || cfg.Source.Ends || cfg.rulesByFlags() || has(func(in *intake.Input) bool { return in.HasParams() }) {
		return nil
	}
	in := inputs.List[0]
	if i := slices.IndexFunc(inputs.List, func(in *intake.Input) bool { return len(in.ParamsLike()) > 0 }); i >= 0 {
		in = inputs.List[i]
	}
	if has(func(in *intake.Input) bool { return in.MayLackParams() }) {
		cfg.Logger.Warn(in.NoParams(), "input", in.Name)
		return nil
	}
	return in.Usage(in.NoParams())
}

// warnOfEmpty warns of inputs without a row beside others that have some.
func (j *job) warnOfEmpty() {
	var empty []string
	for _, in := range j.rows.List {
		if in.Rows() == 0 && in.Format != "rejects" && j.cfg.Limit == 0 {
			empty = append(empty, in.Name)
		}
	}
	if n := len(empty); n > 0 && n < len(j.rows.List) {
		j.cfg.Logger.Warn("some inputs have no rows", "inputs", n, "first", empty[0])
	}
}

// read makes the rows, which the caller closes, also with an error.
func (j *job) read(ctx context.Context, inputs *intake.Inputs) error {
	maker, _, err := j.cfg.Scheme.Make(j.cfg.CodeLength)
	if err != nil {
		return err
	}
	told := j.cfg.terms()
	j.cfg.Status.TotalBytes.Store(inputs.Size)
	j.cfg.Status.enter(StageRead)
	err = j.meter.time("read", func(s *manifest.Stage) (err error) {
		j.rows, err = intake.Read(ctx, inputs, intake.Config{
			Judge: told.Judge(j.result.AsOf), Codes: maker, Retries: j.cfg.MaxRetries, Workspace: []byte(j.cfg.Workspace), Limit: j.cfg.Limit, Workers: j.cfg.Workers,
			Records: j.sorter(j.budget.records, j.budget.loads), Rejects: j.sorter(j.budget.rejects, 2), Claims: j.sorter(j.budget.claims, 3),
			Beyond: told.Beyond, Base: j.cfg.base(), Others: j.others,
			Room: j.room.need, Slack: int64(j.cfg.Workers) * leastRecords, // arenas and chunks that are not full
			Bytes: &j.cfg.Status.Bytes, Read: &j.cfg.Status.Read, Rejected: &j.cfg.Status.Rejected,
		})
		s.Rows, s.Bytes = inputs.RowsRead(), j.cfg.Status.Bytes.Load()
		return err
	})
	if err != nil {
		return err
	}
	if j.rows.Records.Spilled() > 0 {
		j.cfg.DiskBound()
	}
	j.result.Workspaces, j.result.Rewritten, j.result.RewrittenBy = j.rows.Workspaces.Sorted(), j.rows.Rewritten, j.rows.Changes.ByName()
	if inputs.RowsRead() == 0 && !j.cfg.AllowEmpty && !inputs.Rejects() {
		return &UsageError{errors.New("the inputs have no rows; if that is right, add Config.AllowEmpty")}
	}
	if err := j.checkHosts(); err != nil {
		return err
	}
	j.result.NotUTF8, j.result.Resolved = escaped(j.rows, &j.rows.NotUTF8), escaped(j.rows, &j.rows.Resolved)
	j.result.Folds = j.cfg.Scheme.Fold && !j.toldFold
	j.result.Dates, j.result.Nones, j.result.BlankRows = j.rows.Dates, j.rows.Nones, inputs.BlankRows()
	if !j.again {
		j.warnOfEmpty()
	}
	return nil
}

// checkHosts refuses a base URL that would not make URLs of some links.
func (j *job) checkHosts() error {
	base := j.cfg.base()
	if n := &j.rows.NoHost; n.Rows > 0 {
		hint := "no host name"
		if n.Text == "" {
			hint = "blank; give one for such rows with Config.DefaultDomain"
		}
		return &UsageError{fmt.Errorf("Config.BaseURL %s: %s, row %d: the domain %q is %s", j.cfg.BaseURL, j.rows.List[n.First.Source].Name, n.First.Row, n.Text, hint)}
	}
	if err := base.CheckWorkspaces(j.result.Workspaces); err != nil {
		return &UsageError{fmt.Errorf("Config.BaseURL %s: %w", j.cfg.BaseURL, err)}
	}
	return nil
}

// tellMoved tells of rows that Config.DefaultDomain takes out of a workspace that has links.
func (j *job) tellMoved(ctx context.Context, session sink.Session) error {
	if j.moved || session == nil || j.cfg.Domains != legacy.DomainsKeep || j.cfg.Workspace == "" || j.rows.Defaulted == 0 {
		return nil
	}
	populated, err := session.Populated(ctx, []string{j.cfg.Workspace})
	if err != nil || !populated[0] {
		return err
	}
	j.moved = true
	to := legacy.AppendWorkspace(nil, []byte(j.cfg.Workspace), []byte(j.cfg.DefaultDomain))
	j.cfg.Logger.Warn(fmt.Sprintf("rows without a domain go to the workspace %s, and not to %s, which has links", to, j.cfg.Workspace), "rows", j.rows.Defaulted)
	return nil
}

// sorter returns the configuration of a sorter, all but its order.
func (j *job) sorter(memory int64, loads int) extsort.Config {
	return extsort.Config{Memory: memory, Loads: loads, Arenas: &j.arenas, TempDir: j.cfg.TempDir, FS: j.cfg.fs, Room: j.room.need}
}

// attempt opens a session and does everything from there. What an earlier attempt left in
// the store counts as done.
func (j *job) attempt(ctx context.Context) (err error) {
	session, err := j.openSession(ctx)
	if err != nil {
		return err
	}
	if session != nil {
		defer func() { err = errors.Join(err, session.Close()) }()
	}
	if j.out.committed != nil {
		return session.Finish(ctx, *j.out.committed)
	}
	if err := j.checkProfile(ctx, session); err != nil {
		return err
	}
	if err := j.checkScheme(ctx, session); err != nil {
		return err
	}
	if err := j.checkRules(ctx, session); err != nil {
		return err
	}
	if err := j.tellMoved(ctx, session); err != nil {
		return err
	}
	entry, resumed, err := j.out.adopt(ctx, j.cfg, session, j.entry())
	if err != nil {
		return err
	}
	j.result.Resumed = j.result.Resumed || resumed
	then := entry.AsOf
	if j.out.finished() {
		then = j.out.there.AsOf
	}
	if err := j.judgeAt(then); err != nil {
		return err
	}
	j.result.AsOf = entry.AsOf
	settled, err := j.settle(ctx, session, entry.ID, entry.Numbers)
	if settled != nil {
		defer func() { err = errors.Join(err, settled.Close()) }()
	}
	if err != nil {
		return err
	}
	entry.Counts = j.result.Counts
	if j.rows.Claims != nil {
		entry.Aliases, entry.LinksCreated = true, settled.LinksCreated()
	}
	entry.Attrs, entry.KeepCreated = j.rows.HasAttrs(), j.cfg.KeepCreated
	entry.Rules = j.cfg.Rules != nil
	entry.Parts = j.cfg.identity() != rules.ByURL
	if j.out.finished() {
		if settled.LinksCreated()+settled.ToChange() == 0 {
			if err := j.repeat(); err != nil {
				return err
			}
			return j.moveCounter(ctx, session)
		}
		if !j.cfg.Overwrite && settled.LinksCreated() == 0 {
			return fmt.Errorf("output directory %s: it %w, this very one, but %d of its links have ended or were changed since, and the run would change them; Config.Overwrite does that",
				j.cfg.Out, outdir.ErrExists, settled.ToChange())
		}
		if !j.cfg.Overwrite {
			return fmt.Errorf("output directory %s: it %w, this very one, but the store has lost %d of its links; Config.Overwrite creates them again",
				j.cfg.Out, outdir.ErrExists, settled.LinksCreated())
		}
		if err := j.judgeAt(asOf(j.cfg, j.meter.started)); err != nil {
			j.out.there = nil // it is replaced by a new run
			return err
		}
	}
	if j.limited, err = j.byInputRow(ctx, settled); err != nil {
		return err
	}
	if j.mayNotStore(settled) {
		return j.refuse(ctx, entry, settled)
	}
	return j.deliver(ctx, session, entry, settled)
}

// judgeAt returns errOtherTime if the rows were judged by another as_of, and it may matter.
func (j *job) judgeAt(then time.Time) error {
	if then.Equal(j.result.AsOf) || !j.rows.MayExpire() || j.cfg.Hygiene[hygiene.Expired] == hygiene.Keep {
		return nil
	}
	j.result.AsOf = then
	return errOtherTime
}

// entry returns the run as the store is to have it if it is a new one.
func (j *job) entry() sink.Run {
	out, err := fsys.Abs(j.cfg.Out)
	if err != nil {
		out = j.cfg.Out
	}
	inputs := make([]string, len(j.rows.List))
	for i, in := range j.rows.List {
		inputs[i] = in.Name
	}
	return sink.Run{AsOf: j.result.AsOf, Started: j.meter.started, Out: out, Inputs: few(inputs), Workspaces: few(j.result.Workspaces)}
}

// few returns at most 100 names; if there are more, the last says how many.
func few(names []string) []string {
	const most = 100
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most-1]), fmt.Sprintf("and %d more", len(names)-most+1))
}

// openSession takes the locks, or opens a session that can only look. It returns nil where
// there is no store, or a dry run would create it.
func (j *job) openSession(ctx context.Context) (session sink.Session, err error) {
	if j.cfg.Store == nil {
		return nil, nil
	}
	if !j.cfg.DryRun {
		return lock(ctx, j.cfg, &j.meter, j.rows.Workspaces.Sorted())
	}
	defer j.meter.waited(time.Now())
	if session, err = j.cfg.Store.Peek(ctx); errors.Is(err, sink.ErrMissing) {
		return nil, nil
	}
	return opened(j.cfg, session, err)
}

// lock takes the locks of workspaces.
func lock(ctx context.Context, cfg *Config, m *meter, workspaces []string) (sink.Session, error) {
	defer m.waited(time.Now())
	cfg.Status.enter(StageWait)
	session, err := cfg.Store.Lock(ctx, workspaces, sink.LockOptions{NoWait: cfg.NoWait, Wait: func(holder string) {
		cfg.Logger.Info("waiting for another run", "holder", holder)
	}})
	return opened(cfg, session, err)
}

// opened tells that the store answers, if it does.
func opened(cfg *Config, session sink.Session, err error) (sink.Session, error) {
	if err == nil && session == nil { // which would stand for no store
		err = fmt.Errorf("%w: no session, and no error", settle.ErrBroken)
	}
	if err == nil {
		cfg.Outage("", time.Time{})
	}
	return session, err
}

// settle decides the code of every URL, and notes the books. Links of the run with this id, which has
// these numbers, count as created. A session that only looks is closed then. The caller closes the settlement, also
// with an error, if it is not nil.
func (j *job) settle(ctx context.Context, session sink.Session, id int32, have []sink.Range) (settled *settle.Settlement, err error) {
	j.cfg.Status.enter(StageSettle)
	err = j.meter.time("settle", func(s *manifest.Stage) (err error) {
		s.Rows = j.rows.Records.Len()
		settled, err = settle.Settle(ctx, j.rows.Records, j.rows.Workspaces, session, id, settle.Config{
			Order: j.rows.Order, MaxRetries: j.cfg.MaxRetries, Contested: j.budget.contested, Workers: j.cfg.Workers,
			Counter: j.counter(have), Kept: j.kept(), Rules: j.rules(), Settled: &j.cfg.Status.Settled,
		})
		return err
	})
	if err == nil && j.cfg.DryRun {
		err = j.numberDry(ctx, session, settled)
	}
	if err == nil && session != nil && j.cfg.DryRun { // what it saw may count only if it closes well
		err = session.Close()
	}
	if err == nil {
		j.result.NewWorkspaces = settled.Fresh
		j.result.Counts, j.result.LinksCreated = settled.Counts(j.rows.Read(), j.rows.Records.Len()), settled.LinksCreated()
	}
	return settled, err
}

// kept says how legacy codes are kept; nil: they are not.
func (j *job) kept() *settle.Kept {
	if j.rows.Claims == nil {
		return nil
	}
	return &settle.Kept{Mode: j.cfg.Legacy, Conflict: j.cfg.OnConflict, Claims: j.rows.Claims, Sorter: j.sorter(j.budget.verdicts, j.budget.loads)}
}

// rules says how rows are held against their links; nil: they are not.
func (j *job) rules() *settle.Rules {
	if !j.ruled {
		return nil
	}
	return &settle.Rules{
		Terms: rules.Terms{AsOf: j.result.AsOf.Unix(), OnDrift: j.cfg.OnDrift, Revive: j.cfg.Revive}, Parts: j.cfg.identity() != rules.ByURL,
		Original: func(r *record.Record) []byte { return emit.Original(j.cfg.Profile, r) },
		Changes:  j.sorter(j.budget.changes, j.budget.loads),
		Shown:    j.sorter(j.budget.shown, j.budget.loads),
	}
}

// repeat ends a run that was finished before.
func (j *job) repeat() error {
	then := j.out.there
	j.result.Repeated, j.result.RunID, j.result.AsOf = true, then.ID, then.AsOf
	j.result.Counts, j.result.ManifestSHA256 = then.Counts, then.ManifestSHA256
	data, err := manifest.ReadFile(j.cfg.fs, filepath.Join(j.cfg.Out, manifest.Name))
	if err != nil {
		return err
	}
	m, err := manifest.Read(data)
	if err != nil {
		return err
	}
	j.result.Reasons, j.result.Files = m.Reasons, m.Files // links may have been deleted since
	return nil
}

// refuse ends a run that may store no links: it has more rejects than allowed, or nothing but
// rejects. They and the manifest go to a directory of their own.
func (j *job) refuse(ctx context.Context, entry sink.Run, settled *settle.Settlement) error {
	j.enterFinish()
	if err := j.out.fail(); err != nil {
		return err
	}
	c := entry.Counts
	asWritten := emit.Written{Rows: [...]int64{c.Created, c.Existing, c.Duplicate}}
	first, err := j.account(ctx, &entry, settled, asWritten, nil)
	if err != nil {
		return err
	}
	if err := j.commit(entry, settled); err != nil {
		return err
	}
	refused := j.tooMany(settled, &first)
	refused.Out = j.result.Out
	if settled.Stored > 0 {
		refused.Stored, refused.Run = settled.Stored, entry.ID
		j.result.RunID = entry.ID
	}
	return refused
}

// mayNotStore reports whether the rejects, conflicts or the number of rows forbid the run to store
// anything.
func (j *job) mayNotStore(settled *settle.Settlement) bool {
	c := j.result.Counts
	return j.unexpected() || j.conflicts(settled) > 0 || allRejected(c) || j.cfg.MaxRejects.Exceeded(j.limited)
}

// byInputRow returns the books by which the rejects are limited: of a campaign, rows of the inputs count,
// and of these the ones with at least one reject.
func (j *job) byInputRow(ctx context.Context, settled *settle.Settlement) (c manifest.Counts, err error) {
	c = manifest.Counts(j.result.Counts)
	if j.rows.Campaign == nil {
		return c, nil
	}
	c.Read, c.Rejected = j.rows.RowsRead(), j.rows.Rejects.Len()
	if len(settled.Rejected) == 0 {
		return c, nil
	}
	late := extsort.NewByKey(j.sorter(j.budget.rejects, 2))
	defer func() { err = errors.Join(err, j.meter.close(late)) }()
	n, err := emit.LateRows(ctx, j.rows, settled, late)
	c.Rejected += n
	return c, err
}

// tooMany says why the run may not store anything, given its first reject. The reasons of all
// are noted.
func (j *job) tooMany(settled *settle.Settlement, first *outcome.Reject) *TooManyRejectsError {
	c := j.result.Counts
	refused := &TooManyRejectsError{Conflicts: j.conflicts(settled), Rejected: j.limited.Rejected, Read: j.limited.Read, Limit: j.cfg.MaxRejects}
	if j.unexpected() {
		refused.Rows, refused.Expected = j.rows.RowsRead(), j.cfg.ExpectRows
	}
	if allRejected(c) {
		refused.First = hygiene.Redact(fmt.Sprintf("%s, row %d: %s: %s", first.Source, first.Row, first.Reason, first.Detail))
		refused.Column = j.suspect(first.Source)
	}
	return refused
}

// unexpected reports whether the inputs have another number of rows than they must.
func (j *job) unexpected() bool {
	return j.cfg.ExpectRows > 0 && j.rows.RowsRead() != j.cfg.ExpectRows
}

// conflicts returns how many conflicts forbid the run to store anything.
func (j *job) conflicts(settled *settle.Settlement) int64 {
	if j.cfg.OnConflict != legacy.Fail {
		return 0
	}
	return settled.Conflicts
}

func allRejected(c sink.Counts) bool { return c.Rejected == c.Read && c.Read > 0 }

// suspect returns the name of the column of an input that was taken for the URLs, if the URLs
// are at fault for all rejects; otherwise "".
func (j *job) suspect(input string) string {
	for kind := range hygiene.Kind(hygiene.KindCount) {
		if j.result.Reasons[kind.String()] > 0 {
			return ""
		}
	}
	for _, other := range []string{outcome.BadCampaign, string(source.MalformedRow), string(source.FieldTooLong), outcome.BadWorkspace, outcome.CodeSpaceExhausted,
		outcome.BadCode, outcome.CodeReserved, outcome.CodeTaken,
		rules.BadParameter, rules.ForDrift.String(), rules.ForOwner.String(), rules.LinkDeleted.String(), rules.LinkEnded.String()} {
		if j.result.Reasons[other] > 0 {
			return ""
		}
	}
	i := slices.IndexFunc(j.rows.List, func(in *intake.Input) bool { return in.Name == input })
	if in := j.rows.List[i]; in.Format != "text" && len(in.URLs) > 0 {
		return in.Columns[in.URLs[0]]
	}
	return ""
}

// deliver loads the links and writes the reports. Then the store is told that the run is
// loaded, the directory is renamed, and the store is told that the run is finished.
func (j *job) deliver(ctx context.Context, session sink.Session, entry sink.Run, settled *settle.Settlement) error {
	stored := session != nil && !j.cfg.DryRun
	var load emit.Load
	if stored {
		if err := j.out.giveUp(ctx, session); err != nil {
			return err
		}
		started, err := session.Start(ctx, entry)
		if err != nil {
			return err
		}
		entry.ID = started.ID
		j.result.RunID = entry.ID
		if settled.ToLoad()+settled.ToChange() > 0 && len(j.unruled) > 0 {
			if err := session.SetRules(ctx, j.unruled); err != nil {
				return err
			}
		}
		if settled.ToLoad() > 0 {
			set := workspaceSettings{j.otherScheme, j.cfg.Scheme.Stored(j.cfg.CodeLength), j.unset, j.cfg.Profile.Name()}
			if err := set.tell(ctx, session); err != nil {
				return err
			}
			load = func(ctx context.Context, chunks iter.Seq2[[]sink.Link, error]) error {
				return session.Load(ctx, entry, chunks)
			}
		}
	}
	if stored {
		if err := j.number(ctx, session, &entry, settled); err != nil {
			return err
		}
	}
	written, files, err := j.write(ctx, settled, load)
	if err != nil {
		return err
	}
	if stored && settled.ToChange() > 0 {
		if err := j.change(ctx, session, entry, settled); err != nil {
			return err
		}
	}
	j.result.MergedDiffers, j.result.LinksByValue = written.Merged, linksByValue(written.Values)
	if _, err := j.account(ctx, &entry, settled, written, files); err != nil {
		return err
	}
	if stored {
		if err := session.Loaded(ctx, entry); err != nil {
			return err
		}
	}
	if err := j.commit(entry, settled); err != nil || !stored {
		return err
	}
	j.out.committed = &entry
	return session.Finish(ctx, entry)
}

// workspaceSettings are what workspaces are told before their first link.
type workspaceSettings struct {
	otherScheme []string // workspaces that get the scheme
	scheme      sink.Scheme
	unset       []string // workspaces that get the profile
	profile     string
}

func (s *workspaceSettings) tell(ctx context.Context, session sink.Session) error {
	if len(s.otherScheme) > 0 {
		if err := session.SetScheme(ctx, s.otherScheme, s.scheme); err != nil {
			return err
		}
	}
	if len(s.unset) > 0 {
		return session.SetProfile(ctx, s.unset, s.profile)
	}
	return nil
}

// change changes links that exist.
func (j *job) change(ctx context.Context, session sink.Session, entry sink.Run, settled *settle.Settlement) error {
	return j.meter.time("change", func(s *manifest.Stage) error {
		s.Rows = settled.ToChange()
		return session.Change(ctx, entry, settled.Changes(ctx))
	})
}

// columns are those of the mapping.
func (j *job) columns() report.Columns {
	return report.ColumnsOf(j.cfg.terms(), j.cfg.Scheme.counts(), j.ruled)
}

// write writes mapping and collisions, in place of those of an earlier attempt, while the
// links are loaded.
func (j *job) write(ctx context.Context, settled *settle.Settlement, load emit.Load) (written emit.Written, files []manifest.FileSum, err error) {
	j.cfg.DiskBound()
	out, err := openReports(j.out.dir, j.cfg, j.columns(), j.rows.Carried)
	if err != nil {
		return written, nil, err
	}
	defer func() {
		if err != nil {
			out.mapping.Abandon()
		}
	}()
	cfg := emit.Config{Workers: j.cfg.Workers, Domains: j.cfg.base().Has(shorturl.Domain), NoCarry: j.cfg.NoCarry, Written: &j.cfg.Status.Written, Columns: j.columns(), Profile: j.cfg.Profile,
		AsOf: j.result.AsOf.Unix(), Rules: j.cfg.Rules != nil,
		Attrs: j.rows.HasAttrs(), KeepCreated: j.cfg.KeepCreated}
	if load != nil && (j.rows.Claims != nil || j.cfg.Scheme.counts()) {
		if cfg.Links, err = j.sortLinks(ctx, settled, cfg); cfg.Links != nil {
			defer func() { err = errors.Join(err, j.meter.close(cfg.Links)) }()
		}
		if err != nil {
			return written, nil, err
		}
	}
	if j.cfg.ReportOrder == report.InputOrder {
		written, err = j.writeInInputOrder(ctx, settled, out, load, cfg)
	} else {
		err = j.timeWriting(func() (err error) {
			written, err = emit.Sorted(ctx, j.rows, settled, out.mapping, out.collisions, load, cfg)
			return err
		})
	}
	if err != nil {
		return written, nil, err
	}
	j.enterFinish()
	files, err = out.close(written)
	j.meter.wrote(out.files[:]...)
	return written, files, err
}

// writeInInputOrder writes a mapping in the order of the input: its rows go through one
// more sort while the links are loaded.
func (j *job) writeInInputOrder(ctx context.Context, settled *settle.Settlement, out *reports, load emit.Load, cfg emit.Config) (written emit.Written, err error) {
	if size := j.rows.Records.Size(); j.budget.placed > 0 && size > j.budget.placed {
		if err := j.room.need(size); err != nil {
			return written, err
		}
	}
	placed := extsort.NewByKey(j.sorter(j.budget.placed, j.budget.loads))
	if j.rows.Campaign != nil {
		placed = extsort.NewByKeyThen(j.sorter(j.budget.placed, j.budget.loads), record.CompareVariants)
	}
	defer func() { err = errors.Join(err, j.meter.close(placed)) }()
	j.cfg.Status.enter(StageOrder)
	var ordered emit.Written
	if err := j.meter.time("order", func(s *manifest.Stage) (err error) {
		s.Rows = j.rows.Records.Len()
		ordered, err = emit.Order(ctx, j.rows, settled, placed, out.collisions, load, cfg)
		return err
	}); err != nil {
		return written, err
	}
	err = j.timeWriting(func() (err error) {
		written, err = emit.Placed(ctx, j.rows, placed, out.mapping, cfg)
		return err
	})
	written.Collisions, written.Merged = ordered.Collisions, ordered.Merged
	return written, err
}

// sortLinks puts the links into the order of their codes.
func (j *job) sortLinks(ctx context.Context, settled *settle.Settlement, cfg emit.Config) (links *extsort.Sorter, err error) {
	j.cfg.Status.enter(StageOrder)
	err = j.meter.time("links", func(s *manifest.Stage) (err error) {
		links, err = emit.SortLinks(ctx, j.rows, settled, j.sorter(j.budget.links, 3), cfg)
		s.Rows = settled.ToLoad()
		return err
	})
	return links, err
}

// timeWriting does the stage that writes the mapping.
func (j *job) timeWriting(write func() error) error {
	j.cfg.Status.enter(StageWrite)
	return j.meter.time("write", func(s *manifest.Stage) error {
		err := write()
		s.Rows = j.cfg.Status.Written.Load()
		return err
	})
}

// enterFinish begins the last stage.
func (j *job) enterFinish() {
	j.cfg.Status.enter(StageFinish)
	j.meter.finishing = time.Now()
}

// account writes the rejects and, if the books balance, the manifest, whose digest it
// notes. Files are what is written before. It returns the first reject.
func (j *job) account(ctx context.Context, entry *sink.Run, settled *settle.Settlement, written emit.Written, files []manifest.FileSum) (first outcome.Reject, err error) {
	rejects, first, err := j.writeRejects(ctx, settled)
	if err != nil {
		return first, err
	}
	if err := balance(j.rows.Read(), entry.Counts, written.Rows, rejects.Rows); err != nil {
		return first, err
	}
	m := describe(j.cfg, j.rows.Inputs)
	m.MergedDiffers = j.result.MergedDiffers
	if m.Legacy = describeLegacy(j.cfg, j.rows, settled, written.Aliases); m.Legacy != nil {
		m.LinksCreated = &j.result.LinksCreated
	}
	j.result.Legacy = m.Legacy
	m.AsOf, m.Counts, m.Reasons, m.Files = j.result.AsOf, manifest.Counts(entry.Counts), reasons(j.rows, settled), append(files, rejects)
	m.Migration = describeMigration(j.cfg, j.rows, m.Reasons)
	j.result.Migration, j.result.Files = m.Migration, m.Files
	m.Campaign = describeCampaign(j.rows)
	j.result.Campaign = m.Campaign
	m.Numbers = describeNumbers(settled)
	j.result.Numbers = m.Numbers
	m.Rules = describeRules(j.ruled, &written.Changes)
	j.result.Unchanged = stays(&written.Existing)
	j.result.Rules, entry.LinksChanged = m.Rules, m.Rules.Changed()
	file, err := j.out.dir.Create(manifest.Name)
	if err != nil {
		return first, err
	}
	err = errors.Join(manifest.Write(file, m), file.Close())
	entry.ManifestSHA256 = file.SHA256()
	return first, err
}

// writeRejects writes all rejects, and returns the first.
func (j *job) writeRejects(ctx context.Context, settled *settle.Settlement) (sum manifest.FileSum, first outcome.Reject, err error) {
	file, err := j.out.dir.Create(manifest.RejectsName)
	if err != nil {
		return sum, first, err
	}
	w := report.NewRejects(file, j.rows.Names)
	j.result.Rejected = map[string]*PreviewRow{}
	n, first, err := j.rejects(ctx, settled, func(r *outcome.Reject) error {
		if j.result.Rejected[r.Reason] == nil {
			row := j.rejected(r)
			j.result.Rejected[r.Reason] = &row
		}
		return w.Append(r)
	})
	if err == nil {
		sum, err = closeReport(w, file, n)
	}
	return sum, first, err
}

// rejected returns the row of a reject.
func (j *job) rejected(r *outcome.Reject) PreviewRow {
	row := PreviewRow{Source: manifest.Text(r.Source), Row: r.Row, Variant: int64(r.Variant), URL: beginning(r.Raw), Outcome: "rejected", Reason: r.Reason, Detail: r.Detail}
	if r.Raw != nil {
		return row
	}
	in := j.rows.List[slices.IndexFunc(j.rows.List, func(in *intake.Input) bool { return in.Name == r.Source })]
	cell := func(column int) []byte { return r.Cells[slices.Index(j.rows.Names, in.Columns[column])] }
	row.URL = beginning(cell(in.URLs[0]))
	if codes := in.CodesOf(nil, cell); len(codes) > 0 {
		row.LegacyCode = beginning(codes[0].Text)
	}
	return row
}

// beginning returns a cell; of one that is longer than any URL, the beginning: a cell may have a GiB.
func beginning[T ~string | ~[]byte](cell T) manifest.Text {
	most := min(len(cell), canon.MaxLength)
	for most < len(cell) && most > 0 && !utf8.RuneStart(cell[most]) {
		most--
	}
	return manifest.Text(cell[:most])
}

// rejects visits all rejects, and returns how many they are, and the first.
func (j *job) rejects(ctx context.Context, settled *settle.Settlement, visit func(*outcome.Reject) error) (n int64, first outcome.Reject, err error) {
	late := extsort.NewByKey(j.sorter(j.budget.rejects, 2))
	defer func() { err = errors.Join(err, j.meter.close(late)) }()
	return emit.Rejects(ctx, j.rows, settled, late, visit)
}

// commit writes timings.json and gives the directory its name.
func (j *job) commit(entry sink.Run, settled *settle.Settlement) error {
	if err := j.writeTimings(entry); err != nil {
		return err
	}
	if err := j.out.dir.Commit(); err != nil {
		return err
	}
	j.result.Out, j.result.ManifestSHA256, j.result.Reasons = j.out.dir.Name(), entry.ManifestSHA256, reasons(j.rows, settled)
	return nil
}

// writeTimings writes all that may differ between two equal runs.
func (j *job) writeTimings(entry sink.Run) error {
	now := time.Now()
	records, rejects := j.rows.Records, j.rows.Rejects
	t := &manifest.Timings{
		RunID: entry.ID, Fingerprint: entry.Fingerprint, Store: j.cfg.StoreName,
		Started: j.meter.started, Finished: now, Seconds: now.Sub(j.meter.started).Seconds(),
		Workers: j.cfg.Workers, Memory: j.cfg.Memory, PeakMemory: peakMemory(),
		Sorted: records.Size() + rejects.Size() + j.meter.sorted, Spilled: records.Spilled() + rejects.Spilled() + j.meter.spilled,
		GC: collected(), Stages: append(j.meter.stages, j.meter.finished(now, j.out.dir.Files())...),
	}
	r := &j.result
	t.Told = r.Told
	t.Told.Workspaces, t.Told.NewWorkspaces = few(r.Workspaces), few(r.NewWorkspaces)
	if j.cfg.Store != nil {
		t.Details = j.cfg.Store.Stats()
	}
	j.result.Timings = t
	file, err := j.out.dir.Create(manifest.TimingsName)
	if err != nil {
		return err
	}
	return errors.Join(manifest.WriteTimings(file, t), file.Close())
}
