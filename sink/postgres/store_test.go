package postgres

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
	"github.com/linkforge/bulk/sink/sinktest"
)

var server = pgtest.New(pgtest.Options{TCP: true, HBA: []string{"local all locked scram-sha-256"}})

// spare is a server that a test may stop, if it starts it again. Tests that use it are not
// parallel.
var spare = pgtest.New(pgtest.Options{})

func TestMain(m *testing.M) {
	if os.Getenv("BULK_TEST_LOADER") != "" {
		os.Exit(loader())
	}
	if dsn := os.Getenv("BULK_TEST_SWEEPER"); dsn != "" {
		fmt.Fprintln(os.Stderr, sweeper(dsn))
		os.Exit(1)
	}
	if dsn := os.Getenv(reservesIn); dsn != "" {
		store, err := Open(context.Background(), dsn, Options{})
		if err != nil {
			panic(err)
		}
		sinktest.ReserveForever(store)
	}
	quick.SetUp()
	flag.Parse()
	flag.Set("test.parallel", "8") // parallel tests mostly wait
	code := server.Main(m)
	if err := spare.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Each test of the suite has a schema of its own, which costs less than a database. Its stores take the
// connections that those of earlier tests had.
func TestConformance(t *testing.T) {
	t.Parallel()
	dsn, idle := server.Database(t), &Store{}
	t.Cleanup(func() { idle.Close() })
	var schemas atomic.Int32
	sinktest.Run(t, func(t *testing.T) *sinktest.Database {
		conn := borrow(t, dsn)
		t.Cleanup(func() { pgtest.GiveBack(conn) })
		return conforming(conn, idle, dsn, Options{RetryFor: -1, Schema: fmt.Sprint("test", schemas.Add(1))})
	})
}

// A lent store has idle connections of another, to which they go when it is closed.
type lent struct {
	*Store
	of *Store
}

// lend opens a store with up to two connections of another.
func lend(t *testing.T, of *Store, dsn string, opts Options) lent {
	t.Helper()
	of.mu.Lock()
	n := max(0, len(of.idle)-2)
	some := slices.Clone(of.idle[n:])
	of.idle = of.idle[:n]
	of.mu.Unlock()
	if len(some) == 0 {
		return lent{openStore(t, dsn, opts), of}
	}
	s, err := newStore(dsn, opts)
	noError(t, err)
	s.names, s.idle = newNames(opts.Schema, s.opts.Table), some
	return lent{s, of}
}

func (s lent) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		s.of.release(c.Conn)
	}
	s.idle = nil
	return nil
}

// conforming is a database of the conformance suite. The suite looks past the stores so often that it
// does so over one connection: a new one costs more than what is done with it.
func conforming(conn *pgx.Conn, idle *Store, dsn string, opts Options) *sinktest.Database {
	links := newNames(opts.Schema, opts.withDefaults().Table).links
	created := func(t *testing.T) bool {
		return valueOf[bool](t, conn, "SELECT to_regclass($1) IS NOT NULL", links)
	}
	return &sinktest.Database{
		FineLocks: true,
		Open:      func(t *testing.T) sink.Store { return lend(t, idle, dsn, opts) },
		Created:   created,
		Dump: func(t *testing.T) []sinktest.Row {
			if !created(t) {
				return nil
			}
			return dumpOf(t, conn, links)
		},
		Insert: func(t *testing.T, rows ...sinktest.Row) { insert(t, conn, links, rows) },
		Execute: func(t *testing.T, sql string) {
			executeOn(t, conn, strings.Replace(sql, " links ", " "+links+" ", 1))
		},
		Change: func(t *testing.T, workspace, code string, updated time.Time) {
			executeOn(t, conn, "UPDATE "+links+" SET updated_at = $3 WHERE workspace_id = $1 AND short_code = $2", workspace, code, updated)
		},
	}
}

