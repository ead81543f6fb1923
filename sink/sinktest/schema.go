package sinktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/linkforge/bulk/sink"
)

var schemaTests = []test{
	{"schema/open_look_and_undo_create_nothing", testCreateNothing},
	{"schema/lock_creates", testLockCreates},
	{"schema/eight_create_at_once", testCreateAtOnce},
	{"schema/look_while_it_is_created", testLookWhileCreated},
	{"schema/peek_refuses_writes", testPeekWrites},
	{"schema/peek_sees_what_is_committed", testPeekSees},
	{"schema/stats", testStats},
	{"populated", testPopulated},
	{"profiles", testProfiles},
}

func testCreateNothing(t *testing.T, db *database) {
	store := db.Open(t)
	defer closed(t, store)
	Refused(t, store, sink.ErrMissing)
	if db.Created(t) {
		t.Error("opening, looking and undoing created the database")
	}
}

// Refused tests that each method of a store but Lock returns an error of this class.
func Refused(t *testing.T, store sink.Store, class error) {
	t.Helper()
	ctx := context.Background()
	_, peek := store.Peek(ctx)
	_, runs := store.Runs(ctx)
	_, abandon := store.Abandon(ctx, []int32{1}, sink.LockOptions{})
	_, preview := store.PreviewUndo(ctx, 1)
	_, undo := store.Undo(ctx, 1, sink.LockOptions{}, func(sink.Kept) error { return nil })
	_, sweep := store.Sweep(ctx, sink.SweepOptions{AsOf: asOf}, nil)
	visit := func(*sink.Stored) error { return nil }
	remove := func(dry bool) error {
		return store.Delete(ctx, sink.DeleteOptions{Workspace: "w", AsOf: asOf, DryRun: dry}, pieces([]sink.Deletion{ofCode("a")}, 1, nil), func(sink.Named) error { return nil })
	}
	for method, err := range map[string]error{
		"Peek": peek, "Runs": runs, "Abandon": abandon, "PreviewUndo": preview, "Undo": undo, "Sweep": sweep,
		"Scan": store.Scan(ctx, visit), "ScanRules": store.ScanRules(ctx, visit), "Find": store.Find(ctx, "w", "a", visit), "OfURL": store.OfURL(ctx, "w", sink.Key{}, visit),
		"Export":  store.Export(ctx, "", func([]string) error { return nil }, func([][]byte) error { return nil }),
		"Resolve": store.Resolve(ctx, "w", []string{"a"}, func(*sink.Resolved) error { return nil }),
		"Summary": store.Summary(ctx, "", func(sink.Group) error { return nil }),
		"Delete":  remove(false), "Delete, dry": remove(true),
	} {
		if !errors.Is(err, class) {
			t.Errorf("%s: error %v, want %v", method, err, class)
		}
	}
}

func testLockCreates(t *testing.T, db *database) {
	for range 3 {
		db.with(func(sink.Session) {}, "w")
	}
	if !db.Created(t) {
		t.Error("a lock did not create the database")
	}
	if runs := db.runs(); len(runs) > 0 {
		t.Errorf("runs of a new database: %+v", runs)
	}
	db.expect()
}

