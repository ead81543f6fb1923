package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// An Undo takes back what its run created and nobody changed, over several pages,
// and says what stays.
func TestUndo(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "links.db")
	s, err := Open(ctx, path, Options{})
	noError(t, err)
	if _, err := s.Undo(ctx, 1, sink.LockOptions{}, nil); err == nil {
		t.Error("a run of no database was undone")
	}
	links := makeLinks("w", 0, 2*undoPage+105)
	first, second := links[:5], links[5:]
	inSession(t, s, func(s *session, run sink.Run) { noError(t, s.Load(ctx, run, oneChunk(first))) }, "w")
	inSession(t, s, func(own *session, run sink.Run) {
		noError(t, own.Load(ctx, run, oneChunk(second)))
		if _, err := s.Undo(ctx, run.ID, sink.LockOptions{NoWait: true}, nil); !errors.Is(err, sink.ErrLocked) {
			t.Errorf("while a run is at work: %v", err)
		}
	}, "w")
	changed := string(second[7].Code)
	execAll("UPDATE links SET updated_at = '2030-01-01 00:00:00.000000' WHERE short_code IN ('"+
		string(first[3].Code)+"', '"+changed+"', '"+string(second[undoPage+5].Code)+"')")(t, path)

	var kept []sink.Kept
	got, err := s.Undo(ctx, 2, sink.LockOptions{}, func(k sink.Kept) error { kept = append(kept, k); return nil })
	noError(t, err)
	if got.Deleted != 2*undoPage+98 || got.Kept != 2 || got.Run.State != sink.Undone {
		t.Errorf("%+v", got)
	}
	if want := (sink.Kept{Workspace: "w", Code: changed, Updated: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}); len(kept) != 2 || kept[0] != want {
		t.Errorf("kept %+v", kept)
	}
	if _, err := s.Undo(ctx, 99, sink.LockOptions{}, nil); err == nil {
		t.Error("run 99 was undone")
	}
	inSession(t, s, func(s *session, _ sink.Run) {
		if runs, err := s.Unfinished(ctx); err != nil || len(runs) != 2 || runs[0].ID != 1 {
			t.Errorf("unfinished: %+v, %v", runs, err)
		}
	}, "w")
}
