package sqlite

import (
	"context"
	"fmt"

	"github.com/linkforge/bulk/sink"
)

// Scan implements sink.Store, in the order of the table itself.
func (s *Store) Scan(ctx context.Context, visit func(*sink.Stored) error) error {
	return s.scan(ctx, "", nil, false, visit)
}

// ScanRules implements sink.Store.
func (s *Store) ScanRules(ctx context.Context, visit func(*sink.Stored) error) error {
	return s.scan(ctx, "", nil, true, visit)
}

// Find implements sink.Store.
func (s *Store) Find(ctx context.Context, workspace, code string, visit func(*sink.Stored) error) error {
	return s.scan(ctx, "WHERE workspace_id = ? AND short_code = ?", []any{workspace, code}, true, visit)
}

// OfURL implements sink.Store.
func (s *Store) OfURL(ctx context.Context, workspace string, base sink.Key, visit func(*sink.Stored) error) error {
	return s.scan(ctx, ofURL, []any{base, workspace}, true, visit)
}

// Without the + it would read the whole workspace.
const ofURL = "WHERE (url_key = ?1 OR base_key = ?1) AND +workspace_id = ?2"

func (s *Store) scan(ctx context.Context, where string, args []any, rules bool, visit func(*sink.Stored) error) error {
	return s.look(ctx, func(c *conn) error {
		var l sink.Stored
		var ofLink sink.Rules
		var attrs []byte
		columns := "kind IS 'alias', base_key, attrs"
		if rules {
			columns += ", " + rulesColumns
		}
		rows, created := 0, "" // the text of l.Created: all links of a run have the same
		return c.query("list the links", `SELECT workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, `+columns+`
			FROM links `+where+` ORDER BY workspace_id, short_code`, args, func(q *stmt) error {
			if rows++; rows%256 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			l.Workspace, l.Code, l.Canonical, l.Original, l.Run = q.bytes(0), q.bytes(1), q.bytes(3), q.bytes(4), int32(q.int(5))
			key := q.bytes(2)
			if len(key) != len(l.Key) {
				return fmt.Errorf("%s: link %q in workspace %q: url_key has %d bytes, not 16", c.path, l.Code, l.Workspace, len(key))
			}
			l.Key = sink.Key(key)
			if at := q.bytes(6); string(at) != created {
				created = string(at)
				l.Created = anyTime(created)
			}
			l.Alias, l.Base = q.int(7) != 0, sink.Key{}
			copy(l.Base[:], q.bytes(8))
			if l.Attrs = q.bytes(9); l.Attrs != nil {
				attrs = sink.AppendJSON(attrs[:0], l.Attrs)
				l.Attrs = attrs
			}
			if rules {
				q.rules(&ofLink, 10)
				l.Rules = &ofLink
			}
			return visit(&l)
		})
	})
}
