package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sinktest"
	"golang.org/x/sync/errgroup"
)

func TestSQLMakesWhatFits(t *testing.T) {
	t.Parallel()
	for _, opts := range []Options{
		{RetryFor: -1},
		{RetryFor: -1, Schema: "other", Table: "short links"},
	} {
		dsn := server.Database(t)
		sql, err := SQL(opts)
		noError(t, err)
		script(t, dsn, sql)
		s := openStore(t, dsn, opts)
		if _, err := s.Init(context.Background()); err != nil {
			t.Error(err)
		}
		loadAll(t, s, generated(0, 100))
	}
}

// initialize creates the tables and returns what Init says.
func initialize(t testing.TB, s *Store) []string {
	t.Helper()
	did, err := s.Init(context.Background())
	noError(t, err)
	return did
}

// Stores of one new schema are created at the same time.
func TestNewSchemaOfTwoStores(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := server.Database(t)
	gate := connect(t, dsn)
	noError(t, execAll(ctx, gate, `CREATE FUNCTION pause() RETURNS event_trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); END $$`,
		"CREATE EVENT TRIGGER pause ON ddl_command_end WHEN TAG IN ('CREATE SCHEMA') EXECUTE FUNCTION pause()",
		"SELECT pg_advisory_lock(1)"))
	var g errgroup.Group
	for i, table := range []string{"a", "b"} {
		s := openStore(t, dsn, Options{Schema: "new", Table: table, RetryFor: -1})
		g.Go(func() error { _, err := s.Init(ctx); return err })
		noError(t, eventually(dsn, fmt.Sprintf("SELECT count(*) > %d FROM pg_locks l JOIN pg_stat_activity a USING (pid)"+
			" WHERE NOT granted AND datname = current_database()", i)))
	}
	noError(t, execAll(ctx, gate, "SELECT pg_advisory_unlock(1)"))
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// script runs several statements.
func script(t testing.TB, dsn, sql string) {
	t.Helper()
	conn := connect(t, dsn)
	defer conn.Close(context.Background())
	if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Each case changes tables that fit, and is told in the error.
func TestMisfits(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	opts := Options{RetryFor: -1}
	for _, c := range []struct{ name, change, want string }{
		{"extra_default", "ALTER TABLE links ADD clicks bigint NOT NULL DEFAULT 0", ""},
		{"no_primary_key", "ALTER TABLE links DROP CONSTRAINT links_pkey", "no unique constraint over (workspace_id,short_code)"},
		{"no_unique_key", "ALTER TABLE links DROP CONSTRAINT links_url_key_key", "no unique constraint over (url_key)"},
		{"partial_index", "ALTER TABLE links DROP CONSTRAINT links_url_key_key; CREATE UNIQUE INDEX ON links (url_key) WHERE run_id > 0", "no unique constraint over (url_key)"},
		{"deferrable", "ALTER TABLE links DROP CONSTRAINT links_url_key_key; ALTER TABLE links ADD UNIQUE (url_key) DEFERRABLE", "no unique constraint over (url_key)"},
		{"other_name", "ALTER TABLE links DROP CONSTRAINT links_url_key_key; CREATE UNIQUE INDEX mine ON links (url_key)", ""},
		{"no_marker", "COMMENT ON TABLE links IS 'precious'", "bulk did not make it"},
		{"newer", "COMMENT ON TABLE links IS 'bulk links, version 4'", "a newer version of bulk made it (schema 4; this version knows 3)"},
		{"older", "COMMENT ON TABLE links IS 'bulk links, version 0'", "an older version of bulk made it (schema 0; this version needs 1)"},
		{"runs_missing", "DROP TABLE links_runs", "table links_runs: it is missing"},
		{"view", "DROP TABLE links; CREATE VIEW links AS SELECT 1 AS one", "table links: it is not an ordinary table (relkind v)"},
		{"everything", "DROP TABLE links_runs; ALTER TABLE links_ledger DROP CONSTRAINT links_ledger_pkey",
			"table links_runs: it is missing; table links_ledger: it has no unique constraint over (run_id,session,batch)"},
		{"unlogged", "ALTER TABLE links_runs SET UNLOGGED", "table links_runs: it is UNLOGGED, so a crash of the server would empty it: ALTER TABLE … SET LOGGED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			script(t, dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
			s := openStore(t, dsn, opts)
			initialize(t, s)
			script(t, dsn, c.change)
			_, err := s.Lock(context.Background(), nil, sink.LockOptions{})
			_, peek := s.Peek(context.Background())
			if c.want == "" {
				if err != nil || peek != nil {
					t.Errorf("refused: %v, %v", err, peek)
				}
				return
			}
			for _, err := range []error{err, peek} {
				if !errors.Is(err, sink.ErrNotOurs) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want ErrNotOurs and %q", err, c.want)
				}
			}
		})
	}
}

