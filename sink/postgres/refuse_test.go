package postgres

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// attempt opens a store, locks and loads a little; the error is of whatever
// fails first. It is not tried again.
func attempt(dsn string) error {
	s, err := Open(context.Background(), dsn, Options{RetryFor: -1})
	if err != nil {
		return err
	}
	defer s.Close()
	session, err := s.Lock(context.Background(), []string{"demo"}, sink.LockOptions{})
	if err != nil {
		return err
	}
	defer session.Close()
	run, err := session.Start(context.Background(), sink.Run{Fingerprint: "f", AsOf: asOf})
	if err == nil {
		err = session.Load(context.Background(), run, pieces(generated(0, 10)))
	}
	return err
}

// as makes a role with these grants, or other statements, and returns its address of the
// database.
func as(t *testing.T, dsn, role, grants string) string {
	t.Helper()
	script(t, dsn, "DROP ROLE IF EXISTS "+role+"; CREATE ROLE "+role+" LOGIN PASSWORD 'right'; "+grants)
	t.Cleanup(func() { script(t, dsn, "DROP OWNED BY "+role+" CASCADE; DROP ROLE "+role) })
	return strings.Replace(dsn, "user=postgres", "user="+role, 1)
}

// What cannot work is refused at once, with an error that says what to do and
// that no retry would mend.
func TestRefuses(t *testing.T) {
	fits := func(t *testing.T) string {
		dsn := server.Database(t)
		s := openStore(t, dsn, Options{})
		initialize(t, s)
		return dsn
	}
	for _, c := range []struct {
		name string
		dsn  func(t *testing.T) string
		want []string
	}{
		{"wrong_password", func(t *testing.T) string {
			return as(t, server.Database(t), "locked", "") + " password=wrong"
		}, []string{"check user and password", "28P01"}},
		{"no_such_role", func(t *testing.T) string {
			return strings.Replace(server.Database(t), "user=postgres", "user=nobody_at_all", 1)
		}, []string{"check the user", "nobody_at_all"}},
		{"no_such_database", func(t *testing.T) string {
			server.Need(t)
			return server.DSN("missing")
		}, []string{"create the database first", `"missing"`}},
		{"may_not_create", func(t *testing.T) string {
			return as(t, server.Database(t), "reader", "")
		}, []string{"CREATE on the schema (or on the database, if the schema does not exist); a DBA can create them with the SQL of `bulk init --print`"}},
		{"may_not_write", func(t *testing.T) string {
			return as(t, fits(t), "reader", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
		}, []string{"permission denied for table links_runs", "to load, also INSERT, UPDATE and DELETE on the tables"}},
		{"read_only_role", func(t *testing.T) string {
			dsn := as(t, server.Database(t), "reader", "GRANT ALL ON SCHEMA public TO reader")
			script(t, dsn, "ALTER ROLE reader SET default_transaction_read_only = on")
			return dsn
		}, []string{"default_transaction_read_only off"}},
		{"sql_ascii", func(t *testing.T) string {
			return server.Database(t, "TEMPLATE template0 ENCODING 'SQL_ASCII'")
		}, []string{"SQL_ASCII", "ENCODING 'UTF8'"}},
		{"latin1", func(t *testing.T) string {
			return server.Database(t, "TEMPLATE template0 ENCODING 'LATIN1'")
		}, []string{"LATIN1", "ENCODING 'UTF8'"}},
		{"no_schema", func(t *testing.T) string {
			dsn := server.Database(t)
			script(t, dsn, "DROP SCHEMA public CASCADE")
			return dsn
		}, []string{"no schema of the search path exists"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := attempt(c.dsn(t))
			if err == nil || errors.Is(err, sink.ErrRetryable) {
				t.Fatalf("error %v, want a fatal one", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

// Privileges on tables that a DBA made are enough.
func TestLoadsIntoTablesOfAnotherRole(t *testing.T) {
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	initialize(t, s)
	s = openStore(t, as(t, dsn, "loads", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO loads"), Options{})
	loadAll(t, s, generated(0, 100))
	expect(t, dump(t, dsn, "links"), generated(0, 100))
	if way := s.Stats()["load_way"].(string); !strings.Contains(way, "belongs to another role") {
		t.Error(way)
	}
	session, run := started(t, s, "keyed", sink.LockOptions{})
	noError(t, session.SetScheme(context.Background(), []string{"keyed"}, sink.Scheme{Name: "keyed-base62"}))
	for n := range int64(3) { // the row of the counter is added, and changed
		_, err := session.Reserve(context.Background(), run, n)
		noError(t, err)
	}
}

// To look, SELECT is enough, and the error says so.
func TestLooksAsAnotherRole(t *testing.T) {
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{})
	loadAll(t, s, generated(0, 10))
	s = openStore(t, as(t, dsn, "looks", ""), Options{RetryFor: -1})
	if _, err := s.Runs(ctx); err == nil || !strings.Contains(err.Error(), "to look, the role needs USAGE on the schema and SELECT on the tables") {
		t.Errorf("error %v", err)
	}
	script(t, dsn, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO looks")
	if runs, err := s.Runs(ctx); err != nil || len(runs) != 1 {
		t.Errorf("runs %+v, %v", runs, err)
	}
	n := 0
	if err := s.Scan(ctx, func(*sink.Stored) error { n++; return nil }); err != nil || n != 10 {
		t.Errorf("%d links, %v", n, err)
	}
	peek, err := s.Peek(ctx)
	noError(t, err)
	defer peek.Close()
	if rest, err := unsettled(ctx, peek, generated(0, 10)); err != nil || len(rest) != 0 {
		t.Errorf("%d links not found, %v", len(rest), err)
	}
	_, schemes := peek.Schemes(ctx, nil)
	_, fingerprints := peek.Fingerprints(ctx)
	_, next := peek.NextNumber(ctx)
	noError(t, errors.Join(schemes, fingerprints, next))
}

// On a standby one can look. The error of a write says what to do.
func TestStandby(t *testing.T) {
	dsn := spare.Database(t)
	s := openStore(t, dsn, Options{})
	loadAll(t, s, generated(0, 10))
	s.Close()
	noError(t, spare.Stop())
	signal := filepath.Join(spare.Socket(), "data", "standby.signal")
	noError(t, os.WriteFile(signal, nil, 0o644))
	noError(t, spare.Restart())
	t.Cleanup(func() { noError(t, errors.Join(spare.Stop(), os.Remove(signal), spare.Restart())) })
	if err := attempt(dsn); err == nil || !strings.Contains(err.Error(), "not to a standby") || errors.Is(err, sink.ErrRetryable) {
		t.Errorf("error %v", err)
	}
	s = openStore(t, dsn, Options{})
	peek, err := s.Peek(context.Background())
	noError(t, err)
	defer peek.Close()
	if got, err := peek.Populated(context.Background(), []string{"demo", "other"}); err != nil || !got[0] || got[1] {
		t.Errorf("%v, %v", got, err)
	}
}

// No connection is left: that passes, so it is worth another try.
func TestTooManyConnections(t *testing.T) {
	dsn := server.Database(t)
	dsn = as(t, dsn, "few", "ALTER ROLE few CONNECTION LIMIT 1; GRANT ALL ON SCHEMA public TO few")
	other := connect(t, dsn)
	if err := attempt(dsn); !errors.Is(err, sink.ErrRetryable) || !strings.Contains(err.Error(), "53300") {
		t.Errorf("error %v, want a retryable one", err)
	}
	s := openStore(t, dsn, Options{RetryFor: time.Minute, Logger: slog.New(listener(func(slog.Record) { other.Close(context.Background()) }))})
	s.Close()
}

// Policies that hide rows are an error, rather than a table without them; and who may
// not make constraints in the schema loads in batches.
func TestFewRights(t *testing.T) {
	dsn := server.Database(t)
	owner := openStore(t, dsn, Options{})
	initialize(t, owner)
	s := openStore(t, as(t, dsn, "of_few_rights", `REVOKE CREATE ON SCHEMA public FROM PUBLIC;
		ALTER TABLE links OWNER TO of_few_rights; ALTER TABLE links_runs OWNER TO of_few_rights; ALTER TABLE links_ledger OWNER TO of_few_rights`), Options{})
	run := loadAll(t, s, generated(0, 10))
	if way := s.Stats()["load_way"].(string); !strings.Contains(way, "CREATE on the schema is missing") {
		t.Errorf("way: %s", way)
	}
	script(t, dsn, "ALTER TABLE links ENABLE ROW LEVEL SECURITY; ALTER TABLE links FORCE ROW LEVEL SECURITY; CREATE POLICY others ON links USING (workspace_id = 'other')")
	_, err := s.Undo(context.Background(), run.ID, sink.LockOptions{}, func(sink.Kept) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "row-level security") || !strings.Contains(err.Error(), "; the role needs BYPASSRLS") {
		t.Errorf("undo: %v", err)
	}
}

// A trigger that keeps rows out makes the load fail for good, and nothing stays.
func TestRowsKeptOut(t *testing.T) {
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	initialize(t, s)
	noError(t, s.Close())
	script(t, dsn, `CREATE FUNCTION keep_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			RETURN CASE WHEN nextval('rows') <> 7 THEN NEW END;
		END $$;
		CREATE SEQUENCE rows;
		CREATE TRIGGER keep_out BEFORE INSERT ON links FOR EACH ROW EXECUTE FUNCTION keep_out()`)
	if err := attempt(dsn); err == nil || errors.Is(err, sink.ErrConflict) || !strings.Contains(err.Error(), "the table took 9 of 10 rows") {
		t.Errorf("error %v", err)
	}
	if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != 0 {
		t.Errorf("%d links", n)
	}
}
