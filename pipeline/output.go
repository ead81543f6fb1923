package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/terms"
	"github.com/linkforge/bulk/sink"
)

// outputDir is where the files of a run go.
type outputDir struct {
	dir    *outdir.Dir // the output directory
	failed *outdir.Dir // takes the files of a run that may store no links; nil: dir does

	// there is the run of the store whose files are in the output directory, if it may be this
	// very run: it is finished, so that there may be nothing to do, or was killed just before
	// the store knew that.
	there       *sink.Run
	fingerprint string    // of this run
	committed   *sink.Run // once the directory has its name: the run that the store is to be told to be finished

	asked      bool    // adopt has seen the unfinished runs of the store once
	superseded int32   // the highest id of the runs before this one: none of them is resumed
	givenUp    []int32 // unfinished runs of the fingerprint that NewRun gives up
}

// look refuses an output directory that the run may not replace.
func (o *outputDir) look(ctx context.Context, cfg *Config) error {
	return unlessBusy(ctx, cfg.NoWait, func() error {
		_, err := o.inspect(ctx, cfg, nil)
		return err
	})
}

// claim takes the output directory, and that for a run that may store no links, which a dry
// run does not have.
func (o *outputDir) claim(ctx context.Context, cfg *Config, inputs *intake.Inputs) error {
	return unlessBusy(ctx, cfg.NoWait, func() error {
		opts, err := o.inspect(ctx, cfg, inputs)
		if err == nil {
			o.dir, err = outdir.Claim(cfg.Out, opts)
		}
		if err == nil && !cfg.DryRun {
			if o.failed, err = outdir.Claim(outdir.FailedOf(cfg.Out), outdir.ClaimOptions{FS: cfg.fs, Overwrite: true}); err != nil {
				err = errors.Join(err, o.dir.Abandon())
			}
		}
		return err
	})
}

// abandon gives up what is claimed and not committed.
func (o *outputDir) abandon() error {
	err := o.dir.Abandon()
	if o.failed != nil {
		err = errors.Join(err, o.failed.Abandon())
	}
	return err
}

// fail has the files go to the directory for a run that may store no links.
func (o *outputDir) fail() error {
	if o.failed == nil {
		return nil
	}
	err := o.dir.Abandon()
	o.dir, o.failed = o.failed, nil
	return err
}

