package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	sqlite3 "modernc.org/sqlite/lib"
)

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

// A link that a trigger refuses is not a conflict: another code would not help. A trigger
// that writes elsewhere does no harm.
func TestTrigger(t *testing.T) {
	const seventh = " WHEN NEW.canonical_url LIKE '%0000007%' BEGIN "
	for trigger, want := range map[string]string{
		"CREATE TRIGGER no BEFORE INSERT ON links" + seventh + "SELECT RAISE(ABORT, 'not this one'); END": "not this one",
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

// So it is if one workspace has kept codes, or another scheme: keys are in no order then. What
// another workspace has does not matter.
func TestIndexAtEndOfOneWorkspace(t *testing.T) {
	for _, aliases := range []bool{false, true} {
		for _, scheme := range []sink.Scheme{{Name: "sha256-base58"}, {Name: "keyed-base62", CodeLength: 7, Fingerprint: "f"}} {
			store := open(t, filepath.Join(t.TempDir(), "x.db"))
			inSession(t, store, func(s *session, run sink.Run) {
				run.Aliases = aliases
				noError(t, s.SetScheme(context.Background(), []string{"v"}, sink.Scheme{Name: "counter-base62", CodeLength: 7}))
				noError(t, s.SetScheme(context.Background(), []string{"w"}, scheme))
				noError(t, s.Load(context.Background(), run, oneChunk(makeLinks("w", 0, 10))))
				if got, want := store.Stats()["index_made_at_end"], aliases || scheme.CodeLength > 0; got != want {
					t.Errorf("aliases %v, %s: index at the end: %v", aliases, scheme.Name, got)
				}
			}, "w")
		}
	}
}

// A load continues if a trigger on the links ignores a row.
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
