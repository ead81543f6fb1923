package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// NextNumber implements sink.Session.
func (s *session) NextNumber(ctx context.Context) (next int64, err error) {
	err = s.store.with(ctx, "read the counter", func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT coalesce(max(next), 0) FROM "+s.store.names.counter).Scan(&next)
	})
	return next, err
}

// Reserve implements sink.Session. One transaction changes the counter and the row of the run, so
// a try after a lost answer finds the numbers. The row of the counter is locked, too, in case that
// another program takes numbers.
func (s *session) Reserve(ctx context.Context, run sink.Run, n int64) (numbers []sink.Range, err error) {
	names := s.store.names
	err = s.alone(ctx, "counter", "reserve numbers", func(ctx context.Context, tx pgx.Tx) error {
		run, err := names.openRun(ctx, tx.Conn(), run.ID)
		if err != nil {
			return err
		}
		taken := false
		if _, err = names.count(ctx, tx, func(next int64) (after int64) {
			numbers, after = run.Extend(n, next)
			taken = after != next
			return after
		}); err == nil && taken {
			_, err = tx.Exec(ctx, "UPDATE "+names.runs+" SET numbers = coalesce(numbers, '{}') || jsonb_build_object('ranges', $2::jsonb) WHERE run_id = $1", run.ID, list(numbers))
		}
		return err
	})
	return numbers, err
}

// MoveCounter implements sink.Session.
func (s *session) MoveCounter(ctx context.Context, start int64) (next int64, err error) {
	err = s.alone(ctx, "counter", "move the counter", func(ctx context.Context, tx pgx.Tx) (err error) {
		next, err = s.store.names.count(ctx, tx, func(next int64) int64 {
			if start <= max(next, 1) {
				return next
			}
			return start
		})
		return err
	})
	return next, err
}

// count sets the counter to what follows the next number, which is 0 if there is none, and returns that.
func (n *names) count(ctx context.Context, tx pgx.Tx, follow func(next int64) int64) (next int64, err error) {
	set := "UPDATE " + n.counter + " SET next = $1"
	if err := tx.QueryRow(ctx, "SELECT next FROM "+n.counter+" FOR UPDATE").Scan(&next); err == pgx.ErrNoRows {
		set = "INSERT INTO " + n.counter + " (next) VALUES ($1)"
	} else if err != nil {
		return 0, err
	}
	if after := follow(next); after != next {
		_, err = tx.Exec(ctx, set, after)
	}
	return next, err
}
