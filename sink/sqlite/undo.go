package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/linkforge/bulk/sink"
)

// undoPage is the number of links that one transaction of an Undo deletes.
const undoPage = 10_000

// Undo implements sink.Store. It reads the whole table, because there is no index on run_id.
func (s *Store) Undo(ctx context.Context, run int32, opts sink.LockOptions, kept func(sink.Kept) error) (out sink.Undoing, err error) {
	session, err := s.lockExisting(ctx, nil, opts)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	err = session.write(ctx, func(c *conn) error {
		if out.Run, err = c.oneRun(run); err != nil {
			return err
		}
		out.Was = out.Run.State
		if err = c.referred(); err != nil {
			return err
		}
		if out.Deleted, err = c.deleteLinks(run); err != nil {
			return err
		}
		if out.Kept, out.Changed, err = c.listKept(run, kept); err != nil {
			return err
		}
		err = c.transact("undo run", func() error {
			return c.run("undo run", "UPDATE runs SET state = 'undone' WHERE run_id = ?", run)
		})
		if err == nil {
			out.Run.State = sink.Undone
		}
		return err
	})
	return out, err
}

// PreviewUndo implements sink.Store.
func (s *Store) PreviewUndo(ctx context.Context, run int32) (out sink.Undoing, err error) {
	err = s.look(ctx, func(c *conn) error {
		if out.Run, err = c.oneRun(run); err != nil {
			return err
		}
		out.Was = out.Run.State
		if err = c.referred(); err != nil {
			return err
		}
		err = c.query("count the links", "SELECT count(*), count(*) FILTER (WHERE "+untouched+") FROM links WHERE run_id = ?1", []any{run}, func(q *stmt) error {
			out.Deleted = q.int(1)
			out.Kept = q.int(0) - out.Deleted
			return nil
		})
		if err != nil {
			return err
		}
		return c.query("count the links of other runs", "SELECT count(*) FILTER (WHERE changed_run = ?1), count(*) FILTER (WHERE kind = 'alias' AND base_key IN (SELECT url_key FROM links WHERE "+
			untouched+")) FROM links WHERE run_id <> ?1", []any{run}, func(q *stmt) error {
			out.Changed, out.Orphans = q.int(0), q.int(1)
			return nil
		})
	})
	return out, err
}

func (c *conn) oneRun(id int32) (sink.Run, error) {
	runs, err := c.runs(fmt.Sprintf("WHERE run_id = %d", id))
	if err == nil && len(runs) == 0 {
		err = fmt.Errorf("%s: no run %d", c.path, id)
	}
	if err != nil {
		return sink.Run{}, err
	}
	return runs[0], nil
}

// referred is an error if a table refers to the links: SQLite would delete them nevertheless.
func (c *conn) referred() error {
	return c.query("look for foreign keys", `SELECT m.name FROM sqlite_schema m, pragma_foreign_key_list(m.name) f
		WHERE m.type = 'table' AND lower(f."table") = 'links' LIMIT 1`, nil, func(s *stmt) error {
		return fmt.Errorf("%s: table %s has a foreign key to the links, and its rows would be left without them; drop the key and try again", c.path, s.string(0))
	})
}

// untouched is the condition that run ?1 created a link and nobody changed it. The time is
// compared, too: an earlier run may have had the same ID. So is the run that changed the link: it
// may have had the same time. The created_at says nothing: a migrated link has that of its earlier
// life.
const untouched = "run_id = ?1 AND updated_at = (SELECT as_of FROM runs WHERE run_id = ?1) AND ifnull(changed_run, ?1) = ?1"

// deleteLinks deletes the links of a run that nobody changed, a page at a time in the order
// of the primary key. The first page sets the run to Loading, unless it is Abandoned.
func (c *conn) deleteLinks(run int32) (deleted int64, err error) {
	own := " FROM links WHERE " + untouched + " AND (workspace_id, short_code) > (?2, ?3)"
	workspace, code := "", ""
	for {
		// The end of a page may be far. Other writers need not wait while it is looked for.
		args, more := []any{run, workspace, code}, false
		err := c.query("undo run", "SELECT workspace_id, short_code FROM (SELECT workspace_id, short_code"+own+
			fmt.Sprintf(" ORDER BY 1, 2 LIMIT %d) ORDER BY 1 DESC, 2 DESC LIMIT 1", undoPage), args, func(s *stmt) error {
			workspace, code, more = s.string(0), s.string(1), true
			return nil
		})
		if err != nil || !more {
			return deleted, err
		}
		var n int64
		err = c.transact("undo run", func() error {
			err := c.run("undo run", "DELETE"+own+" AND (workspace_id, short_code) <= (?4, ?5)", append(args, workspace, code)...)
			if err != nil {
				return err
			}
			n = c.changes()
			return c.run("undo run", "UPDATE runs SET state = 'loading' WHERE run_id = ? AND state NOT IN ('undone', 'abandoned')", run)
		})
		if err != nil {
			return deleted, err
		}
		deleted += n
	}
}

// listKept calls kept for each link that the run still has or has changed, and counts both.
func (c *conn) listKept(run int32, kept func(sink.Kept) error) (own, changed int64, err error) {
	err = c.query("list the links that stay", "SELECT workspace_id, short_code, updated_at, run_id, ifnull(change, '') FROM links WHERE run_id = ?1 OR changed_run = ?1 ORDER BY 1, 2",
		[]any{run}, func(s *stmt) error {
			k := sink.Kept{Workspace: s.string(0), Code: s.string(1), Updated: anyTime(s.string(2))}
			if int32(s.int(3)) == run {
				own++
			} else {
				changed, k.Change = changed+1, s.string(4)
			}
			return kept(k)
		})
	return own, changed, err
}
