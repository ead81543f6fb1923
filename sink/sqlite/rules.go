package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/linkforge/bulk/sink"
)

// rulesColumns are the columns of sink.Rules, for stmt.rules.
const rulesColumns = "expires_at, max_uses, access_count, link_type, owner_id, ref, status, marked_at, changed_run, change"

// rules reads rulesColumns, which begin with a column of the row. The rules have slices of the row.
func (s *stmt) rules(r *sink.Rules, i int) {
	*r = sink.Rules{
		Expires: s.time(i), MaxUses: sink.Limit(s.int(i+1), s.null(i+1)), Uses: s.int(i + 2), Type: s.bytes(i + 3), Owner: s.bytes(i + 4), Ref: s.bytes(i + 5),
		Status: sink.Word(s.bytes(i + 6)), Marked: s.time(i + 7), ChangedRun: int32(s.int(i + 8)), Change: sink.Word(s.bytes(i + 9)),
	}
}

// time is a time of the row, or the zero time.
func (s *stmt) time(i int) (at time.Time) {
	if text := s.bytes(i); len(text) > 0 {
		at = anyTime(string(text)).Truncate(time.Microsecond)
	}
	return at
}

// bindRules binds the Expires, MaxUses, Type and Owner of a link, from a parameter on, and returns
// the next one.
func (s *stmt) bindRules(i int, r *sink.Rules) int {
	if r.Expires.IsZero() {
		s.bindText(i, nil)
	} else {
		s.bindText(i, []byte(stamp(r.Expires)))
	}
	if r.MaxUses == 0 {
		s.bindText(i+1, nil)
	} else {
		s.bindInt(i+1, r.MaxUses)
	}
	s.bindText(i+2, orNull(r.Type))
	s.bindText(i+3, orNull(r.Owner))
	return i + 4
}

// orNull is a text, or NULL if that is blank.
func orNull(text []byte) []byte {
	if len(text) == 0 {
		return nil
	}
	return text
}

// Rules implements sink.Session.
func (s *session) Rules(ctx context.Context, workspaces []string) (map[string]bool, error) {
	set := map[string]bool{}
	err := s.settings(ctx, workspaces, func(q *stmt) { set[q.string(0)] = q.int(1) != 0 }, "rules")
	return set, err
}

// Gone implements sink.Session.
func (s *session) Gone(ctx context.Context, bases []sink.Key) (gone []bool, err error) {
	if err := context.Cause(ctx); err != nil || len(bases) == 0 {
		return nil, err
	}
	gone = make([]bool, len(bases))
	return gone, s.reading(ctx, func(r *reader) error {
		q, err := r.c.prepareAll("look for deleted links", "SELECT min(deleted) FROM (SELECT "+isDeleted+" AS deleted FROM links WHERE url_key = ?1 UNION ALL SELECT "+isDeleted+
			" FROM links WHERE base_key = ?1)")
		defer q.finalize()
		for i := 0; err == nil && i < len(bases); i++ {
			if i%256 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			q[0].bindBlob(1, bases[i][:])
			if _, err = q[0].step(); err == nil {
				gone[i] = q[0].int(0) != 0
				q[0].reset()
			}
		}
		return err
	})
}

// isDeleted is the condition that somebody deleted a link.
const isDeleted = "coalesce(status, '') NOT IN ('', 'ACTIVE', 'EXPIRED')"

// SetRules implements sink.Session.
func (s *session) SetRules(ctx context.Context, workspaces []string) error {
	return s.write(ctx, func(c *conn) error {
		return c.transact("say that workspaces have rules", func() error { return c.setRules(workspaces...) })
	})
}

func (c *conn) setRules(workspaces ...string) error {
	for _, w := range workspaces {
		if err := c.run("say that workspaces have rules", `INSERT INTO workspaces (workspace_id, rules) VALUES (?, 1)
			ON CONFLICT (workspace_id) DO UPDATE SET rules = 1 WHERE rules IS NOT 1`, w); err != nil {
			return err
		}
	}
	return nil
}

// A changing is one call of Change.
type changing struct {
	series
	run       sink.Run
	read, set *stmt
	missed    int64 // links that were not as a Change says
}

// Change implements sink.Session.
func (s *session) Change(ctx context.Context, run sink.Run, changes iter.Seq2[[]sink.Change, error]) error {
	return s.write(ctx, func(c *conn) error {
		if _, err := c.openRun(run.ID); err != nil {
			return err
		}
		x := &changing{series: s.series("change links"), run: run}
		x.txTime *= severalTimes
		q, err := c.prepareAll("change links", "SELECT "+rulesColumns+" FROM links WHERE workspace_id = ? AND short_code = ?",
			`UPDATE links SET expires_at = ?1, max_uses = ?2, link_type = ?3, owner_id = ?4, status = ?5, marked_at = NULL,
			changed_run = ?6, change = ?7, updated_at = ?8, access_count = CASE WHEN ?9 OR access_count >= ?2 THEN 0 ELSE access_count END,
			original_url = CASE WHEN ?9 THEN ?10 ELSE original_url END WHERE workspace_id = ?11 AND short_code = ?12`)
		defer q.finalize()
		if err != nil {
			return err
		}
		x.read, x.set = q[0], q[1]
		if err = x.open(); err == nil {
			err = x.all(ctx, changes)
		}
		return errors.Join(err, c.rollback())
	})
}

func (x *changing) all(ctx context.Context, changes iter.Seq2[[]sink.Change, error]) error {
	for chunk, err := range changes {
		if err != nil {
			return err
		}
		for i := range chunk {
			if i%256 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := x.change(&chunk[i]); err != nil {
				return err
			}
			if err := x.add(1); err != nil {
				return err
			}
		}
	}
	if err := x.commit(); err != nil || x.missed == 0 {
		return err
	}
	return fmt.Errorf("%s: %w, or changed %d links", x.c.path, sink.ErrConflict, x.missed)
}

// change changes a link that is as the Change says.
func (x *changing) change(change *sink.Change) error {
	x.read.bindText(1, change.Workspace)
	x.read.bindText(2, change.Code)
	there, err := x.read.step()
	if err != nil {
		return err
	}
	var r sink.Rules
	if there {
		x.read.rules(&r, 0)
	}
	done, fits := there && change.Done(&r, x.run.ID), there && change.Fits(&r)
	x.read.reset()
	if done {
		return nil
	}
	if !fits {
		x.missed++
		return nil
	}
	i := x.set.bindRules(1, &change.Now)
	x.set.bindText(i, orNull([]byte(change.Now.Status)))
	x.set.bindInt(i+1, int64(x.run.ID))
	x.set.bindText(i+2, []byte(change.Now.Change))
	x.set.bindText(i+3, []byte(stamp(x.run.AsOf)))
	x.set.bindInt(i+4, 0)
	if change.Revive {
		x.set.bindInt(i+4, 1)
	}
	x.set.bindText(i+5, change.Original)
	x.set.bindText(i+6, change.Workspace)
	x.set.bindText(i+7, change.Code)
	_, err = x.set.step()
	return err
}
