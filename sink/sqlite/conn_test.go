package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	sqlite3 "modernc.org/sqlite/lib"
)

// A commit survives a loss of power, readers do not wait, and writers wait for five seconds.
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

// The superuser may write what is read-only, so the test makes it so by a flag.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	ours()(t, path)
	c, err := dial(path, sqlite3.SQLITE_OPEN_READONLY, 0)
	noError(t, err)
	defer func() { noError(t, c.close()) }()
	err = c.exec("test", "DELETE FROM links")
	if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), "make the file and its directory writable") {
		t.Errorf("error %v", err)
	}
}

// Nothing is committed to a file that was moved or removed.
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
