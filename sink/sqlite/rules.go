package sqlite

import (
	"context"
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
	err := s.settings(ctx, "rules", workspaces, func(q *stmt) { set[q.string(0)] = q.int(1) != 0 })
	return set, err
}

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
