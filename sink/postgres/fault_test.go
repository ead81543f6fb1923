package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// wholeRun does a run from Lock to Close.
func wholeRun(ctx context.Context, dsn string, batch int64, links []sink.Link) error {
	return disturbed(ctx, dsn, batch, links, func(int) {})
}

// disturbed is a run that calls f in the middle of its loads: before each chunk,
// with the number that this has among those of all loads, from 1.
func disturbed(ctx context.Context, dsn string, batch int64, links []sink.Link, f func(chunk int)) error {
	s, err := Open(ctx, dsn, Options{RetryFor: 5 * time.Minute})
	if err != nil {
		return err
	}
	defer s.Close()
	s.batchBytes.Store(batch)
	session, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{})
	if err != nil {
		return err
	}
	defer session.Close()
	_, err = settle(ctx, &disturbing{Session: session, f: f}, sink.Run{Fingerprint: "fault", AsOf: asOf}, links)
	return err
}

type disturbing struct {
	sink.Session
	chunk int
	f     func(chunk int)
}

func (d *disturbing) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	return d.Session.Load(ctx, run, func(yield func([]sink.Link, error) bool) {
		for c, err := range chunks {
			d.chunk++
			d.f(d.chunk)
			if !yield(c, err) {
				return
			}
		}
	})
}

// ways to load: into an empty table, and into one that has a link.
var ways = []struct {
	name   string
	before []sink.Link
	way    string // how Stats begins to tell it
}{{"empty", nil, "one transaction"}, {"rows", generated(1_000_000, 1_000_001), "batches"}}

// prepare stores what is there before, if that is anything, and leaves no connection.
func prepare(t testing.TB, dsn string, before []sink.Link) {
	t.Helper()
	if before == nil {
		return
	}
	s := openStore(t, dsn, Options{})
	defer s.Close()
	loadAll(t, s, before)
}

// soak makes the tests that go through many points go through all of them: make soak.
var soak = os.Getenv("BULK_SOAK") != ""

// The connection is cut at every message (without soak, every 19th) of a whole
// run, before the server has it or before the client has the answer, until a run
// is through without a cut.
func TestConnectionCutAtEveryMessage(t *testing.T) {
	t.Parallel()
	links := generated(0, 300)
	for _, way := range ways {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("into=%s/after=%t", way.name, after), func(t *testing.T) {
				t.Parallel()
				dsn := server.Database(t)
				database := value[string](t, dsn, "SELECT current_database()")
				step := int64(19)
				if soak {
					step = 1
				}
				for at := int64(1); ; at += step {
					script(t, dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
					prepare(t, dsn, way.before)
					p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", server.Port()), at, after)
					err := wholeRun(context.Background(), server.TCP(database, p.port()), 8<<10, links)
					p.close()
					if err != nil {
						t.Fatalf("cut at message %d: %v", at, err)
					}
					whole(t, dsn, links, way.before)
					if p.seen.Load() < at {
						t.Logf("%d messages", p.seen.Load())
						return
					}
				}
			})
		}
	}
}

// whole checks the table after a run that came to its end.
func whole(t testing.TB, dsn string, links, before []sink.Link) {
	t.Helper()
	conn := connect(t, dsn)
	defer conn.Close(context.Background())
	explained(t, dumpOf(t, conn, "links"), append(before[:len(before):len(before)], links...))
	if n := valueOf[int](t, conn, "SELECT count(*) FROM links"); n != len(links)+len(before) {
		t.Errorf("%d links, want %d", n, len(links)+len(before))
	}
	if n := valueOf[int](t, conn, "SELECT count(*) FROM links_runs WHERE fingerprint = 'fault' AND state = 'finished'"); n != 1 {
		t.Errorf("%d finished runs, want 1", n)
	}
	if n := valueOf[int](t, conn, "SELECT count(*) FROM links_runs WHERE state <> 'finished'"); n != 0 {
		t.Errorf("%d runs are not finished", n)
	}
	cleanOn(t, conn)
}

// Both ways of loading take several chunks to begin and have some left here.
const middle, later = 5, 12

func TestBackendsTerminated(t *testing.T) {
	t.Parallel()
	links := generated(0, 60_000)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t)
			prepare(t, dsn, way.before)
			database := value[string](t, dsn, "SELECT current_database()")
			hit := 0
			err := disturbed(context.Background(), dsn, 64<<10, links, func(chunk int) {
				if chunk != middle && chunk != later {
					return
				}
				n, err := server.Terminate(context.Background(), "datname = '"+database+"' AND application_name = 'bulk run'")
				if err != nil {
					t.Error(err)
				}
				hit += n
			})
			noError(t, err)
			if hit < 2 {
				t.Errorf("%d backends were terminated", hit)
			}
			whole(t, dsn, links, way.before)
		})
	}
}

