package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/linkforge/bulk/sink"
)

// with calls f with a connection, and again if it fails with sink.ErrRetryable: two calls
// must do no harm.
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

// maxBegun is how often retry starts to count Options.RetryFor.
const maxBegun = 3

// retry calls f until it succeeds, fails with an error that is not [sink.ErrRetryable], or
// has failed for Options.RetryFor. That time starts at the end of the first try that had
// a connection: until then the try may have waited for a lock. It starts again after a
// later try that took longer than RetryFor, since that one may have waited too; but
// at most maxBegun times in all, so that a step that always fails late comes to an end.
//
// The pauses double from 50 ms to 5 s. A random part of up to a half is left out, so that
// the clients of a server that restarts do not all come at once. The last try is at the
// end of RetryFor. The error is classified. Options.Outage is told of each failure, and
// when no call fails any more.
func (s *Store) retry(ctx context.Context, op string, f func(context.Context) error) (err error) {
	const first = 50 * time.Millisecond
	var failing time.Time // since when f only fails
	defer func() {
		if !failing.IsZero() && s.failing.Add(-1) == 0 && !errors.Is(err, sink.ErrRetryable) && ctx.Err() == nil {
			s.opts.Outage("", time.Time{})
		}
	}()
	for wait, counted := first, 0; ; wait = min(2*wait, 5*time.Second) {
		begun := time.Now()
		err = ctx.Err() // asked first, since to begin a transaction late would cost the connection
		if err == nil {
			err = f(ctx)
		}
		err = classify(ctx, op, err)
		if err == nil || !errors.Is(err, sink.ErrRetryable) {
			return err
		}
		now := time.Now()
		_, unconnected := errors.AsType[*pgconn.ConnectError](err)
		if failing.IsZero() {
			s.failing.Add(1)
		}
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
		s.opts.Outage(s.problem(err, unconnected), failing.Add(s.opts.RetryFor))
		s.opts.Logger.Debug("trying again", "in", pause, "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// problem says for people why a try failed, such as "PostgreSQL at HOST does not answer
// (connection refused)".
func (s *Store) problem(err error, unconnected bool) string {
	what, why := "does not answer", ""
	if !unconnected {
		what, why = "failed", "the connection was lost"
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		why = e.Message
	} else if e, ok := errors.AsType[syscall.Errno](err); ok {
		why = e.Error()
	} else if e, ok := errors.AsType[*net.DNSError](err); ok {
		why = e.Err
	}
	if why != "" {
		why = " (" + why + ")"
	}
	return "PostgreSQL at " + s.config.Host + " " + what + why
}
