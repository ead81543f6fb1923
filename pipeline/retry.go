package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
)

const (
	// maxResettled is how often a run looks the store up again because another writer took
	// a code or a URL meanwhile.
	maxResettled = 20
	// maxLong is how often an attempt that lasted longer than Config.RetryFor, and so may
	// have got far, begins that time anew.
	maxLong = 3
)

// retry settles, loads and reports, as often as other writers or a store that fails for a
// while make it necessary.
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
			r.cfg.Logger.Warn("another writer took a code or a URL in the meantime; looking again", "attempt", resettled+1, "error", err)
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
		r.cfg.Logger.Warn("the database does not answer; trying again", "pause", wait, "error", err)
		paused := time.Now()
		select {
		case <-time.After(wait):
			r.meter.waited(paused)
			pause = min(2*pause, 10*time.Second)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
