package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/linkforge/bulk/sink"
)

// with calls f with a connection, again if it fails retryably. f must not mind
// being called twice.
func (s *Store) with(ctx context.Context, op string, f func(context.Context, *pgx.Conn) error) error {
	return s.retry(ctx, op, func(ctx context.Context) error {
		conn, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		defer s.release(conn)
		return f(ctx, conn)
	})
}

// maxBegun is how often retry begins to count Options.RetryFor.
const maxBegun = 3

// retry calls f until it succeeds, fails with something that is not
// [sink.ErrRetryable], or has only failed for as long as Options.RetryFor. That time
// counts from the end of the first try that had a connection, which may have waited
// for a lock until then. After a later try of more than RetryFor, which may have
// waited too, it begins anew, but no more than maxBegun times in all: what works for
// long and fails each time comes to an end. The pauses double from 50 ms to 5 s, less
// up to a half by chance, so that many clients of a server that comes back do not
// come at once; the last try is at the end of RetryFor. The error is classified.
func (s *Store) retry(ctx context.Context, op string, f func(context.Context) error) error {
	const first = 50 * time.Millisecond
	var failing time.Time // since when f does nothing but fail
	for wait, counted := first, 0; ; wait = min(2*wait, 5*time.Second) {
		begun := time.Now()
		err := ctx.Err() // asked first, since to begin a transaction late would cost the connection
		if err == nil {
			err = f(ctx)
		}
		err = classify(ctx, op, err)
		if err == nil || !errors.Is(err, sink.ErrRetryable) {
			return err
		}
		now := time.Now()
		_, unconnected := errors.AsType[*pgconn.ConnectError](err)
		switch {
		case unconnected:
			if failing.IsZero() {
				failing = begun
			}
		case failing.IsZero(), now.Sub(begun) > s.opts.RetryFor && counted < maxBegun:
			failing, wait = now, first
			counted++
		}
		elapsed := now.Sub(failing)
		if elapsed >= s.opts.RetryFor {
			if s.opts.RetryFor > 0 {
				err = fmt.Errorf("%w (%w after %s)", err, sink.ErrGaveUp, elapsed.Round(time.Millisecond))
			}
			return err
		}
		s.count("retries", 1)
		pause := min(wait/2+rand.N(wait/2), s.opts.RetryFor-elapsed)
		s.opts.Logger.Warn("the database failed; trying again", "in", pause, "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}
