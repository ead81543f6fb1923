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
	sqlite3 "modernc.org/sqlite/lib"
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
		{"tables of another", "with accounts, users", true, execAll("CREATE TABLE users (id)", "CREATE TABLE accounts (id)")},
		{"a table links", "with links", true, execAll("CREATE TABLE links (id INTEGER PRIMARY KEY, url TEXT)")},
		{"many tables", "and 2 more", true, func(t *testing.T, path string) {
			for i := range 7 {
				execAll(fmt.Sprintf("CREATE TABLE t%d (id)", i))(t, path)
			}
		}},
		{"another application", "application_id is 7", true, execAll("PRAGMA application_id = 7")},
		{"version without id", "application_id is 0, with no tables", true, execAll("PRAGMA user_version = 1")},
		{"newer version", "schema version 2, this program knows version 1", true, ours("PRAGMA user_version = 2")},
		{"index dropped", "links_url_key is missing", true, ours("DROP INDEX links_url_key")},
		{"not a database", "file is not a database (SQLite code 26): choose another", false, func(t *testing.T, path string) {
			noError(t, os.WriteFile(path, []byte(strings.Repeat("url,code\n", 1000)), 0o666))
		}},
		{"folder", "is a folder", false, func(t *testing.T, path string) { noError(t, os.Mkdir(path, 0o777)) }},
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

// What is committed survives a loss of power, readers do not wait, and writers for five
// seconds.
func TestDurable(t *testing.T) {
	inSession(t, open(t, filepath.Join(t.TempDir(), "x.db")), func(s *session, _ sink.Run) {
		const full = 2
		if n, err := s.c.number("test", "PRAGMA synchronous"); err != nil || n != full {
			t.Errorf("synchronous is %d, %v", n, err)
		}
		noError(t, s.c.query("test", "PRAGMA journal_mode", nil, func(q *stmt) error {
			if mode := q.string(0); mode != "wal" {
				t.Errorf("journal mode %s", mode)
			}
			return nil
		}))
		if n, err := s.c.number("test", "PRAGMA busy_timeout"); err != nil || n != 5000 {
			t.Errorf("waits %d ms, %v", n, err)
		}
	}, "w")
}

// Through a symbolic link the lock is the same, also of one that was there before the
// file.
func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	link, early := filepath.Join(dir, "link.db"), filepath.Join(dir, "early.db")
	noError(t, os.Mkdir(filepath.Join(dir, "to"), 0o777))
	noError(t, os.Symlink("to/x.db", link))
	noError(t, os.Symlink("link.db", early))
	store := open(t, early)
	if want := filepath.Join(dir, "to", "x.db"); store.Files()[0] != want {
		t.Errorf("path %s, want %s", store.Files()[0], want)
	}
	// Beside a link .. is the folder that what it leads to lies in.
	noError(t, os.MkdirAll(filepath.Join(dir, "to", "deep"), 0o777))
	noError(t, os.Symlink("to/deep", filepath.Join(dir, "deep")))
	for _, name := range []string{"x.db", "new.db"} {
		if path, err := Resolve(dir + "/deep/../" + name); err != nil || path != filepath.Join(dir, "to", name) {
			t.Errorf("%s lies at %s, %v", name, path, err)
		}
	}
	inSession(t, store, func(*session, sink.Run) {
		_, err := open(t, link).Lock(context.Background(), []string{"w"}, sink.LockOptions{NoWait: true})
		if !errors.Is(err, sink.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
			t.Errorf("error %v", err)
		}
	}, "w")
}

// By another name the file would have another lock and another WAL.
func TestHardLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	inSession(t, open(t, path), func(*session, sink.Run) {}, "w")
	noError(t, os.Link(path, path+"2"))
	for _, name := range []string{path, path + "2"} {
		if _, err := Open(context.Background(), name); err == nil || !strings.Contains(err.Error(), "hard links") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	noError(t, os.Remove(path+"2"))
	open(t, path)
}