// Names with what SQL and printf treat in their own way make tables of exactly
// that name, and touch nothing else.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Links", "short links", `a"b`, "a'b", `a\b`, "a;DROP TABLE precious;--", "select", "%s$1", "links.runs", "ünïcödé",
		strings.Repeat("x", maxTable),
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server.Database(t)
			script(t, dsn, "CREATE TABLE precious (n int)")
			for _, opts := range []Options{{Table: name}, {Schema: name, Table: name}} {
				opts.RetryFor = -1
				s := openStore(t, dsn, opts)
				links := generated(0, 200)
				loadAll(t, s, links[:100])
				loadAll(t, s, links[100:])
				s.Close()
				schema := opts.Schema
				if schema == "" {
					schema = "public"
				}
				if n := value[int](t, dsn, "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename = ANY ($2)",
					schema, s.names.tables(version)); n != 5 {
					t.Errorf("%d tables of that name in %s", n, schema)
				}
				expect(t, dump(t, dsn, s.names.links), links)
			}
			if n := value[int](t, dsn, "SELECT count(*) FROM pg_tables WHERE schemaname IN ('public', $1)", name); n != 11 {
				t.Errorf("%d tables, want 11", n)
			}
		})
	}
	for _, opts := range []Options{
		{Table: strings.Repeat("x", maxTable+1)}, {Schema: strings.Repeat("x", 64)},
	} {
		if _, err := Open(context.Background(), server.DSN("postgres"), opts); err == nil {
			t.Errorf("%+v is accepted", opts)
		}
		if _, err := SQL(opts); err == nil {
			t.Errorf("SQL of %+v", opts)
		}
	}
}

// loadAll loads links with a run of their own.
func loadAll(t testing.TB, s *Store, links []sink.Link) sink.Run {
	t.Helper()
	session := locked(t, s, "demo", sink.LockOptions{})
	defer session.Close()
	run, err := settle(context.Background(), session, sink.Run{Fingerprint: t.Name(), AsOf: asOf}, links)
	noError(t, err)
	return run
}

// locked opens a session on a workspace, which is closed at the end of the test.
func locked(t testing.TB, s *Store, workspace string, opts sink.LockOptions) *session {
	t.Helper()
	locked, err := s.Lock(context.Background(), []string{workspace}, opts)
	noError(t, err)
	t.Cleanup(func() { locked.Close() })
	return locked.(*session)
}

// started opens a session as locked does and begins a run, the same as wholeRun does.
func started(t testing.TB, s *Store, workspace string, opts sink.LockOptions) (*session, sink.Run) {
	t.Helper()
	session := locked(t, s, workspace, opts)
	run, err := session.Start(context.Background(), sink.Run{Fingerprint: "fault", AsOf: asOf})
	noError(t, err)
	return session, run
}

// expect fails unless the links, in code order, are what the rows say.
func expect(t testing.TB, rows []sinktest.Row, links []sink.Link) {
	t.Helper()
	if len(rows) != len(links) {
		t.Fatalf("%d links in the table, want %d", len(rows), len(links))
	}
	for i, l := range links {
		r := rows[i]
		if r.Workspace != string(l.Workspace) || r.Code != string(l.Code) || r.Key != l.Key || r.Canonical != string(l.Canonical) ||
			!r.Created.Equal(asOf) {
			t.Fatalf("link %d: %+v, want %s %s", i, r, l.Code, l.Canonical)
		}
	}
}
