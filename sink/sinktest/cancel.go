package sinktest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/linkforge/bulk/sink"
)

var cancelTests = []test{
	{"cancel/before", testCancelBefore},
	{"cancel/load_into_new", func(t *testing.T, db *database) { testCancelLoad(t, db, nil) }},
	{"cancel/load_into_existing", func(t *testing.T, db *database) { testCancelLoad(t, db, links("w", 50_000, 50_100)) }},
	{"cancel/lookup", testCancelLookup},
	{"cancel/scan", testCancelScan},
}

// If a context is over, every call fails with its cause, and the session can be used again.
func testCancelBefore(t *testing.T, db *database) {
	because := errors.New("because")
	over, cancel := context.WithCancelCause(context.Background())
	cancel(because)
	ls := links("w", 0, 10)
	store := db.Open(t)
	defer closed(t, store)
	all := func() {
		_, err := store.Lock(over, []string{"w"}, sink.LockOptions{})
		wantIs(t, err, because)
		_, err = store.Peek(over)
		wantIs(t, err, because)
		_, err = store.Runs(over)
		wantIs(t, err, because)
		wantIs(t, store.Scan(over, func(*sink.Stored) error { return nil }), because)
		_, err = store.Undo(over, 1, sink.LockOptions{}, func(sink.Kept) error { return nil })
		wantIs(t, err, because)
	}
	all() // of a store that is not there yet
	db.with(func(s sink.Session) {
		_, err := s.Populated(over, []string{"w"})
		wantIs(t, err, because)
		wantIs(t, s.Lookup(over, probes(ls), func(sink.Found) error { return nil }), because)
		_, err = s.Unfinished(over)
		wantIs(t, err, because)
		_, err = s.Start(over, sink.Run{Fingerprint: "f", AsOf: asOf})
		wantIs(t, err, because)
		run := start(t, s, "f")
		wantIs(t, s.Load(over, run, chunks(ls, 10)), because)
		noError(t, s.Load(context.Background(), run, chunks(ls, 10)))
		wantIs(t, s.Loaded(over, run), because)
		noError(t, s.Loaded(context.Background(), run))
		wantIs(t, s.Finish(over, run), because)
		noError(t, s.Finish(context.Background(), run))
		all()
	}, "w")
	all()
	db.expect(rows(ls, db.runs()[0].ID))
}

// testCancelLoad cancels between two chunks. Whole links of the run stay, and the next session
// finishes it.
func testCancelLoad(t *testing.T, db *database, before []sink.Link) {
	old := db.loadBefore(before)
	ls := some(before)
	because := errors.New("because")
	var run sink.Run
	db.with(func(s sink.Session) {
		run = start(t, s, "f")
		ctx, cancel := context.WithCancelCause(context.Background())
		n := 0
		err := s.Load(ctx, run, func(yield func([]sink.Link, error) bool) {
			for c := range chunks(ls, len(ls)/20) {
				if n++; n == 10 {
					cancel(because)
				}
				if !yield(c, nil) {
					return
				}
			}
		})
		wantIs(t, err, because)
		if n > 11 {
			t.Errorf("asked for %d chunks, of which the tenth was the last", n)
		}
	}, locksFor(before)...)
	db.subset(slices.Concat(old, rows(ls, run.ID)))
	db.with(func(s sink.Session) {
		unfinished, err := s.Unfinished(context.Background())
		noError(t, err)
		if len(unfinished) == 0 { // the run went with all of its links
			db.expect(old)
			unfinished = []sink.Run{{Fingerprint: "f", AsOf: asOf}}
		}
		run, err = s.Start(context.Background(), unfinished[0])
		noError(t, err)
		finishLoad(t, s, run, ls)
	}, locksFor(before)...)
	db.expect(old, rows(ls, run.ID))
}

func testCancelLookup(t *testing.T, db *database) {
	ls := links("w", 0, 20_000)
	db.load(ls, "w")
	because := errors.New("because")
	db.with(func(s sink.Session) {
		ctx, cancel := context.WithCancelCause(context.Background())
		err := s.Lookup(ctx, probes(ls), func(f sink.Found) error { cancel(because); return nil })
		wantIs(t, err, because)
		if got := look(t, s, probes(ls)...); len(got) != len(ls) {
			t.Errorf("%d of %d found afterwards", len(got), len(ls))
		}
	}, "w")
}

func testCancelScan(t *testing.T, db *database) {
	db.load(links("w", 0, 20_000), "w")
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	store := db.Open(t)
	defer closed(t, store)
	wantIs(t, store.Scan(ctx, func(*sink.Stored) error { cancel(because); return nil }), because)
	n := 0
	noError(t, store.Scan(context.Background(), func(*sink.Stored) error { n++; return nil }))
	if n != 20_000 {
		t.Errorf("%d of 20000 visited afterwards", n)
	}
}
