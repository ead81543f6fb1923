package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// A session holds its locks on one connection, which also writes the row of its run and
// does a first load. Lookups and other loads use other connections.
type session struct {
	store      *Store
	locks      []lock // the token is the first
	workspaces []string
	noWait     bool
	token      int64         // the key of a lock that only this session takes
	lost       atomic.Bool   // the locks are known to be lost, even if conn works
	stale      atomic.Bool   // the locks were lost for a while, and the caller does not know
	near       atomic.Uint64 // for lookups; 0: not known

	mu sync.Mutex // only one goroutine of a load replaces conn
	// conn holds the locks; nil if the session can only look or is closed. One method
	// at a time uses it, as the contract says.
	conn *pgx.Conn
}

var errReadOnly = errors.New("this session cannot write: it was opened only to look, or is closed")

// Lock opens a session, and creates the tables if there are none.
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
	session.locks = append([]lock{{key: session.token}}, locks...)
	err := s.retry(ctx, "lock the workspaces", func(ctx context.Context) error {
		conn, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		if _, err = s.ensure(ctx, conn); err == nil {
			err = take(ctx, conn, session.locks, s.lockTurn, opts)
		}
		if err != nil {
			session.unlock(conn)
			return err
		}
		session.conn = conn
		return nil
	})
	if err != nil {
		return nil, err
	}
	return session, nil
}

// Close releases the locks.
func (s *session) Close() error {
	if s.conn != nil {
		s.unlock(s.conn)
		s.conn = nil
	}
	return nil
}

// unlock returns a connection that may hold locks of the session or have a transaction
// open. The locks are free afterwards, unless the server does not answer within
// patience.
func (s *session) unlock(conn *pgx.Conn) {
	err := rollback(conn)
	if err == nil && !conn.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err = conn.Exec(ctx, "SELECT pg_advisory_unlock_all()")
	}
	if err != nil || conn.IsClosed() {
		hangUp(conn)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if other, err := s.store.acquire(ctx); err == nil {
			_ = s.evict(ctx, other) // if it fails, the server ends the backend by itself, see setUp
			s.store.release(other)
		}
	}
	s.store.release(conn)
}

// evict ends the backend that has the session's token, and with it all its locks, and
// waits for the end: the server may not have noticed yet that the connection was lost.
func (s *session) evict(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for there := true; there; time.Sleep(time.Millisecond) {
		err := conn.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_locks WHERE "+held, s.token).Scan(&there)
		if err != nil {
			return err
		}
	}
	return nil
}

// checkHeld fails, on any connection, if the session's locks are not held.
func (s *session) checkHeld(ctx context.Context, conn *pgx.Conn) error {
	var ok bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE "+held+")", s.token).Scan(&ok)
	if err == nil && !ok {
		s.lost.Store(true)
		err = fmt.Errorf("%w: the connection with the locks was lost", sink.ErrRetryable)
	}
	return err
}

// hold makes sure that the session has its locks. If their connection was lost, it takes
// them on a new one, and waits for them unless the session has NoWait. Other runs may
// have worked meanwhile: links that they added show up as a conflict, like those of any
// other writer, but links that they deleted do not; see relocked.
func (s *session) hold(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lost.Load() && alive(context.WithoutCancel(ctx), s.conn) { // a cancelled question would close conn, and the locks would be lost
		return nil
	}
	hangUp(s.conn)
	conn, err := s.store.acquire(ctx)
	if err != nil {
		return err
	}
	if err = s.evict(ctx, conn); err == nil {
		err = take(ctx, conn, s.locks, s.store.lockTurn, sink.LockOptions{NoWait: s.noWait, Wait: func(holder string) {
			s.store.opts.Logger.Warn("the connection with the locks was lost, and another run has the locks now; waiting for it", "holder", holder)
		}})
	}
	if err != nil {
		s.unlock(conn)
		return err
	}
	s.conn = conn
	s.stale.Store(true)
	s.lost.Store(false)
	return nil
}

// relocked fails, once, if the locks were lost for a while: an undo may have deleted
// what a lookup found.
func (s *session) relocked() error {
	if s.stale.Swap(false) {
		return sink.ErrLost
	}
	return nil
}

// do calls f with the connection that holds the locks, and again if it fails with
// sink.ErrRetryable: two calls must do no harm.
func (s *session) do(ctx context.Context, op string, f func(context.Context, *pgx.Conn) error) error {
	if s.conn == nil {
		return errReadOnly
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
	err = s.store.with(ctx, "look for links of the workspaces", func(ctx context.Context, conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, "SELECT EXISTS (SELECT FROM "+s.store.names.links+" WHERE workspace_id = w)"+
			" FROM unnest($1::text[]) WITH ORDINALITY u(w, n) ORDER BY n", workspaces) // rows have its error
		out, err = pgx.CollectRows(rows, pgx.RowTo[bool])
		return err
	})
	return out, err
}

// Profiles implements sink.Session.
func (s *session) Profiles(ctx context.Context, workspaces []string) (map[string]string, error) {
	set, profile := map[string]string{}, ""
	err := s.settings(ctx, workspaces, []any{&profile}, func(workspace string) { set[workspace] = profile }, "profile")
	return set, err
}

// settings reads columns of workspaces, or of all if the list is nil, where the first of them is
// set. It calls visit for each row, perhaps several times.
func (s *session) settings(ctx context.Context, workspaces []string, values []any, visit func(workspace string), columns ...string) error {
	sql, args := "SELECT workspace_id, "+strings.Join(columns, ", ")+" FROM "+s.store.names.workspaces+" WHERE "+columns[0]+" IS NOT NULL", []any{}
	if workspaces != nil {
		sql, args = sql+" AND workspace_id = ANY ($1)", append(args, workspaces)
	}
	return s.store.with(ctx, "read settings of the workspaces", func(ctx context.Context, conn *pgx.Conn) error {
		var workspace string
		rows, _ := conn.Query(ctx, sql, args...) // rows have its error
		_, err := pgx.ForEachRow(rows, append([]any{&workspace}, values...), func() error { visit(workspace); return nil })
		return err
	})
}

// SetProfile implements sink.Session. If the locks were lost since the session began, another
// run may have loaded links of its profile: it returns sink.ErrLost.
func (s *session) SetProfile(ctx context.Context, workspaces []string, profile string) error {
	return s.do(ctx, "set the profile of the workspaces", func(ctx context.Context, conn *pgx.Conn) error {
		if err := s.relocked(); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "INSERT INTO "+s.store.names.workspaces+` (workspace_id, profile) SELECT unnest($1::text[]), $2
			ON CONFLICT (workspace_id) DO UPDATE SET profile = excluded.profile`, workspaces, profile)
		return err
	})
}
