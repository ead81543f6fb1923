package sinktest

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

var runTests = []test{
	{"runs/states", testRunStates},
	{"runs/without_load", testRunWithoutLoad},
	{"runs/round_trip", testRunRoundTrip},
	{"runs/resume", testRunResume},
	{"runs/resume_loaded", testRunResumeLoaded},
	{"runs/over", testRunOver},
	{"runs/abandoned", testRunAbandoned},
	{"runs/abandoned_by_id", testAbandon},
	{"runs/left_behind", testRunLeftBehind},
	{"runs/concurrent_ids", testRunConcurrent},
	{"runs/missing", testRunMissing},
}

// testRunStates looks at a run as another process would.
func testRunStates(t *testing.T, db *database) {
	ctx := context.Background()
	db.load(links("w", 0, 10), "w")
	before := time.Now().Add(-time.Second)
	db.with(func(s sink.Session) {
		unfinished := func(want sink.State) (run sink.Run) {
			t.Helper()
			got, err := s.Unfinished(ctx)
			noError(t, err)
			if len(got) != 1 || got[0].State != want || !got[0].Finished.IsZero() {
				t.Fatalf("unfinished runs %+v, want one that is %s", got, want)
			}
			return got[0]
		}
		run := start(t, s, "f")
		if run.ID != 2 || run.State != sink.Loading {
			t.Errorf("started %+v", run)
		}
		noError(t, s.Load(ctx, run, chunks(links("w", 10, 20), 4)))
		if got := unfinished(sink.Loading); got.ID != 2 || got.Counts != (sink.Counts{}) || got.ManifestSHA256 != "" {
			t.Errorf("while it loads: %+v", got)
		}
		run.Counts = sink.Counts{Read: 15, Created: 10, Existing: 3, Duplicate: 1, Rejected: 1}
		run.ManifestSHA256 = "5eed"
		noError(t, s.Loaded(ctx, run))
		if got := unfinished(sink.Loaded); got.Counts != run.Counts || got.ManifestSHA256 != "5eed" {
			t.Errorf("loaded: %+v", got)
		}
		noError(t, s.Finish(ctx, run))
		got, err := s.Unfinished(ctx)
		noError(t, err)
		equal(t, got)
	}, "w")
	last := db.runs()[1]
	if last.State != sink.Finished || last.Counts.Read != 15 || last.ManifestSHA256 != "5eed" {
		t.Errorf("finished: %+v", last)
	}
	after := time.Now().Add(time.Second)
	if last.Started.Before(before) || last.Finished.Before(last.Started) || last.Finished.After(after) {
		t.Errorf("started %v, finished %v, clock %v to %v", last.Started, last.Finished, before, after)
	}
}

// A run may create nothing.
func testRunWithoutLoad(t *testing.T, db *database) {
	db.with(func(s sink.Session) { complete(t, s, start(t, s, "none")) })
	db.with(func(s sink.Session) { complete(t, s, start(t, s, "none")) }, "w")
	got := db.runs()
	if len(got) != 2 || got[0].ID != 1 || got[1].ID != 2 || got[0].State != sink.Finished || got[1].State != sink.Finished {
		t.Errorf("runs %+v", got)
	}
	db.expect()
}

