package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sinktest"
)

// version1 makes a database as bulk did before version 2, with two links, their finished run,
// and a run that was killed.
var version1 = execAll("PRAGMA journal_mode = WAL", "PRAGMA application_id = 1651862635", "PRAGMA user_version = 1",
	`CREATE TABLE links (workspace_id TEXT NOT NULL, short_code TEXT NOT NULL, url_key BLOB NOT NULL, canonical_url TEXT NOT NULL,
		original_url TEXT, run_id INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
		PRIMARY KEY (workspace_id, short_code)) STRICT, WITHOUT ROWID`,
	"CREATE UNIQUE INDEX links_url_key ON links (url_key)",
	`CREATE TABLE runs (run_id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL,
		state TEXT NOT NULL CHECK (state IN ('loading', 'loaded', 'finished', 'undone')), as_of TEXT NOT NULL,
		read INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL DEFAULT 0, existing INTEGER NOT NULL DEFAULT 0,
		duplicate INTEGER NOT NULL DEFAULT 0, rejected INTEGER NOT NULL DEFAULT 0, manifest_sha256 TEXT NOT NULL DEFAULT '',
		started_at TEXT NOT NULL, finished_at TEXT) STRICT`,
	"CREATE VIEW last AS SELECT max(run_id) FROM runs",
	`INSERT INTO links VALUES ('old', 'a', x'00112233445566778899aabbccddeeff', 'http://example.com/a', NULL, 1, '2025-01-02 00:00:00.000000', '2025-01-02 00:00:00.000000'),
		('old', 'b', x'ff112233445566778899aabbccddeeff', 'http://example.com/b', 'http://example.com/B', 1, '2025-01-02 00:00:00.000000', '2025-01-02 00:00:00.000000')`,
	`INSERT INTO runs VALUES (1, 'f', 'finished', '2025-01-02 00:00:00.000000', 2, 2, 0, 0, 0, '00', '2025-01-02 00:00:00.000000', '2025-01-02 00:00:00.000000'),
		(2, 'g', 'loading', '2025-01-02 00:00:00.000000', 0, 0, 0, 0, 0, '', '2025-01-02 00:00:00.000000', NULL)`)

// A database of version 1 is refused by all that only looks. The first lock upgrades it, and keeps
// its rows.
func TestVersion1(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "x.db")
	version1(t, path)
	store := open(t, path)
	sinktest.Refused(t, store, sink.ErrOldTables)
	if _, err := store.Runs(ctx); err == nil || err.Error() != store.path+": its tables are of an older version: the next bulk run without Config.DryRun upgrades them" {
		t.Errorf("the runs: %v", err)
	}
	old := dump(t, path)
	number := func(query string) (n int64) {
		t.Helper()
		plain(t, path, func(db *sql.DB) { noError(t, db.QueryRow(query).Scan(&n)) })
		return n
	}
	if v := number("PRAGMA user_version"); v != 1 {
		t.Errorf("to look changed the version to %d", v)
	}
	s, err := store.Lock(ctx, []string{"w"}, sink.LockOptions{})
	noError(t, err)
	noError(t, s.Close())
	after, err := store.Runs(ctx)
	noError(t, err)
	if len(after) != 2 || after[0].State != sink.Finished || after[0].Counts.Created != 2 || after[1].State != sink.Loading || after[1].Started.IsZero() ||
		!slices.Equal(dump(t, path), old) || number("PRAGMA user_version") != version || number("SELECT * FROM last") != 2 {
		t.Errorf("runs %+v; links %+v, before %+v", after, dump(t, path), old)
	}
	links := makeLinks("w", 0, 10)
	filled(t, path, links)
	_, err = store.Abandon(ctx, []int32{2}, sink.LockOptions{})
	noError(t, err)
	if out, err := store.Undo(ctx, 1, sink.LockOptions{}, nil); err != nil || out.Deleted != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	runs, err := store.Runs(ctx)
	noError(t, err)
	if len(runs) != 3 || runs[0].State != sink.Undone || runs[1].State != sink.Abandoned || runs[2].State != sink.Finished || len(dump(t, path)) != 10 {
		t.Errorf("%+v", runs)
	}
	// The new columns and tables are those of a new database.
	fresh := filepath.Join(t.TempDir(), "y.db")
	filled(t, fresh, links)
	schema := "SELECT name, type, ifnull(tbl_name, ''), (SELECT group_concat(name || ' ' || type) FROM pragma_table_info(s.name)) FROM sqlite_schema s WHERE type <> 'view' ORDER BY name"
	if got, want := texts(t, path, schema), texts(t, fresh, schema); !slices.Equal(got, want) {
		t.Errorf("schema %q, want %q", got, want)
	}
}

// A database of version 2 is refused by all that only looks. The first lock adds what is new.
func TestVersion2(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "x.db")
	filled(t, path, makeLinks("w", 0, 10))
	version2(t, path)
	store := open(t, path)
	sinktest.Refused(t, store, sink.ErrOldTables)
	s, err := store.Lock(ctx, []string{"w", "x"}, sink.LockOptions{})
	noError(t, err)
	noError(t, s.SetScheme(ctx, []string{"x"}, sink.Scheme{Name: "sha256-base32", Fold: true}))
	set, err := s.Schemes(ctx, nil)
	noError(t, errors.Join(err, s.Close()))
	if len(set) != 1 || !set["x"].Fold || len(dump(t, path)) != 10 {
		t.Errorf("schemes %+v, %d links", set, len(dump(t, path)))
	}
}

// version2 makes a database one of version 2.
var version2 = execAll("ALTER TABLE workspaces DROP COLUMN fold", "PRAGMA user_version = 2")

// A dump of an older version is told to be one.
func TestDumpsOfOldVersions(t *testing.T) {
	for want, make := range map[string]func(*testing.T, string){
		"PRAGMA user_version = 1": version1,
		"PRAGMA user_version = 2": func(t *testing.T, path string) { filled(t, path, nil); version2(t, path) },
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		make(t, path)
		execAll("PRAGMA application_id = 0", "PRAGMA user_version = 0")(t, path)
		if _, err := Open(context.Background(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// texts reads rows, their columns joined.
func texts(t *testing.T, path, query string) (out []string) {
	t.Helper()
	noError(t, open(t, path).look(context.Background(), func(c *conn) error {
		return c.query("test", query, nil, func(s *stmt) error {
			out = append(out, s.string(0)+" "+s.string(1)+" "+s.string(2)+" "+s.string(3))
			return nil
		})
	}))
	return out
}
