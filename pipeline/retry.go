package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

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

// retry makes attempts to settle, load and report, as often as other writers or a store that
// fails for a while make it necessary.
func retry(ctx context.Context, cfg *Config, m *meter, attempt func(context.Context) error) error {
	var failing time.Time // since when the store does nothing but fail; zero: it does not
	pause := 100 * time.Millisecond
	for resettled, long := 0, 0; ; {
		start := time.Now()
		err := attempt(ctx)
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, sink.ErrConflict) && resettled < maxResettled:
			resettled++
			failing = time.Time{}
			if errors.Is(err, sink.ErrLost) {
				cfg.Logger.Warn("the connection was lost; checking what was stored and going on", "attempt", resettled+1)
			} else {
				cfg.Logger.Warn("another writer took a code or a URL in the meantime; looking again", "attempt", resettled+1, "error", err)
			}
			continue
		case !errors.Is(err, sink.ErrRetryable) || errors.Is(err, sink.ErrGaveUp):
			return err
		}
		if time.Since(start) > cfg.RetryFor && long < maxLong {
			long++
			failing = time.Time{}
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		left := cfg.RetryFor - time.Since(failing)
		if left <= 0 {
			return err
		}
		wait := min(pause/2+rand.N(pause/2), left)
		cfg.Outage(fmt.Sprintf("the database does not answer (%v)", err), failing.Add(cfg.RetryFor))
		paused := time.Now()
		select {
		case <-time.After(wait):
			m.waited(paused)
			pause = min(2*pause, 10*time.Second)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
