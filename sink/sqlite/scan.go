package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/linkforge/bulk/sink"
)

// Scan implements sink.Store, in the order of the table itself.
func (s *Store) Scan(ctx context.Context, visit func(*sink.Stored) error) error {
	return s.look(ctx, func(c *conn) error {
		rows := 0
		var at stamped
		return c.query("list the links", `SELECT workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at
			FROM links ORDER BY workspace_id, short_code`, nil, func(q *stmt) error {
			if rows++; rows%256 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			l, err := stored(q, &at)
			if err != nil {
				return fmt.Errorf("%s: link %q of workspace %q: %w", c.path, l.Code, l.Workspace, err)
			}
			return visit(l)
		})
	})
}

// stamped is the time of the row before: those of a run are all the same.
type stamped struct {
	text string
	time time.Time
}

// stored reads the row that Scan is at.
func stored(q *stmt, at *stamped) (*sink.Stored, error) {
	l := &sink.Stored{Link: sink.Link{Workspace: q.bytes(0), Code: q.bytes(1), Canonical: q.bytes(3), Original: q.bytes(4)}, Run: runOf(q, 5)}
	key := q.bytes(2)
	if len(key) != len(l.Key) {
		return l, fmt.Errorf("url_key has %d bytes", len(key))
	}
	l.Key = sink.Key(key)
	if text := q.bytes(6); string(text) != at.text {
		*at = stamped{string(text), anyTime(string(text))}
	}
	l.Created = at.time
	return l, nil
}
