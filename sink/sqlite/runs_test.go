package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

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
		if _, err := s.Start(context.Background(), unfinished[0]); err == nil || !strings.Contains(err.Error(), "Config.NewRun") {
			t.Error(err)
		}
	})
}
