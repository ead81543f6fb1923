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
func (s *session) Reserve(ctx context.Context, run sink.Run, n, start int64) (numbers []sink.Range, err error) {
	names := s.store.names
	err = s.alone(ctx, "counter", "reserve numbers", func(ctx context.Context, tx pgx.Tx) error {
		run, err := names.openRun(ctx, tx.Conn(), run.ID)
		if err != nil {
			return err
		}
		set, next := "UPDATE "+names.counter+" SET next = $1", int64(0)
		if err := tx.QueryRow(ctx, "SELECT next FROM "+names.counter+" FOR UPDATE").Scan(&next); err == pgx.ErrNoRows {
			set = "INSERT INTO " + names.counter + " (next) VALUES ($1)"
		} else if err != nil {
			return err
		}
		var after int64
		if numbers, after, err = run.Extend(n, start, next); err != nil || after == next {
			return err
		}
		if _, err = tx.Exec(ctx, set, after); err == nil {
			_, err = tx.Exec(ctx, "UPDATE "+names.runs+" SET numbers = coalesce(numbers, '{}') || jsonb_build_object('ranges', $2::jsonb) WHERE run_id = $1", run.ID, list(numbers))
		}
		return err
	})
	return numbers, err
}
