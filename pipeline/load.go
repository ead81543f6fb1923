package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/load"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
)

// A LoadConfig says what is loaded, and where to.
type LoadConfig struct {
	Dir      string // with a mapping in parts
	Store    sink.Store
	NoWait   bool          // fail with sink.ErrLocked rather than wait for another run
	RetryFor time.Duration // as of Config
	Workers  int           // 0: as many as processors
	Logger   *slog.Logger  // nil: silent
	Outage   sink.Outage   // as of Config
	Status   *Status       // nil: nobody watches
}

// A LoadResult says how a load went.
type LoadResult struct {
	Manifest       *manifest.Manifest // of the mapping; nil: it could not be read
	ManifestSHA256 string             // hexadecimal
	RunID          int32              // 0: nothing was to be stored
	NewStore       bool               // the store had nothing, or was not there
	Resumed        bool               // another process began the load
	Repeated       bool               // the load was finished before: nothing was done
	Workspaces     []string           // of the rows, in byte order; nil until they are read
	NewWorkspaces  []string           // of these, the ones in which the store had no link
}

// Load stores the links of a mapping in parts (package stage) as a run, if the store is as the mapping says:
// what exists has its code, and each new code and URL is free. Otherwise the error is a
// *LoadConflictError. The links are those that Run stores. If it is interrupted, the same Load resumes it.
func Load(ctx context.Context, cfg LoadConfig) (*LoadResult, error) {
	l := &loading{dir: filepath.Clean(cfg.Dir), workers: cmp.Or(cfg.Workers, runtime.GOMAXPROCS(0)), meter: meter{started: time.Now()}}
	l.cfg = Config{Store: cfg.Store, NoWait: cfg.NoWait, RetryFor: cmp.Or(cfg.RetryFor, 2*time.Minute), Logger: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), Outage: cfg.Outage, Status: cmp.Or(cfg.Status, new(Status))}
	if l.cfg.Outage == nil {
		l.cfg.Outage = sink.LogOutage(l.cfg.Logger)
	}
	l.cfg.Status.begin()
	return &l.result, l.do(ctx)
}

// A loading is what the steps of a load share.
type loading struct {
	cfg       Config // what retry and the locks need
	dir       string
	workers   int
	meter     meter
	mapping   *load.Mapping
	asked     bool      // adopt has seen the runs of the store once
	committed *sink.Run // once all is stored: the run that the store is to be told to be finished
	result    LoadResult
}

// do reads the mapping and stores it.
func (l *loading) do(ctx context.Context) (err error) {
	l.mapping, err = load.Open(l.dir)
	if errors.Is(err, load.ErrNoParts) || errors.Is(err, load.ErrNotCommitted) {
		err = &UsageError{err}
	}
	if err != nil {
		return err
	}
	m := l.mapping.Manifest
	l.result.Manifest, l.result.ManifestSHA256 = m, l.mapping.SHA256
	status := l.cfg.Status
	status.enter(StageRead)
	if err := l.mapping.Read(ctx, l.workers); err != nil {
		return err
	}
	l.result.Workspaces = l.mapping.Workspaces
	status.Read.Store(m.Counts.Created + m.Counts.Existing + m.Counts.Duplicate)
	_, missing := l.cfg.Store.Runs(ctx) // any other error comes again
	if l.result.NewStore = errors.Is(missing, sink.ErrMissing); l.result.NewStore && m.Counts.Existing > 0 {
		return &UsageError{fmt.Errorf("there is no such store, and %s says that it has %d links", l.dir, m.Counts.Existing)}
	}
	return retry(ctx, &l.cfg, &l.meter, l.attempt)
}

// attempt opens a session and does everything from there. What an earlier attempt left in the store
// counts as done.
func (l *loading) attempt(ctx context.Context) (err error) {
	session, err := lock(ctx, &l.cfg, &l.meter, l.mapping.Workspaces)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if l.committed != nil {
		return session.Finish(ctx, *l.committed)
	}
	entry, last, err := l.adopt(ctx, session)
	if err != nil {
		return err
	}
	var set workspaceSettings
	if last.State != sink.Finished {
		if set, err = l.settings(ctx, session, entry.ID != 0); err != nil {
			return err
		}
	}
	own := last.ID
	if last.State == sink.Abandoned {
		own = 0
	}
	l.cfg.Status.enter(StageSettle)
	l.cfg.Status.Settled.Store(0)
	checked, err := l.mapping.Check(ctx, session, own, l.workers, &l.cfg.Status.Settled)
	if err != nil {
		return err
	}
	if l.result.NewWorkspaces == nil {
		l.result.NewWorkspaces = checked.Fresh
	}
	if checked.Conflicts > 0 {
		c := l.mapping.Manifest.Counts
		return &LoadConflictError{Dir: l.dir, Conflicts: checked.Conflicts, First: checked.First, Links: c.Created + c.Existing, Run: last, Stored: checked.There}
	}
	if last.State == sink.Finished {
		return l.repeat(last.ID, checked)
	}
	return l.store(ctx, session, entry, set, checked)
}