// A file that happens to have the name of the lock is not written to, but one that a run
// was killed over is.
func TestLockIsAnotherFile(t *testing.T) {
	for content, ours := range map[string]bool{
		"": true, "pro": true, "process ": true, "process 1 on here, since then\n": true,
		"url\nhttp://a.example/\n": false, "processes\n": false, "process " + strings.Repeat("x", 2000): false,
	} {
		path := filepath.Join(t.TempDir(), "x.db.lock")
		noError(t, os.WriteFile(path, []byte(content), 0o666))
		f, err := lock(context.Background(), path, sink.LockOptions{})
		if (err == nil) != ours {
			t.Errorf("%q: error %v", content, err)
		}
		if err == nil {
			noError(t, f.Close())
		} else if is, err := os.ReadFile(path); err != nil || string(is) != content {
			t.Errorf("%q is %q now, %v", content, is, err)
		}
		noError(t, os.Symlink(path, path+"2"))
		if _, err := lock(context.Background(), path+"2", sink.LockOptions{}); err == nil {
			t.Error("a link as lock file")
		}
	}
}

// A lock file that is removed while somebody waits for it is not the lock any more: a new
// one is, and if another has that by then, the wait goes on.
func TestLockFileRemoved(t *testing.T) {
	for _, taken := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "x.db.lock")
		holder, err := lock(context.Background(), path, sink.LockOptions{})
		noError(t, err)
		waited := 0
		next, err := lock(context.Background(), path, sink.LockOptions{Wait: func(string) {
			if waited++; waited == 1 {
				noError(t, os.Remove(path))
			}
			noError(t, holder.Close())
			if waited == 1 && taken {
				holder, err = lock(context.Background(), path, sink.LockOptions{NoWait: true})
				noError(t, err)
			}
		}})
		noError(t, err)
		defer next.Close()
		if waited == 2 != taken {
			t.Errorf("taken: %t, waited %d times", taken, waited)
		}
		if _, err := lock(context.Background(), path, sink.LockOptions{NoWait: true}); !errors.Is(err, sink.ErrLocked) {
			t.Errorf("taken: %t, and another has it too: %v", taken, err)
		}
	}
}

func TestFull(t *testing.T) {
	for _, workspaces := range [][]string{{"w"}, {"v", "w"}} {
		path := filepath.Join(t.TempDir(), "x.db")
		links := makeLinks("w", 0, 6_000)
		store := open(t, path)
		store.txRows, store.txTime = 4_000, time.Hour
		inSession(t, store, func(s *session, run sink.Run) {
			noError(t, s.c.exec("test", "PRAGMA max_page_count = 140"))
			err := s.Load(context.Background(), run, oneChunk(links))
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Code != sqlite3.SQLITE_FULL || e.Unwrap() != nil || !strings.Contains(err.Error(), "make room") {
				t.Fatalf("error %v", err)
			}
			stay := len(dump(t, path))
			if want := map[int]int{1: store.txRows, 2: 0}[len(workspaces)]; stay != want {
				t.Errorf("%d links stay, want %d", stay, want)
			}
			noError(t, s.c.exec("test", "PRAGMA max_page_count = 1000000"))
			noError(t, s.Load(context.Background(), run, oneChunk(links[stay:])))
		}, workspaces...)
		if n := len(dump(t, path)); n != len(links) {
			t.Errorf("%d links", n)
		}
	}
}

func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	store := open(t, path)
	store.busy = 30 * time.Millisecond
	inSession(t, store, func(s *session, run sink.Run) {
		plain(t, path, func(db *sql.DB) {
			db.SetMaxOpenConns(1)
			_, err := db.Exec("BEGIN IMMEDIATE")
			noError(t, err)
			for name, err := range map[string]error{
				"Load":   s.Load(context.Background(), run, oneChunk(makeLinks("w", 0, 10))),
				"Loaded": s.Loaded(context.Background(), run),
			} {
				if !errors.Is(err, sink.ErrRetryable) {
					t.Errorf("%s: error %v", name, err)
				}
			}
			if _, err := store.Runs(context.Background()); err != nil {
				t.Errorf("a reader waits for a writer: %v", err)
			}
			if _, err := s.c.deleteLinks(run.ID); err != nil {
				t.Errorf("Undo waits before it has found a link to delete: %v", err)
			}
			because := errors.New("because")
			over, cancel := context.WithCancelCause(context.Background())
			cancel(because) // in the middle of the wait, as it were
			if err := s.c.during(over, func() error { return s.c.exec("test", "BEGIN IMMEDIATE") }); err != because {
				t.Errorf("interrupted while it waits: %v", err)
			}
		})
		noError(t, s.Load(context.Background(), run, oneChunk(makeLinks("w", 0, 10))))
	}, "w")
}

