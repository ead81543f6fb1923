package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/sink"
)

// A Result says how a run went.
type Result struct {
	Counts         sink.Counts      // zero until all rows are settled
	Reasons        map[string]int64 // rejects by reason; nil until the output has its name
	Out            string           // the output folder
	ManifestSHA256 string           // of manifest.json, hexadecimal; "" until the output has its name
	RunID          int32            // 0: nothing was to be stored
	Resumed        bool             // went on with a run that another process did not finish
	AsOf           time.Time
}

// run is the state of one run. What a stage leaves is read-only afterwards.
type run struct {
	cfg        Config
	scheme     codegen.Scheme
	workspace  []byte // the default
	started    time.Time
	folder     *outdir.Dir
	killed     *sink.Run // run whose output is in the folder, but which the store does not know as finished
	asked      bool      // adopt has seen the unfinished runs of the store once
	superseded int32     // with NewRun, the highest id among those: it goes on with none of them
	timings    timings
	finishing  time.Time // when the last stage began
	sorted     int64     // bytes that went through sorters which are closed by now
	spilled    int64     // those of them that went to disk
	budget     budget

	inputs     *inputs
	workspaces *workspaces
	workers    []*worker
	records    *extsort.Sorter
	rejects    *extsort.Sorter
	nextRoom   atomic.Int64 // spilled bytes past which the room is looked at
	settled    *settlement
	freeLinks  sync.Pool // *linked
	named      *sink.Run // once the folder has its name: what session.Finish is to be told
	result     Result
}

// Run does the whole job. The result is valid, as far as the run got, also with
// an error. Errors to tell apart: UsageError and source.UsageError,
// outdir.ErrExists, ErrNotOurs, ErrUnfinished and ErrBusy (nothing was done);
// TooManyRejectsError (rejects and manifest are written); sink.ErrRetryable,
// sink.ErrLocked and the cause of ctx (the same run again finishes the job). Rows
// that were rejected are no error.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return &Result{}, err
	}
	if cfg.fs != nil {
		cfg.Source.FS = cfg.fs
	}
	cfg.Out = filepath.Clean(cfg.Out) // so that all read it alike
	r := &run{cfg: cfg, started: time.Now(), timings: timings{workers: cfg.Workers}, workspace: []byte(cfg.Workspace), workspaces: newWorkspaces()}
	r.freeLinks.New = func() any { return new(linked) }
	r.scheme, _ = codegen.New(cfg.CodeLength)
	asOf := cfg.AsOf
	if asOf.IsZero() {
		asOf = r.started
	}
	r.result.Out, r.result.AsOf = cfg.Out, asOf.UTC().Truncate(time.Microsecond)
	r.budget = cfg.budget()
	return &r.result, r.do(ctx)
}

// do claims the output, reads, stores and writes; without success the output is
// as it was before.
func (r *run) do(ctx context.Context) (err error) {
	r.cfg.Status.begin()
	names, err := nameInputs(&r.cfg)
	if err != nil {
		return err
	}
	look := func(ctx context.Context) error { _, err := r.look(ctx); return err }
	if err := r.unlessBusy(ctx, look); err != nil { // before an input is waited for
		return err
	}
	if r.inputs, err = openInputs(ctx, &r.cfg, names); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.inputs.close()) }()
	if err = r.unlessBusy(ctx, r.claim); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.folder.Abandon()) }()
	if err := r.own(); err != nil {
		return err
	}

	r.records = extsort.New(extsort.Config{
		CompareGroups: r.workspaces.compare, Compare: compareRecords(r.scheme, len(r.inputs.carried)), Head: recordKey,
		Memory: r.budget.records, Loads: r.budget.loads, TempDir: r.cfg.TempDir, FS: r.cfg.fs, Room: r.needRoom,
	})
	r.rejects = r.newRejectSorter()
	defer func() { err = errors.Join(err, r.records.Close(), r.rejects.Close()) }()
	if err := r.timings.time("read", func(s *manifest.Stage) error {
		err := r.intake(ctx)
		s.Rows, s.Bytes = r.recordsRead(), r.cfg.Status.Bytes.Load()
		return err
	}); err != nil {
		return err
	}
	if err := r.ownRead(); err != nil {
		return err
	}
	if r.records.Spilled() > 0 {
		r.cfg.DiskBound()
	}
	return r.retry(ctx)
}

