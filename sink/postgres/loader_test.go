package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/linkforge/bulk/sink"
)

const loaderRows = 20_000

// loader is the process that TestKilled kills: it loads its links and goes.
func loader() int {
	if err := wholeRun(context.Background(), os.Getenv("BULK_TEST_LOADER"), 256<<10, generated(0, loaderRows)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A process is killed (not asked) at points spread over its load. The next one
// gets the locks, goes on with the run, and leaves what an uninterrupted run
// would have left.
func TestKilled(t *testing.T) {
	t.Parallel()
	links := generated(0, loaderRows)
	points := 4
	if testing.Short() {
		points = 1
	}
	if soak {
		points = 50
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t)
			prepare(t, dsn, way.before)
			begun := time.Now()
			if finished := killed(t, dsn, 5*time.Minute); !finished {
				t.Fatal("a loader that nobody killed did not come to its end")
			}
			took, left, kills := time.Since(begun), 0, 0
			for i := 0; i < points || kills == 0 && i < 20; i++ {
				script(t, dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
				prepare(t, dsn, way.before)
				if killed(t, dsn, took*time.Duration(i%points+1)/time.Duration(points+1)) {
					took -= took / 8 // a loader is faster than the first one was
				} else {
					kills++
				}
				finished := false
				if value[bool](t, dsn, "SELECT to_regclass('links') IS NOT NULL") {
					left += value[int](t, dsn, "SELECT count(*) FROM links")
					finished = value[bool](t, dsn, "SELECT EXISTS (SELECT FROM links_runs WHERE fingerprint = 'fault' AND state = 'finished')")
				}
				if !finished { // a run after it would be another one
					noError(t, wholeRun(context.Background(), dsn, batchBytes, links))
				}
				whole(t, dsn, links, way.before)
			}
			t.Logf("%d links were there at the %d kills", left, kills)
			if kills == 0 {
				t.Error("every loader came to its end")
			}
		})
	}
}

// killed starts a loader, kills it after a while, and reports whether it had
// come to its end by then.
func killed(t *testing.T, dsn string, after time.Duration) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BULK_TEST_LOADER="+dsn)
	var said strings.Builder
	cmd.Stderr = &said
	noError(t, cmd.Start())
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	if said.Len() > 0 {
		t.Fatal(said.String())
	}
	return err == nil
}

// The killed process's server was at work on a statement that would take long;
// it goes away all the same, and whoever waits for its lock says so.
func TestWaitsForTheBackendOfAKilledProcess(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	initialize(t, s)
	dead := openStore(t, dsn, Options{})
	session := locked(t, dead, "demo", sink.LockOptions{})
	conn := session.conn.PgConn()
	conn.Frontend().SendQuery(&pgproto3.Query{String: "SELECT pg_sleep(600)"})
	noError(t, conn.Frontend().Flush())
	holder := ""
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	next, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{Wait: func(h string) {
		holder = h
		conn.Conn().Close() // as the kernel does for a dead process
	}})
	noError(t, err)
	defer next.Close()
	if !regexp.MustCompile(`^"bulk run" \(backend \d+, connected since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\)$`).MatchString(holder) {
		t.Errorf("holder: %q", holder)
	}
}
