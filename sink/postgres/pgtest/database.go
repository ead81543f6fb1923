//go:build linux || darwin

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Main runs the tests of a binary and then closes the server; it returns the
// exit code. The tests and what they start see no variable of libpq but those
// that they set: an address cannot undo PGSERVICE or PGOPTIONS.
func (s *Server) Main(m *testing.M) int {
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "PG") {
			name, _, _ := strings.Cut(v, "=")
			os.Unsetenv(name)
		}
	}
	code := m.Run()
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	return code
}

// Need starts the server if it does not run yet. Where there are no server
// programs, it skips the test, or fails it if CI is set or BULK_TEST_POSTGRES
// is "require": a machine that is meant to run these tests must not skip them.
func (s *Server) Need(tb testing.TB) {
	tb.Helper()
	err := s.Start()
	if errors.Is(err, ErrNoPrograms) && os.Getenv("CI") == "" && os.Getenv("BULK_TEST_POSTGRES") != "require" {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// Database makes a fresh database for a test and returns its address. options
// follow CREATE DATABASE, as in "TEMPLATE template0 ENCODING 'SQL_ASCII'". The
// database is dropped after the test.
func (s *Server) Database(tb testing.TB, options ...string) (dsn string) {
	tb.Helper()
	s.Need(tb)
	s.mu.Lock()
	s.last++
	name := fmt.Sprintf("test%d", s.last)
	s.mu.Unlock()
	sql := "CREATE DATABASE " + name
	for _, o := range options {
		sql += " " + o
	}
	s.Exec(tb, "postgres", sql)
	tb.Cleanup(func() { s.Exec(tb, "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return s.DSN(name)
}

// DSN is the address of a database, for the superuser, over the Unix socket.
// Where it goes no variable of libpq changes, but for PGSERVICE. Like TCP, Port,
// Socket and what runs SQL, it is for a server that has started.
func (s *Server) DSN(database string) string { return s.dsn(s.folder, database) }

// TCP is the address of a database by way of another host and port, as a proxy
// on this machine has them. The server's own are 127.0.0.1 and [Server.Port].
func (s *Server) TCP(database string, port int) string {
	return fmt.Sprintf("%s port=%d", s.dsn("127.0.0.1", database), port)
}

func (s *Server) dsn(host, database string) string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=%s sslmode=disable target_session_attrs=any",
		host, s.port, database)
}

// Port is the port of the server, on 127.0.0.1 if the options asked for TCP and
// in the name of the socket, which is in the folder Socket.
func (s *Server) Port() int { return s.port }

// Socket is the folder of the server's Unix socket.
func (s *Server) Socket() string { return s.folder }

// Exec runs SQL in a database as the superuser.
func (s *Server) Exec(tb testing.TB, database, sql string) {
	tb.Helper()
	if err := s.ExecContext(context.Background(), database, sql); err != nil {
		tb.Fatal(err)
	}
}

// ExecContext runs SQL in a database as the superuser.
func (s *Server) ExecContext(ctx context.Context, database, sql string) error {
	conn, err := pgx.Connect(ctx, s.DSN(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// Terminate ends the backends of all connections to the server that match the
// condition over pg_stat_activity, and returns their number.
func (s *Server) Terminate(ctx context.Context, condition string) (n int, err error) {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"+
		" WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND "+condition).Scan(&n)
	return n, err
}