func TestServerStoppedAndStarted(t *testing.T) {
	t.Parallel() // the only such test that stops the spare server
	links := generated(0, 60_000)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			dsn := spare.Database(t)
			prepare(t, dsn, way.before)
			times := 0
			err := disturbed(context.Background(), dsn, 64<<10, links, func(chunk int) {
				if chunk != middle && chunk != later {
					return
				}
				times++
				if err := spare.Stop(); err != nil {
					t.Error(err)
				}
				time.Sleep(100 * time.Millisecond) // the load sees that it is gone, or not
				if err := spare.Restart(); err != nil {
					t.Error(err)
				}
			})
			noError(t, err)
			if times != 2 {
				t.Errorf("the server was stopped %d times", times)
			}
			whole(t, dsn, links, way.before)
		})
	}
}

// A statement that somebody cancels ends the load for good and leaves nothing
// of it; the next run finishes the job.
func TestStatementCancelled(t *testing.T) {
	t.Parallel()
	links := generated(0, 60_000)
	dsn := server.Database(t)
	const cancel = `SELECT count(pg_cancel_backend(pid)) > 0 FROM pg_stat_activity
		WHERE datname = current_database() AND state = 'active' AND query LIKE 'COPY%'`
	err := disturbed(context.Background(), dsn, 64<<10, links, func(chunk int) {
		if chunk != middle {
			return
		}
		if err := eventually(dsn, cancel); err != nil {
			t.Error(err)
		}
	})
	if err == nil || class(err) != nil || !strings.Contains(err.Error(), "somebody cancelled the statement; run again") {
		t.Errorf("error %v, want a fatal one that says what to do", err)
	}
	if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != 0 {
		t.Errorf("%d links stayed", n)
	}
	noError(t, wholeRun(context.Background(), dsn, 64<<10, links))
	whole(t, dsn, links, nil)
}

// A batch that was committed although the answer was lost is not loaded again when it
// is tried again, nor is one of a run that has ended meanwhile.
func TestBatchAgain(t *testing.T) {
	ctx := context.Background()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	session := locked(t, s, "demo", sink.LockOptions{})
	run, err := session.Start(ctx, sink.Run{Fingerprint: "f", AsOf: asOf})
	noError(t, err)
	links := generated(0, 10)
	filled := func(seq int64, links []sink.Link) batch {
		b := batch{seq: seq, rows: int64(len(links))}
		for i := range links {
			b.data, _ = newEncoder(run).append(b.data, &links[i])
		}
		return b
	}
	into := copyInto(s.names.links, linksColumns, "")
	first, second := &load{session: session, run: run.ID, id: 1, into: into}, &load{session: session, run: run.ID, id: 2, into: into}
	for _, b := range []batch{filled(0, links[:5]), filled(0, links[:5]), filled(1, links[5:]), filled(0, links[:5])} {
		noError(t, first.try(ctx, b))
	}
	if err := second.try(ctx, filled(0, links)); !errors.Is(err, sink.ErrConflict) {
		t.Errorf("the same links by another load: %v", err)
	}
	if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != len(links) {
		t.Errorf("%d links", n)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := first.committed(over, session.conn, batch{}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody could be asked, and: %v", err)
	}
	if lost := s.Stats()["load_answers_lost"]; fmt.Sprint(lost) != "2" {
		t.Errorf("%v answers were lost", lost)
	}
	noError(t, errors.Join(session.Loaded(ctx, run), session.Finish(ctx, run)))
	if err := first.try(ctx, filled(2, generated(10, 20))); !errors.Is(err, sink.ErrConflict) || !strings.Contains(err.Error(), "or ended run 1") {
		t.Errorf("a batch of a run that has ended: %v", err)
	}
}

// Links for a table with rows are committed in transactions of about 8 MiB.
func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	prepare(t, dsn, generated(1_000_000, 1_000_001))
	s := openStore(t, dsn, Options{})
	links := generated(0, 2500)
	for i := range links { // 20 MB
		links[i].Original = bytes.Repeat([]byte("x"), 8<<10)
	}
	run := loadAll(t, s, links)
	if n := value[int](t, dsn, "SELECT count(DISTINCT xmin::text) FROM links WHERE run_id = $1", run.ID); n != 3 {
		t.Errorf("%d transactions", n)
	}
}

