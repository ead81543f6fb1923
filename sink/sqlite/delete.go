package sqlite

import (
	"context"
	"errors"
	"iter"

	"github.com/linkforge/bulk/sink"
)

// Delete implements sink.Store.
func (s *Store) Delete(ctx context.Context, opts sink.DeleteOptions, items iter.Seq2[[]sink.Deletion, error], visit func(sink.Named) error) (err error) {
	do := func(c *conn) error { return c.markDeleted(ctx, &opts, items, visit) }
	if opts.DryRun {
		return s.look(ctx, do)
	}
	session, err := s.lockExisting(ctx, []string{opts.Workspace}, opts.Lock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return session.write(ctx, do)
}

// markDeleted does what Delete does with a connection.
func (c *conn) markDeleted(ctx context.Context, opts *sink.DeleteOptions, items iter.Seq2[[]sink.Deletion, error], visit func(sink.Named) error) error {
	const op = "delete links"
	const each = "SELECT short_code, coalesce(base_key, url_key), canonical_url, coalesce(owner_id, ''), coalesce(status, '') FROM links WHERE "
	q, err := c.prepareAll(op, each+"url_key = ? AND workspace_id = ?", each+"base_key = ? AND workspace_id = ?", each+"short_code = ? AND workspace_id = ?",
		"UPDATE links SET status = 'DELETED', marked_at = ?4 WHERE short_code = ?1 AND workspace_id = ?2 AND status IS NOT 'DELETED' AND ?3 IN ('', owner_id)")
	defer q.finalize()
	if err != nil {
		return err
	}
	find := func(page []sink.Deletion) (found []sink.Candidate, err error) {
		for i := range page {
			statements, of := q[:2], any(page[i].Base)
			if page[i].Code != "" {
				statements, of = q[2:3], page[i].Code
			}
			for _, q := range statements {
				if err := q.all([]any{of, opts.Workspace}, func(q *stmt) error {
					l := sink.Candidate{Code: q.string(0), Canonical: q.string(2), Owner: q.string(3), Status: q.string(4)}
					copy(l.Base[:], q.bytes(1))
					found = append(found, l)
					return nil
				}); err != nil {
					return nil, err
				}
			}
		}
		return found, context.Cause(ctx)
	}
	mark := func(codes []string) (marked []string, err error) {
		err = c.transact(op, func() error {
			for _, code := range codes {
				if err := q[3].all([]any{code, opts.Workspace, opts.Owner, stamp(opts.AsOf)}, nil); err != nil {
					return err
				}
				if c.changes() > 0 {
					marked = append(marked, code)
				}
			}
			return c.setRules(opts.Workspace)
		})
		return marked, err
	}
	return opts.Pages(items, find, mark, visit)
}
