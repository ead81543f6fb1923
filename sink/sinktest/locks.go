package sinktest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

var lockTests = []test{
	{"locks/wait_for_store", func(t *testing.T, db *database) { testLockWait(t, db, false) }},
	{"locks/wait_within_store", func(t *testing.T, db *database) { testLockWait(t, db, true) }},
	{"locks/no_wait", testLockNoWait},
	{"locks/wait_cancelled", testLockCancelled},
	{"locks/no_workspaces", testLockNone},
	{"locks/in_turn", testLockTurns},
}

// patience is how long a test waits for an event that must come, moment for one that must
// not.
const patience, moment = 2 * time.Minute, 200 * time.Millisecond

type locked struct {
	s   sink.Session
	err error
}

// lockLater takes the lock in a goroutine. The second channel gets the arguments of Wait.
func lockLater(ctx context.Context, store sink.Store, workspaces ...string) (chan locked, chan string) {
	done, holders := make(chan locked, 1), make(chan string, 10)
	go func() {
		s, err := store.Lock(ctx, workspaces, sink.LockOptions{Wait: func(h string) { holders <- h }})
		done <- locked{s, err}
	}()
	return done, holders
}

func receive[T any](t *testing.T, c chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("no %s after %v", what, patience)
	}
	return v
}

func testLockWait(t *testing.T, db *database, sameStore bool) {
	a := db.Open(t)
	defer closed(t, a)
	b := a
	if !sameStore {
		b = db.Open(t)
		defer closed(t, b)
	}
	first, err := a.Lock(context.Background(), []string{"v", "w"}, sink.LockOptions{})
	noError(t, err)
	done, holders := lockLater(context.Background(), b, "w", "x")
	if h := receive(t, holders, "call of Wait"); h == "" {
		t.Error("Wait was called without a holder")
	}
	select {
	case l := <-done:
		t.Fatalf("the lock was given twice: %v", l.err)
	case <-time.After(moment):
	}
	run := start(t, first, "f")
	noError(t, first.Load(context.Background(), run, chunks(links("w", 0, 10), 10)))
	complete(t, first, run)
	closed(t, first)
	l := receive(t, done, "lock")
	noError(t, l.err)
	equal(t, look(t, l.s, probe(links("w", 0, 10)[0])), found{0, true, string(links("w", 0, 10)[0].Code), "", 1, false})
	closed(t, l.s)
	if len(holders) > 0 {
		t.Errorf("Wait was called again with %q", <-holders)
	}
}

func testLockNoWait(t *testing.T, db *database) {
	a, b := db.Open(t), db.Open(t)
	defer closed(t, a)
	defer closed(t, b)
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("w%03d", i)
	}
	table := []struct {
		name         string
		held, wanted []string
		excluded     bool
	}{
		{"same", []string{"w001"}, []string{"w001"}, true},
		{"overlap", []string{"a", "w001"}, []string{"w001", "x"}, true},
		{"one of many", many, []string{"w001"}, true},
		{"many with one", []string{"w001"}, many, true},
		{"many", many, many, true},
		{"other", []string{"a"}, []string{"b"}, !db.FineLocks},
		{"others", []string{"a", "c"}, []string{"b", "d"}, !db.FineLocks},
		{"quoted", []string{"a'"}, []string{"a", "a\""}, !db.FineLocks},
	}
	opts := sink.LockOptions{NoWait: true, Wait: func(string) { t.Error("Wait was called") }}
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			first, err := a.Lock(context.Background(), c.held, opts)
			noError(t, err)
			second, err := b.Lock(context.Background(), c.wanted, opts)
			if c.excluded {
				wantIs(t, err, sink.ErrLocked)
			} else {
				noError(t, err)
				closed(t, second)
			}
			closed(t, first)
			second, err = b.Lock(context.Background(), c.wanted, opts)
			noError(t, err)
			closed(t, second)
		})
	}
}

func testLockCancelled(t *testing.T, db *database) {
	a, b := db.Open(t), db.Open(t)
	defer closed(t, a)
	defer closed(t, b)
	first, err := a.Lock(context.Background(), []string{"w"}, sink.LockOptions{})
	noError(t, err)
	ctx, cancel := context.WithCancelCause(context.Background())
	done, holders := lockLater(ctx, b, "w")
	receive(t, holders, "call of Wait")
	because := errors.New("because")
	cancel(because)
	wantIs(t, receive(t, done, "end of the wait").err, because)
	closed(t, first)
	done, _ = lockLater(context.Background(), b, "w") // the cancelled session may not have ended yet
	again := receive(t, done, "lock")
	noError(t, again.err)
	closed(t, again.s)
}

// A run whose input has no rows locks nothing.
func testLockNone(t *testing.T, db *database) {
	db.with(func(s sink.Session) {
		p, err := s.Populated(context.Background(), nil)
		noError(t, err)
		equal(t, p)
	})
}

// Several sessions want one workspace. Each gets it, one at a time.
func testLockTurns(t *testing.T, db *database) {
	var all []chan error
	inside := make(chan struct{}, 1)
	for range 5 {
		store := db.Open(t)
		defer closed(t, store)
		done := make(chan error, 1)
		all = append(all, done)
		go func() {
			s, err := store.Lock(context.Background(), []string{"w"}, sink.LockOptions{})
			if err == nil {
				select {
				case inside <- struct{}{}:
				default:
					err = errors.New("two have the lock")
				}
				time.Sleep(moment / 10)
				<-inside
				err = errors.Join(err, s.Close())
			}
			done <- err
		}()
	}
	for _, done := range all {
		noError(t, receive(t, done, "lock"))
	}
}
