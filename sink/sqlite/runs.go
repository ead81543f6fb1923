package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/linkforge/bulk/sink"
)

// timeForm is the form of times, which are in UTC.
const timeForm = "2006-01-02 15:04:05.000000"

func stamp(t time.Time) string { return t.UTC().Format(timeForm) }

// anyTime reads a time that another program may have written, perhaps without a fraction, as
// CURRENT_TIMESTAMP does, or as of RFC 3339. For any other form it returns the zero time.
func anyTime(text string) time.Time {
	for _, form := range []string{time.DateTime, time.RFC3339} { // each takes a fraction too
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// runs reads the runs that match a condition, by ascending ID.
func (c *conn) runs(where string) (runs []sink.Run, err error) {
	const columns = `SELECT run_id, fingerprint, state, as_of, read, created, existing, duplicate, rejected,
		manifest_sha256, started_at, coalesce(finished_at, ''), inputs, workspaces, json_extract(numbers, '$.ranges'), out,
		json_extract(numbers, '$.links_created'), json_extract(numbers, '$.links_changed'), json_extract(numbers, '$.keep_created') FROM runs `
	err = c.query("read runs", columns+where+" ORDER BY run_id", nil, func(s *stmt) error {
		run := sink.Run{
			ID: int32(s.int(0)), Fingerprint: s.string(1), State: sink.State(s.string(2)), AsOf: anyTime(s.string(3)),
			Counts:         sink.Counts{Read: s.int(4), Created: s.int(5), Existing: s.int(6), Duplicate: s.int(7), Rejected: s.int(8)},
			ManifestSHA256: s.string(9), Started: anyTime(s.string(10)), Finished: anyTime(s.string(11)), Out: s.string(15),
			LinksCreated: s.int(16), LinksChanged: s.int(17), KeepCreated: s.int(18) != 0,
		}
		for i, list := range []any{&run.Inputs, &run.Workspaces, &run.Numbers} {
			if text := s.bytes(12 + i); text != nil {
				if err := json.Unmarshal(text, list); err != nil {
					return fmt.Errorf("%s: run %d: %w", c.path, run.ID, err)
				}
			}
		}
		runs = append(runs, run)
		return nil
	})
	return runs, err
}

// list is the JSON of names or ranges; NULL for nil. It cannot fail.
func list[T string | sink.Range](of []T) (text []byte) {
	if of != nil {
		text, _ = json.Marshal(of)
	}
	return text
}

// unfinished is the condition of a run that is not over.
const unfinished = "state IN ('loading', 'loaded')"

// Unfinished implements sink.Session.
func (s *session) Unfinished(ctx context.Context) (runs []sink.Run, err error) {
	err = s.use(ctx, func(c *conn) (err error) {
		runs, err = c.runs("WHERE " + unfinished)
		return err
	})
	return runs, err
}

// openRun reads a run. It fails if the run cannot continue.
func (c *conn) openRun(id int32) (sink.Run, error) {
	run, err := c.oneRun(id)
	if err == nil {
		if err = run.CheckOpen(); err != nil {
			err = fmt.Errorf("%s: %w", c.path, err)
		}
	}
	return run, err
}

// Start implements sink.Session. The row of a new run is committed at once.
func (s *session) Start(ctx context.Context, run sink.Run) (out sink.Run, err error) {
	if run.ID != 0 {
		err = s.write(ctx, func(c *conn) (err error) { out, err = c.openRun(run.ID); return err })
		out.SetOwn(run)
		return out, err
	}
	run.State = sink.Loading
	if run.Started.IsZero() {
		run.Started = time.Now()
	}
	run.Started = run.Started.UTC().Truncate(time.Microsecond)
	err = s.write(ctx, func(c *conn) error {
		return c.transact("start run", func() error {
			last, err := c.number("start run", `SELECT max(coalesce(max(run_id), 0), CASE count(*) WHEN 0 THEN
				(SELECT coalesce(max(run_id), 0) FROM links) ELSE 0 END) FROM runs`)
			if err != nil {
				return err
			}
			run.ID = int32(last + 1)
			var numbers []byte // NULL
			if run.KeepCreated {
				numbers = []byte(`{"keep_created":true}`)
			}
			if err := c.run("start run", `INSERT INTO runs (run_id, fingerprint, state, as_of, started_at, inputs, workspaces, out, numbers)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, run.ID, run.Fingerprint, string(run.State), stamp(run.AsOf), stamp(run.Started),
				list(run.Inputs), list(run.Workspaces), strings.ToValidUTF8(run.Out, "\uFFFD"), numbers); err != nil {
				return err
			}
			out, err = c.oneRun(run.ID)
			out.SetOwn(run)
			return err
		})
	})
	return out, err
}

// Loaded implements sink.Session.
func (s *session) Loaded(ctx context.Context, run sink.Run) error {
	n := run.Counts
	return s.update(ctx, run, "state NOT IN ('undone', 'abandoned')", "state = 'loaded', read = ?2, created = ?3, existing = ?4, duplicate = ?5, rejected = ?6, manifest_sha256 = ?7, "+
		"numbers = nullif(json_patch(coalesce(numbers, '{}'), json_object('links_created', nullif(?8, 0), 'links_changed', nullif(?9, 0))), '{}')",
		n.Read, n.Created, n.Existing, n.Duplicate, n.Rejected, run.ManifestSHA256, run.LinksCreated, run.LinksChanged)
}

// Finish implements sink.Session.
func (s *session) Finish(ctx context.Context, run sink.Run) error {
	if run.Finished.IsZero() {
		run.Finished = time.Now()
	}
	return s.update(ctx, run, "state IN ('loaded', 'finished')", "state = 'finished', manifest_sha256 = ?2, finished_at = ?3", run.ManifestSHA256, stamp(run.Finished))
}

// Abandon implements sink.Session.
func (s *session) Abandon(ctx context.Context, runs []int32) error {
	return s.write(ctx, func(c *conn) error {
		return c.transact("abandon runs", func() error {
			for _, id := range runs {
				if err := c.run("abandon runs", "UPDATE runs SET state = 'abandoned' WHERE run_id = ? AND "+unfinished, id); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Abandon implements sink.Store.
func (s *Store) Abandon(ctx context.Context, ids []int32, opts sink.LockOptions) (runs []sink.Run, err error) {
	session, err := s.lockExisting(ctx, nil, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if runs, err = s.Runs(ctx); err != nil {
		return nil, err
	}
	if runs, err = sink.Abandoning(runs, ids); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return runs, session.Abandon(ctx, ids)
}

// update changes the row of a run. The run must match the condition: between two sessions,
// an undo may have deleted all or some of its links. The parameters of set count from 2.
func (s *session) update(ctx context.Context, run sink.Run, condition, set string, args ...any) error {
	return s.write(ctx, func(c *conn) error {
		return c.transact("update run", func() error {
			if err := c.run("update run", "UPDATE runs SET "+set+" WHERE run_id = ?1 AND "+condition, append([]any{run.ID}, args...)...); err != nil {
				return err
			}
			if c.changes() != 1 {
				return fmt.Errorf("%s: there is no run %d, or it was undone, at least in part, or abandoned", c.path, run.ID)
			}
			return nil
		})
	})
}
