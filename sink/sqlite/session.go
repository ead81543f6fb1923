package sqlite

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/linkforge/bulk/sink"
)

// A session is a sink.Session.
type session struct {
	store      *Store
	lock       *os.File // nil: the session can only look
	workspaces []string // that it has locked
	c          *conn

	mu      sync.Mutex
	readers []*reader // not in use by a Lookup
}

var _ sink.Session = (*session)(nil)

var errReadOnly = errors.New("this session cannot write: it was opened only to look, or is closed")

// use runs f with the connection and the context of the call.
func (s *session) use(ctx context.Context, f func(*conn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.c.during(ctx, func() error { return f(s.c) })
}

// write is use for a call that writes.
func (s *session) write(ctx context.Context, f func(*conn) error) error {
	if s.lock == nil {
		return errReadOnly
	}
	return s.use(ctx, f)
}

// Populated implements sink.Session.
func (s *session) Populated(ctx context.Context, workspaces []string) ([]bool, error) {
	found := make([]bool, len(workspaces))
	err := s.use(ctx, func(c *conn) error {
		q, err := c.prepare("look for links", "SELECT 1 FROM links WHERE workspace_id = ? LIMIT 1")
		if err != nil {
			return err
		}
		defer q.finalize()
		for i, w := range workspaces {
			q.bindText(1, []byte(w))
			if found[i], err = q.step(); err != nil {
				return err
			}
			q.reset()
		}
		return nil
	})
	return found, err
}

// Profiles implements sink.Session.
func (s *session) Profiles(ctx context.Context, workspaces []string) (map[string]string, error) {
	set := map[string]string{}
	err := s.settings(ctx, workspaces, func(q *stmt) { set[q.string(0)] = q.string(1) }, "profile")
	return set, err
}

// settings visits columns of workspaces, or of all if the list is nil, where the first of them is
// set. Mostly the table is empty.
func (s *session) settings(ctx context.Context, workspaces []string, visit func(*stmt), columns ...string) error {
	return s.use(ctx, func(c *conn) error {
		op, all := "read settings of workspaces", "SELECT workspace_id, "+strings.Join(columns, ", ")+" FROM workspaces WHERE "+columns[0]+" IS NOT NULL"
		each := func(q *stmt) error { visit(q); return nil }
		if workspaces == nil {
			return c.query(op, all, nil, each)
		}
		some, err := c.number(op, "SELECT EXISTS (SELECT 1 FROM workspaces)")
		if err != nil || some == 0 {
			return err
		}
		for _, w := range workspaces {
			if err := c.query(op, all+" AND workspace_id = ?", []any{w}, each); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetProfile implements sink.Session.
func (s *session) SetProfile(ctx context.Context, workspaces []string, profile string) error {
	return s.write(ctx, func(c *conn) error {
		return c.transact("set profiles", func() error {
			for _, w := range workspaces {
				if err := c.run("set profiles", `INSERT INTO workspaces (workspace_id, profile) VALUES (?, ?)
					ON CONFLICT (workspace_id) DO UPDATE SET profile = excluded.profile`, w, profile); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Close implements sink.Session.
func (s *session) Close() error {
	errs := []error{s.closeReaders()}
	if s.c != nil {
		errs = append(errs, s.c.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	s.c, s.lock = nil, nil
	return errors.Join(errs...)
}

// closeReaders closes the readers that are not in use.
func (s *session) closeReaders() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, r := range s.readers {
		errs = append(errs, r.close())
	}
	s.readers = nil
	return errors.Join(errs...)
}
