package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

var asOf = time.Date(2025, 3, 4, 5, 6, 7, 890123000, time.UTC)

// makeLinks makes links of a workspace in code order, with keys that ascend
// nearly as the codes do.
func makeLinks(workspace string, from, to int) []sink.Link {
	out := make([]sink.Link, 0, to-from)
	for i := from; i < to; i++ {
		canonical := fmt.Sprintf("https://www.example.com/catalogue/item/%07d?ref=mail&utm_source=news&v=%d", i, i%97)
		h := sha256.Sum256([]byte(canonical + "|" + workspace))
		out = append(out, sink.Link{Workspace: []byte(workspace), Code: fmt.Appendf(nil, "%x", h[:5]), Key: sink.Key(h[:16]), Canonical: []byte(canonical)})
	}
	sortLinks(out)
	return out
}

func sortLinks(links []sink.Link) {
	slices.SortFunc(links, func(a, b sink.Link) int { return bytes.Compare(a.Code, b.Code) })
}

func oneChunk(links []sink.Link) func(func([]sink.Link, error) bool) {
	return func(yield func([]sink.Link, error) bool) { yield(links, nil) }
}

// inSession starts a run in a session of its own.
func inSession(t testing.TB, store *Store, f func(s *session, run sink.Run), workspaces ...string) {
	t.Helper()
	s, err := store.Lock(context.Background(), workspaces, sink.LockOptions{})
	noError(t, err)
	defer func() { noError(t, s.Close()) }()
	run, err := s.Start(context.Background(), sink.Run{Fingerprint: "f", AsOf: asOf})
	noError(t, err)
	f(s.(*session), run)
}

// filled makes a database with these links of workspace w and their finished run.
func filled(t testing.TB, path string, links []sink.Link) *Store {
	t.Helper()
	store := open(t, path)
	inSession(t, store, func(s *session, run sink.Run) {
		ctx := context.Background()
		noError(t, errors.Join(s.Load(ctx, run, oneChunk(links)), s.Loaded(ctx, run), s.Finish(ctx, run)))
	}, "w")
	return store
}

func execAll(statements ...string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		plain(t, path, func(db *sql.DB) {
			for _, s := range statements {
				_, err := db.Exec(s)
				noError(t, err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	table := []struct {
		name, message string
		notOurs       bool
		make          func(t *testing.T, path string)
	}{
		{"tables of another", "application_id is 0", true, execAll("CREATE TABLE users (id)", "CREATE TABLE accounts (id)")},
		{"a table links", "application_id is 0", true, execAll("CREATE TABLE links (id INTEGER PRIMARY KEY, url TEXT)")},
		{"another application", "application_id is 7", true, execAll("PRAGMA application_id = 7")},
		{"version without id", "application_id is 0", true, execAll("PRAGMA user_version = 1")},
		{"restored from a dump", "PRAGMA application_id = 1651862635; PRAGMA user_version = 3", true, ours("PRAGMA application_id = 0; PRAGMA user_version = 0")},
		{"newer version", "its schema is version 4, and this program knows version 3", true, ours("PRAGMA user_version = 4")},
		{"index dropped", "links_url_key is missing", true, ours("DROP INDEX links_url_key")},
		{"not a database", "file is not a database (SQLite code 26): choose another", false, func(t *testing.T, path string) {
			noError(t, os.WriteFile(path, []byte(strings.Repeat("url,code\n", 1000)), 0o666))
		}},
		{"folder", "is a directory", false, func(t *testing.T, path string) { noError(t, os.Mkdir(path, 0o777)) }},
		{"no folder", "no such file", false, func(t *testing.T, path string) { noError(t, os.Remove(filepath.Dir(path))) }},
		{"device", "not a regular file", false, func(t *testing.T, path string) { noError(t, os.Symlink(os.DevNull, path)) }},
	}
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sub", "x.db")
			noError(t, os.Mkdir(filepath.Dir(path), 0o777))
			c.make(t, path)
			before, _ := os.ReadFile(path)
			_, err := Open(context.Background(), path)
			if err == nil || !strings.Contains(err.Error(), c.message) || errors.Is(err, sink.ErrNotOurs) != c.notOurs {
				t.Errorf("error %v, want one with %q", err, c.message)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

// ours makes a database of ours and changes it.
func ours(statements ...string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		inSession(t, open(t, path), func(*session, sink.Run) {}, "w")
		execAll(statements...)(t, path)
	}
}

// A database may become another's after it was opened.
func TestRefusedByLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	store := open(t, path)
	execAll("CREATE TABLE users (id)")(t, path)
	if _, err := store.Lock(context.Background(), []string{"w"}, sink.LockOptions{}); !errors.Is(err, sink.ErrNotOurs) {
		t.Errorf("error %v", err)
	}
	if s, err := store.Lock(context.Background(), []string{"w"}, sink.LockOptions{NoWait: true}); errors.Is(err, sink.ErrLocked) {
		t.Errorf("the lock was kept: %v, %v", s, err)
	}
}

// Names that SQLite, its URIs or its driver would read in another way; and
// nothing but the database and its lock stays.
func TestPaths(t *testing.T) {
	for _, name := range []string{"a?mode=ro#b.db", "100%25.db", "file:x.db", ":memory:", "ü 日.db", "-x"} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			filled(t, name, makeLinks("w", 0, 10))
			entries, err := os.ReadDir(".")
			noError(t, err)
			if len(entries) != 2 || entries[0].Name() != name || entries[1].Name() != name+".lock" {
				t.Errorf("files %v", entries)
			}
		})
	}
}
