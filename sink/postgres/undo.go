package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/linkforge/bulk/sink"
)

// undoPage is the number of links that one transaction of an undo deletes.
const undoPage = 10_000

// Undo implements sink.Store. It deletes the links page by page in the order of the primary
// key. It reads the whole index, because there is none on run_id: with 6 million links this
// takes about 4 seconds. If the answer to a commit is lost, its page does not count in
// Deleted. It fails if a foreign key would delete or change rows together with the
// links.
func (s *Store) Undo(ctx context.Context, run int32, opts sink.LockOptions, kept func(sink.Kept) error) (sink.Undoing, error) {
	var out sink.Undoing
	session, err := s.lockAll(ctx, opts)
	if err != nil {
		return out, err
	}
	defer session.Close()
	err = session.do(ctx, "look for the run", func(ctx context.Context, conn *pgx.Conn) error {
		if out.Run, err = s.names.run(ctx, conn, run); err != nil {
			return err
		}
		out.Was = out.Run.State
		return s.names.follows(ctx, conn)
	})
	if err != nil {
		return out, err
	}
	d := deletion{session: session, run: run}
	err = d.deletePages(ctx)
	if out.Deleted = d.deleted; err != nil {
		return out, err
	}
	if out.Kept, out.Changed, err = session.listKept(ctx, run, kept); err != nil {
		return out, err
	}
	err = session.do(ctx, "mark the run as undone", func(ctx context.Context, conn *pgx.Conn) error {
		if err := session.relocked(); err != nil {
			return err
		}
		err := s.names.update(ctx, conn, run, "true", "state = 'undone'")
		if err == nil {
			out.Run, err = s.names.run(ctx, conn, run)
		}
		return err
	})
	if errors.Is(err, sink.ErrConflict) { // the links may have changed since they were listed
		err = fmt.Errorf("%w: the connection with the locks was lost; undo again", sink.ErrRetryable)
	}
	return out, err
}

// lockAll opens a session that excludes all others. It does not create the tables.
func (s *Store) lockAll(ctx context.Context, opts sink.LockOptions) (*session, error) {
	if err := s.with(ctx, "look at the tables", s.check); err != nil {
		return nil, err
	}
	return s.lock(ctx, []lock{{s.lockKey("store", ""), false}}, opts)
}

// PreviewUndo implements sink.Store.
func (s *Store) PreviewUndo(ctx context.Context, run int32) (out sink.Undoing, err error) {
	n := s.names
	err = s.with(ctx, "count the links of the run", func(ctx context.Context, conn *pgx.Conn) error {
		if err := s.check(ctx, conn); err != nil {
			return err
		}
		if out.Run, err = n.run(ctx, conn, run); err != nil {
			return err
		}
		out.Was = out.Run.State
		if err := n.follows(ctx, conn); err != nil {
			return err
		}
		var referred string // a condition
		if err := conn.QueryRow(ctx, references, n.links).Scan(&referred); err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := execAll(ctx, conn, "SET LOCAL enable_seqscan = on", "SET LOCAL enable_hashjoin = on"); err != nil {
				return err
			}
			err := tx.QueryRow(ctx, "SELECT count(*) FILTER (WHERE free), count(*) FILTER (WHERE NOT free) FROM (SELECT "+
				s.untouched()+" AND NOT ("+referred+") AS free FROM "+n.links+" l WHERE run_id = $1) q", run).Scan(&out.Deleted, &out.Kept)
			if err != nil {
				return err
			}
			others := " FROM " + n.links + " WHERE run_id <> $1 AND "
			return tx.QueryRow(ctx, "SELECT (SELECT count(*)"+others+"changed_run = $1), (SELECT count(*)"+others+"kind = 'alias' AND base_key IN (SELECT url_key FROM "+
				n.links+" l WHERE "+s.untouched()+" AND NOT ("+referred+")))", run).Scan(&out.Changed, &out.Orphans)
		})
	})
	return out, err
}

// references makes the condition that some row refers to the link l, of all foreign keys to
// the table $1.
const references = `SELECT coalesce(string_agg(format('EXISTS (SELECT FROM %s r WHERE %s)', conrelid::regclass,
	(SELECT string_agg(format('r.%I = l.%I', a.attname, b.attname) || CASE b.attcollation WHEN 0 THEN '' ELSE ' COLLATE "C"' END, ' AND ') FROM unnest(conkey, confkey) k(a, b)
		JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k.a
		JOIN pg_attribute b ON b.attrelid = confrelid AND b.attnum = k.b)), ' OR '), 'false')
	FROM pg_constraint WHERE contype = 'f' AND confrelid = to_regclass($1)`

// follows is the error of a foreign key that deletes or changes rows together with the
// links that they refer to.
func (n names) follows(ctx context.Context, conn *pgx.Conn) error {
	var key string
	err := conn.QueryRow(ctx, `SELECT format('%s: its foreign key %I', conrelid::regclass, conname) FROM pg_constraint
		WHERE contype = 'f' AND confrelid = to_regclass($1) AND confdeltype NOT IN ('a', 'r') ORDER BY oid LIMIT 1`, n.links).Scan(&key)
	if err == pgx.ErrNoRows {
		return nil
	}
	if err == nil {
		err = errors.New(key + " deletes or changes rows together with the links that they refer to; drop it, or make it ON DELETE NO ACTION, and try again")
	}
	return err
}