func testRunRoundTrip(t *testing.T, db *database) {
	ctx := context.Background()
	want := sink.Run{
		ID: 1, Fingerprint: "sha256:'\"ü\\", State: sink.Finished,
		AsOf:   time.Date(1999, 12, 31, 23, 59, 59, 999999000, time.UTC),
		Counts: sink.Counts{Read: math.MaxInt64, Created: 1 << 40, Existing: math.MaxInt64 - 1<<41, Duplicate: 1 << 40, Rejected: 7},

		LinksCreated: 1<<40 + 5, LinksChanged: 1<<40 + 6,
		ManifestSHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		Started:        time.Date(2025, 1, 2, 3, 4, 5, 1000, time.UTC),
		Finished:       time.Date(2025, 1, 2, 3, 4, 6, 0, time.UTC),
		Inputs:         []string{"a \"b\".csv", "x\ufffd.csv", "ü.csv"}, Workspaces: []string{"v", "w"}, Out: "/tmp/'\"ü\\\ufffd",
	}
	ls := links("w", 0, 10)
	db.with(func(s sink.Session) {
		run, err := s.Start(ctx, sink.Run{Fingerprint: want.Fingerprint, AsOf: want.AsOf, Started: want.Started,
			Inputs: []string{"a \"b\".csv", "x\xff.csv", "ü.csv"}, Workspaces: want.Workspaces, Out: "/tmp/'\"ü\\\xff"})
		noError(t, err)
		noError(t, s.Load(ctx, run, chunks(ls, 10)))
		run.Counts, run.LinksCreated, run.LinksChanged = want.Counts, want.LinksCreated, want.LinksChanged
		noError(t, s.Loaded(ctx, run))
		run.ManifestSHA256, run.Finished = want.ManifestSHA256, want.Finished
		noError(t, s.Finish(ctx, run))
	}, "w")
	got := db.runs()
	for i, r := range got {
		if r.AsOf.Location() != time.UTC || r.Started.Location() != time.UTC || r.Finished.Location() != time.UTC {
			t.Errorf("a time of %+v is not in UTC", r)
		}
		got[i].AsOf, got[i].Started, got[i].Finished = r.AsOf.UTC(), r.Started.UTC(), r.Finished.UTC()
	}
	equal(t, got, want)
	stored := rows(ls, 1)
	for i := range stored {
		stored[i].Created = want.AsOf
	}
	db.expect(stored)
}

// Runs stay unfinished. One is resumed and finished, and others are not affected.
func testRunResume(t *testing.T, db *database) {
	ctx := context.Background()
	all := links("w", 0, 300)
	db.load(all[:3], "w") // run 1
	for i, f := range []string{"a", "b"} {
		db.with(func(s sink.Session) {
			run := start(t, s, f)
			noError(t, s.Load(ctx, run, chunks(all[100*i+50:100*i+90], 7)))
		}, "w")
	}
	db.with(func(s sink.Session) {
		got, err := s.Unfinished(ctx)
		noError(t, err)
		if len(got) != 2 || got[0].ID != 2 || got[1].ID != 3 || got[0].Fingerprint != "a" || got[1].Fingerprint != "b" {
			t.Fatalf("unfinished %+v", got)
		}
		again, err := s.Start(ctx, got[0])
		noError(t, err)
		if again.ID != 2 || again.Fingerprint != "a" || !again.AsOf.Equal(asOf) || !again.Started.Equal(got[0].Started) {
			t.Errorf("resumed %+v of %+v", again, got[0])
		}
		finishLoad(t, s, again, all[50:100])
	}, "w")
	db.load(all[200:], "w") // run 4
	if got := db.runs(); len(got) != 4 || got[1].State != sink.Finished || got[2].State != sink.Loading || got[3].ID != 4 {
		t.Errorf("runs %+v", got)
	}
	db.expect(rows(all[:3], 1), rows(all[50:100], 2), rows(all[150:190], 3), rows(all[200:], 4))
}

// A run that was killed after its last link is resumed with nothing to load.
func testRunResumeLoaded(t *testing.T, db *database) {
	ctx, ls := context.Background(), links("w", 0, 10)
	counts := sink.Counts{Read: 10, Created: 10}
	db.with(func(s sink.Session) {
		run := start(t, s, "f")
		noError(t, s.Load(ctx, run, chunks(ls, 4)))
		run.Counts = counts
		noError(t, s.Loaded(ctx, run))
	}, "w")
	db.with(func(s sink.Session) {
		got, err := s.Unfinished(ctx)
		noError(t, err)
		if len(got) != 1 || got[0].State != sink.Loaded || got[0].Counts != counts {
			t.Fatalf("unfinished %+v", got)
		}
		run, err := s.Start(ctx, got[0])
		noError(t, err)
		run.Counts = counts
		finishLoad(t, s, run, ls)
	}, "w")
	if got := db.runs(); len(got) != 1 || got[0].State != sink.Finished || got[0].Counts != counts {
		t.Errorf("runs %+v", got)
	}
	db.expect(rows(ls, 1))
	db.with(func(s sink.Session) {
		for name, call := range map[string]func(context.Context, sink.Run) error{"loaded": s.Loaded, "finish": s.Finish} {
			if err := call(ctx, sink.Run{ID: 99}); err == nil {
				t.Errorf("%s: there is no such run, and no error", name)
			}
		}
	}, "w")
}

