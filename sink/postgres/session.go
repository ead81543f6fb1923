package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// A session holds its locks on one connection, which also carries what it
// writes about its run and a first load. Lookups and ordinary loads use others.
type session struct {
	store      *Store
	locks      []lock
	workspaces []string
	noWait     bool
	token      int64         // the key of a lock that only this session holds
	lost       atomic.Bool   // the locks are known to be gone, whatever conn looks like
	stale      atomic.Bool   // the locks were gone for a while, and the caller does not know
	near       atomic.Uint64 // of lookups; 0: not known
	closed     bool

	mu sync.Mutex // only one goroutine of a load mends conn
	// conn holds the locks; nil if the session can only look. It is used by one
	// method at a time, as the contract has it.
	conn *pgx.Conn
}

var (
	// errPeek is the error of the methods that write, of a session that can only look.
	errPeek   = errors.New("this session can only look")
	errClosed = errors.New("this session is closed")
	// errLingers: the server has not noticed yet that our own connection was lost.
	errLingers = fmt.Errorf("%w: the lost connection still holds the locks", sink.ErrRetryable)
)

// Lock opens a session, having created the tables if they are not there.
func (s *Store) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	session, err := s.lock(ctx, s.locks(workspaces), opts)
	if err != nil {
		return nil, err
	}
	session.workspaces = workspaces
	return session, nil
}

func (s *Store) lock(ctx context.Context, locks []lock, opts sink.LockOptions) (*session, error) {
	session := &session{store: s, noWait: opts.NoWait, token: rand.Int64()}
	session.locks = append(locks, lock{key: session.token})
	err := s.retry(ctx, "lock the workspaces", func(ctx context.Context) error {
		conn, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		if err = checkWritable(ctx, conn); err == nil {
			if err = s.ensure(ctx, conn); err == nil {
				err = session.take(ctx, conn, opts, s.lingering()...)
			}
		}
		if err != nil {
			s.unlock(conn)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return session, nil
}

// lingering returns the lost sessions whose locks the server may still hold, and forgets
// the others.
func (s *Store) lingering() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = slices.DeleteFunc(s.lost, func(old *session) bool { return old.lost.Load() })
	return slices.Clone(s.lost)
}

// Close gives the locks back.
func (s *session) Close() error {
	s.closed = true
	if s.conn != nil {
		if !s.store.unlock(s.conn) {
			s.lost.Store(false) // until a Lock has asked
			s.store.mu.Lock()
			s.store.lost = append(s.store.lost, s)
			s.store.mu.Unlock()
		}
		s.conn = nil
	}
	return nil
}

// take takes the session's locks on a connection, which is the session's then. While
// the server has not noticed that the one of a lost session broke, that they are held
// is errLingers: no other run need be at work.
func (s *session) take(ctx context.Context, conn *pgx.Conn, opts sink.LockOptions, lost ...*session) error {
	late := slices.ContainsFunc(lost, func(old *session) bool { return old.checkHeld(ctx, conn) == nil })
	err := take(ctx, conn, s.locks, s.store.lockTurn, opts)
	if late && errors.Is(err, sink.ErrLocked) {
		err = errLingers
	}
	if err == nil {
		s.conn = conn
	}
	return err
}

// checkHeld fails, on any connection, if the session's locks are not held.
func (s *session) checkHeld(ctx context.Context, conn *pgx.Conn) error {
	var ok bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE "+held+")", s.token).Scan(&ok)
	if err == nil && !ok {
		s.lost.Store(true)
		err = fmt.Errorf("%w: the connection that held the locks is lost", sink.ErrRetryable)
	}
	return err
}

// hold sees to it that the session has its locks: if their connection broke, it
// takes them on a new one, and waits for them unless the session was not to.
// Other runs may have been there in between. What they added shows up as a
// conflict, like the work of any other writer, but what they took back does not:
// see relocked.
func (s *session) hold(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lost.Load() && alive(context.WithoutCancel(ctx), s.conn) { // its end would cost the locks
		return nil
	}
	hangUp(s.conn)
	conn, err := s.store.acquire(ctx)
	if err != nil {
		return err
	}
	err = s.take(ctx, conn, sink.LockOptions{NoWait: s.noWait, Wait: func(holder string) {
		s.store.opts.Logger.Warn("lost the connection that held the locks; waiting for them", "holder", holder)
	}}, s)
	if err != nil {
		s.store.unlock(conn)
		return err
	}
	s.stale.Store(true)
	s.lost.Store(false)
	return nil
}

// relocked fails, once, if the locks were gone for a while: an undo may have
// deleted what a lookup had found.
func (s *session) relocked() error {
	if s.stale.Swap(false) {
		return fmt.Errorf("%w, perhaps: the connection that held the locks was lost", sink.ErrConflict)
	}
	return nil
}

// writable is why the session cannot write; nil: it can.
func (s *session) writable() error {
	switch {
	case s.closed:
		return errClosed
	case s.conn == nil:
		return errPeek
	}
	return nil
}

// look calls f with any connection, again if it fails retryably.
func (s *session) look(ctx context.Context, op string, f func(context.Context, *pgx.Conn) error) error {
	if s.closed {
		return errClosed
	}
	return s.store.with(ctx, op, f)
}

// do calls f with the connection that holds the locks, again if it fails
// retryably. f must not mind being called twice.
func (s *session) do(ctx context.Context, op string, f func(context.Context, *pgx.Conn) error) error {
	if err := s.writable(); err != nil {
		return err
	}
	return s.store.retry(ctx, op, func(ctx context.Context) error {
		if err := s.hold(ctx); err != nil {
			return err
		}
		return f(ctx, s.conn)
	})
}

// Populated asks the index for one link of each workspace.
func (s *session) Populated(ctx context.Context, workspaces []string) (out []bool, err error) {
	err = s.look(ctx, "look for links of the workspaces", func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, "SELECT EXISTS (SELECT FROM "+s.store.names.links+" WHERE workspace_id = w)"+
			" FROM unnest($1::text[]) WITH ORDINALITY u(w, n) ORDER BY n", workspaces) // rows have its error
		out, err = pgx.CollectRows(rows, pgx.RowTo[bool])
		return err
	})
	return out, err
}
