package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// undoPage is the number of links that one transaction of an undo deletes.
const undoPage = 10_000

// Undo deletes a run's links page by page in the order of the primary key. It
// reads the whole index, since none is over run_id: of 6 million links about 4
// seconds. If the answer to a commit is lost, its page is not in Deleted.
func (s *Store) Undo(ctx context.Context, run int32, opts sink.LockOptions, kept func(sink.Kept) error) (sink.Undoing, error) {
	var out sink.Undoing
	if err := s.with(ctx, "look at the tables", s.check); err != nil { // a lock would create them
		return out, err
	}
	session, err := s.lock(ctx, []lock{{s.lockKey("store", ""), false}}, opts)
	if err != nil {
		return out, err
	}
	defer session.Close()
	err = session.do(ctx, "look for the run", func(ctx context.Context, conn *pgx.Conn) error {
		out.Run, err = s.names.run(ctx, conn, run)
		return err
	})
	if err != nil {
		return out, err
	}
	if err := session.deletePages(ctx, run, &out.Deleted); err != nil {
		return out, err
	}
	if out.Kept, err = session.listKept(ctx, run, kept); err != nil {
		return out, err
	}
	err = session.do(ctx, "mark the run as undone", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "UPDATE "+s.names.runs+" SET state = $2 WHERE run_id = $1", run, string(sink.Undone))
		if err == nil {
			_, err = conn.Exec(ctx, "DELETE FROM "+s.names.ledger+" WHERE run_id = $1", run)
		}
		if err == nil {
			out.Run, err = s.names.run(ctx, conn, run)
		}
		return err
	})
	return out, err
}

// deletePages deletes the links of a run that nobody changed, a page at a time.
func (s *session) deletePages(ctx context.Context, run int32, deleted *int64) error {
	sql := `WITH page AS MATERIALIZED (
			SELECT workspace_id, short_code FROM ` + s.store.names.links + `
			WHERE (workspace_id, short_code) > ($2, $3) AND run_id = $1 AND updated_at = created_at
			ORDER BY workspace_id, short_code LIMIT $4),
		gone AS (
			DELETE FROM ` + s.store.names.links + ` l USING page p
			WHERE l.workspace_id = p.workspace_id AND l.short_code = p.short_code
			AND l.run_id = $1 AND l.updated_at = l.created_at RETURNING 1)
		SELECT workspace_id, short_code, (SELECT count(*) FROM gone)
		FROM page ORDER BY workspace_id DESC, short_code DESC LIMIT 1`
	for workspace, code := "", ""; ; {
		var lastWorkspace, lastCode string // a commit can fail after they are known
		var n int64
		err := s.do(ctx, "delete links", func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, sql, run, workspace, code, undoPage).Scan(&lastWorkspace, &lastCode, &n)
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		workspace, code = lastWorkspace, lastCode
		*deleted += n
	}
}

// listKept tells of the links that a run still has.
func (s *session) listKept(ctx context.Context, run int32, kept func(sink.Kept) error) (n int64, err error) {
	if err := s.hold(ctx); err != nil {
		return 0, err
	}
	rows, err := s.conn.Query(ctx, "SELECT workspace_id, short_code, updated_at FROM "+s.store.names.links+
		" WHERE run_id = $1 ORDER BY workspace_id, short_code", run)
	if err != nil {
		return 0, classify(ctx, "list the links that stay", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k sink.Kept
		if err := rows.Scan(&k.Workspace, &k.Code, &k.Updated); err != nil {
			return n, err
		}
		k.Updated = k.Updated.UTC().Round(time.Microsecond)
		n++
		if err := kept(k); err != nil {
			return n, err
		}
	}
	return n, classify(ctx, "list the links that stay", rows.Err())
}
