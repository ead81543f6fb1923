package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// Reasons against a first load; "" means that it is done.
func TestWaysOfLoading(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	for _, c := range []struct{ name, change, want string }{
		{"new", "", ""},
		{"emptied", "INSERT INTO links VALUES ('w', 'c', '00000000-0000-0000-0000-000000000000', 'u', NULL, 0, now(), now()); DELETE FROM links", ""},
		{"extra_column", "ALTER TABLE links ADD clicks bigint NOT NULL DEFAULT 0", ""},
		{"extra_index", "CREATE INDEX ON links (created_at)", ""},
		{"rows", "INSERT INTO links VALUES ('w', 'c', '00000000-0000-0000-0000-000000000000', 'u', NULL, 0, now(), now())", "it has rows"},
		{"trigger", "CREATE TRIGGER t BEFORE UPDATE ON links FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()", "it has triggers"},
		{"foreign_key", "CREATE TABLE clicks (k uuid REFERENCES links (url_key))", "a foreign key refers to it"},
		{"rule", "CREATE RULE r AS ON UPDATE TO links DO NOTHING", "it has rules or row security"},
		{"row_security", "ALTER TABLE links ENABLE ROW LEVEL SECURITY", "it has rules or row security"},
		{"inherited", "CREATE TABLE child () INHERITS (links)", "it inherits"},
		{"published", "CREATE PUBLICATION out FOR TABLE links", "it is published"},
		{"all_published", "CREATE PUBLICATION out FOR ALL TABLES", "it is published"},
		{"other_published", "CREATE TABLE other (); CREATE PUBLICATION out FOR TABLE other", ""},
		{"replica_identity", "ALTER TABLE links REPLICA IDENTITY USING INDEX links_pkey", "an index is its replica identity"},
		{"index_options", "ALTER INDEX links_pkey SET (fillfactor = 70)", "bulk did not create its constraints"},
		{"comment_on_a_constraint", "COMMENT ON CONSTRAINT links_pkey ON links IS 'mine'", "bulk did not create its constraints"},
		{"comment_on_an_index", "COMMENT ON INDEX links_url_key_key IS 'mine'", "bulk did not create its constraints"},
		{"other_index", "ALTER TABLE links DROP CONSTRAINT links_url_key_key; CREATE UNIQUE INDEX mine ON links (url_key)", "bulk did not create its constraints"},
		{"other_primary_key", "ALTER TABLE links DROP CONSTRAINT links_pkey, ADD id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ADD UNIQUE (workspace_id, short_code)",
			"bulk did not create its constraints"},
		{"cluster", "CLUSTER links USING links_pkey", "it is clustered on an index"},
		{"view_on_the_key", "CREATE VIEW v AS SELECT workspace_id, short_code, canonical_url FROM links GROUP BY workspace_id, short_code", "the server says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			script(t, dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP PUBLICATION IF EXISTS out")
			s := openStore(t, dsn, Options{RetryFor: -1})
			initialize(t, s)
			script(t, dsn, c.change)
			before := value[int](t, dsn, "SELECT count(*) FROM links")
			loadAll(t, s, generated(0, 100))
			if n := value[int](t, dsn, "SELECT count(*) FROM links WHERE workspace_id = 'demo'"); n != 100 {
				t.Errorf("%d links", n)
			}
			if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != 100+before {
				t.Error("what was there is gone")
			}
			way := s.Stats()["load_way"].(string)
			if first := strings.HasPrefix(way, "one transaction"); first != (c.want == "") || !strings.Contains(way, c.want) {
				t.Errorf("way: %s", way)
			}
			if err := s.check(context.Background(), connect(t, dsn)); err != nil {
				t.Errorf("afterwards it does not fit: %v", err)
			}
		})
	}
}

