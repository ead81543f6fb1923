package sqlite

import (
	"context"
	"fmt"

	"github.com/linkforge/bulk/sink"
)

// Schemes implements sink.Session.
func (s *session) Schemes(ctx context.Context, workspaces []string) (map[string]sink.Scheme, error) {
	set := map[string]sink.Scheme{}
	err := s.settings(ctx, workspaces, func(q *stmt) {
		set[q.string(0)] = sink.Scheme{Name: q.string(1), CodeLength: int(q.int(2)), Multiplier: q.int(3), Fingerprint: q.string(4), Fold: q.int(5) != 0}
	}, "scheme", "code_length", "multiplier", "fingerprint", "fold")
	return set, err
}

// Fingerprints implements sink.Session.
func (s *session) Fingerprints(ctx context.Context) (used map[string]string, err error) {
	err = s.use(ctx, func(c *conn) error { used, err = c.fingerprints(); return err })
	return used, err
}

func (c *conn) fingerprints() (map[string]string, error) {
	used := map[string]string{}
	return used, c.query("read fingerprints", "SELECT DISTINCT fingerprint, scheme FROM workspaces WHERE fingerprint IS NOT NULL", nil,
		func(q *stmt) error { used[q.string(0)] = q.string(1); return nil })
}

// SetScheme implements sink.Session.
func (s *session) SetScheme(ctx context.Context, workspaces []string, scheme sink.Scheme) error {
	return s.write(ctx, func(c *conn) error {
		return c.transact("set schemes", func() error {
			used, err := c.fingerprints()
			if err == nil {
				err = scheme.CheckSecret(used)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", c.path, err)
			}
			fold := int64(0)
			if scheme.Fold {
				fold = 1
			}
			for _, w := range workspaces {
				if err := c.run("set schemes", `INSERT INTO workspaces (workspace_id, scheme, code_length, multiplier, fingerprint, fold)
					VALUES (?, ?, nullif(?, 0), nullif(?, 0), nullif(?, ''), nullif(?, 0)) ON CONFLICT (workspace_id) DO UPDATE SET scheme = excluded.scheme,
					code_length = excluded.code_length, multiplier = excluded.multiplier, fingerprint = excluded.fingerprint, fold = excluded.fold`,
					w, scheme.Name, int64(scheme.CodeLength), scheme.Multiplier, scheme.Fingerprint, fold); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
