package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/sink"
)

// claim takes the output folder.
func (r *run) claim(ctx context.Context) error {
	opts, err := r.look(ctx)
	if err == nil {
		r.folder, err = outdir.Claim(r.cfg.Out, opts)
	}
	return err
}

// unlessBusy does something with the output folder, and again for two seconds while
// another run is writing it: one that was killed is, until the system has ended it.
func (r *run) unlessBusy(ctx context.Context, do func(context.Context) error) (err error) {
	for range 40 {
		if err = do(ctx); !errors.Is(err, outdir.ErrBusy) || r.cfg.NoWait {
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

// look refuses an output folder that the run may not replace, and returns how it is
// claimed otherwise. One that holds the files of a run which was killed before the
// store knew it as finished may be overwritten by its like.
func (r *run) look(ctx context.Context) (outdir.ClaimOptions, error) {
	opts := outdir.ClaimOptions{FS: r.cfg.fs, Overwrite: r.cfg.Overwrite, NewRun: r.cfg.NewRun}
	r.killed = nil
	err := outdir.Look(r.cfg.Out, opts)
	if !errors.Is(err, outdir.ErrExists) || r.cfg.Store == nil || r.cfg.DryRun {
		return opts, err
	}
	digest, derr := manifest.SHA256(r.cfg.fs, r.cfg.Out)
	if derr != nil {
		return opts, errors.Join(err, derr)
	}
	runs, rerr := r.cfg.Store.Runs(ctx)
	if errors.Is(rerr, sink.ErrRetryable) {
		return opts, fmt.Errorf("output folder %s holds a run, and only the store knows whether it is finished: %w", r.cfg.Out, rerr)
	}
	if rerr != nil && !errors.Is(rerr, sink.ErrMissing) {
		return opts, errors.Join(err, rerr)
	}
	for _, run := range runs {
		if run.State == sink.Loaded && run.ManifestSHA256 == digest {
			opts.Unfinished, r.killed = true, &run
			return opts, nil
		}
	}
	return opts, err
}

// own makes the folder that of this run, as far as that is known before the
// inputs are read.
func (r *run) own() error {
	m := r.description()
	for i, in := range r.inputs.list {
		if _, size := in.Progress(); size > 0 && r.cfg.Limit == 0 && in.Name != "-" {
			m.Inputs[i].Size = size
		}
	}
	return r.folder.Own(m)
}

// ownRead makes it that of this run now that the inputs are read.
func (r *run) ownRead() error {
	if err := r.folder.Own(r.description()); err != nil || r.killed == nil || r.cfg.NewRun {
		return err
	}
	fingerprint, err := r.fingerprint()
	if err == nil && fingerprint != r.killed.Fingerprint { // which as_of is part of
		err = outdir.Unfinished(r.cfg.Out, fmt.Sprintf("as_of: another request then, which gave %s", r.killed.AsOf.Format(time.RFC3339Nano)))
	}
	return err
}

// description is the manifest as far as the run is given it, without what comes
// of it.
func (r *run) description() *manifest.Manifest {
	m := r.manifest(sink.Counts{}, nil)
	m.Reasons, m.AsOf = nil, r.cfg.AsOf
	return m
}

// adopt returns the run that this one is to the store: an unfinished one of the same
// fingerprint, the last of several, under its id and its as_of, or a new one. With NewRun,
// those that were there when it first asked are left alone.
func (r *run) adopt(ctx context.Context, session sink.Session) (sink.Run, error) {
	fingerprint, err := r.fingerprint()
	if err != nil {
		return sink.Run{}, err
	}
	row := sink.Run{Fingerprint: fingerprint, AsOf: r.result.AsOf, Started: r.started}
	if session == nil {
		return row, nil
	}
	unfinished, err := session.Unfinished(ctx)
	if err != nil {
		return row, err
	}
	// Since claim its own process may have finished it, and then let go of the locks.
	if r.killed != nil && !slices.ContainsFunc(unfinished, func(u sink.Run) bool { return u.ID == r.killed.ID }) {
		return row, fmt.Errorf("output folder %s: it %w by now; --overwrite replaces it", r.cfg.Out, outdir.ErrExists)
	}
	first := !r.asked // later this very run may be one of them
	if n := len(unfinished); r.cfg.NewRun && first && n > 0 {
		r.superseded = unfinished[n-1].ID
	}
	r.asked = true
	var others, left []int32
	for _, u := range unfinished {
		switch {
		case u.Fingerprint != fingerprint:
			others = append(others, u.ID)
		case u.ID <= r.superseded:
			left = append(left, u.ID)
		default:
			row, r.result.AsOf = u, u.AsOf
			row.Finished = time.Time{} // one that was undone in part finishes anew
			r.result.Resumed = r.result.Resumed || first
		}
	}
	if first && len(others) > 0 {
		r.cfg.Logger.Warn("the store has unfinished runs of other inputs or options: one that is not at work is finished by its command; bulk undo takes it back, even if later runs count its links as existing",
			"runs", others)
	}
	if first && len(left) > 0 {
		r.cfg.Logger.Warn("leaving unfinished runs as they are: their links count as existing", "runs", left)
	}
	return row, nil
}
