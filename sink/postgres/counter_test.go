package postgres

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sinktest"
)

// reservesIn names the variable that makes the test binary reserve numbers until it is killed.
const reservesIn = "BULK_TEST_RESERVES"

func TestKillReserving(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	store := openStore(t, dsn, Options{})
	initialize(t, store)
	sinktest.KillReserving(t, store, reservesIn+"="+dsn, 4)
}

// The connection of a run is cut at every message (without soak, every 5th), before the server has
// it or before the client has the answer. The run gets as many numbers as it wants, and the store
// gives out no others.
func TestReserveCutAtEveryMessage(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after=", after), func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t)
			database := value[string](t, dsn, "SELECT current_database()")
			step := int64(5)
			if soak {
				step = 1
			}
			for at, next := int64(1), int64(1); ; at, next = at+step, next+13 {
				p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", server.Port()), at, after)
				s := openStore(t, server.TCP(database, p.port()), Options{RetryFor: 5 * time.Minute})
				session, run := started(t, s, "demo", sink.LockOptions{})
				for _, n := range []int64{10, 13} {
					numbers, err := session.Reserve(context.Background(), run, n)
					if want := []sink.Range{{First: next, Last: next + n - 1}}; err != nil || !slices.Equal(numbers, want) {
						t.Fatalf("cut at message %d: numbers %v, want %v, %v", at, numbers, want, err)
					}
				}
				session.Close()
				s.Close()
				p.close()
				if got := value[int64](t, dsn, "SELECT next FROM links_counter"); got != next+13 {
					t.Fatalf("cut at message %d: the next number is %d, want %d", at, got, next+13)
				}
				if p.seen.Load() < at {
					t.Logf("%d messages", p.seen.Load())
					return
				}
			}
		})
	}
}