// settings are what the workspaces are told before their first link. A load that has begun goes on even
// if links were deleted since.
func (l *loading) settings(ctx context.Context, session sink.Session, begun bool) (set workspaceSettings, err error) {
	names := l.mapping.Workspaces
	set.scheme, set.profile = schemeOf(l.mapping.Manifest), l.mapping.Terms.URLs.Name()
	if len(names) == 0 {
		return set, nil
	}
	ruled, err := session.Rules(ctx, names)
	if err != nil {
		return set, err
	}
	for _, w := range names {
		if ruled[w] && !begun {
			return set, &UsageError{fmt.Errorf("workspace %q has links with link rules, or that were deleted, which a run in stages knows nothing of", w)}
		}
	}
	if set.unset, err = CheckProfile(ctx, session, names, l.mapping.Terms.URLs); err != nil {
		return set, err
	}
	set.otherScheme, err = CheckScheme(ctx, session, names, set.scheme)
	return set, err
}

// schemeOf returns the scheme of a manifest as a store keeps it.
func schemeOf(m *manifest.Manifest) sink.Scheme {
	s := Scheme{Name: m.Scheme.Name, Multiplier: m.Scheme.Multiplier}.Stored(m.Scheme.CodeLength)
	if spec, err := codegen.SpecOf(s.Name); err == nil && !spec.AnyLength() {
		s.Fingerprint = m.Scheme.Fingerprint
	}
	return s
}

// adopt returns the run that the load is to the store: an unfinished load of the same manifest, or a new
// run. Last is the last load of this manifest, which was not undone; without an id there is none.
func (l *loading) adopt(ctx context.Context, session sink.Session) (entry, last sink.Run, err error) {
	out, err := fsys.Abs(l.dir)
	if err != nil {
		out = l.dir
	}
	m := l.mapping.Manifest
	inputs := make([]string, len(m.Inputs))
	for i := range m.Inputs {
		inputs[i] = string(m.Inputs[i].Name)
	}
	entry = sink.Run{Fingerprint: "load " + l.mapping.SHA256, AsOf: m.AsOf, Started: l.meter.started, Out: out, Inputs: few(inputs), Workspaces: few(l.mapping.Workspaces)}
	runs, err := l.cfg.Store.Runs(ctx)
	if err != nil {
		return entry, last, err
	}
	var others []int32
	for _, r := range runs { // the oldest first
		switch {
		case r.Fingerprint == entry.Fingerprint && r.State != sink.Undone:
			last = r
		case r.State.Unfinished():
			others = append(others, r.ID)
		}
	}
	first := !l.asked // later this very load may be one of them
	l.asked = true
	if last.State.Unfinished() {
		l.result.Resumed = l.result.Resumed || first
		entry = last
		entry.Finished = time.Time{} // one that was undone in part finishes anew
	}
	if first && len(others) > 0 {
		err = warnOfUnfinished(ctx, &l.cfg, others)
	}
	return entry, last, err
}

// repeat ends a load that was finished before.
func (l *loading) repeat(run int32, c *load.Check) error {
	l.result.RunID = run
	if gone := l.mapping.Manifest.Counts.Created - c.There; gone > 0 {
		return fmt.Errorf("run %d has loaded %s, and %d of its links are no longer in the store: undo the run, and load again", run, l.dir, gone)
	}
	l.result.Repeated = true
	return nil
}

// store stores what is not there.
func (l *loading) store(ctx context.Context, session sink.Session, entry sink.Run, set workspaceSettings, c *load.Check) error {
	entry, err := session.Start(ctx, entry)
	if err != nil {
		return err
	}
	l.result.RunID = entry.ID
	m := l.mapping.Manifest
	if m.Counts.Created > c.There {
		if err := set.tell(ctx, session); err != nil {
			return err
		}
		l.cfg.Status.enter(StageWrite)
		l.cfg.Status.Written.Store(0)
		if err := session.Load(ctx, entry, l.mapping.Links(ctx, c, &l.cfg.Status.Written)); err != nil {
			return err
		}
	}
	l.cfg.Status.enter(StageFinish)
	entry.Counts, entry.ManifestSHA256 = sink.Counts(m.Counts), l.mapping.SHA256
	if err := session.Loaded(ctx, entry); err != nil {
		return err
	}
	l.committed = &entry
	return session.Finish(ctx, entry)
}

// A LoadConflictError says that a store is not as a mapping says.
type LoadConflictError struct {
	Dir       string
	Conflicts int64 // links
	Links     int64 // of the mapping
	First     []load.Conflict
	Run       sink.Run // the last load of the mapping; without an id there is none
	Stored    int64    // links that it has stored, unless it was abandoned
}

func (e *LoadConflictError) Error() string {
	text := fmt.Sprintf("the store is not as %s says, for %d of its %d links: ", e.Dir, e.Conflicts, e.Links)
	switch id, state := e.Run.ID, e.Run.State; {
	case id == 0:
		return text + "nothing was stored"
	case state == sink.Finished:
		return text + fmt.Sprintf("run %d has loaded it, and these were changed since", id)
	case state == sink.Abandoned:
		return text + fmt.Sprintf("nothing was stored. Run %d, which was abandoned, has begun to load it: an undo takes that back", id)
	default:
		return text + fmt.Sprintf("run %d is not finished, and has stored %d links. Once the store and %s agree, the same command resumes it; an undo takes it back", id, e.Stored, e.Dir)
	}
}