func TestCorrupt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	links := makeLinks("w", 0, 10_000)
	store := filled(t, path, links)
	b, err := os.ReadFile(path)
	noError(t, err)
	for i := 5 * pageSize; i < len(b)-pageSize; i++ {
		b[i] = 0xa5
	}
	noError(t, os.WriteFile(path, b, 0o666))
	s, err := store.Peek(context.Background())
	noError(t, err)
	defer func() { noError(t, s.Close()) }()
	err = s.Lookup(context.Background(), []sink.Probe{{Workspace: []byte("w"), Code: links[5000].Code}}, func(sink.Found) error { return nil })
	if e, ok := errors.AsType[*Error](err); !ok || e.Code&0xff != sqlite3.SQLITE_CORRUPT || e.Unwrap() != nil {
		t.Errorf("error %v", err)
	}
}

// An index that has what the table has not, as in a copy that was made file by file while
// somebody wrote, refuses a link that nobody has: no conflict, since no look would find it.
func TestIndexOutOfStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	links := makeLinks("w", 0, 10)
	store := filled(t, path, links)
	execAll("PRAGMA writable_schema = 1", "UPDATE sqlite_schema SET sql = sql || ' WHERE 0' WHERE name = 'links_url_key'")(t, path)
	execAll(fmt.Sprintf("DELETE FROM links WHERE short_code = '%s'", links[3].Code))(t, path)
	execAll("PRAGMA writable_schema = 1", "UPDATE sqlite_schema SET sql = '"+createIndex+"' WHERE name = 'links_url_key'")(t, path)
	inSession(t, store, func(s *session, run sink.Run) {
		err := s.Load(context.Background(), run, oneChunk(links[3:4]))
		if err == nil || errors.Is(err, sink.ErrConflict) || !strings.Contains(err.Error(), "the database is damaged") {
			t.Errorf("error %v", err)
		}
	}, "w")
}

// The superuser may write what is read-only, so the test makes it so by a flag.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	ours()(t, path)
	c, err := dial(path, sqlite3.SQLITE_OPEN_READONLY, 0)
	noError(t, err)
	defer func() { noError(t, c.close()) }()
	err = c.exec("test", "DELETE FROM links")
	if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), "allow writing") {
		t.Errorf("error %v", err)
	}
}

// A trigger that refuses a link, or passes it over, is no conflict: looking again would
// not help. One that writes elsewhere is no matter.
func TestTrigger(t *testing.T) {
	const seventh = " WHEN NEW.canonical_url LIKE '%0000007%' BEGIN "
	for trigger, want := range map[string]string{
		"CREATE TRIGGER no BEFORE INSERT ON links" + seventh + "SELECT RAISE(ABORT, 'not this one'); END": "not this one",
		"CREATE TRIGGER no BEFORE INSERT ON links" + seventh + "SELECT RAISE(IGNORE); END":                "a trigger keeps it out",
		"CREATE TRIGGER no AFTER INSERT ON links" + seventh + "UPDATE runs SET read = read + 1; END":      "",
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		ours(trigger)(t, path)
		inSession(t, open(t, path), func(s *session, run sink.Run) {
			for _, n := range []int{10, statementRows} {
				err := s.Load(context.Background(), run, oneChunk(makeLinks("w", 0, n)))
				if want == "" && err == nil {
					break
				}
				if want == "" || err == nil || errors.Is(err, sink.ErrConflict) || !strings.Contains(err.Error(), want) {
					t.Errorf("%d links: error %v, want %q", n, err, want)
				}
			}
		}, "w")
	}
}

