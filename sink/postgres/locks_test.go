package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// While a session has lost its locks, an undo deletes links that it has found. It gets a
// conflict, with both ways of loading, before and after the load.
func TestLostLocksAreAConflict(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, way := range ways {
		for _, loaded := range []bool{false, true} {
			t.Run(fmt.Sprintf("into=%s/loaded=%t", way.name, loaded), func(t *testing.T) {
				dsn := server.Database(t)
				prepare(t, dsn, way.before)
				links := generated(0, 200)
				s, other := openStore(t, dsn, Options{}), openStore(t, dsn, Options{})
				old := loadAll(t, other, links[:100])

				session, run := started(t, s, "demo", sink.LockOptions{})
				rest, err := unsettled(ctx, session, links)
				if err != nil || len(rest) != 100 {
					t.Fatalf("%d links to load, %v", len(rest), err)
				}
				step := func() error { return session.Load(ctx, run, pieces(rest)) }
				if loaded {
					noError(t, step())
					step = func() error { return session.Loaded(ctx, run) }
				}
				terminate(t, dsn, session)
				if got, err := other.Undo(ctx, old.ID, sink.LockOptions{}, nil); err != nil || got.Deleted != 100 {
					t.Fatalf("%+v, %v", got, err)
				}
				if err := step(); !errors.Is(err, sink.ErrConflict) || !errors.Is(err, sink.ErrLost) {
					t.Errorf("error %v, want a conflict by a lost connection", err)
				}
				if state := value[string](t, dsn, "SELECT state FROM links_runs WHERE run_id = $1", run.ID); state != string(sink.Loading) {
					t.Errorf("the run is %s", state)
				}
				run, err = settle(ctx, session, run, links)
				noError(t, err)
				if n := value[int](t, dsn, "SELECT count(*) FROM links WHERE run_id = $1", run.ID); n != len(links) {
					t.Errorf("%d links of the run, want %d", n, len(links))
				}
			})
		}
	}
}

// A session that lost its locks does not resume a run that is over meanwhile.
func TestLostLocksOfARunThatIsOver(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for state, end := range map[string]func(s *Store, dsn string, run sink.Run, links []sink.Link) error{
		"finished": func(_ *Store, dsn string, _ sink.Run, links []sink.Link) error {
			return wholeRun(ctx, dsn, batchBytes, links)
		},
		"undone": func(s *Store, _ string, run sink.Run, _ []sink.Link) error {
			_, err := s.Undo(ctx, run.ID, sink.LockOptions{}, nil)
			return err
		},
	} {
		t.Run(state, func(t *testing.T) {
			dsn := server.Database(t)
			s := openStore(t, dsn, Options{})
			session, run := started(t, s, "demo", sink.LockOptions{})
			terminate(t, dsn, session)
			noError(t, end(s, dsn, run, generated(0, 10)))
			if _, err := session.Start(ctx, run); !errors.Is(err, sink.ErrConflict) || !strings.Contains(err.Error(), state) {
				t.Errorf("error %v, want a conflict", err)
			}
		})
	}
}

// It does not set a profile or a scheme: another run may have set it, and loaded links.
func TestLostLocksSetNoProfile(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{})
	session, _ := started(t, s, "demo", sink.LockOptions{})
	terminate(t, dsn, session)
	for _, lost := range []bool{true, false} {
		if err := session.SetProfile(ctx, []string{"demo"}, "linkforge-1+fragment"); errors.Is(err, sink.ErrLost) != lost || !lost && err != nil {
			t.Errorf("error %v", err)
		}
		if set, err := session.Profiles(ctx, nil); err != nil || len(set) > 0 == lost {
			t.Errorf("profiles %q, %v", set, err)
		}
	}
	terminate(t, dsn, session)
	for _, lost := range []bool{true, false} {
		if err := session.SetScheme(ctx, []string{"demo"}, sink.Scheme{Name: "keyed-base62"}); errors.Is(err, sink.ErrLost) != lost || !lost && err != nil {
			t.Errorf("error %v", err)
		}
		if set, err := session.Schemes(ctx, nil); err != nil || len(set) > 0 == lost {
			t.Errorf("schemes %+v, %v", set, err)
		}
	}
}