// unlessBusy does something with the output directory, and again for two seconds while
// another run is writing it: one that was killed is, until the system has ended it.
func unlessBusy(ctx context.Context, noWait bool, do func() error) (err error) {
	for range 40 {
		if err = do(); !errors.Is(err, outdir.ErrBusy) || noWait {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

// inspect refuses an output directory that the run may not replace, and returns how it is
// claimed otherwise. The inputs are nil if they are not open yet.
func (o *outputDir) inspect(ctx context.Context, cfg *Config, inputs *intake.Inputs) (outdir.ClaimOptions, error) {
	opts := outdir.ClaimOptions{FS: cfg.fs}
	o.there = nil
	err := outdir.Look(cfg.Out, opts)
	if !errors.Is(err, outdir.ErrExists) {
		return opts, err
	}
	if !cfg.DryRun {
		var rerr error
		if o.there, rerr = recognize(ctx, cfg, inputs); errors.Is(rerr, sink.ErrRetryable) {
			return opts, fmt.Errorf("output directory %s holds a run, and only the store knows whether it is finished: %w", cfg.Out, rerr)
		} else if rerr != nil && !(cfg.Overwrite && errors.Is(rerr, sink.ErrOldTables)) { // Lock upgrades these, or refuses them
			return opts, errors.Join(err, rerr)
		}
	}
	if opts.Overwrite = cfg.Overwrite || cfg.DryRun || o.there != nil; opts.Overwrite {
		err = nil
	}
	return opts, err
}

// alike reports whether nothing that is known before the inputs are read tells the run of a manifest from
// this one.
func alike(then *manifest.Manifest, cfg *Config, inputs *intake.Inputs) bool {
	now := describe(cfg, inputs)
	for i, in := range inputs.List {
		if _, size := in.Progress(); size > 0 && cfg.Limit == 0 && in.Name != "-" {
			now.Inputs[i].Size = size
		}
	}
	before := *then
	before.AsOf = now.AsOf // whether it was asked for is not known; the fingerprint tells
	return manifest.Difference(&before, now) == ""
}

// recognize returns the run of the store whose files are in the output directory, as that run
// left them, if nothing that is known yet tells it from this one; otherwise nil.
func recognize(ctx context.Context, cfg *Config, inputs *intake.Inputs) (*sink.Run, error) {
	if cfg.Store == nil {
		return nil, nil
	}
	data, err := manifest.ReadFile(cfg.fs, filepath.Join(cfg.Out, manifest.Name))
	if err != nil {
		return nil, err
	}
	then, err := manifest.Read(data)
	if err != nil {
		return nil, err
	}
	if inputs != nil && !alike(then, cfg, inputs) {
		folding := *cfg // as the store may say when it is asked
		if folding.Scheme.Fold = cfg.Scheme.mayFold(); !alike(then, &folding, inputs) {
			return nil, nil
		}
	}
	runs, err := cfg.Store.Runs(ctx)
	if errors.Is(err, sink.ErrMissing) {
		return nil, nil
	}
	digest := manifest.Digest(data)
	for _, entry := range slices.Backward(runs) {
		if entry.ManifestSHA256 != digest {
			continue
		}
		if entry.State == sink.Loaded || entry.State == sink.Finished && !cfg.NewRun && (inputs == nil || intact(ctx, cfg, then)) {
			return &entry, nil
		}
	}
	return nil, err
}

// intact reports whether the files in the output directory are as the manifest lists them.
func intact(ctx context.Context, cfg *Config, m *manifest.Manifest) bool {
	return !slices.ContainsFunc(m.Files, func(file manifest.FileSum) bool {
		sum, err := manifest.FileSHA256(ctx, filepath.Join(cfg.Out, file.Name))
		return err != nil || sum != file.SHA256
	})
}

// identify notes the fingerprint of this run, now that the inputs are read. By it the run that
// is there is this one, or another that may not be replaced.
func (o *outputDir) identify(cfg *Config, inputs *intake.Inputs) (err error) {
	if o.fingerprint, err = terms.Fingerprint(*describe(cfg, inputs)); err != nil || o.there == nil || o.there.Fingerprint == o.fingerprint {
		return err
	}
	o.there = nil
	if cfg.Overwrite {
		return nil
	}
	return fmt.Errorf("output directory %s: it %w; give another with Config.Out, or replace it with Config.Overwrite", cfg.Out, outdir.ErrExists)
}

// finished reports whether the run that is there is this one, and finished.
func (o *outputDir) finished() bool { return o.there != nil && o.there.State == sink.Finished }

// giveUp marks the runs that NewRun gives up as abandoned.
func (o *outputDir) giveUp(ctx context.Context, session sink.Session) error {
	if len(o.givenUp) == 0 {
		return nil
	}
	err := session.Abandon(ctx, o.givenUp)
	if err == nil {
		o.givenUp = nil
	}
	return err
}

// warnOfUnfinished warns, in one line, of unfinished runs that no run before this one met: a
// nightly job is not to repeat it for ever.
func warnOfUnfinished(ctx context.Context, cfg *Config, ids []int32) error {
	runs, err := cfg.Store.Runs(ctx)
	if err != nil {
		return err
	}
	var unmet []string
	for _, r := range slices.Backward(runs) {
		if r.State == sink.Finished {
			break
		}
		if slices.Contains(ids, r.ID) {
			unmet = append(unmet, strconv.Itoa(int(r.ID)))
		}
	}
	if len(unmet) > 0 {
		slices.Reverse(unmet)
		cfg.Logger.Warn("runs in the store are not finished: each is at work, or died. Its command resumes it, `bulk runs abandon` gives it up. Later runs do not repeat this warning",
			"runs", strings.Join(unmet, ", "))
	}
	return nil
}

// adopt returns the run that this one is to the store: an unfinished one of the same
// fingerprint, the last of several, under its id and its as_of, or else the given entry. It
// leaves alone runs older than a finished one that is there, and with NewRun those that were
// there when it first asked. Resumed tells that another process began the run.
func (o *outputDir) adopt(ctx context.Context, cfg *Config, session sink.Session, entry sink.Run) (_ sink.Run, resumed bool, err error) {
	entry.Fingerprint = o.fingerprint
	if session == nil {
		return entry, false, nil
	}
	unfinished, err := session.Unfinished(ctx)
	if err != nil {
		return entry, false, err
	}
	first := !o.asked // later this very run may be one of them
	o.asked = true
	if t := o.there; t != nil && !slices.ContainsFunc(unfinished, func(u sink.Run) bool { return u.ID == t.ID }) {
		t.State = sink.Finished // if not before, then since claim, by its own process
		o.superseded = t.ID
	}
	if n := len(unfinished); cfg.NewRun && first && n > 0 {
		o.superseded = unfinished[n-1].ID
	}
	var others []int32
	for _, u := range unfinished {
		switch {
		case u.Fingerprint != entry.Fingerprint:
			others = append(others, u.ID)
		case u.ID > o.superseded:
			entry, resumed = u, first
			entry.Finished = time.Time{} // one that was undone in part finishes anew
		case first && cfg.NewRun:
			o.givenUp = append(o.givenUp, u.ID)
		}
	}
	if first && len(others) > 0 {
		if err := warnOfUnfinished(ctx, cfg, others); err != nil {
			return entry, false, err
		}
	}
	if first && len(o.givenUp) > 0 {
		cfg.Logger.Warn("starting over: links that unfinished runs stored stay, and count as existing", "runs", o.givenUp)
	}
	if first && o.dir.Discarded() && !resumed {
		cfg.Logger.Warn("the files of a run that died were discarded; links that it stored count as existing", "out", cfg.Out)
	}
	return entry, resumed, nil
}
