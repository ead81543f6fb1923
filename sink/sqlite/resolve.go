package sqlite

import (
	"context"

	"github.com/linkforge/bulk/sink"
)

// Resolve implements sink.Store. It looks the codes up in their order, in one transaction.
func (s *Store) Resolve(ctx context.Context, workspace string, codes []string, visit func(*sink.Resolved) error) error {
	return s.look(ctx, func(c *conn) error {
		var r sink.Resolved
		q, err := c.prepare("look up codes", "SELECT coalesce(original_url, canonical_url), attrs, "+rulesColumns+" FROM links WHERE workspace_id = ? AND short_code = ?")
		if err != nil {
			return err
		}
		defer q.finalize()
		if err := c.exec("look up codes", "BEGIN"); err != nil { // the end of the connection ends it
			return err
		}
		for n, i := range sink.InOrder(codes) {
			if n%256 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			q.bindText(1, []byte(workspace))
			q.bindText(2, []byte(codes[i]))
			there, err := q.step()
			if err != nil {
				return err
			}
			if !there {
				continue
			}
			r.Index, r.URL, r.Redirect = i, q.bytes(0), sink.RedirectOf(q.bytes(1))
			q.rules(&r.Rules, 2)
			if err := visit(&r); err != nil {
				return err
			}
			q.reset()
		}
		return nil
	})
}

// Summary implements sink.Store. A mean that is below 0 ms or not below 10^12 ms does not count.
func (s *Store) Summary(ctx context.Context, workspace string, visit func(sink.Group) error) error {
	return s.look(ctx, func(c *conn) error {
		const columns = `nullif(link_type, '') AS type, nullif(status, '') AS state, date(expires_at) AS day, nullif(max(access_count, 0), 0) AS uses,
			iif(avg_redirect_ms >= 0 AND avg_redirect_ms < 1e12, avg_redirect_ms, NULL) AS ms`
		where, args := "", []any(nil)
		if workspace != "" {
			where, args = " WHERE workspace_id = ?", []any{workspace}
		}
		return c.query("count the links", `SELECT workspace_id, type, state, day, count(*), ifnull(sum(uses), 0), ifnull(sum(uses) FILTER (WHERE ms >= 0), 0),
				ifnull(sum(uses * ms) / sum(uses) FILTER (WHERE ms >= 0), 0)
			FROM (SELECT workspace_id, `+columns+` FROM links`+where+`) GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`, args, func(q *stmt) error {
			return visit(sink.Group{
				Workspace: q.string(0), Type: q.string(1), Status: q.string(2), Expires: anyTime(q.string(3) + " 00:00:00"), Links: q.int(4), Uses: q.int(5),
				Latency: sink.Mean{N: q.int(6), Value: q.float(7)},
			})
		})
	})
}
