package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sinktest"
)

// killedAt names the variable that makes the test binary load until it is killed.
const killedAt = "BULK_SQLITE_TEST_LOADS"

func TestMain(m *testing.M) {
	quick.SetUp()
	if path := os.Getenv(killedAt); path != "" {
		loadForever(path)
	}
	if path := os.Getenv(sweepsIn); path != "" {
		sweepForever(path)
	}
	if path := os.Getenv(reservesIn); path != "" {
		store, err := Open(context.Background(), path)
		if err != nil {
			panic(err)
		}
		sinktest.ReserveForever(store)
	}
	os.Exit(m.Run())
}

// loadForever loads the links of a run and says so after each 2,000, then
// waits for its end with the lock in its hands.
func loadForever(path string) {
	ctx := context.Background()
	store, err := Open(ctx, path)
	if err != nil {
		panic(err)
	}
	store.txRows, store.txTime = killRows, time.Hour
	s, err := store.Lock(ctx, []string{"w"}, sink.LockOptions{})
	if err != nil {
		panic(err)
	}
	run, err := s.Start(ctx, sink.Run{Fingerprint: "f", AsOf: asOf})
	if err != nil {
		panic(err)
	}
	err = s.Load(ctx, run, func(yield func([]sink.Link, error) bool) {
		links := makeLinks("w", 0, killLinks)
		for len(links) > 0 && yield(links[:killChunk], nil) {
			links = links[killChunk:]
			fmt.Println("chunk")
		}
		io.Copy(io.Discard, os.Stdin)
	})
	panic(err)
}

const (
	killLinks = 10_000
	killChunk = 2_000
	killRows  = 4_000 // of a transaction
)

// A process is killed in the middle of a load: its lock and the rows that it had
// not committed go with it, the others are found, and the run goes on.
func TestKill(t *testing.T) {
	for _, chunks := range []int{0, 1, 3, killLinks / killChunk} {
		t.Run(fmt.Sprint("chunks=", chunks), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			killAfter(t, path, chunks)
			store := open(t, path)
			s, err := store.Lock(context.Background(), []string{"w"}, sink.LockOptions{NoWait: true})
			noError(t, err)
			defer func() { noError(t, s.Close()) }()
			runs, err := s.Unfinished(context.Background())
			noError(t, err)
			if len(runs) == 0 && chunks == 0 {
				return // killed before it started the run
			}
			all := makeLinks("w", 0, killLinks)
			rest := missing(t, s, all, runs[0].ID)
			least := chunks * killChunk / killRows * killRows
			if stayed := len(all) - len(rest); stayed < least || stayed%killRows != 0 {
				t.Errorf("%d links stayed, of at least %d", stayed, least)
			}
			noError(t, s.Load(context.Background(), runs[0], oneChunk(rest)))
			if n := len(dump(t, path)); n != len(all) {
				t.Errorf("%d links", n)
			}
		})
	}
}

// started starts the test binary with a variable of its environment, and returns what it says.
func started(t *testing.T, variable string) (*exec.Cmd, *bufio.Scanner) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	noError(t, err)
	_, err = cmd.StdinPipe() // the process lives as long as it is open
	noError(t, err)
	noError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// killAfter starts a loading process and kills it after so many chunks.
func killAfter(t *testing.T, path string, chunks int) {
	cmd, lines := started(t, killedAt+"="+path)
	for range chunks {
		lines.Scan()
	}
	noError(t, cmd.Process.Kill())
	if cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		t.Error("the process ended by itself")
	}
}

// missing returns the links that the store has not got; the others are of the run.
func missing(t *testing.T, s sink.Session, all []sink.Link, run int32) (rest []sink.Link) {
	t.Helper()
	probes := make([]sink.Probe, len(all))
	for i, l := range all {
		probes[i] = sink.Probe{Workspace: l.Workspace, Code: l.Code, Key: l.Key, Canonical: l.Canonical, WantRun: true}
	}
	found := make([]bool, len(all))
	noError(t, s.Lookup(context.Background(), probes, func(f sink.Found) error {
		if !f.Same || f.Run != run {
			t.Errorf("found %+v", f)
		}
		found[f.Probe] = true
		return nil
	}))
	for i, l := range all {
		if !found[i] {
			rest = append(rest, l)
		}
	}
	return rest
}

// reservesIn names the variable that makes the test binary reserve numbers until it is killed.
const reservesIn = "BULK_SQLITE_TEST_RESERVES"

// Only one of the processes reserves at a time.
func TestKillReserving(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	store := open(t, path)
	inSession(t, store, func(*session, sink.Run) {})
	sinktest.KillReserving(t, store, reservesIn+"="+path, 3)
}