// A first load makes what all its links share the defaults of their columns, for as
// long as it takes. Those that are there already it leaves alone. A created_at of its own a link
// has nevertheless.
func TestDefaultsOfColumns(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	database := value[string](t, dsn, "SELECT current_database()")
	const defaults = `SELECT coalesce(string_agg(attname || ' ' || attidentity::text || coalesce(pg_get_expr(adbin, adrelid), ''), ', ' ORDER BY attnum), '')
		FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
		WHERE attrelid = 'links'::regclass AND (atthasdef OR attidentity <> '')`
	for _, c := range []struct{ change, want string }{
		{"", ""},
		{"ALTER TABLE links ADD clicks bigint NOT NULL DEFAULT 7", "clicks 7"},
		{"ALTER TABLE links ALTER created_at SET DEFAULT now()", "created_at now()"},
		{"ALTER TABLE links ALTER workspace_id SET DEFAULT 'mine'", "workspace_id 'mine'::text"},
		{"ALTER TABLE links ALTER run_id ADD GENERATED ALWAYS AS IDENTITY", "run_id a"},
		{"ALTER DATABASE " + database + " SET datestyle = 'SQL, DMY'; ALTER DATABASE " + database + " SET timezone = 'Asia/Kolkata'", ""},
	} {
		for _, keep := range []bool{false, true} {
			script(t, dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
			s := openStore(t, dsn, Options{})
			initialize(t, s)
			script(t, dsn, c.change)
			links, created := generated(0, 10), asOf
			if keep {
				created = time.Date(1999, 1, 2, 3, 4, 5, 6000, time.UTC)
				links[0].Created = created
			}
			session := locked(t, s, "demo", sink.LockOptions{})
			run, err := settle(context.Background(), session, sink.Run{Fingerprint: "f", AsOf: asOf, KeepCreated: keep}, links)
			noError(t, errors.Join(err, session.Close()))
			if way := s.Stats()["load_way"]; way != "one transaction into an empty table" {
				t.Errorf("%s: way: %s", c.change, way)
			}
			if got := value[string](t, dsn, defaults); got != c.want {
				t.Errorf("%s: defaults are %q, want %q", c.change, got, c.want)
			}
			if n := value[int](t, dsn, "SELECT count(*) FROM links WHERE run_id = $1 AND updated_at = $2 AND created_at = CASE short_code WHEN $3 THEN $4 ELSE $2 END",
				run.ID, asOf, string(links[0].Code), created); n != len(links) {
				t.Errorf("%s: %d links of %d are of the run and its time", c.change, n, len(links))
			}
		}
	}
}

// What somebody inserts before a first load has the table stays: the load waits for it,
// and looks again.
func TestFirstLoadIsForestalled(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{RetryFor: -1})
	session, run := started(t, s, "demo", sink.LockOptions{})
	writer := connect(t, dsn)
	noError(t, execAll(ctx, writer, "BEGIN",
		"INSERT INTO links VALUES ('w', 'c', '00000000-0000-0000-0000-000000000000', 'u', NULL, 0, now(), now())"))
	var g errgroup.Group
	g.Go(func() error { // commit once it waits, or has given that up and loads
		return errors.Join(eventually(dsn, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'links'::regclass)"+
			" OR EXISTS (SELECT FROM links_ledger)"), execAll(ctx, writer, "COMMIT"))
	})
	noError(t, errors.Join(session.Load(ctx, run, pieces(generated(0, 100))), g.Wait()))
	if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != 101 {
		t.Errorf("%d links, want 101", n)
	}
}

