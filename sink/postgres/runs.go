package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/linkforge/bulk/sink"
)

// runsWhere reads the runs that match a condition, by ascending ID.
func (n names) runsWhere(ctx context.Context, conn *pgx.Conn, condition string, args ...any) ([]sink.Run, error) {
	rows, _ := conn.Query(ctx, `SELECT run_id, fingerprint, state, as_of, rows_read, rows_created, rows_existing,
		rows_duplicate, rows_rejected, manifest_sha256, started, finished,
		inputs, workspaces, coalesce(out, ''),
		coalesce((numbers->>'links_created')::bigint, 0), coalesce((numbers->>'links_changed')::bigint, 0),
		coalesce(numbers->'keep_created' = 'true', false), numbers->'ranges'
		FROM `+n.runs+" WHERE "+condition+" ORDER BY run_id", args...) // rows have its error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r sink.Run, err error) {
		var asOf, started, finished pgtype.Timestamptz
		err = row.Scan(&r.ID, &r.Fingerprint, &r.State, &asOf, &r.Counts.Read, &r.Counts.Created, &r.Counts.Existing,
			&r.Counts.Duplicate, &r.Counts.Rejected, &r.ManifestSHA256, &started, &finished, &r.Inputs, &r.Workspaces, &r.Out,
			&r.LinksCreated, &r.LinksChanged, &r.KeepCreated, &r.Numbers)
		r.AsOf, r.Started, r.Finished = told(asOf), told(started), told(finished)
		return r, err
	})
}

// told is a time, or the zero time for NULL and for infinity, which somebody may have set.
func told(t pgtype.Timestamptz) time.Time {
	if t.InfinityModifier != pgtype.Finite {
		return time.Time{}
	}
	return t.Time.UTC()
}

// run reads one run.
func (n names) run(ctx context.Context, conn *pgx.Conn, id int32) (sink.Run, error) {
	runs, err := n.runsWhere(ctx, conn, "run_id = $1", id)
	if err == nil && len(runs) == 0 {
		err = fmt.Errorf("there is no run %d in the store", id)
	}
	if err != nil {
		return sink.Run{}, err
	}
	return runs[0], nil
}

// openRun reads a run. It fails if the run cannot continue.
func (n names) openRun(ctx context.Context, conn *pgx.Conn, id int32) (sink.Run, error) {
	run, err := n.run(ctx, conn, id)
	if err == nil {
		err = run.CheckOpen()
	}
	return run, err
}

// open is the condition that a run is not over.
const open = "state IN ('loading', 'loaded')"

// Unfinished implements sink.Session.
func (s *session) Unfinished(ctx context.Context) (runs []sink.Run, err error) {
	err = s.store.with(ctx, "look for unfinished runs", func(ctx context.Context, conn *pgx.Conn) error {
		runs, err = s.store.names.runsWhere(ctx, conn, open)
		return err
	})
	return runs, err
}

// Start implements sink.Session. The row of a new run is committed at once.
func (s *session) Start(ctx context.Context, run sink.Run) (out sink.Run, err error) {
	if run.Started.IsZero() {
		run.Started = time.Now()
	}
	run.Started = run.Started.UTC().Truncate(time.Microsecond)
	err = s.do(ctx, "start the run", func(ctx context.Context, conn *pgx.Conn) error {
		id := run.ID
		if id == 0 {
			if id, err = s.insert(ctx, conn, run); err != nil {
				return err
			}
		}
		out, err = s.store.names.openRun(ctx, conn, id)
		return err
	})
	out.SetOwn(run)
	return out, err
}

