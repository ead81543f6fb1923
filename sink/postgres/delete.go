package postgres

import (
	"context"
	"encoding/hex"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// Delete implements sink.Store.
func (s *Store) Delete(ctx context.Context, opts sink.DeleteOptions, items iter.Seq2[[]sink.Deletion, error], visit func(sink.Named) error) error {
	if err := s.with(ctx, "look at the tables", s.check); err != nil {
		return err
	}
	use := s.with
	var mark func([]string) ([]string, error)
	if !opts.DryRun {
		session, err := s.lock(ctx, s.locks([]string{opts.Workspace}), opts.Lock)
		if err != nil {
			return err
		}
		defer session.Close()
		use, mark = session.do, func(codes []string) ([]string, error) { return session.markDeleted(ctx, &opts, codes) }
	}
	return opts.Pages(items, func(page []sink.Deletion) (found []sink.Candidate, err error) {
		err = use(ctx, "look for links to delete", func(ctx context.Context, conn *pgx.Conn) error {
			found, err = s.names.candidates(ctx, conn, opts.Workspace, page)
			return err
		})
		return found, err
	}, mark, visit)
}

// candidates finds the links that the items name. Without the index on base_key, it reads the
// table.
func (n names) candidates(ctx context.Context, conn *pgx.Conn, workspace string, items []sink.Deletion) ([]sink.Candidate, error) {
	var keys, codes []string
	for i := range items {
		if items[i].Code != "" {
			codes = append(codes, items[i].Code)
		} else {
			keys = append(keys, hex.EncodeToString(items[i].Base[:]))
		}
	}
	rows, _ := conn.Query(ctx, n.candidatesSQL(), workspace, keys, codes) // rows have its error
	return pgx.CollectRows(rows, pgx.RowToStructByPos[sink.Candidate])
}

// candidatesSQL looks for the links of a workspace that have one of these keys or codes. The
// workspace of a base_key is an expression, so that no index has it: before the first ANALYZE the
// planner would take the index of the codes, and read all links of the workspace.
func (n names) candidatesSQL() string {
	each := "SELECT short_code, coalesce(base_key, url_key), canonical_url, coalesce(owner_id, ''), coalesce(status, '') FROM " + n.links + " WHERE "
	return each + "workspace_id = $1 AND url_key = ANY ($2::uuid[]) UNION ALL " +
		each + "workspace_id || '' = $1 AND base_key IS NOT NULL AND base_key = ANY ($2::uuid[]) UNION ALL " +
		each + "workspace_id = $1 AND short_code = ANY ($3::text[])"
}

// markDeleted marks links in one transaction, and returns the codes of those that it has marked.
func (s *session) markDeleted(ctx context.Context, opts *sink.DeleteOptions, codes []string) (marked []string, err error) {
	if err := s.SetRules(ctx, []string{opts.Workspace}); err != nil {
		return nil, err
	}
	again := false // an earlier try may have marked them
	err = s.do(ctx, "mark links as deleted", func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, "UPDATE "+s.store.names.links+" SET status = 'DELETED', marked_at = $3 FROM"+ofCodes+
			"(status IS DISTINCT FROM 'DELETED' AND $5 IN ('', owner_id) OR $4 AND status = 'DELETED' AND marked_at = $3) RETURNING short_code",
			opts.Workspace, codes, opts.AsOf, again, opts.Owner) // rows have its error
		again = true
		marked, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return marked, err
}