// An Undo that cannot delete a link, or mark the run, says so, counts no link, and leaves
// the run as it is.
func TestUndoRefused(t *testing.T) {
	for _, before := range []string{"DELETE ON links", "UPDATE ON runs"} {
		path := filepath.Join(t.TempDir(), "x.db")
		store := filled(t, path, makeLinks("w", 0, 10))
		execAll("CREATE TRIGGER no BEFORE "+before+" BEGIN SELECT RAISE(ABORT, 'not this one'); END")(t, path)
		out, err := store.Undo(context.Background(), 1, sink.LockOptions{}, func(sink.Kept) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "not this one") || out.Deleted != 0 {
			t.Errorf("%s: %+v, error %v", before, out, err)
		}
		if runs, err := store.Runs(context.Background()); err != nil || len(runs) != 1 || runs[0].State != sink.Finished {
			t.Errorf("%s: %+v, %v", before, runs, err)
		}
	}
}

// A key that is none is an error of Scan, be it too short or too long.
func TestScanKey(t *testing.T) {
	for _, key := range []string{"substr(url_key, 2)", "url_key || x'00'"} {
		path := filepath.Join(t.TempDir(), "x.db")
		store := filled(t, path, makeLinks("w", 0, 1))
		execAll("UPDATE links SET url_key = CAST("+key+" AS BLOB)")(t, path)
		err := store.Scan(context.Background(), func(*sink.Stored) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "url_key has 1") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A number of a run that has more than 32 bits is not cut to that of another, wherever it
// is read.
func TestRunTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	links := makeLinks("w", 0, 1)
	store := filled(t, path, links)
	execAll("UPDATE links SET run_id = run_id + 4294967296; UPDATE runs SET run_id = run_id + 4294967296")(t, path)
	got := map[string]int32{}
	noError(t, store.Scan(context.Background(), func(l *sink.Stored) error { got["Scan"] = l.Run; return nil }))
	runs, err := store.Runs(context.Background())
	noError(t, err)
	got["Runs"] = runs[0].ID
	s, err := store.Peek(context.Background())
	noError(t, err)
	defer s.Close()
	for name, code := range map[string][]byte{"by code": links[0].Code, "by key": []byte("?")} {
		probe := sink.Probe{Workspace: links[0].Workspace, Code: code, Key: links[0].Key, Canonical: links[0].Canonical, WantRun: true}
		noError(t, s.Lookup(context.Background(), []sink.Probe{probe}, func(f sink.Found) error { got[name] = f.Run; return nil }))
	}
	for _, name := range []string{"Scan", "Runs", "by code", "by key"} {
		if id, ok := got[name]; !ok || id != -1 {
			t.Errorf("%s: run %d, %v", name, id, ok)
		}
	}
}

// A link that an index of somebody else refuses is no conflict, whatever index that is.
func TestIndexOfOthers(t *testing.T) {
	for _, on := range []string{"run_id", "length(canonical_url)"} {
		path := filepath.Join(t.TempDir(), "x.db")
		ours("CREATE UNIQUE INDEX mine ON links ("+on+")")(t, path)
		inSession(t, open(t, path), func(s *session, run sink.Run) {
			err := s.Load(context.Background(), run, oneChunk(makeLinks("w", 0, 10)))
			if err == nil || errors.Is(err, sink.ErrConflict) || !strings.Contains(err.Error(), "a unique index that is not of bulk") {
				t.Errorf("%s: error %v", on, err)
			}
		}, "w")
	}
}

// What is written to a file that has another name by now, or none, is not stored.
func TestFileMoved(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "x.db")
		links := makeLinks("w", 0, 10)
		inSession(t, open(t, path), func(s *session, run sink.Run) {
			noError(t, errors.Join(s.Load(context.Background(), run, oneChunk(links)), s.Loaded(context.Background(), run)))
			noError(t, os.Rename(path, path+".old"))
			if replaced {
				noError(t, os.WriteFile(path, nil, 0o666))
			}
			for name, err := range map[string]error{
				"Load":   s.Load(context.Background(), run, oneChunk(makeLinks("w", 10, 20))),
				"Loaded": s.Loaded(context.Background(), run),
				"Finish": s.Finish(context.Background(), run),
			} {
				if err == nil || errors.Is(err, sink.ErrRetryable) || !strings.Contains(err.Error(), "moved, replaced or removed") {
					t.Errorf("%s: error %v", name, err)
				}
			}
			noError(t, os.Rename(path+".old", path))
			noError(t, s.Loaded(context.Background(), run))
		}, "w")
		if n := len(dump(t, path)); n != len(links) {
			t.Errorf("%d links", n)
		}
	}
}