// A list of links that breaks off in the middle is an error, and is not begun anew:
// some were visited.
func TestScanBreaksOff(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	links := generated(0, 8000)
	for i := range links { // 64 MB, more than is under way at once
		links[i].Original = bytes.Repeat([]byte("x"), 8<<10)
	}
	loadAll(t, s, links)
	visited := 0
	err := s.Scan(context.Background(), func(*sink.Stored) error {
		if visited++; visited == 1 {
			script(t, dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		}
		return nil
	})
	if !errors.Is(err, sink.ErrRetryable) || visited == 0 || visited == 8000 {
		t.Errorf("%d links and error %v", visited, err)
	}
}

// Settings of the role do not end a load.
func TestSettingsOfTheRole(t *testing.T) {
	t.Parallel()
	links := generated(0, 20_000)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel() // most of it is pauses
			dsn := server.Database(t)
			prepare(t, dsn, way.before)
			// A connection from before the settings, which could end ours too.
			conn := connect(t, dsn)
			name := conn.Config().Database
			for _, setting := range []string{"statement_timeout = '3s'", "lock_timeout = '1ms'", "idle_session_timeout = '3s'",
				"idle_in_transaction_session_timeout = '3s'", "DateStyle = 'SQL, DMY'", "quote_all_identifiers = on", "synchronous_commit = off"} {
				noError(t, execAll(context.Background(), conn, "ALTER ROLE postgres IN DATABASE "+name+" SET "+setting))
			}
			s := openStore(t, dsn, Options{RetryFor: -1})
			other := openStore(t, dsn, Options{RetryFor: -1})
			before, err := other.Lock(context.Background(), []string{"demo"}, sink.LockOptions{})
			noError(t, err)
			waits := func(string) { time.AfterFunc(100*time.Millisecond, func() { before.Close() }) }
			session := locked(t, s, "demo", sink.LockOptions{Wait: waits})
			// Asked for, since only a client that gets no processor is idle in a transaction, and only a server that crashes forgets.
			var idle, commit string
			const both = "SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('synchronous_commit')"
			if err := session.conn.QueryRow(context.Background(), both).Scan(&idle, &commit); err != nil || idle != "0" || commit != "local" {
				t.Errorf("a transaction may be idle for %s, a commit is %s, %v", idle, commit, err)
			}
			run, err := session.Start(context.Background(), sink.Run{Fingerprint: "f", AsOf: asOf})
			noError(t, err)
			err = session.Load(context.Background(), run, func(yield func([]sink.Link, error) bool) {
				for c := range pieces(links) {
					time.Sleep(700 * time.Millisecond)
					if !yield(c, nil) {
						return
					}
				}
			})
			noError(t, err)
			if got := s.Stats()["load_way"].(string); !strings.HasPrefix(got, way.way) {
				t.Errorf("loaded by %s", got)
			}
			var n int
			err = conn.QueryRow(context.Background(), "SELECT count(*) FROM links WHERE run_id = $1 AND created_at = $2", run.ID, asOf).Scan(&n)
			if err != nil || n != len(links) {
				t.Errorf("%d links, %v", n, err)
			}
		})
	}
}

// Somebody reads the empty table in an open transaction: the load does not wait
// for long, and takes the way that needs no lock.
func TestReaderOfTheEmptyTable(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	initialize(t, s)
	reader := connect(t, dsn)
	noError(t, execAll(context.Background(), reader, "BEGIN", "SELECT * FROM links"))
	links := generated(0, 1000)
	loadAll(t, s, links)
	expect(t, dump(t, dsn, "links"), links)
	if way := s.Stats()["load_way"].(string); !strings.Contains(way, "lock timeout") {
		t.Error(way)
	}
}

// An online service takes codes and URLs of the batch while it is loaded. Into a
// table with rows it gets in between; a first load it waits for.
func TestWriterHammers(t *testing.T) {
	t.Parallel()
	links := generated(0, 8_000)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t)
			prepare(t, dsn, way.before)
			taken, stopped, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			stop := sync.OnceFunc(func() { close(stopped) })
			defer stop()
			inserted := func(n int) {
				for range n {
					if _, ok := <-taken; !ok {
						t.Error("the writer ended")
					}
				}
			}
			err := disturbed(context.Background(), dsn, 64<<10, links, func(chunk int) {
				switch chunk {
				case 1:
					go func() { done <- hammer(dsn, links, taken, stopped) }()
					if way.before != nil {
						inserted(10)
					}
				case 40:
					stop() // lest the load meets conflicts for ever
				}
			})
			noError(t, err)
			if way.before == nil {
				inserted(1)
			}
			stop()
			noError(t, <-done)
			explained(t, dump(t, dsn, "links"), links)
			clean(t, dsn)
		})
	}
}

// hammer inserts links under codes of the batch or for URLs of the batch, as a
// service would that uses the same scheme, until it is stopped. Whoever waits for
// it at taken is told of one that it got in.
func hammer(dsn string, links []sink.Link, taken chan<- struct{}, stopped <-chan struct{}) error {
	defer close(taken)
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for i := 0; ; i++ {
		select {
		case <-stopped:
			return nil
		case <-time.After(time.Millisecond / 2):
		}
		l := links[rand.N(len(links))]
		code := salted(l, i%3)
		if i%2 == 1 { // another URL under the code
			l.Code, l.Key = code, sink.Key{1: 1, 2: byte(i >> 8), 3: byte(i)}
			l.Canonical = fmt.Appendf(nil, "https://online.example/%d", i)
		}
		_, err := conn.Exec(context.Background(), "INSERT INTO links VALUES ('demo', $1, $2, $3, NULL, 0, now(), now())",
			string(code), l.Key, string(l.Canonical))
		if state(err) == "23505" {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case taken <- struct{}{}:
		default:
		}
	}
}