// insert commits links in one transaction: pgx has one for each batch.
func insert(t testing.TB, conn *pgx.Conn, links string, rows []sinktest.Row) {
	t.Helper()
	var batch pgx.Batch
	for _, r := range rows {
		batch.Queue("INSERT INTO "+links+" VALUES ($1, $2, $3, $4, $5, $6, $7, $7, CASE WHEN $8::bool THEN 'alias' END, nullif($9::uuid, '00000000-0000-0000-0000-000000000000'), nullif($10, '')::jsonb,"+
			" nullif($11, $21::timestamptz), nullif($12, 0::bigint), nullif($13, 0::bigint), NULL, nullif($14, ''), nullif($15, ''), nullif($16, ''), nullif($17, ''), nullif($18, $21), nullif($19, 0), nullif($20, ''))",
			r.Workspace, r.Code, r.Key, r.Canonical, r.Original, r.Run, r.Created, r.Alias, r.Base, r.Attrs,
			r.Expires, r.MaxUses, r.Uses, r.Type, r.Owner, r.Ref, r.Status, r.Marked, r.ChangedRun, r.Change, time.Time{})
	}
	noError(t, conn.SendBatch(context.Background(), &batch).Close())
}

// openStore opens a store, which is closed at the end of the test.
func openStore(t testing.TB, dsn string, opts Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), dsn, opts)
	noError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func dump(t testing.TB, dsn, links string) []sinktest.Row {
	t.Helper()
	conn := borrow(t, dsn)
	defer pgtest.GiveBack(conn)
	return dumpOf(t, conn, links)
}

// dumpOf reads all links. A table of version 1 has fewer columns. (A row as JSON would tell, too, but
// making it costs many times what the load of the row does.)
func dumpOf(t testing.TB, conn *pgx.Conn, links string) []sinktest.Row {
	t.Helper()
	since2 := "kind IS NOT DISTINCT FROM 'alias', base_key, coalesce(attrs::text, ''), expires_at, coalesce(max_uses, 0), coalesce(access_count, 0)," +
		" coalesce(link_type, ''), coalesce(owner_id, ''), coalesce(ref, ''), coalesce(status, ''), marked_at, coalesce(changed_run, 0), coalesce(change, '')"
	if !valueOf[bool](t, conn, "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = $1::regclass AND attname = 'kind')", links) {
		since2 = "false, NULL::uuid, '', NULL::timestamptz, 0, 0, '', '', '', '', NULL::timestamptz, 0, ''"
	}
	rows, err := conn.Query(context.Background(), "SELECT workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, "+since2+
		" FROM "+links+" ORDER BY workspace_id, short_code")
	noError(t, err)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r sinktest.Row, err error) {
		var base *sink.Key
		var expires, marked *time.Time
		err = row.Scan(&r.Workspace, &r.Code, &r.Key, &r.Canonical, &r.Original, &r.Run, &r.Created, &r.Alias, &base, &r.Attrs,
			&expires, &r.MaxUses, &r.Uses, &r.Type, &r.Owner, &r.Ref, &r.Status, &marked, &r.ChangedRun, &r.Change)
		if base != nil {
			r.Base = *base
		}
		r.Attrs = string(sink.AppendJSON(nil, []byte(r.Attrs)))
		r.Created = r.Created.UTC().Round(time.Microsecond)
		if expires != nil {
			r.Expires = expires.UTC()
		}
		if marked != nil {
			r.Marked = marked.UTC()
		}
		return r, err
	})
	noError(t, err)
	return out
}

// connect opens a connection, which is closed at the end of the test.
func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	noError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// borrow returns a connection for statements between those of the stores, for pgtest.GiveBack.
func borrow(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgtest.Borrow(context.Background(), dsn)
	noError(t, err)
	return conn
}

func execute(t testing.TB, dsn, sql string, args ...any) {
	t.Helper()
	conn := borrow(t, dsn)
	defer pgtest.GiveBack(conn)
	executeOn(t, conn, sql, args...)
}

func executeOn(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// value reads one value.
func value[T any](t testing.TB, dsn, sql string, args ...any) (v T) {
	t.Helper()
	conn := borrow(t, dsn)
	defer pgtest.GiveBack(conn)
	return valueOf[T](t, conn, sql, args...)
}

func valueOf[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// eventually waits until a query gives true, for a minute. Any goroutine may call it.
func eventually(dsn, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for done := false; !done; time.Sleep(time.Millisecond) {
		if err := conn.QueryRow(ctx, sql).Scan(&done); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