// It does not finish a run that an undo has begun to delete.
func TestLostLocksOfARunUndoneInPart(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s, links := openStore(t, dsn, Options{}), generated(0, 10)
	session, run := started(t, s, "demo", sink.LockOptions{})
	noError(t, errors.Join(session.Load(ctx, run, pieces(links)), session.Loaded(ctx, run)))
	execute(t, dsn, "UPDATE links SET updated_at = now() WHERE short_code = $1", string(links[3].Code))
	terminate(t, dsn, session)
	cut := errors.New("cut off")
	if _, err := s.Undo(ctx, run.ID, sink.LockOptions{}, func(sink.Kept) error { return cut }); err != cut {
		t.Fatalf("error %v", err)
	}
	if err := session.Finish(ctx, run); err == nil || class(err) != nil {
		t.Errorf("error %v, want a fatal one", err)
	}
	if state := value[string](t, dsn, "SELECT state FROM links_runs"); state != string(sink.Loading) {
		t.Errorf("the run is %s", state)
	}
}

// terminate ends the backend that holds a session's locks.
func terminate(t testing.TB, dsn string, session *session) {
	t.Helper()
	if !value[bool](t, dsn, "SELECT pg_terminate_backend($1)", int32(session.conn.PgConn().PID())) {
		t.Fatal("the backend was gone already")
	}
}

// A session with NoWait does not wait for lost locks that another run has. The backend of
// its own lost connection is ended.
func TestLostLocksAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s, other := openStore(t, dsn, Options{}), openStore(t, dsn, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	session := locked(t, s, "demo", sink.LockOptions{NoWait: true})

	conn := session.conn.PgConn()
	conn.Frontend().SendQuery(&pgproto3.Query{String: "DO $$ BEGIN PERFORM pg_sleep(600);" + // the driver cancels it, and in vain
		" EXCEPTION WHEN query_canceled THEN PERFORM pg_sleep(600); END $$"})
	noError(t, conn.Frontend().Flush())
	noError(t, eventually(dsn, "SELECT count(*) > 0 FROM "+asleep))
	conn.Conn().Close()
	if _, err := session.Start(ctx, sink.Run{Fingerprint: "f", AsOf: asOf}); err != nil {
		t.Errorf("while the server has not noticed: %v", err)
	}

	terminate(t, dsn, session)
	locked(t, other, "demo", sink.LockOptions{})
	if _, err := session.Start(ctx, sink.Run{Fingerprint: "g", AsOf: asOf}); !errors.Is(err, sink.ErrLocked) {
		t.Errorf("error %v, want ErrLocked", err)
	}
}

// The next session does not fail because of one whose connection was lost, even if the
// server has not noticed.
func TestLostLocksOfTheSessionBefore(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{})
	before := locked(t, s, "demo", sink.LockOptions{NoWait: true})
	left := before.conn
	defer hangUp(left)
	before.conn = connect(t, dsn)
	hangUp(before.conn)
	noError(t, before.Close())
	next, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{NoWait: true})
	noError(t, err)
	next.Close()
}

// A batch that is under way when the locks are lost is not committed: another run may have
// them by then.
func TestLostLocksUnderABatch(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s, other := openStore(t, dsn, Options{}), openStore(t, dsn, Options{})
	session, run := started(t, s, "demo", sink.LockOptions{NoWait: true})
	gate := connect(t, dsn)
	noError(t, execAll(ctx, gate, `CREATE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$`,
		"CREATE TRIGGER halt BEFORE INSERT ON links EXECUTE FUNCTION halt()",
		"SELECT pg_advisory_lock(1)"))
	holder := session.conn.PgConn().PID()
	var taken sink.Session
	var g errgroup.Group
	g.Go(func() (err error) {
		defer gate.Close(ctx)
		if err := eventually(dsn, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND "+advisory); err != nil {
			return err
		}
		if err := eventually(dsn, fmt.Sprintf("SELECT pg_terminate_backend(%d)", holder)); err != nil {
			return err
		}
		taken, err = other.Lock(ctx, []string{"demo"}, sink.LockOptions{})
		return err
	})
	if err := session.Load(ctx, run, pieces(generated(0, 10))); !errors.Is(err, sink.ErrLocked) {
		t.Errorf("error %v, want ErrLocked", err)
	}
	noError(t, g.Wait())
	defer taken.Close()
	if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != 0 {
		t.Errorf("%d links were committed without the locks", n)
	}
}