func testCreateAtOnce(t *testing.T, db *database) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range 8 {
		store := db.Open(t)
		wg.Go(func() {
			defer store.Close()
			s, err := store.Lock(context.Background(), []string{fmt.Sprint("w", i)}, sink.LockOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A process that looks while another one creates the schema sees all of it or nothing.
func testLookWhileCreated(t *testing.T, db *database) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, done := context.WithCancel(context.Background())
	defer done()
	for range 4 {
		store := db.Open(t)
		wg.Go(func() {
			defer store.Close()
			for ctx.Err() == nil {
				if _, err := store.Runs(context.Background()); err != nil && !errors.Is(err, sink.ErrMissing) {
					t.Error(err)
					return
				}
				s, err := store.Peek(context.Background())
				if errors.Is(err, sink.ErrMissing) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	db.with(func(sink.Session) {}, "w")
}

func testPeekWrites(t *testing.T, db *database) {
	var run sink.Run
	db.with(func(s sink.Session) { run = start(t, s, "other") }, "w")
	before := db.runs()
	db.peek(func(s sink.Session) {
		ctx := context.Background()
		_, started := s.Start(ctx, sink.Run{Fingerprint: "f", AsOf: asOf})
		_, resumed := s.Start(ctx, run)
		_, reserved := s.Reserve(ctx, run, 1)
		for call, err := range map[string]error{
			"Start": started, "Start of an old run": resumed, "Load": s.Load(ctx, run, chunks(links("w", 0, 1), 1)),
			"Loaded": s.Loaded(ctx, run), "Finish": s.Finish(ctx, run), "Abandon": s.Abandon(ctx, []int32{run.ID}),
			"SetProfile": s.SetProfile(ctx, []string{"w"}, "p"), "SetRules": s.SetRules(ctx, []string{"w"}), "Change": s.Change(ctx, run, pieces[sink.Change](nil, 1, nil)),
			"SetScheme": s.SetScheme(ctx, []string{"w"}, hashed), "Reserve": reserved,
		} {
			if err == nil {
				t.Errorf("%s: no error", call)
			}
		}
	})
	equal(t, db.runs(), before...)
	db.expect()
}

func testPeekSees(t *testing.T, db *database) {
	first := links("w", 0, 10)
	db.load(first, "w")
	db.with(func(sink.Session) { // another session has the lock
		db.peek(func(s sink.Session) {
			p, err := s.Populated(context.Background(), []string{"v", "w"})
			noError(t, err)
			equal(t, p, false, true)
			equal(t, look(t, s, probe(first[3])), found{0, true, string(first[3].Code), "", 1, false})
		})
	}, "w")
}

func testStats(t *testing.T, db *database) {
	store := db.Open(t)
	defer closed(t, store)
	for range 2 {
		if _, err := json.Marshal(store.Stats()); err != nil {
			t.Errorf("stats cannot go into timings.json: %v", err)
		}
		s, err := store.Lock(context.Background(), []string{"w"}, sink.LockOptions{})
		noError(t, err)
		noError(t, s.Load(context.Background(), start(t, s, "f"), chunks(nil, 1)))
		closed(t, s)
	}
}

func testPopulated(t *testing.T, db *database) {
	ctx := context.Background()
	populated := func(s sink.Session, workspaces ...string) []bool {
		p, err := s.Populated(ctx, workspaces)
		noError(t, err)
		return p
	}
	db.with(func(s sink.Session) {
		equal(t, populated(s))
		equal(t, populated(s, "a", "b"), false, false)
	}, "a", "b")
	db.load(sorted(links("b", 0, 3), links("bb", 0, 3), links("ü", 0, 1)), "b", "bb", "ü")
	db.with(func(s sink.Session) {
		equal(t, populated(s, "a", "b", "ba", "bb", "c", "u", "ü"), false, true, false, true, false, false, true)
		db.Insert(t, rows(links("c", 0, 1), 0)[0])
		equal(t, populated(s, "c"), true)
	}, "a", "b", "ba", "bb", "c", "u", "ü")
	many := make([]string, 40_000)
	for i := range many {
		many[i] = fmt.Sprintf("b%06d", i)
	}
	db.peek(func(s sink.Session) {
		for i, p := range populated(s, many...) {
			if p {
				t.Fatalf("%s has no links", many[i])
			}
		}
	})
}

func testProfiles(t *testing.T, db *database) {
	ctx := context.Background()
	expect := func(s sink.Session, want map[string]string, workspaces ...string) {
		t.Helper()
		got, err := s.Profiles(ctx, workspaces)
		noError(t, err)
		if !maps.Equal(got, want) {
			t.Errorf("profiles of %.60q: %q, want %q", workspaces, got, want)
		}
	}
	many := make([]string, 40_000)
	for i := range many {
		many[i] = fmt.Sprintf("b%06d", i)
	}
	db.with(func(s sink.Session) {
		expect(s, nil)
		expect(s, nil, "a", "b")
		expect(s, nil, many...)
		noError(t, s.SetProfile(ctx, []string{"a", "b", "ü"}, "linkforge-1+fragment"))
		noError(t, s.SetProfile(ctx, []string{"b"}, "linkforge-1"))
		expect(s, map[string]string{"a": "linkforge-1+fragment", "b": "linkforge-1"}, "B", "a", "b", "c")
	}, "a", "b", "ü")
	db.load(links("a", 0, 3), "a")
	db.with(func(sink.Session) {
		db.peek(func(s sink.Session) {
			expect(s, map[string]string{"a": "linkforge-1+fragment", "b": "linkforge-1", "ü": "linkforge-1+fragment"})
			expect(s, map[string]string{"ü": "linkforge-1+fragment"}, append(many, "ü")...)
		})
	}, "a")
}
