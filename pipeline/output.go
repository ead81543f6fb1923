package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/sink"
)

// outputDir is the output directory of a run, and which run of the store it may belong to.
type outputDir struct {
	dir       *outdir.Dir
	killed    *sink.Run // the run whose output is in the directory, but which the store does not know as finished
	committed *sink.Run // once the directory has its name: the run that the store is to be told to be finished

	asked      bool  // adopt has seen the unfinished runs of the store once
	superseded int32 // with NewRun, the highest id among those: none of them is resumed
}

// look refuses an output directory that the run may not replace.
func (o *outputDir) look(ctx context.Context, cfg *Config) error {
	return o.unlessBusy(ctx, cfg, func() error {
		_, err := o.inspect(ctx, cfg)
		return err
	})
}

// claim takes the output directory.
func (o *outputDir) claim(ctx context.Context, cfg *Config) error {
	return o.unlessBusy(ctx, cfg, func() error {
		opts, err := o.inspect(ctx, cfg)
		if err == nil {
			o.dir, err = outdir.Claim(cfg.Out, opts)
		}
		return err
	})
}

// unlessBusy does something with the output directory, and again for two seconds while
// another run is writing it: one that was killed is, until the system has ended it.
func (o *outputDir) unlessBusy(ctx context.Context, cfg *Config, do func() error) (err error) {
	for range 40 {
		if err = do(); !errors.Is(err, outdir.ErrBusy) || cfg.NoWait {
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
// claimed otherwise. One that holds the files of a run which was killed before the store
// knew it as finished may be overwritten by the same run.
func (o *outputDir) inspect(ctx context.Context, cfg *Config) (outdir.ClaimOptions, error) {
	opts := outdir.ClaimOptions{FS: cfg.fs, Overwrite: cfg.Overwrite, NewRun: cfg.NewRun}
	o.killed = nil
	err := outdir.Look(cfg.Out, opts)
	if !errors.Is(err, outdir.ErrExists) || cfg.Store == nil || cfg.DryRun {
		return opts, err
	}
	digest, derr := manifest.SHA256(cfg.fs, cfg.Out)
	if derr != nil {
		return opts, errors.Join(err, derr)
	}
	runs, rerr := cfg.Store.Runs(ctx)
	if errors.Is(rerr, sink.ErrRetryable) {
		return opts, fmt.Errorf("output directory %s holds a run, and only the store knows whether it is finished: %w", cfg.Out, rerr)
	}
	if rerr != nil && !errors.Is(rerr, sink.ErrMissing) {
		return opts, errors.Join(err, rerr)
	}
	for _, entry := range runs {
		if entry.State == sink.Loaded && entry.ManifestSHA256 == digest {
			opts.ReplaceLoaded, o.killed = true, &entry
			return opts, nil
		}
	}
	return opts, err
}

// own makes the directory that of this run, as far as that is known before the inputs are
// read.
func (o *outputDir) own(cfg *Config, inputs *intake.Inputs) error {
	m := describe(cfg, inputs)
	for i, in := range inputs.List {
		if _, size := in.Progress(); size > 0 && cfg.Limit == 0 && in.Name != "-" {
			m.Inputs[i].Size = size
		}
	}
	return o.dir.Own(m)
}

// ownRead makes it that of this run now that the inputs are read.
func (o *outputDir) ownRead(cfg *Config, inputs *intake.Inputs) error {
	if err := o.dir.Own(describe(cfg, inputs)); err != nil || o.killed == nil || cfg.NewRun {
		return err
	}
	mine, err := fingerprint(cfg, inputs)
	if err == nil && mine != o.killed.Fingerprint { // which as_of is part of
		err = outdir.Differs(cfg.Out, fmt.Sprintf("as_of: another request then, which gave %s", o.killed.AsOf.Format(time.RFC3339Nano)))
	}
	return err
}

// adopt returns the run that this one is to the store: an unfinished one of the same
// fingerprint, the last of several, under its id and its as_of, or else the given entry. With
// NewRun, those that were there when it first asked are left alone. Resumed tells that
// another process began the run.
func (o *outputDir) adopt(ctx context.Context, cfg *Config, inputs *intake.Inputs, session sink.Session, entry sink.Run) (_ sink.Run, resumed bool, err error) {
	entry.Fingerprint, err = fingerprint(cfg, inputs)
	if err != nil || session == nil {
		return entry, false, err
	}
	unfinished, err := session.Unfinished(ctx)
	if err != nil {
		return entry, false, err
	}
	// Since claim its own process may have finished it, and then let go of the locks.
	if o.killed != nil && !slices.ContainsFunc(unfinished, func(u sink.Run) bool { return u.ID == o.killed.ID }) {
		return entry, false, fmt.Errorf("output directory %s: it %w by now; give another with --out, or replace it with --overwrite", cfg.Out, outdir.ErrExists)
	}
	first := !o.asked // later this very run may be one of them
	if n := len(unfinished); cfg.NewRun && first && n > 0 {
		o.superseded = unfinished[n-1].ID
	}
	o.asked = true
	var others, left []int32
	for _, u := range unfinished {
		switch {
		case u.Fingerprint != entry.Fingerprint:
			others = append(others, u.ID)
		case u.ID <= o.superseded:
			left = append(left, u.ID)
		default:
			entry, resumed = u, first
			entry.Finished = time.Time{} // one that was undone in part finishes anew
		}
	}
	if first && len(others) > 0 {
		cfg.Logger.Warn("these runs were never finished: finish each with the command that started it, or delete its links with `bulk undo N` (later runs may use some of them)",
			"runs", others)
	}
	if first && len(left) > 0 {
		cfg.Logger.Warn("starting over: links that these unfinished runs stored stay, and count as existing", "runs", left)
	}
	return entry, resumed, nil
}
