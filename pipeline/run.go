package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/emit"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
)

// A Result says how a run went.
type Result struct {
	Counts         sink.Counts      // zero until all rows are settled
	Reasons        map[string]int64 // rejects by reason; nil until the output has its name
	Out            string           // the output directory
	ManifestSHA256 string           // of manifest.json, hexadecimal; "" until the output has its name
	RunID          int32            // 0: nothing was to be stored
	Resumed        bool             // resumed a run that another process did not finish
	AsOf           time.Time
}

// Run does the whole job. The result is valid, as far as the run got, also with an error.
// Errors to tell apart: UsageError and source.UsageError, outdir.ErrExists, ErrUnfinished
// and ErrBusy, manifest.ErrNotOurs (nothing was done); TooManyRejectsError (rejects and
// manifest are written); sink.ErrRetryable, sink.ErrLocked and the cause of ctx (the same
// run again finishes the job). Rows that were rejected are no error.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return &Result{}, err
	}
	cfg.Out = filepath.Clean(cfg.Out) // so that all read it alike
	if cfg.fs != nil {
		cfg.Source.FS = cfg.fs
	}
	cfg.Status.begin()
	r := &run{cfg: &cfg, budget: cfg.budget(), room: room{cfg.TempDir, cfg.freeRoom}, meter: meter{started: time.Now()}}
	r.result.Out, r.result.AsOf = cfg.Out, cfg.AsOf
	if cfg.AsOf.IsZero() {
		r.result.AsOf = r.meter.started
	}
	r.result.AsOf = r.result.AsOf.UTC().Truncate(time.Microsecond)
	return &r.result, r.do(ctx)
}

// A run is what its steps share: what it was told, and what is there once the rows are
// read. It is not known to the stages.
type run struct {
	cfg    *Config
	budget budget
	room   room
	meter  meter
	result Result
	output output
	rows   *intake.Rows
}

// do claims the output, reads, stores and writes. If it fails before the output directory has
// been renamed, the output is as it was before.
func (r *run) do(ctx context.Context) (err error) {
	names, err := nameInputs(r.cfg)
	if err != nil {
		return err
	}
	if err := r.output.look(ctx, r.cfg); err != nil { // before an input is waited for
		return err
	}
	inputs, err := intake.Open(ctx, names, r.cfg.Source, r.cfg.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inputs.Close()) }()
	if err := r.output.claim(ctx, r.cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.output.dir.Abandon()) }()
	if err := r.output.own(r.cfg, inputs); err != nil {
		return err
	}
	err = r.read(ctx, inputs)
	defer func() { err = errors.Join(err, r.rows.Close()) }()
	if err != nil {
		return err
	}
	if err := r.output.ownRead(r.cfg, inputs); err != nil {
		return err
	}
	return retry(ctx, r.cfg, &r.meter, r.attempt)
}

// read makes the rows.
func (r *run) read(ctx context.Context, inputs *intake.Inputs) error {
	scheme, _ := codegen.New(r.cfg.CodeLength)
	r.cfg.Status.TotalBytes.Store(inputs.Size)
	r.cfg.Status.enter(StageRead)
	err := r.meter.time("read", func(s *manifest.Stage) (err error) {
		r.rows, err = intake.Read(ctx, inputs, intake.Config{
			Profile: r.cfg.Profile, Scheme: scheme, Workspace: []byte(r.cfg.Workspace), Limit: r.cfg.Limit, Workers: r.cfg.Workers,
			Records: r.sorter(r.budget.records, r.budget.loads), Rejects: r.sorter(r.budget.rejects, 2),
			Room: r.room.need, Slack: int64(r.cfg.Workers) * leastRecords, // arenas and chunks that are not full
			Bytes: &r.cfg.Status.Bytes, Read: &r.cfg.Status.Read, Rejected: &r.cfg.Status.Rejected,
		})
		s.Rows, s.Bytes = inputs.RecordsRead(), r.cfg.Status.Bytes.Load()
		return err
	})
	if err == nil && r.rows.Records.Spilled() > 0 {
		r.cfg.DiskBound()
	}
	return err
}

// sorter returns the configuration of a sorter, all but its order.
func (r *run) sorter(memory int64, loads int) extsort.Config {
	return extsort.Config{Memory: memory, Loads: loads, TempDir: r.cfg.TempDir, FS: r.cfg.fs, Room: r.room.need}
}