// A session that is closed after its load was cut off leaves no lock to a server
// that still reads what was under way.
func TestCancelledLoadLeavesNoLocks(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s, next := openStore(t, dsn, Options{}), openStore(t, dsn, Options{})
	links := generated(0, 100_000)
	for range 3 {
		session, run := started(t, s, "demo", sink.LockOptions{NoWait: true})
		ctx, cancel := context.WithCancel(context.Background())
		err := session.Load(ctx, run, func(yield func([]sink.Link, error) bool) {
			for c := range pieces(links) {
				if !yield(c, nil) {
					return
				}
			}
			cancel()
			<-ctx.Done()
			yield(nil, ctx.Err())
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		session.Close()
		locked(t, next, "demo", sink.LockOptions{NoWait: true}).Close()
	}
}

// Two sessions of one store load at the same time, and meet conflicts. (What they
// share is for the race detector to see.)
func TestTwoSessionsOfAStoreLoad(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openStore(t, server.Database(t), Options{})
	taken := generated(0, 1)
	loadAll(t, s, taken)
	var g errgroup.Group
	for _, workspace := range []string{"v", "w"} {
		session, run := started(t, s, workspace, sink.LockOptions{})
		g.Go(func() error {
			for range 100 {
				if err := session.Load(ctx, run, pieces(taken)); !errors.Is(err, sink.ErrConflict) {
					return fmt.Errorf("error %w, want a conflict", err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if size := s.batchBytes.Load(); size != leastBatch {
		t.Errorf("batches of %d bytes", size)
	}
}

// A session holds the store's lock shared and those of its workspaces in their order;
// one of more than 64 holds the store's alone, and so shuts out those that it does not
// name.
func TestLocksOfManyWorkspaces(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{})
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprintf("w%02d", i))
	}
	whole := s.lockKey("store", "")
	few := []lock{{whole, true}}
	for _, w := range many[:64] {
		few = append(few, lock{s.lockKey("workspace", w), false})
	}
	for _, c := range []struct {
		workspaces []string
		locks      []lock
		others     error // of a session on one that these do not name
	}{{many[:64], few, nil}, {many, []lock{{whole, false}}, sink.ErrLocked}} {
		if got := s.locks(c.workspaces); !slices.Equal(got, c.locks) {
			t.Errorf("%d locks of %d workspaces, want %d, or others", len(got), len(c.workspaces), len(c.locks))
		}
		session, err := s.Lock(ctx, c.workspaces, sink.LockOptions{NoWait: true})
		noError(t, err)
		for name, want := range map[string]error{"other": c.others, many[63]: sink.ErrLocked} {
			other, err := s.Lock(ctx, []string{name}, sink.LockOptions{NoWait: true})
			if !errors.Is(err, want) {
				t.Errorf("beside %d workspaces, %s: %v, want %v", len(c.workspaces), name, err, want)
			}
			if err == nil {
				other.Close()
			}
		}
		session.Close()
	}
}

// waits has a store wait, turns of a millisecond at a time, for locks that a run of
// workspace demo of another store holds. It returns that store, and what ends both.
func waits(t *testing.T, dsn string, lock func(waiter *Store) (*session, error)) (holder *Store, end func()) {
	t.Helper()
	holder, waiter := openStore(t, dsn, Options{}), openStore(t, dsn, Options{})
	waiter.lockTurn = time.Millisecond
	held, err := holder.Lock(context.Background(), []string{"demo"}, sink.LockOptions{})
	noError(t, err)
	var g errgroup.Group
	g.Go(func() error {
		session, err := lock(waiter)
		if err != nil {
			return err
		}
		return session.Close()
	})
	return holder, func() {
		if err := errors.Join(held.Close(), g.Wait(), holder.Close(), waiter.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A statement that waits for a lock holds up VACUUM in the whole database: it waits a
// turn at a time.
func TestWaitingTakesTurns(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	_, end := waits(t, dsn, func(waiter *Store) (*session, error) {
		return waiter.lock(ctx, waiter.locks([]string{"demo"}), sink.LockOptions{})
	})
	defer end()
	const turn = `SELECT coalesce(max(xact_start)::text, '') FROM pg_stat_activity JOIN pg_locks USING (pid)
		WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()`
	seen := map[string]bool{"": true}
	long, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for len(seen) < 4 && long.Err() == nil {
		seen[value[string](t, dsn, turn)] = true
	}
	if len(seen) < 4 {
		t.Error("one statement waits without end")
	}
}

// No run overtakes a session that waits for all runs.
func TestWaitingForAllIsNotOvertaken(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	holder, end := waits(t, dsn, func(waiter *Store) (*session, error) {
		return waiter.lock(ctx, []lock{{waiter.lockKey("store", ""), false}}, sink.LockOptions{})
	})
	defer end()
	noError(t, eventually(dsn, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND "+advisory))
	for i := range 200 {
		if _, err := holder.Lock(ctx, []string{"other"}, sink.LockOptions{NoWait: true}); !errors.Is(err, sink.ErrLocked) {
			t.Fatalf("try %d: error %v", i, err)
		}
	}
}
