//go:build linux || darwin

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Main runs the tests of a binary, closes the server and returns the exit code. It first
// removes all PG* environment variables: an address cannot override PGSERVICE or PGOPTIONS.
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

// Need starts the server if it is not running. If there are no server programs it skips the
// test; if CI is set, or BULK_TEST_POSTGRES is "require", it fails the test.
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

// Database creates a database for a test and returns its address. The options follow CREATE
// DATABASE, as in "TEMPLATE template0 ENCODING 'SQL_ASCII'". The database is dropped after
// the test.
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
	if !s.opts.Durable {
		sql += " STRATEGY FILE_COPY" // to copy files takes half the time of logging each page, if nothing is synced
	}
	s.Exec(tb, common, sql)
	tb.Cleanup(func() { s.Exec(tb, common, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return s.DSN(name)
}

// DSN is the address of a database for the superuser, over the Unix socket. No PG* variable
// changes it, except PGSERVICE. The server must have started, as for TCP, Port, Socket and
// the methods that run SQL.
func (s *Server) DSN(database string) string { return s.dsn(s.dir, database) }

// TCP is the address of a database over a port of 127.0.0.1: [Server.Port], or that of a
// proxy.
func (s *Server) TCP(database string, port int) string {
	return fmt.Sprintf("%s port=%d", s.dsn("127.0.0.1", database), port)
}

func (s *Server) dsn(host, database string) string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=%s sslmode=disable target_session_attrs=any",
		host, s.port, database)
}

// Port is the port of the server: on 127.0.0.1 with Options.TCP, and in the name of the
// socket.
func (s *Server) Port() int { return s.port }

// Socket is the directory of the server's Unix socket.
func (s *Server) Socket() string { return s.dir }

// Exec runs SQL in a database as the superuser.
func (s *Server) Exec(tb testing.TB, database, sql string) {
	tb.Helper()
	if err := s.ExecContext(context.Background(), database, sql); err != nil {
		tb.Fatal(err)
	}
}

// ExecContext runs SQL in a database as the superuser.
func (s *Server) ExecContext(ctx context.Context, database, sql string) error {
	conn, err := Borrow(ctx, s.DSN(database))
	if err != nil {
		return err
	}
	if database == common {
		defer GiveBack(conn)
	} else { // nobody may be connected to a database that is a template, or is dropped without force
		defer conn.Close(ctx)
	}
	_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// common is the database in which others are created and dropped.
const common = "postgres"

// idle has connections that were given back, by address: a new one costs as much as twenty statements.
var idle struct {
	sync.Mutex
	conns map[string][]*pgx.Conn
}

// Borrow returns a connection to an address: one that was given back and still works, or a new one.
func Borrow(ctx context.Context, dsn string) (*pgx.Conn, error) {
	for {
		idle.Lock()
		list := idle.conns[dsn]
		if len(list) == 0 {
			idle.Unlock()
			return pgx.Connect(ctx, dsn)
		}
		conn := list[len(list)-1]
		idle.conns[dsn] = list[:len(list)-1]
		idle.Unlock()
		if conn.Ping(ctx) == nil {
			return conn, nil
		}
		conn.Close(ctx)
	}
}

// GiveBack takes a connection of Borrow, in which the borrower has left no trace.
func GiveBack(conn *pgx.Conn) {
	idle.Lock()
	defer idle.Unlock()
	if idle.conns == nil {
		idle.conns = map[string][]*pgx.Conn{}
	}
	dsn := conn.Config().ConnString()
	idle.conns[dsn] = append(idle.conns[dsn], conn)
}

// Terminate ends the backends of all connections that match a condition over
// pg_stat_activity, and returns their number.
func (s *Server) Terminate(ctx context.Context, condition string) (n int, err error) {
	conn, err := Borrow(ctx, s.DSN(common))
	if err != nil {
		return 0, err
	}
	defer GiveBack(conn)
	err = conn.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"+
		" WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND "+condition).Scan(&n)
	return n, err
}
