package sqlite

import (
	"context"
	"fmt"

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
func (s *session) Reserve(ctx context.Context, run sink.Run, n, start int64) (numbers []sink.Range, err error) {
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
			if numbers, after, err = run.Extend(n, start, next); err != nil {
				return fmt.Errorf("%s: %w", c.path, err)
			}
			if after == next {
				return nil
			}
			set := "UPDATE counter SET next = ?"
			if next == 0 {
				set = "INSERT INTO counter (next) VALUES (?)"
			}
			if err := c.run("reserve numbers", set, after); err != nil {
				return err
			}
			return c.run("reserve numbers", "UPDATE runs SET numbers = json_set(coalesce(numbers, '{}'), '$.ranges', json(?2)) WHERE run_id = ?1", run.ID, list(numbers))
		})
	})
	return numbers, err
}