// A run that is over is not used again, even for a new run with the same fingerprint and
// Started, as the pipeline has when it retries. To continue or to load it is a conflict.
func testRunOver(t *testing.T, db *database) {
	again := func(id int32) (run sink.Run) {
		t.Helper()
		db.with(func(s sink.Session) {
			var err error
			run, err = s.Start(context.Background(), sink.Run{Fingerprint: "f", AsOf: asOf, Started: asOf})
			noError(t, err)
			if run.ID != id || run.State != sink.Loading {
				t.Errorf("started %+v, want run %d", run, id)
			}
			if id == 1 {
				complete(t, s, run)
			}
		}, "w")
		return run
	}
	again(1)
	_, _, err := db.undo(again(2).ID)
	noError(t, err)
	db.with(func(s sink.Session) {
		for _, run := range db.runs() {
			_, err := s.Start(context.Background(), run)
			wantIs(t, err, sink.ErrConflict)
			wantIs(t, s.Load(context.Background(), run, chunks(links("w", 0, 10), 4)), sink.ErrConflict)
		}
	}, "w")
	db.expect()
	again(3)
}

// A session abandons runs: their links stay, and no run resumes them. What is over stays as
// it is. An abandoned run can be undone.
func testRunAbandoned(t *testing.T, db *database) {
	ctx, ls := context.Background(), links("w", 0, 30)
	db.load(ls[:10], "w")
	var loading, loaded sink.Run
	db.with(func(s sink.Session) {
		loading, loaded = start(t, s, "loading"), start(t, s, "loaded")
		noError(t, s.Load(ctx, loading, chunks(ls[10:20], 4)))
		noError(t, s.Load(ctx, loaded, chunks(ls[20:], 4)))
		noError(t, s.Loaded(ctx, loaded))
	}, "w")
	states := func(want ...sink.State) {
		t.Helper()
		var got []sink.State
		for _, r := range db.runs() {
			got = append(got, r.State)
		}
		equal(t, got, want...)
	}
	states(sink.Finished, sink.Loading, sink.Loaded)
	db.with(func(s sink.Session) {
		for range 2 { // as after an answer that was lost
			noError(t, s.Abandon(ctx, []int32{1, 2, 3, 99}))
			unfinished, err := s.Unfinished(ctx)
			noError(t, err)
			equal(t, unfinished)
		}
		_, err := s.Start(ctx, loading)
		wantIs(t, err, sink.ErrConflict)
		wantIs(t, s.Load(ctx, loading, chunks(ls[10:20], 4)), sink.ErrConflict)
		wantFatal(t, s.Loaded(ctx, loading))
		wantFatal(t, s.Finish(ctx, loaded))
	}, "w")
	states(sink.Finished, sink.Abandoned, sink.Abandoned)
	db.expect(rows(ls[:10], 1), rows(ls[10:20], 2), rows(ls[20:], 3))
	db.Change(t, "w", string(ls[20].Code), asOf.Add(time.Hour))
	store := db.Open(t)
	defer closed(t, store)
	because := errors.New("because")
	cut, err := store.Undo(ctx, 3, sink.LockOptions{}, func(sink.Kept) error { return because })
	wantIs(t, err, because)
	if cut.Deleted != 9 {
		t.Errorf("%+v", cut)
	}
	states(sink.Finished, sink.Abandoned, sink.Abandoned) // also if an undo was interrupted
	out, _, err := db.undo(2)
	noError(t, err)
	if out.Was != sink.Abandoned || out.Run.State != sink.Undone || out.Deleted != 10 {
		t.Errorf("%+v", out)
	}
	db.with(func(s sink.Session) { noError(t, s.Abandon(ctx, []int32{2})) }, "w")
	states(sink.Finished, sink.Undone, sink.Abandoned)
}