// A run after the last that has a number is refused.
func TestLastNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	ours("UPDATE runs SET run_id = 2147483646")(t, path)
	store := open(t, path)
	inSession(t, store, func(_ *session, run sink.Run) {
		if run.ID != 2147483647 {
			t.Errorf("run %d", run.ID)
		}
	}, "w")
	s, err := store.Lock(context.Background(), []string{"w"}, sink.LockOptions{})
	noError(t, err)
	defer func() { noError(t, s.Close()) }()
	run, err := s.Start(context.Background(), sink.Run{Fingerprint: "f", AsOf: asOf})
	if err == nil || errors.Is(err, sink.ErrConflict) || !strings.Contains(err.Error(), "no number is left") {
		t.Errorf("run %d, %v", run.ID, err)
	}
}

// A transaction ends with its rows or with its time, whichever is over first.
func TestTransactions(t *testing.T) {
	for _, c := range []struct {
		rows int
		time time.Duration
		want int64 // with the last, which is empty
	}{{1_001, time.Hour, 1}, {300, time.Hour, 4}, {1_001, 0, 11}} {
		store := open(t, filepath.Join(t.TempDir(), "x.db"))
		store.txRows, store.txTime = c.rows, c.time
		inSession(t, store, func(s *session, run sink.Run) {
			noError(t, s.Load(context.Background(), run, oneChunk(makeLinks("w", 0, 1_000))))
		}, "w")
		if got := store.Stats()["transactions"]; got != c.want {
			t.Errorf("%d rows, %v: %v transactions, want %d", c.rows, c.time, got, c.want)
		}
	}
}

// The index is made at the end where it is faster, and is there afterwards.
func TestIndexAtEnd(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "x.db"))
	for i, want := range []bool{true, false} {
		inSession(t, store, func(s *session, run sink.Run) {
			noError(t, s.Load(context.Background(), run, oneChunk(makeLinks("w", 10*i, 10*i+10))))
			stats := store.Stats()
			if got := stats["index_made_at_end"]; got != want {
				t.Errorf("load %d: index at the end: %v", i, got)
			}
			if took, _ := stats["load_seconds"].(float64); took <= 0 {
				t.Errorf("load %d: took %v", i, stats["load_seconds"])
			}
			if _, err := s.c.inspect(); err != nil {
				t.Error(err)
			}
		}, "v", "w")
	}
}

// The end of a context interrupts a statement that runs for long.
func TestInterrupt(t *testing.T) {
	c, err := dial(filepath.Join(t.TempDir(), "x.db"), sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE, 0)
	noError(t, err)
	defer func() { noError(t, c.close()) }()
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { cancel(because) })
	err = c.during(ctx, func() error {
		_, err := c.number("count", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n")
		return err
	})
	if !errors.Is(err, because) {
		t.Errorf("error %v", err)
	}
	if n, err := c.number("count", "SELECT 7"); n != 7 || err != nil {
		t.Errorf("afterwards: %d, %v", n, err)
	}
}

// An interrupt that meets no statement does not keep the WAL out of the file.
func TestInterruptBeforeClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	inSession(t, open(t, path), func(s *session, _ sink.Run) {
		ctx, cancel := context.WithCancel(context.Background())
		noError(t, s.c.during(ctx, func() error { cancel(); return nil }))
	}, "w")
	if left, err := filepath.Glob(path + "-*"); err != nil || len(left) > 0 {
		t.Errorf("files %v, %v", left, err)
	}
}

// A session that is closed is not taken for one that was opened only to look.
func TestClosedSession(t *testing.T) {
	inSession(t, open(t, filepath.Join(t.TempDir(), "x.db")), func(s *session, run sink.Run) {
		noError(t, s.Close())
		if err := s.Finish(context.Background(), run); !errors.Is(err, errClosed) {
			t.Errorf("%v, want %v", err, errClosed)
		}
	}, "w")
}