const (
	// maxResettled is how often a run looks the store up again because another
	// writer took a code or a URL meanwhile.
	maxResettled = 20
	// maxLong is how often an attempt that lasted longer than Config.RetryFor, and
	// so may have got far, begins that time anew.
	maxLong = 3
)

// retry settles, loads and reports, as often as other writers or a store that
// fails for a while make it necessary.
func (r *run) retry(ctx context.Context) error {
	var failing time.Time // since when the store does nothing but fail; zero: it does not
	pause := 100 * time.Millisecond
	for resettled, long := 0, 0; ; {
		start := time.Now()
		err := r.attempt(ctx)
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, sink.ErrConflict) && resettled < maxResettled:
			resettled++
			failing = time.Time{}
			r.cfg.Logger.Warn("another writer took a code or a URL; settling again", "time", resettled, "error", err)
			continue
		case !errors.Is(err, sink.ErrRetryable) || errors.Is(err, sink.ErrGaveUp):
			return err
		}
		if time.Since(start) > r.cfg.RetryFor && long < maxLong {
			long++
			failing = time.Time{}
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		left := r.cfg.RetryFor - time.Since(failing)
		if left <= 0 {
			return err
		}
		wait := min(pause/2+rand.N(pause/2), left)
		r.cfg.Logger.Warn("the store failed; trying again", "pause", wait, "error", err)
		paused := time.Now()
		select {
		case <-time.After(wait):
			r.timings.waited(paused)
			pause = min(2*pause, 10*time.Second)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// attempt opens a session and does everything from there. What an earlier
// attempt left in the store counts as done.
func (r *run) attempt(ctx context.Context) (err error) {
	session, err := r.openSession(ctx)
	if err != nil {
		return err
	}
	if session != nil {
		defer func() { err = errors.Join(err, session.Close()) }()
	}
	if r.named != nil {
		return session.Finish(ctx, *r.named)
	}
	row, err := r.adopt(ctx, session)
	if err != nil {
		return err
	}
	if err := r.timings.time("settle", func(s *manifest.Stage) error {
		s.Rows = r.records.Len()
		return r.settle(ctx, session, row.ID)
	}); err != nil {
		return err
	}
	if session != nil && r.cfg.DryRun { // what it saw may count only if it closes well
		if err := session.Close(); err != nil {
			return err
		}
	}
	row.Counts = r.settled.counts()
	r.result.Counts = row.Counts
	if r.cfg.MaxRejects.Exceeded(manifest.Counts(row.Counts)) {
		return r.refuse(ctx, row)
	}
	return r.deliver(ctx, session, row)
}

// errBroken is what a store did that the contract rules out.
var errBroken = errors.New("the store broke its contract")

// openSession takes the locks, or opens a session that can only look. It returns nil
// where there is no store, or a dry run would create it.
func (r *run) openSession(ctx context.Context) (session sink.Session, err error) {
	if r.cfg.Store == nil {
		return nil, nil
	}
	defer r.timings.waited(time.Now())
	if r.cfg.DryRun {
		session, err = r.cfg.Store.Peek(ctx)
		if errors.Is(err, sink.ErrMissing) {
			return nil, nil
		}
	} else {
		r.cfg.Status.enter(StageWait)
		session, err = r.cfg.Store.Lock(ctx, r.workspaces.sorted(), sink.LockOptions{NoWait: r.cfg.NoWait, Wait: func(holder string) {
			r.cfg.Logger.Info("waiting for another run", "holder", holder)
		}})
	}
	if err == nil && session == nil { // which would stand for no store
		err = fmt.Errorf("%w: no session, and no error", errBroken)
	}
	return session, err
}

// recordsRead returns how many records the inputs had.
func (r *run) recordsRead() (n int64) {
	for _, in := range r.inputs.list {
		n += in.Records()
	}
	return n
}

// refuse ends a run with more rejects than allowed. An earlier attempt, which did not
// know of them, may have begun a mapping.
func (r *run) refuse(ctx context.Context, row sink.Run) error {
	r.enterFinish()
	for _, name := range r.linkReports() {
		if err := r.folder.Discard(name); err != nil {
			return err
		}
	}
	links := [3]int64{outcome.Created: row.Counts.Created, outcome.Existing: row.Counts.Existing, outcome.Duplicate: row.Counts.Duplicate}
	if err := r.account(ctx, &row, links, nil); err != nil { // as if they were written
		return err
	}
	if err := r.commit(row); err != nil {
		return err
	}
	tooMany := &TooManyRejectsError{Rejected: row.Counts.Rejected, Read: row.Counts.Read, Limit: r.cfg.MaxRejects}
	if r.settled.ours > 0 {
		tooMany.Stored, tooMany.Run = r.settled.ours, row.ID
		r.result.RunID = row.ID
	}
	return tooMany
}

// deliver loads the links and writes the reports, then gives both their names:
// the run is loaded in the store before its folder appears, and finished after.
func (r *run) deliver(ctx context.Context, session sink.Session, row sink.Run) (err error) {
	stored := session != nil && !r.cfg.DryRun
	if stored {
		started, err := session.Start(ctx, row)
		if err != nil {
			return err
		}
		row.ID = started.ID
		r.result.RunID = row.ID
	}
	out, err := r.emit(ctx, session, row)
	if err != nil {
		return err
	}
	r.enterFinish()
	files, err := out.close()
	if err != nil {
		return err
	}
	r.timings.wrote(out.files[:]...)
	if err := r.account(ctx, &row, out.rows, files); err != nil {
		return err
	}
	if stored {
		if err := session.Loaded(ctx, row); err != nil {
			return err
		}
	}
	if err := r.commit(row); err != nil || !stored {
		return err
	}
	r.named = &row
	return session.Finish(ctx, row)
}

// enterFinish begins the last stage.
func (r *run) enterFinish() {
	r.cfg.Status.enter(StageFinish)
	r.finishing = time.Now()
}

// account writes the rejects and, if the books balance, the manifest, whose digest it
// notes: rows are those of the mapping, and files what is written before.
func (r *run) account(ctx context.Context, row *sink.Run, rows [3]int64, files []manifest.FileSum) error {
	rejects, err := r.writeRejects(ctx)
	if err != nil {
		return err
	}
	if err := r.balance(row.Counts, rows, rejects.Rows); err != nil {
		return err
	}
	file, err := r.folder.Create(manifest.Name)
	if err != nil {
		return err
	}
	err = errors.Join(manifest.Write(file, r.manifest(row.Counts, append(files, rejects))), file.Close())
	row.ManifestSHA256 = file.SHA256()
	return err
}

// balance compares the books as settled with what was read and written: rows of the
// mapping by outcome.Outcome, and rejects.
func (r *run) balance(c sink.Counts, rows [3]int64, rejects int64) error {
	w := sink.Counts{Read: r.recordsRead(), Created: rows[outcome.Created], Existing: rows[outcome.Existing],
		Duplicate: rows[outcome.Duplicate], Rejected: rejects}
	if w != c || w.Read != w.Created+w.Existing+w.Duplicate+w.Rejected {
		return fmt.Errorf("the books do not balance: settled %+v, written %+v", c, w)
	}
	return nil
}

// commit writes timings.json and gives the folder its name.
func (r *run) commit(row sink.Run) error {
	if err := r.writeTimings(row); err != nil {
		return err
	}
	if err := r.folder.Commit(); err != nil {
		return err
	}
	r.result.ManifestSHA256, r.result.Reasons = row.ManifestSHA256, r.reasons()
	return nil
}
