package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/linkforge/bulk/sink"
)

// A session is a sink.Session.
type session struct {
	store      *Store
	lock       *os.File // nil: the session can only look
	workspaces int      // that it has locked
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
