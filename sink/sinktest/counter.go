package sinktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/linkforge/bulk/sink"
)

var counterTests = []test{
	{"numbers/reserve", testReserve},
	{"numbers/move", testMoveCounter},
	{"numbers/resume", testReserveResume},
	{"numbers/undo", testReserveUndo},
	{"numbers/over", testReserveOver},
	{"numbers/cancelled", testReserveCancelled},
	{"numbers/32_at_once", testReserveAtOnce},
}

// reserve gives numbers to a run, and checks them.
func reserve(t *testing.T, s sink.Session, run sink.Run, n int64, want ...sink.Range) {
	t.Helper()
	got, err := s.Reserve(context.Background(), run, n)
	noError(t, err)
	equal(t, got, want...)
}

// next checks what the store gives out next.
func (db *database) next(want int64) {
	db.t.Helper()
	db.peek(func(s sink.Session) {
		got, err := s.NextNumber(context.Background())
		noError(db.t, err)
		if got != want {
			db.t.Errorf("the next number is %d, want %d", got, want)
		}
	})
}

// A run gets numbers until it has as many as it wants. To ask again gives it no more.
func testReserve(t *testing.T, db *database) {
	db.with(func(s sink.Session) {
		a, b := start(t, s, "a"), start(t, s, "b")
		db.next(0)
		reserve(t, s, a, 0)
		db.next(0)
		for range 2 {
			reserve(t, s, a, 1000, sink.Range{First: 1, Last: 1000})
		}
		db.next(1001)
		reserve(t, s, a, 1003, sink.Range{First: 1, Last: 1003})
		reserve(t, s, b, 1, sink.Range{First: 1004, Last: 1004})
		for range 2 {
			reserve(t, s, a, 1005, sink.Range{First: 1, Last: 1003}, sink.Range{First: 1005, Last: 1006})
		}
		reserve(t, s, a, 7, sink.Range{First: 1, Last: 1003}, sink.Range{First: 1005, Last: 1006})
		reserve(t, s, b, 1<<60, sink.Range{First: 1004, Last: 1004}, sink.Range{First: 1007, Last: 1005 + 1<<60})
		db.next(1006 + 1<<60)
	}, "w")
}

// The counter is moved ahead at any time, and never back. The run that has numbers already keeps them.
func testMoveCounter(t *testing.T, db *database) {
	db.with(func(s sink.Session) {
		move := func(start, want int64) {
			t.Helper()
			got, err := s.MoveCounter(context.Background(), start)
			noError(t, err)
			if got != want {
				t.Errorf("before it was moved to %d the next number was %d, want %d", start, got, want)
			}
		}
		a, b := start(t, s, "a"), start(t, s, "b")
		move(1, 0)
		db.next(0)
		move(12345, 0)
		db.next(12345)
		reserve(t, s, a, 10, sink.Range{First: 12345, Last: 12354})
		for _, behind := range []int64{1, 12345, 12355} {
			move(behind, 12355)
		}
		db.next(12355)
		reserve(t, s, b, 2, sink.Range{First: 12355, Last: 12356})
		move(20000, 12357)
		reserve(t, s, a, 10, sink.Range{First: 12345, Last: 12354})
		db.next(20000)
		reserve(t, s, a, 12, sink.Range{First: 12345, Last: 12354}, sink.Range{First: 20000, Last: 20001})
		move(1<<60, 20002)
	}, "w")
	db.next(1 << 60)
}

// A run that is resumed finds its numbers. They stay beside the other numbers of its row.
func testReserveResume(t *testing.T, db *database) {
	ctx, want := context.Background(), []sink.Range{{First: 1, Last: 10}, {First: 16, Last: 20}}
	db.with(func(s sink.Session) {
		run, err := s.Start(ctx, sink.Run{Fingerprint: "a", AsOf: asOf, KeepCreated: true})
		noError(t, err)
		reserve(t, s, run, 10, want[0])
		reserve(t, s, start(t, s, "b"), 5, sink.Range{First: 11, Last: 15})
		reserve(t, s, run, 15, want...)
	}, "w")
	db.with(func(s sink.Session) {
		unfinished, err := s.Unfinished(ctx)
		noError(t, err)
		equal(t, unfinished[0].Numbers, want...)
		run, err := s.Start(ctx, unfinished[0])
		noError(t, err)
		equal(t, run.Numbers, want...)
		reserve(t, s, run, 15, want...)
		run.LinksCreated = 14
		complete(t, s, run)
	}, "w")
	run := db.runs()[0]
	equal(t, run.Numbers, want...)
	if run.LinksCreated != 14 || !run.KeepCreated || run.State != sink.Finished {
		t.Errorf("%+v", run)
	}
	db.next(21)
}

// The numbers of a run that is undone or abandoned are not given out again.
func testReserveUndo(t *testing.T, db *database) {
	db.with(func(s sink.Session) {
		for _, fingerprint := range []string{"undone", "abandoned"} {
			run := start(t, s, fingerprint)
			_, err := s.Reserve(context.Background(), run, 10)
			noError(t, err)
			noError(t, s.Load(context.Background(), run, chunks(links(fingerprint, 0, 10), 4)))
		}
		noError(t, s.Abandon(context.Background(), []int32{2}))
	}, "abandoned", "undone")
	_, _, err := db.undo(1)
	noError(t, err)
	db.with(func(s sink.Session) {
		reserve(t, s, start(t, s, "new"), 10, sink.Range{First: 21, Last: 30})
	}, "undone")
	for i, run := range db.runs() {
		equal(t, run.Numbers, sink.Range{First: int64(i*10 + 1), Last: int64(i*10 + 10)})
	}
}

// A run that is over, or none, gets no numbers.
func testReserveOver(t *testing.T, db *database) {
	ctx := context.Background()
	db.with(func(s sink.Session) {
		run := start(t, s, "f")
		complete(t, s, run)
		_, err := s.Reserve(ctx, run, 10)
		wantIs(t, err, sink.ErrConflict)
		_, err = s.Reserve(ctx, sink.Run{ID: 99}, 10)
		wantFatal(t, err)
	}, "w")
	db.next(0)
}

func testReserveCancelled(t *testing.T, db *database) {
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(because)
	db.with(func(s sink.Session) {
		run := start(t, s, "f")
		_, err := s.Reserve(ctx, run, 10)
		wantIs(t, err, because)
		reserve(t, s, run, 10, sink.Range{First: 1, Last: 10})
	}, "w")
}

// 32 runs in different workspaces reserve at the same time, from the first number on. Each number
// is given out once, and none is left out.
func testReserveAtOnce(t *testing.T, db *database) {
	const runs, steps, step = 32, 5, 7
	var wg sync.WaitGroup
	for i := range runs {
		store := db.Open(t)
		wg.Go(func() {
			defer store.Close()
			if err := reserveSteps(store, fmt.Sprint("w", i), steps, step); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	store := db.Open(t)
	defer closed(t, store)
	if n := given(t, store); n != runs*steps*step {
		t.Errorf("%d numbers", n)
	}
}

// reserveSteps is a run that reserves numbers in steps.
func reserveSteps(store sink.Store, workspace string, steps, step int64) error {
	ctx := context.Background()
	s, err := store.Lock(ctx, []string{workspace}, sink.LockOptions{})
	if err != nil {
		return err
	}
	defer s.Close()
	run, err := s.Start(ctx, sink.Run{Fingerprint: workspace, AsOf: asOf})
	for n := step; err == nil && n <= steps*step; n += step {
		_, err = s.Reserve(ctx, run, n)
	}
	return err
}