// A deletion deletes the links of a run that nobody changed.
type deletion struct {
	*session
	run     int32
	deleted int64 // links
	refused bool  // at least one link stays, because something refers to it
}

// A place in the order of the primary key.
type place struct{ Workspace, Code string }

// untouched is the condition that run $1 created a link and nobody changed it. The time is
// compared, too: an earlier run may have had the same ID. So is the run that changed the link: it
// may have had the same time. The created_at says nothing: a migrated link has that of its earlier
// life.
func (s *Store) untouched() string {
	return "run_id = $1 AND updated_at = (SELECT as_of FROM " + s.names.runs + " WHERE run_id = $1) AND coalesce(changed_run, $1) = $1"
}

// deletePages deletes the links, a page at a time. If the locks were lost for a while it
// starts again at the first page, because the run may have continued and stored links there.
func (d *deletion) deletePages(ctx context.Context) error {
	for after := (place{}); ; {
		var page []place
		err := d.do(ctx, "look for links to delete", func(ctx context.Context, conn *pgx.Conn) (err error) {
			if d.stale.Swap(false) {
				after = place{}
			}
			rows, _ := conn.Query(ctx, "SELECT workspace_id, short_code FROM "+d.store.names.links+
				" WHERE (workspace_id, short_code) > ($2, $3) AND "+d.store.untouched()+
				" ORDER BY workspace_id, short_code LIMIT $4", d.run, after.Workspace, after.Code, undoPage) // rows have its error
			page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[place])
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := d.deleteLinks(ctx, page); err != nil {
			return err
		}
		after = page[len(page)-1]
	}
}

// deleteLinks deletes links, and sets the run to Loading, unless it is Abandoned. A link stays if
// a foreign key refers to it.
func (d *deletion) deleteLinks(ctx context.Context, links []place) error {
	return inHalves(links, func(links []place) (refused, err error) {
		workspaces, codes := make([]string, len(links)), make([]string, len(links))
		for i, l := range links {
			workspaces[i], codes[i] = l.Workspace, l.Code
		}
		var tag pgconn.CommandTag
		err = d.do(ctx, "delete links", func(ctx context.Context, conn *pgx.Conn) (err error) {
			tag, err = conn.Exec(ctx, "WITH begun AS (UPDATE "+d.store.names.runs+" SET state = 'loading' WHERE run_id = $1 AND state NOT IN ('undone', 'abandoned'))"+
				" DELETE FROM "+d.store.names.links+" l USING unnest($2::text[], $3::text[]) p(w, c)"+
				" WHERE l.workspace_id = p.w AND l.short_code = p.c AND "+d.store.untouched(), d.run, workspaces, codes)
			return err
		})
		if referenced(err) {
			return err, nil
		}
		if err == nil {
			d.deleted += tag.RowsAffected()
		}
		return nil, err
	}, func(l place, err error) {
		if !d.refused {
			d.store.opts.Logger.Warn("a link stays, because something in the database refers to it; others may follow", "code", l.Code, "error", err)
		}
		d.refused = true
	})
}

// inHalves calls f for the items. If it refuses them, it is called for each half of them, and so
// on, until it refuses only single items, for which stays is called.
func inHalves[E any](items []E, f func([]E) (refused, err error), stays func(item E, refused error)) error {
	refused, err := f(items)
	switch half := len(items) / 2; {
	case err != nil || refused == nil:
		return err
	case half == 0:
		stays(items[0], refused)
		return nil
	default:
		if err := inHalves(items[:half], f, stays); err != nil {
			return err
		}
		return inHalves(items[half:], f, stays)
	}
}

// referenced reports whether an error is that of a foreign key.
func referenced(err error) bool {
	code := state(err)
	return code == "23503" || code == "23001" // foreign_key_violation; restrict_violation, since PostgreSQL 18
}

// listKept calls kept for each link that the run still has or has changed, and counts both.
func (s *session) listKept(ctx context.Context, run int32, kept func(sink.Kept) error) (own, changed int64, err error) {
	const op = "list the links that stay"
	if err := s.do(ctx, op, func(context.Context, *pgx.Conn) error { return nil }); err != nil {
		return 0, 0, err
	}
	rows, _ := s.conn.Query(ctx, "SELECT workspace_id, short_code, updated_at, CASE WHEN run_id <> $1 THEN coalesce(change, '') END FROM "+s.store.names.links+
		" WHERE run_id = $1 OR changed_run = $1 ORDER BY workspace_id, short_code", run) // rows have its error
	var k sink.Kept
	var updated pgtype.Timestamptz
	var how *string
	var stop error
	_, err = pgx.ForEachRow(rows, []any{&k.Workspace, &k.Code, &updated, &how}, func() error {
		if k.Updated, k.Change = told(updated), ""; how == nil {
			own++
		} else {
			changed, k.Change = changed+1, *how
		}
		stop = kept(k)
		return stop
	})
	if stop != nil {
		return own, changed, stop
	}
	return own, changed, classify(ctx, op, err)
}
