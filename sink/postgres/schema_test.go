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
	for _, opts := range []Options{
		{RetryFor: -1},
		{RetryFor: -1, Schema: "other", Table: "short links"},
	} {
		dsn := server.Database(t)
		sql, err := SQL(opts)
		noError(t, err)
		script(t, dsn, sql)
		s := openStore(t, dsn, opts)
		if err := s.Init(context.Background()); err != nil {
			t.Error(err)
		}
		loadAll(t, s, generated(0, 100))
	}
}

// Stores of one new schema are created at the same time.
func TestNewSchemaOfTwoStores(t *testing.T) {
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
		g.Go(func() error { return s.Init(ctx) })
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
	dsn := server.Database(t)
	opts := Options{RetryFor: -1}
	for _, c := range []struct{ name, change, want string }{
		{"column_missing", "ALTER TABLE links DROP COLUMN updated_at", "table links: column updated_at is missing"},
		{"type", "ALTER TABLE links ALTER url_key TYPE text", "column url_key is text, not uuid"},
		{"collation", "ALTER TABLE links ALTER short_code TYPE text COLLATE pg_catalog.default", `column short_code is text, not text COLLATE "C"`},
		{"other_collation_c", `CREATE COLLATION "C" FROM "POSIX"; ALTER TABLE links ALTER short_code TYPE text COLLATE public."C"`,
			`column short_code is text, not text COLLATE "C"`},
		{"collation_is_no_matter", `ALTER TABLE links ALTER canonical_url TYPE text COLLATE "C"`, ""},
		{"varchar", "ALTER TABLE links ALTER canonical_url TYPE varchar(2000)", "column canonical_url is character varying(2000), not text"},
		{"null", "ALTER TABLE links ALTER created_at DROP NOT NULL", "column created_at must be NOT NULL"},
		{"not_null", "ALTER TABLE links ALTER original_url SET NOT NULL", "column original_url must not be NOT NULL"},
		{"extra", "ALTER TABLE links ADD clicks bigint NOT NULL", "column clicks is not ours, and is NOT NULL without a default"},
		{"extra_default", "ALTER TABLE links ADD clicks bigint NOT NULL DEFAULT 0", ""},
		{"extra_identity", "ALTER TABLE links ADD id bigint GENERATED ALWAYS AS IDENTITY", ""},
		{"extra_null", "ALTER TABLE links ADD note text", ""},
		{"no_primary_key", "ALTER TABLE links DROP CONSTRAINT links_pkey", "no unique constraint over (workspace_id,short_code)"},
		{"no_unique_key", "ALTER TABLE links DROP CONSTRAINT links_url_key_key", "no unique constraint over (url_key)"},
		{"partial_index", "ALTER TABLE links DROP CONSTRAINT links_url_key_key; CREATE UNIQUE INDEX ON links (url_key) WHERE run_id > 0", "no unique constraint over (url_key)"},
		{"deferrable", "ALTER TABLE links DROP CONSTRAINT links_url_key_key; ALTER TABLE links ADD UNIQUE (url_key) DEFERRABLE", "no unique constraint over (url_key)"},
		{"other_name", "ALTER TABLE links DROP CONSTRAINT links_url_key_key; CREATE UNIQUE INDEX mine ON links (url_key)", ""},
		{"no_marker", "COMMENT ON TABLE links IS 'precious'", "it was made by something else"},
		{"newer", "COMMENT ON TABLE links IS 'bulk links, version 2'", "it was made by a newer version of bulk (schema 2, this one knows 1)"},
		{"older", "COMMENT ON TABLE links IS 'bulk links, version 0'", "it was made by an older version of bulk (schema 0)"},
		{"runs_missing", "DROP TABLE links_runs", "table links_runs: it is missing"},
		{"ledger_changed", "ALTER TABLE links_ledger RENAME batch TO b", "table links_ledger: column batch is missing"},
		{"view", "DROP TABLE links; CREATE VIEW links AS SELECT 1 AS one", "table links: it is no ordinary table (relkind v)"},
		{"unlogged", "ALTER TABLE links_runs SET UNLOGGED", "table links_runs: it is UNLOGGED, so that a crash of the server would empty it: ALTER TABLE … SET LOGGED"},
		{"everything", "ALTER TABLE links DROP COLUMN canonical_url, ALTER run_id TYPE bigint", "column canonical_url is missing; table links: column run_id is bigint, not integer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			script(t, dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
			s := openStore(t, dsn, opts)
			noError(t, s.Init(context.Background()))
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
				if n := value[int](t, dsn, "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename IN ($2, $3, $4)",
					schema, name, name+"_runs", name+"_ledger"); n != 3 {
					t.Errorf("%d tables of that name in %s", n, schema)
				}
				expect(t, dump(t, dsn, s.names.links), links)
			}
			if n := value[int](t, dsn, "SELECT count(*) FROM pg_tables WHERE schemaname IN ('public', $1)", name); n != 7 {
				t.Errorf("%d tables, want 7", n)
			}
		})
	}
	for _, opts := range []Options{
		{Table: strings.Repeat("x", maxTable+1)}, {Schema: strings.Repeat("x", 64)}, {Table: "a\x00b"},
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