// Another program writes times as CURRENT_TIMESTAMP does, or in a form of its own.
func TestTimesOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	links := makeLinks("w", 0, 4)
	store := filled(t, path, links)
	want := []time.Time{asOf, asOf.Truncate(time.Second), asOf.Truncate(time.Millisecond), {}}
	for i, text := range []string{stamp(asOf), "2025-03-04 05:06:07", "2025-03-04 05:06:07.890", "just now"} {
		execAll(fmt.Sprintf("UPDATE links SET created_at = '%s', updated_at = '%[1]s' WHERE short_code = '%s'", text, links[i].Code))(t, path)
	}
	var got []time.Time
	noError(t, store.Scan(context.Background(), func(l *sink.Stored) error { got = append(got, l.Created); return nil }))
	if !slices.Equal(got, want) {
		t.Errorf("created at %v", got)
	}
	got = got[:0]
	_, err := store.Undo(context.Background(), 1, sink.LockOptions{}, func(k sink.Kept) error { got = append(got, k.Updated); return nil })
	if err != nil || !slices.Equal(got, want[1:]) {
		t.Errorf("updated at %v, %v", got, err)
	}
}

// SQLite would delete links that something refers to; so nothing is undone.
func TestUndoOfWhatIsReferredTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	store := filled(t, path, makeLinks("w", 0, 10))
	execAll("CREATE TABLE clicks (w TEXT, c TEXT, FOREIGN KEY (w, c) REFERENCES Links (workspace_id, short_code))")(t, path)
	_, err := store.Undo(context.Background(), 1, sink.LockOptions{}, nil)
	if err == nil || !strings.Contains(err.Error(), "table clicks has a foreign key to the links") {
		t.Errorf("undo: %v", err)
	}
	if n := len(dump(t, path)); n != 10 {
		t.Errorf("%d links", n)
	}
}

// What a trigger on the links ignores ends no load.
func TestTriggerThatIgnores(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	store := open(t, path)
	inSession(t, store, func(s *session, run sink.Run) {
		execAll("CREATE TABLE seen (workspace TEXT PRIMARY KEY)",
			"CREATE TRIGGER see AFTER INSERT ON Links BEGIN INSERT OR IGNORE INTO seen VALUES (new.workspace_id); END")(t, path)
		noError(t, s.Load(context.Background(), run, oneChunk(makeLinks("w", 0, 250))))
	}, "w")
	if n := len(dump(t, path)); n != 250 {
		t.Errorf("%d links", n)
	}
}

// A run whose as_of somebody made no time is listed, and hinders no other; itself it does
// not go on.
func TestRunAtNoTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	store := open(t, path)
	inSession(t, store, func(*session, sink.Run) {})
	execAll("UPDATE runs SET as_of = 'infinity', started_at = '2026-01-01'")(t, path)
	if runs, err := store.Runs(context.Background()); err != nil || len(runs) != 1 {
		t.Errorf("%+v, %v", runs, err)
	}
	inSession(t, store, func(s *session, run sink.Run) {
		unfinished, err := s.Unfinished(context.Background())
		noError(t, err)
		if run.ID != 2 || len(unfinished) != 2 {
			t.Fatalf("run %d of %+v", run.ID, unfinished)
		}
		if _, err := s.Start(context.Background(), unfinished[0]); err == nil || !strings.Contains(err.Error(), "--new-run") {
			t.Error(err)
		}
	})
}

func TestErrorClasses(t *testing.T) {
	for code, want := range map[int]error{
		sqlite3.SQLITE_BUSY: sink.ErrRetryable, sqlite3.SQLITE_BUSY_SNAPSHOT: sink.ErrRetryable, sqlite3.SQLITE_LOCKED: sink.ErrRetryable,
		sqlite3.SQLITE_PROTOCOL:           sink.ErrRetryable,
		sqlite3.SQLITE_CONSTRAINT_NOTNULL: nil, sqlite3.SQLITE_CONSTRAINT_TRIGGER: nil, sqlite3.SQLITE_FULL: nil, sqlite3.SQLITE_CORRUPT: nil,
		sqlite3.SQLITE_NOTADB: nil, sqlite3.SQLITE_READONLY: nil, sqlite3.SQLITE_READONLY_DBMOVED: nil, sqlite3.SQLITE_IOERR_WRITE: nil,
	} {
		if got := (&Error{Code: code}).Unwrap(); got != want {
			t.Errorf("code %d: class %v, want %v", code, got, want)
		}
	}
}