// attempt opens a session and does everything from there. What an earlier attempt left in
// the store counts as done.
func (r *run) attempt(ctx context.Context) (err error) {
	session, err := r.openSession(ctx)
	if err != nil {
		return err
	}
	if session != nil {
		defer func() { err = errors.Join(err, session.Close()) }()
	}
	if r.output.committed != nil {
		return session.Finish(ctx, *r.output.committed)
	}
	entry, resumed, err := r.output.adopt(ctx, r.cfg, r.rows.Inputs, session, sink.Run{AsOf: r.result.AsOf, Started: r.meter.started})
	if err != nil {
		return err
	}
	r.result.AsOf, r.result.Resumed = entry.AsOf, r.result.Resumed || resumed
	settled, err := r.settle(ctx, session, entry.ID)
	if err != nil {
		return err
	}
	if session != nil && r.cfg.DryRun { // what it saw may count only if it closes well
		if err := session.Close(); err != nil {
			return err
		}
	}
	entry.Counts = settled.Counts(r.rows.RecordsRead(), r.rows.Records.Len())
	r.result.Counts = entry.Counts
	if r.cfg.MaxRejects.Exceeded(manifest.Counts(entry.Counts)) {
		return r.refuse(ctx, entry, settled)
	}
	return r.deliver(ctx, session, entry, settled)
}

// openSession takes the locks, or opens a session that can only look. It returns nil where
// there is no store, or a dry run would create it.
func (r *run) openSession(ctx context.Context) (session sink.Session, err error) {
	if r.cfg.Store == nil {
		return nil, nil
	}
	defer r.meter.waited(time.Now())
	if r.cfg.DryRun {
		session, err = r.cfg.Store.Peek(ctx)
		if errors.Is(err, sink.ErrMissing) {
			return nil, nil
		}
	} else {
		r.cfg.Status.enter(StageWait)
		session, err = r.cfg.Store.Lock(ctx, r.rows.Workspaces.Sorted(), sink.LockOptions{NoWait: r.cfg.NoWait, Wait: func(holder string) {
			r.cfg.Logger.Info("waiting for another run", "holder", holder)
		}})
	}
	if err == nil && session == nil { // which would stand for no store
		err = fmt.Errorf("%w: no session, and no error", settle.ErrBroken)
	}
	return session, err
}

// settle decides the code of every URL. Links of the run with this id count as created.
func (r *run) settle(ctx context.Context, session sink.Session, id int32) (settled *settle.Settlement, err error) {
	r.cfg.Status.enter(StageSettle)
	err = r.meter.time("settle", func(s *manifest.Stage) (err error) {
		s.Rows = r.rows.Records.Len()
		settled, err = settle.Settle(ctx, r.rows.Records, r.rows.Workspaces, session, id, settle.Config{
			Order: r.rows.Order, MaxRetries: r.cfg.MaxRetries, Contested: r.budget.contested, Workers: r.cfg.Workers,
			Settled: &r.cfg.Status.Settled,
		})
		return err
	})
	return settled, err
}

// refuse ends a run with more rejects than allowed. An earlier attempt, which did not know
// of them, may have begun a mapping.
func (r *run) refuse(ctx context.Context, entry sink.Run, settled *settle.Settlement) error {
	r.enterFinish()
	if err := discardReports(r.output.dir, r.cfg); err != nil {
		return err
	}
	c := entry.Counts
	if err := r.account(ctx, &entry, settled, [...]int64{c.Created, c.Existing, c.Duplicate}, nil); err != nil { // as if they were written
		return err
	}
	if err := r.commit(entry, settled); err != nil {
		return err
	}
	tooMany := &TooManyRejectsError{Rejected: c.Rejected, Read: c.Read, Limit: r.cfg.MaxRejects}
	if settled.Stored > 0 {
		tooMany.Stored, tooMany.Run = settled.Stored, entry.ID
		r.result.RunID = entry.ID
	}
	return tooMany
}

// deliver loads the links and writes the reports. Then the store is told that the run is
// loaded, the directory is renamed, and the store is told that the run is finished.
func (r *run) deliver(ctx context.Context, session sink.Session, entry sink.Run, settled *settle.Settlement) error {
	stored := session != nil && !r.cfg.DryRun
	var load emit.Load
	if stored {
		started, err := session.Start(ctx, entry)
		if err != nil {
			return err
		}
		entry.ID = started.ID
		r.result.RunID = entry.ID
		if settled.ToLoad() > 0 {
			load = func(ctx context.Context, chunks iter.Seq2[[]sink.Link, error]) error {
				return session.Load(ctx, entry, chunks)
			}
		}
	}
	written, files, err := r.write(ctx, settled, load)
	if err != nil {
		return err
	}
	if err := r.account(ctx, &entry, settled, written.Rows, files); err != nil {
		return err
	}
	if stored {
		if err := session.Loaded(ctx, entry); err != nil {
			return err
		}
	}
	if err := r.commit(entry, settled); err != nil || !stored {
		return err
	}
	r.output.committed = &entry
	return session.Finish(ctx, entry)
}