// A first load copies with FREEZE, and makes the constraints with memory and helpers of
// its own, unless the server has more memory set; the connection has what it had before.
func TestFirstLoadIsFrozen(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{"64MB": "512MB", "1GB": "1GB"} {
		ctx, dsn := context.Background(), server.Database(t)
		execute(t, dsn, "ALTER DATABASE "+value[string](t, dsn, "SELECT current_database()")+" SET maintenance_work_mem = '"+before+"'")
		s := openStore(t, dsn, Options{RetryFor: -1})
		session, run := started(t, s, "demo", sink.LockOptions{})
		const both = "current_setting('maintenance_work_mem') || ' ' || current_setting('max_parallel_maintenance_workers')"
		script(t, dsn, `CREATE TABLE made (setting text);
			CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS
				$$ BEGIN IF current_query() LIKE '% ADD %' THEN INSERT INTO made SELECT `+both+`; END IF; END $$;
			CREATE EVENT TRIGGER note ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION note()`)
		old := connect(t, dsn)
		noError(t, execAll(ctx, old, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"))
		noError(t, session.Load(ctx, run, pieces(generated(0, 100))))
		var n int
		if err := old.QueryRow(ctx, "SELECT count(*) FROM links").Scan(&n); err != nil || n != 100 {
			t.Errorf("a snapshot from before the load sees %d links, %v: they are not frozen", n, err)
		}
		if got := value[string](t, dsn, "SELECT string_agg(DISTINCT setting, ', ') FROM made"); got != want+" 4" {
			t.Errorf("of %s, the constraints were made with %s", before, got)
		}
		var after string
		if err := session.conn.QueryRow(ctx, "SELECT "+both).Scan(&after); err != nil || after != before+" 2" {
			t.Errorf("afterwards: %s, %v", after, err)
		}
	}
}

// The workspace of all links is one of these defaults, whatever its name.
func TestWorkspaceIsNotSent(t *testing.T) {
	t.Parallel()
	const odd = `it's "\odd\" é`
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	session, run := started(t, s, odd, sink.LockOptions{})
	links := generated(0, 10)
	for i := range links {
		links[i].Workspace = []byte(odd)
	}
	links[9].Workspace = []byte("other")
	if err := session.Load(context.Background(), run, pieces(links)); err == nil || !strings.Contains(err.Error(), `a link is in workspace "other", and the session has locked`) {
		t.Errorf("a link of another workspace: %v", err)
	}
	noError(t, session.Load(context.Background(), run, pieces(links[:9])))
	if n := value[int](t, dsn, "SELECT count(*) FROM links WHERE workspace_id = $1", odd); n != 9 {
		t.Errorf("%d links of 9 are in the workspace", n)
	}
}

// A load that fails leaves the table, its constraints and the locks as they were.
func TestFailedLoadLeavesNothing(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			dsn := server.Database(t)
			prepare(t, dsn, way.before)
			s := openStore(t, dsn, Options{RetryFor: -1})
			session, run := started(t, s, "demo", sink.LockOptions{})
			conn := session.conn
			err := session.Load(context.Background(), run, func(yield func([]sink.Link, error) bool) {
				if yield(generated(0, 4096), nil) {
					yield(nil, stop)
				}
			})
			if !errors.Is(err, stop) {
				t.Fatal(err)
			}
			if session.conn != conn || conn.IsClosed() {
				t.Error("the connection with the locks was lost")
			}
			if err := s.check(context.Background(), connect(t, dsn)); err != nil {
				t.Errorf("it does not fit: %v", err)
			}
			if n := value[int](t, dsn, "SELECT count(*) FROM links WHERE run_id = $1", run.ID); n != 0 {
				t.Errorf("%d links stayed", n)
			}
			session.Close()
			s.Close()
			clean(t, dsn)
		})
	}
}

// A first load of aliases, or of links with parts, leaves the index on base_key as it was, whether
// it ends well or not.
func TestIndexOfAliases(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	const index = "SELECT coalesce((SELECT pg_get_indexdef(indexrelid) || coalesce(obj_description(indexrelid), '') FROM pg_index WHERE indisvalid AND indexrelid = to_regclass('links_base_key')), '')"
	for i, change := range []string{"", "", "COMMENT ON INDEX links_base_key IS 'mine'", "DROP INDEX links_base_key"} {
		script(t, dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
		s := openStore(t, dsn, Options{RetryFor: -1})
		initialize(t, s)
		script(t, dsn, change)
		want := value[string](t, dsn, index)
		session, run := started(t, s, "demo", sink.LockOptions{})
		run.Aliases, run.Parts = i == 0, i > 0
		links := generated(0, 10)
		for j := range links[:5] {
			links[j].Alias, links[j].Base = run.Aliases, sink.Key{byte(j + 1)}
		}
		twice := append(slices.Clone(links), links[9])
		if err := session.Load(ctx, run, pieces(twice)); !errors.Is(err, sink.ErrConflict) {
			t.Errorf("a link twice: %v", err)
		}
		if got := value[string](t, dsn, index); got != want {
			t.Errorf("%s: after a failure the index is %q, want %q", change, got, want)
		}
		noError(t, session.Load(ctx, run, pieces(links)))
		if got := value[string](t, dsn, index); got != want || (got == "") != strings.HasPrefix(change, "DROP") {
			t.Errorf("%s: the index is %q, want %q", change, got, want)
		}
		if n := value[int](t, dsn, "SELECT count(*) FROM links WHERE base_key IS NOT NULL"); n != 5 || !strings.HasPrefix(s.Stats()["load_way"].(string), "one transaction") {
			t.Errorf("%s: %d aliases; %v", change, n, s.Stats())
		}
		noError(t, session.Close())
	}
}
