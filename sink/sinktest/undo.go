package sinktest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

var undoTests = []test{
	{"undo/links", testUndoLinks},
	{"undo/while_a_run_is_at_work", testUndoLocked},
	{"undo/cut_off", testUndoCutOff},
	{"undo/no_such_run", testUndoNoRun},
}

// undo undoes a run with a store of its own.
func (db *database) undo(run int32) (sink.Undoing, []sink.Kept, error) {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	var kept []sink.Kept
	out, err := store.Undo(context.Background(), run, sink.LockOptions{NoWait: true},
		func(k sink.Kept) error { kept = append(kept, k); return nil })
	return out, kept, err
}

// preview is what a store of its own would undo.
func (db *database) preview(run int32) sink.Undoing {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	out, err := store.PreviewUndo(context.Background(), run)
	noError(db.t, err)
	return out
}

// There are more links than a transaction deletes. The links that the run created and nobody
// changed are deleted. The others are reported, also a link of an earlier run with the same ID.
func testUndoLinks(t *testing.T, db *database) {
	all := links("w", 0, 25_100)
	first, second := all[:100], all[100:]
	db.load(first, "w")
	run := db.load(second, "w")
	stay := []sink.Link{second[7], second[20_000]}
	old := rows(links("x", 0, 1), run.ID)
	old[0].Created = asOf.Add(-time.Microsecond)
	db.Insert(t, old[0])
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC)
	var want []sink.Kept
	for _, l := range stay {
		want = append(want, sink.Kept{Workspace: "w", Code: string(l.Code), Updated: at})
	}
	want = append(want, sink.Kept{Workspace: "x", Code: old[0].Code, Updated: old[0].Created})
	for _, l := range append(stay[:2:2], first[3]) {
		db.Change(t, string(l.Workspace), string(l.Code), at)
	}
	for i, was := range []sink.State{sink.Finished, sink.Undone} { // a second time does no harm
		deleted := []int64{25_000 - 2, 0}[i]
		before := db.preview(run.ID)
		out, kept, err := db.undo(run.ID)
		noError(t, err)
		if before.Deleted != deleted || before.Kept != 3 || before.Run.ID != run.ID || before.Run.State != was || before.Was != was {
			t.Errorf("before: %+v", before)
		}
		if out.Deleted != deleted || out.Kept != 3 || out.Run.ID != run.ID || out.Run.State != sink.Undone || out.Was != was {
			t.Errorf("%+v", out)
		}
		equal(t, kept, want...)
		db.expect(rows(first, run.ID-1), rows(stay, run.ID), old)
	}
	states := func() (out []sink.State) {
		for _, r := range db.runs() {
			out = append(out, r.State)
		}
		return out
	}
	equal(t, states(), sink.Finished, sink.Undone)
	db.with(func(s sink.Session) {
		unfinished, err := s.Unfinished(context.Background())
		noError(t, err)
		equal(t, unfinished)
	}, "w")
	again := slices.DeleteFunc(slices.Clone(second), func(l sink.Link) bool { return string(l.Code) == want[0].Code || string(l.Code) == want[1].Code })
	db.load(again, "w")
	db.expect(rows(first, run.ID-1), rows(stay, run.ID), old, rows(again, run.ID+1))
}

// An unfinished run can be undone, but not while it is at work. Afterwards it stays undone.
func testUndoLocked(t *testing.T, db *database) {
	ls := links("w", 0, 10)
	var run sink.Run
	db.with(func(s sink.Session) {
		run = start(t, s, "f")
		noError(t, s.Load(context.Background(), run, chunks(ls, 4)))
		_, _, err := db.undo(run.ID)
		wantIs(t, err, sink.ErrLocked)
	}, "w")
	db.expect(rows(ls, run.ID))
	out, _, err := db.undo(run.ID)
	noError(t, err)
	if out.Deleted != 10 || out.Run.State != sink.Undone {
		t.Errorf("%+v", out)
	}
	db.expect()
	db.with(func(s sink.Session) { // a session that began it may not know
		wantFatal(t, s.Loaded(context.Background(), run))
		wantFatal(t, s.Finish(context.Background(), run))
	}, "w")
	if got := db.runs(); got[0].State != sink.Undone {
		t.Errorf("%+v", got)
	}
}

// An Undo that is interrupted leaves an unfinished run: it can be undone again, or resumed. If
// it has deleted nothing, the run stays as it was.
func testUndoCutOff(t *testing.T, db *database) {
	ls := links("w", 0, 10)
	run := db.load(ls, "w")
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	because := errors.New("because")
	cut := func(deleted int64) {
		t.Helper()
		store := db.Open(t)
		defer closed(t, store)
		out, err := store.Undo(context.Background(), run.ID, sink.LockOptions{NoWait: true}, func(sink.Kept) error { return because })
		wantIs(t, err, because)
		if out.Deleted != deleted {
			t.Errorf("%d links deleted before the first that stays is told, want %d", out.Deleted, deleted)
		}
	}
	for _, l := range ls {
		db.Change(t, "w", string(l.Code), at)
	}
	cut(0)
	if got := db.runs(); got[0].State != sink.Finished {
		t.Errorf("nothing was deleted: %+v", got)
	}
	more := links("w", 10, 20)
	run = db.load(more, "w")
	db.Change(t, "w", string(more[3].Code), at)
	cut(9)
	db.with(func(s sink.Session) {
		unfinished, err := s.Unfinished(context.Background())
		noError(t, err)
		if len(unfinished) != 1 || unfinished[0].ID != run.ID || unfinished[0].State != sink.Loading {
			t.Fatalf("unfinished: %+v", unfinished)
		}
		wantFatal(t, s.Finish(context.Background(), unfinished[0]))
		again, err := s.Start(context.Background(), unfinished[0])
		noError(t, err)
		finishLoad(t, s, again, more)
	}, "w")
	db.expect(rows(ls, 1), rows(more, run.ID))
	cut(9)
	out, _, err := db.undo(run.ID)
	noError(t, err)
	if out.Run.State != sink.Undone || out.Deleted != 0 || out.Kept != 1 {
		t.Errorf("%+v", out)
	}
	db.expect(rows(ls, 1), rows(more[3:4], run.ID))
}

func testUndoNoRun(t *testing.T, db *database) {
	ls := links("w", 0, 10)
	db.load(ls, "w")
	_, _, err := db.undo(2)
	wantFatal(t, err)
	store := db.Open(t)
	defer closed(t, store)
	_, err = store.PreviewUndo(context.Background(), 2)
	wantFatal(t, err)
	db.expect(rows(ls, 1))
}
