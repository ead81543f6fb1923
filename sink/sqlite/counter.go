package sqlite

import (
	"context"

	"github.com/linkforge/bulk/sink"
)

// NextNumber implements sink.Session.
func (s *session) NextNumber(ctx context.Context) (next int64, err error) {
	err = s.use(ctx, func(c *conn) error { next, err = c.nextNumber(); return err })
	return next, err
}

func (c *conn) nextNumber() (int64, error) {
	return c.number("read the counter", "SELECT next FROM counter")
}

// Reserve implements sink.Session. One transaction changes the counter and the row of the run.
func (s *session) Reserve(ctx context.Context, run sink.Run, n int64) (numbers []sink.Range, err error) {
	err = s.write(ctx, func(c *conn) error {
		return c.transact("reserve numbers", func() error {
			if run, err = c.openRun(run.ID); err != nil {
				return err
			}
			next, err := c.nextNumber()
			if err != nil {
				return err
			}
			var after int64
			if numbers, after = run.Extend(n, next); after == next {
				return nil
			}
			if err := c.setCounter(next, after); err != nil {
				return err
			}
			return c.run("reserve numbers", "UPDATE runs SET numbers = json_set(coalesce(numbers, '{}'), '$.ranges', json(?2)) WHERE run_id = ?1", run.ID, list(numbers))
		})
	})
	return numbers, err
}

// MoveCounter implements sink.Session.
func (s *session) MoveCounter(ctx context.Context, start int64) (next int64, err error) {
	err = s.write(ctx, func(c *conn) error {
		return c.transact("move the counter", func() error {
			if next, err = c.nextNumber(); err != nil || start <= max(next, 1) {
				return err
			}
			return c.setCounter(next, start)
		})
	})
	return next, err
}

// setCounter sets the counter to another number than the next one, which is 0 if there is none.
func (c *conn) setCounter(next, after int64) error {
	set := "UPDATE counter SET next = ?"
	if next == 0 {
		set = "INSERT INTO counter (next) VALUES (?)"
	}
	return c.run("set the counter", set, after)
}