// insert adds a run and returns its ID. If an earlier try has added it, insert finds it by
// its fingerprint and the microsecond of its start. If another process has ended that
// run since, a new one is added. The IDs of runs that somebody deleted (all runs, or one
// that was loading) are not used again, because links have them.
func (s *session) insert(ctx context.Context, conn *pgx.Conn, run sink.Run) (id int32, err error) {
	runs := s.store.names.runs
	added := " FROM " + runs + " WHERE fingerprint = $1 AND started = $2 AND " + open
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", s.store.lockKey("runs", "")); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO `+runs+` (run_id, fingerprint, state, as_of, rows_read, rows_created,
				rows_existing, rows_duplicate, rows_rejected, manifest_sha256, started, inputs, workspaces, out, numbers)
			SELECT (SELECT 1 + greatest(0, max(run_id), (SELECT max(run_id) FROM `+s.store.names.ledger+`),
				CASE count(*) WHEN 0 THEN (SELECT max(run_id) FROM `+s.store.names.links+`) END) FROM `+runs+`),
				$1::text, $3, $4, 0, 0, 0, 0, 0, '', $2::timestamptz,
				$5::jsonb, $6::jsonb, $7, CASE WHEN $8 THEN '{"keep_created": true}'::jsonb END
			WHERE NOT EXISTS (SELECT`+added+")", run.Fingerprint, run.Started, string(sink.Loading), run.AsOf,
			list(run.Inputs), list(run.Workspaces), strings.ToValidUTF8(run.Out, "\uFFFD"), run.KeepCreated); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT run_id"+added, run.Fingerprint, run.Started).Scan(&id)
	})
	return id, err
}

// list is the JSON of names, in which all bytes are UTF-8, or of ranges; nil for nil. It cannot
// fail.
func list[T string | sink.Range](of []T) *string {
	if of == nil {
		return nil
	}
	text, _ := json.Marshal(of)
	return new(string(text))
}

// Loaded implements sink.Session. It deletes the run's rows in the ledger, too. If the
// locks were lost since the session began, or since the last conflict, it returns
// sink.ErrConflict.
func (s *session) Loaded(ctx context.Context, run sink.Run) error {
	return s.do(ctx, "mark the run as loaded", func(ctx context.Context, conn *pgx.Conn) error {
		if err := s.relocked(); err != nil {
			return err
		}
		c := run.Counts
		return s.store.names.update(ctx, conn, run.ID, "state NOT IN ('undone', 'abandoned')",
			`state = 'loaded', rows_read = $2, rows_created = $3, rows_existing = $4, rows_duplicate = $5, rows_rejected = $6,
			manifest_sha256 = $7, numbers = nullif(jsonb_strip_nulls(coalesce(numbers, '{}') ||
				jsonb_build_object('links_created', nullif($8::bigint, 0), 'links_changed', nullif($9::bigint, 0))), '{}')`,
			c.Read, c.Created, c.Existing, c.Duplicate, c.Rejected, run.ManifestSHA256, run.LinksCreated, run.LinksChanged)
	})
}

// Finish implements sink.Session. If the locks were lost after the run was loaded, that does
// no harm, but Finish takes them again: another process that has them may be finishing
// or undoing this run.
func (s *session) Finish(ctx context.Context, run sink.Run) error {
	if run.Finished.IsZero() {
		run.Finished = time.Now()
	}
	return s.do(ctx, "mark the run as finished", func(ctx context.Context, conn *pgx.Conn) error {
		return s.store.names.update(ctx, conn, run.ID, "state IN ('loaded', 'finished')",
			"state = 'finished', manifest_sha256 = $2, finished = $3", run.ManifestSHA256, run.Finished.UTC())
	})
}

// Abandon implements sink.Session.
func (s *session) Abandon(ctx context.Context, runs []int32) error {
	n := s.store.names
	return s.do(ctx, "abandon runs", func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE "+n.runs+" SET state = 'abandoned' WHERE run_id = ANY ($1) AND "+open, runs)
			if err == nil {
				_, err = tx.Exec(ctx, "DELETE FROM "+n.ledger+" WHERE run_id IN (SELECT run_id FROM "+n.runs+" WHERE run_id = ANY ($1) AND NOT "+open+")", runs)
			}
			return err
		})
	})
}

// Abandon implements sink.Store.
func (s *Store) Abandon(ctx context.Context, ids []int32, opts sink.LockOptions) ([]sink.Run, error) {
	session, err := s.lockAll(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	runs, err := s.Runs(ctx)
	if err == nil {
		runs, err = sink.Abandoning(runs, ids)
	}
	if err != nil {
		return nil, err
	}
	return runs, session.Abandon(ctx, ids)
}

// update changes the row of a run and deletes its rows in the ledger. The run must match the
// condition: between two connections of a session, an undo may have deleted all or some of
// its links. The parameters of set count from 2.
func (n names) update(ctx context.Context, conn *pgx.Conn, id int32, condition, set string, args ...any) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE "+n.runs+" SET "+set+" WHERE run_id = $1 AND "+condition, append([]any{id}, args...)...)
		if err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("there is no run %d in the store, or it was undone, at least in part, or abandoned", id)
		}
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM "+n.ledger+" WHERE run_id = $1", id)
		}
		return err
	})
}