// write writes mapping and collisions, in place of those of an earlier attempt, while the
// links are loaded.
func (r *run) write(ctx context.Context, settled *settle.Settlement, load emit.Load) (written emit.Written, files []manifest.FileSum, err error) {
	r.cfg.DiskBound()
	out, err := openReports(r.output.dir, r.cfg, r.rows.Carried)
	if err != nil {
		return written, nil, err
	}
	defer func() {
		if err != nil {
			out.mapping.Abandon()
		}
	}()
	cfg := emit.Config{Workers: r.cfg.Workers, NoCarry: r.cfg.NoCarry, Written: &r.cfg.Status.Written}
	if r.cfg.ReportOrder == report.InputOrder {
		written, err = r.writeInInputOrder(ctx, settled, out, load, cfg)
	} else {
		err = r.timeWriting(func() (err error) {
			written, err = emit.Sorted(ctx, r.rows, settled, out.mapping, out.collisions, load, cfg)
			return err
		})
	}
	if err != nil {
		return written, nil, err
	}
	r.enterFinish()
	files, err = out.close(written)
	r.meter.wrote(out.files[:]...)
	return written, files, err
}

// writeInInputOrder writes a mapping in the order of the input: its rows go through one
// more sort while the links are loaded.
func (r *run) writeInInputOrder(ctx context.Context, settled *settle.Settlement, out *reports, load emit.Load, cfg emit.Config) (written emit.Written, err error) {
	if size := r.rows.Records.Size(); r.budget.placed > 0 && size > r.budget.placed {
		if err := r.room.need(size); err != nil {
			return written, err
		}
	}
	placed := record.NewPlaceSorter(r.sorter(r.budget.placed, r.budget.loads))
	defer func() { err = errors.Join(err, r.meter.close(placed)) }()
	r.cfg.Status.enter(StageOrder)
	var collisions int64
	if err := r.meter.time("order", func(s *manifest.Stage) error {
		s.Rows = r.rows.Records.Len()
		w, err := emit.Order(ctx, r.rows, settled, placed, out.collisions, load, cfg)
		collisions = w.Collisions
		return err
	}); err != nil {
		return written, err
	}
	err = r.timeWriting(func() (err error) {
		written, err = emit.Placed(ctx, r.rows, placed, out.mapping, cfg)
		return err
	})
	written.Collisions = collisions
	return written, err
}

// timeWriting does the stage that writes the mapping.
func (r *run) timeWriting(write func() error) error {
	r.cfg.Status.enter(StageWrite)
	return r.meter.time("write", func(s *manifest.Stage) error {
		err := write()
		s.Rows = r.cfg.Status.Written.Load()
		return err
	})
}

// enterFinish begins the last stage.
func (r *run) enterFinish() {
	r.cfg.Status.enter(StageFinish)
	r.meter.finishing = time.Now()
}

// account writes the rejects and, if the books balance, the manifest, whose digest it
// notes. Rows are those of the mapping by outcome, and files what is written before.
func (r *run) account(ctx context.Context, entry *sink.Run, settled *settle.Settlement, rows [outcome.Count]int64, files []manifest.FileSum) error {
	rejects, err := r.writeRejects(ctx, settled)
	if err != nil {
		return err
	}
	if err := balance(r.rows.RecordsRead(), entry.Counts, rows, rejects.Rows); err != nil {
		return err
	}
	m := describe(r.cfg, r.rows.Inputs)
	m.AsOf, m.Counts, m.Reasons, m.Files = r.result.AsOf, manifest.Counts(entry.Counts), reasons(r.rows, settled), append(files, rejects)
	file, err := r.output.dir.Create(manifest.Name)
	if err != nil {
		return err
	}
	err = errors.Join(manifest.Write(file, m), file.Close())
	entry.ManifestSHA256 = file.SHA256()
	return err
}

// writeRejects writes all rejects.
func (r *run) writeRejects(ctx context.Context, settled *settle.Settlement) (_ manifest.FileSum, err error) {
	file, err := r.output.dir.Create(manifest.RejectsName)
	if err != nil {
		return manifest.FileSum{}, err
	}
	w := report.NewRejects(file, r.rows.Names)
	late := record.NewPlaceSorter(r.sorter(r.budget.rejects, 2))
	defer func() { err = errors.Join(err, r.meter.close(late)) }()
	n, err := emit.Rejects(ctx, r.rows, settled, late, w)
	if err != nil {
		return manifest.FileSum{}, err
	}
	return closeReport(w, file, n)
}

// commit writes timings.json and gives the directory its name.
func (r *run) commit(entry sink.Run, settled *settle.Settlement) error {
	if err := r.writeTimings(entry); err != nil {
		return err
	}
	if err := r.output.dir.Commit(); err != nil {
		return err
	}
	r.result.ManifestSHA256, r.result.Reasons = entry.ManifestSHA256, reasons(r.rows, settled)
	return nil
}

// writeTimings writes all that may differ between two equal runs.
func (r *run) writeTimings(entry sink.Run) error {
	now := time.Now()
	records, rejects := r.rows.Records, r.rows.Rejects
	t := &manifest.Timings{
		RunID: entry.ID, Fingerprint: entry.Fingerprint, Store: r.cfg.StoreName,
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
