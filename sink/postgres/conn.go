package postgres

import (
	"bufio"
	"context"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// maxIdle is how many idle connections are kept, and how many lookups run at the same
// time: a server has about a hundred connections for all its clients.
const maxIdle = 16

// dial opens a connection and changes no setting: behind a pooler, the next client of the
// server's connection would get the change.
func (s *Store) dial(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return nil, classify(ctx, "connect", dialError{err})
	}
	return conn, nil
}

// sendBuffer is how much of a COPY may be on its way to a server on this machine. The
// usual 208 KiB are 1 ms of work for the server, which then waits until this process, busy
// with the reports, sends more. The kernel may allow less (net.core.wmem_max). A first load
// of 3 million rows takes 5.4 s rather than 6.4 s, and 5.9 s with an eighth of this size,
// which is about what kernels allow by default. TCP finds the size by itself.
const sendBuffer = 4 << 20

func widen(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
	if local, ok := conn.(*net.UnixConn); ok {
		_ = local.SetWriteBuffer(sendBuffer) // without it, loads are only slower
	}
	return conn, nil
}

// receiveBuffer is how much of an answer is read at once; the driver would read 8 KiB.
// (Looking up 2.7 million URLs among 5.4 million links takes 1.94 s rather than 2.03 s.)
const receiveBuffer = 128 << 10

func buffered(r io.Reader, w io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(bufio.NewReaderSize(r, receiveBuffer), w)
}

// settings of each connection:
//   - A role's timeouts must not end a load.
//   - Its isolation level, time zone or quoting must not change the meaning of statements
//     and answers.
//   - Row security must be an error rather than hide rows.
//   - The server must not forget a commit.
//   - The planner may only use the ordered index scans that lookups need, and plans once.
//   - If a client cannot be reached any more, its locks are free after two minutes, where
//     systems allow hours. (tcp_user_timeout would also end the connection of a client that
//     is alive but reads nothing for as long, for example behind a pager.)
//
// A setting that the server does not know is NULL. (To look for it in pg_settings would take 2 ms.)
const settings = `SELECT set_config(name, value, false)
	FROM (VALUES ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'),
		('idle_session_timeout', '0'), ('idle_in_transaction_session_timeout', '0'),
		('tcp_keepalives_idle', '60'), ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '6'),
		('default_transaction_isolation', 'read committed'), ('default_transaction_deferrable', 'off'),
		('row_security', 'off'), ('synchronous_commit', 'local'), ('TimeZone', 'UTC'),
		('DateStyle', 'ISO, MDY'), ('quote_all_identifiers', 'off'), ('jit', 'off'),
		('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'), ('enable_sort', 'off'),
		('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('enable_material', 'off'),
		('plan_cache_mode', 'force_generic_plan'), ('max_parallel_workers_per_gather', '0')) v(name, value)
	WHERE current_setting(name, true) IS NOT NULL AND (name <> 'synchronous_commit' OR current_setting(name, true) = 'off')`

// connect opens a connection that is ready to use. It does not retry.
func (s *Store) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := setUp(ctx, conn); err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

func setUp(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.PgConn().Exec(ctx, settings).ReadAll(); err != nil {
		return classify(ctx, "set up the connection", err)
	}
	// The backend of a client that is gone must stop its work. Older servers, and those on
	// other systems than Linux, refuse this setting, and bulk does without it.
	_, err := conn.PgConn().Exec(ctx, "SET client_connection_check_interval = '2s'").ReadAll()
	if state(err) != "" {
		err = nil
	}
	return classify(ctx, "set up the connection", err)
}

// An idle connection. If it is idle for longer than maxTrusted, it is asked whether it
// still works.
type idleConn struct {
	*pgx.Conn
	since time.Time
}

const maxTrusted = time.Second

// acquire takes an idle connection that still works, or opens one. If one does not work
// it closes all idle ones: in a network that swallows packets, to ask each would cost
// patience.
func (s *Store) acquire(ctx context.Context) (*pgx.Conn, error) {
	s.mu.Lock()
	n := len(s.idle)
	if n == 0 {
		s.mu.Unlock()
		return s.connect(ctx)
	}
	conn := s.idle[n-1]
	s.idle = s.idle[:n-1]
	s.mu.Unlock()
	if time.Since(conn.since) < maxTrusted || alive(ctx, conn.Conn) {
		return conn.Conn, nil
	}
	hangUp(conn.Conn)
	_ = s.Close()
	return s.connect(ctx)
}

// alive asks a connection whether it works. If the context ends meanwhile, the connection
// is closed.
func alive(ctx context.Context, conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return !conn.IsClosed() && conn.Ping(ctx) == nil
}

// release returns a connection. It closes one that is broken or in a transaction. If the
// connection is broken, the idle ones are asked before their next use.
func (s *Store) release(conn *pgx.Conn) {
	s.mu.Lock()
	keep := len(s.idle) < maxIdle && !conn.IsClosed() && conn.PgConn().TxStatus() == 'I'
	if keep {
		s.idle = append(s.idle, idleConn{conn, time.Now()})
	} else if conn.IsClosed() {
		for i := range s.idle {
			s.idle[i].since = time.Time{}
		}
	}
	s.mu.Unlock()
	if !keep {
		hangUp(conn)
	}
}

// patience is how long a connection may take to end, or to say that it works.
const patience = 3 * time.Second

// hangUp closes a connection. If a statement was cut off, it waits until the server has
// ended the statement.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = conn.Close(ctx) // nobody uses the connection again
	select {
	case <-conn.PgConn().CleanupDone():
	case <-ctx.Done():
		_ = conn.PgConn().Conn().Close() // the backend notices, see setUp
	}
}

// execAll executes statements in their order, until one fails.
func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, sql := range statements {
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// rollback ends a transaction, if one is open. It has a context of its own, because the
// connection may be used again after the caller's context is over.
func rollback(conn *pgx.Conn) error {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return execAll(ctx, conn, "ROLLBACK")
}