// A store abandons runs by their IDs when no run is at work, all of them or none.
func testAbandon(t *testing.T, db *database) {
	abandon := func(ids ...int32) ([]sink.Run, error) {
		store := db.Open(t)
		defer closed(t, store)
		return store.Abandon(context.Background(), ids, sink.LockOptions{NoWait: true})
	}
	db.load(links("w", 0, 10), "w")
	var runs []sink.Run
	db.with(func(s sink.Session) {
		runs = []sink.Run{start(t, s, "a"), start(t, s, "b")}
		_, err := abandon(2)
		wantIs(t, err, sink.ErrLocked)
	}, "w")
	before := db.runs()
	for _, c := range []struct {
		id   int32
		says string
	}{{1, "run 1 is finished"}, {9, "no run 9"}} {
		_, err := abandon(3, c.id)
		wantFatal(t, err)
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want %q", err, c.says)
		}
	}
	equal(t, db.runs(), before...)
	runs[0].State, runs[1].State = sink.Abandoned, sink.Abandoned
	got, err := abandon(3)
	noError(t, err)
	equal(t, got, runs[1])
	got, err = abandon(2, 3)
	noError(t, err)
	equal(t, got, runs...)
	equal(t, db.runs(), before[0], runs[0], runs[1])
}

// A session that ends in the middle leaves no link without a run.
func testRunLeftBehind(t *testing.T, db *database) {
	ls := links("w", 0, 5_000)
	for _, part := range [][]sink.Link{ls[:2_000], ls[2_000:]} {
		db.with(func(s sink.Session) { start(t, s, "not loaded") }, "w")
		db.with(func(s sink.Session) {
			run := start(t, s, "f")
			noError(t, s.Load(context.Background(), run, chunks(part, 100)))
		}, "w")
	}
	known := make(map[int32]bool)
	for _, r := range db.runs() {
		known[r.ID] = true
	}
	got := db.Dump(t)
	for _, r := range got {
		if !known[r.Run] {
			t.Fatalf("no run %d, but a link of it", r.Run)
		}
	}
	if len(got) != len(ls) {
		t.Errorf("%d links, want %d", len(got), len(ls))
	}
}

// Runs that start at the same time get different IDs.
func testRunConcurrent(t *testing.T, db *database) {
	const n = 6
	var wg sync.WaitGroup
	for i := range n {
		w := string(rune('a' + i))
		store := db.Open(t)
		wg.Go(func() {
			defer store.Close()
			if err := wholeRun(store, w); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := db.runs()
	for i, r := range got {
		if r.ID != int32(i+1) || r.State != sink.Finished {
			t.Errorf("run %d: %+v", i+1, r)
		}
	}
	if stored := len(db.Dump(t)); len(got) != n || stored != n*1000 {
		t.Errorf("%d runs, %d links", len(got), stored)
	}
}

// If no run is left, a new run does not get the ID of a link.
func testRunMissing(t *testing.T, db *database) {
	db.with(func(s sink.Session) {
		db.Insert(t, rows(links("w", 0, 1), 7)[0])
		for want := int32(8); want < 10; want++ {
			if run := start(t, s, "f"); run.ID != want {
				t.Errorf("run %d, want %d", run.ID, want)
			}
		}
	}, "w")
}

// wholeRun loads 1,000 links.
func wholeRun(store sink.Store, workspace string) error {
	ctx := context.Background()
	s, err := store.Lock(ctx, []string{workspace}, sink.LockOptions{})
	if err != nil {
		return err
	}
	defer s.Close()
	run, err := s.Start(ctx, sink.Run{Fingerprint: workspace, AsOf: asOf})
	if err == nil {
		err = s.Load(ctx, run, chunks(links(workspace, 0, 1000), 100))
	}
	if err == nil {
		err = s.Loaded(ctx, run)
	}
	if err == nil {
		err = s.Finish(ctx, run)
	}
	return err
}
