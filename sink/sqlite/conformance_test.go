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
			Insert: func(t *testing.T, rows ...sinktest.Row) {
				plain(t, path, func(db *sql.DB) { insert(t, db, rows) })
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

// insert commits links in one transaction.
func insert(t testing.TB, db *sql.DB, rows []sinktest.Row) {
	t.Helper()
	tx, err := db.Begin()
	noError(t, err)
	defer tx.Rollback() // an error says only that it is committed
	stmt, err := tx.Prepare(`INSERT INTO links (workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, updated_at, kind, base_key, attrs,
			expires_at, max_uses, access_count, link_type, owner_id, ref, status, marked_at, changed_run, change)
		VALUES (?, ?, ?, ?, ?, ?, ?7, ?7, iif(?8, 'alias', NULL), nullif(?9, zeroblob(16)), nullif(?10, ''),
			nullif(?11, ?21), nullif(?12, 0), nullif(?13, 0), nullif(?14, ''), nullif(?15, ''), nullif(?16, ''), nullif(?17, ''), nullif(?18, ?21), nullif(?19, 0), nullif(?20, ''))`)
	noError(t, err)
	defer stmt.Close()
	for _, r := range rows {
		_, err := stmt.Exec(r.Workspace, r.Code, r.Key[:], r.Canonical, r.Original, r.Run, stamp(r.Created), r.Alias, r.Base[:], r.Attrs,
			stamp(r.Expires), r.MaxUses, r.Uses, r.Type, r.Owner, r.Ref, r.Status, stamp(r.Marked), r.ChangedRun, r.Change, stamp(time.Time{}))
		noError(t, err)
	}
	noError(t, tx.Commit())
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
		since2 := "kind IS 'alias', base_key, coalesce(attrs, ''), coalesce(expires_at, ''), coalesce(max_uses, 0), coalesce(access_count, 0), coalesce(link_type, ''), coalesce(owner_id, '')," +
			"coalesce(ref, ''), coalesce(status, ''), coalesce(marked_at, ''), coalesce(changed_run, 0), coalesce(change, '')"
		var has bool
		noError(t, db.QueryRow("SELECT count(*) FROM pragma_table_info('links') WHERE name = 'kind'").Scan(&has))
		if !has {
			since2 = "false, NULL, '', '', 0, 0, '', '', '', '', '', 0, ''"
		}
		rows, err := db.Query(`SELECT workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, ` + since2 + `
			FROM links ORDER BY workspace_id, short_code`)
		noError(t, err)
		defer rows.Close()
		for rows.Next() {
			var r sinktest.Row
			var key, base []byte
			var created, expires, marked string
			noError(t, rows.Scan(&r.Workspace, &r.Code, &key, &r.Canonical, &r.Original, &r.Run, &created, &r.Alias, &base, &r.Attrs,
				&expires, &r.MaxUses, &r.Uses, &r.Type, &r.Owner, &r.Ref, &r.Status, &marked, &r.ChangedRun, &r.Change))
			copy(r.Key[:], key)
			copy(r.Base[:], base)
			r.Created, err = time.Parse(timeForm, created)
			noError(t, err)
			r.Expires, r.Marked = anyTime(expires), anyTime(marked)
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
