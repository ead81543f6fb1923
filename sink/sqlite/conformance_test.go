package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sinktest"
)

func TestConformance(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) *sinktest.Database {
		path := filepath.Join(t.TempDir(), "links.db")
		return &sinktest.Database{
			Open:    func(t *testing.T) sink.Store { return open(t, path) },
			Created: func(t *testing.T) bool { return exists(t, path) },
			Dump: func(t *testing.T) []sinktest.Row {
				if !exists(t, path) {
					return nil
				}
				return dump(t, path)
			},
			Insert: func(t *testing.T, r sinktest.Row) {
				plain(t, path, func(db *sql.DB) {
					_, err := db.Exec(`INSERT INTO links (workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, updated_at, kind, base_key, attrs)
						VALUES (?, ?, ?, ?, ?, ?, ?7, ?7, iif(?8, 'alias', NULL), iif(?8, ?9, NULL), nullif(?10, ''))`,
						r.Workspace, r.Code, r.Key[:], r.Canonical, r.Original, r.Run, stamp(r.Created), r.Alias, r.Base[:], r.Attrs)
					noError(t, err)
				})
			},
			Execute: func(t *testing.T, statement string) { execAll(statement)(t, path) },
			Change: func(t *testing.T, workspace, code string, updated time.Time) {
				plain(t, path, func(db *sql.DB) {
					_, err := db.Exec("UPDATE links SET updated_at = ? WHERE workspace_id = ? AND short_code = ?", stamp(updated), workspace, code)
					noError(t, err)
				})
			},
		}
	})
}

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), path)
	noError(t, err)
	return s
}

func exists(t testing.TB, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// plain uses the database through database/sql, as another program would.
func plain(t testing.TB, path string, f func(db *sql.DB)) {
	t.Helper()
	name := url.URL{Scheme: "file", Path: path} // the driver cuts a mere path off at ?
	db, err := sql.Open("sqlite", name.String())
	noError(t, err)
	defer func() { noError(t, db.Close()) }()
	f(db)
}

func dump(t testing.TB, path string) (out []sinktest.Row) {
	t.Helper()
	plain(t, path, func(db *sql.DB) {
		var since2 string
		noError(t, db.QueryRow("SELECT CASE count(*) WHEN 0 THEN 'false, NULL, ''''' ELSE 'kind IS ''alias'', base_key, coalesce(attrs, '''')' END FROM pragma_table_info('links') WHERE name = 'kind'").Scan(&since2))
		rows, err := db.Query(`SELECT workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, ` + since2 + `
			FROM links ORDER BY workspace_id, short_code`)
		noError(t, err)
		defer rows.Close()
		for rows.Next() {
			var r sinktest.Row
			var key, base []byte
			var created string
			noError(t, rows.Scan(&r.Workspace, &r.Code, &key, &r.Canonical, &r.Original, &r.Run, &created, &r.Alias, &base, &r.Attrs))
			copy(r.Key[:], key)
			copy(r.Base[:], base)
			r.Created, err = time.Parse(timeForm, created)
			noError(t, err)
			out = append(out, r)
		}
		noError(t, rows.Err())
	})
	return out
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
