package sinktest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// ReserveForever is a process that KillReserving kills: a run in a workspace of its own, which
// reserves more and more numbers and writes a line each time.
func ReserveForever(store sink.Store) {
	ctx, workspace := context.Background(), fmt.Sprint(os.Getpid())
	s, err := store.Lock(ctx, []string{workspace}, sink.LockOptions{})
	if err != nil {
		panic(err)
	}
	run, err := s.Start(ctx, sink.Run{Fingerprint: workspace, AsOf: asOf})
	for n := int64(1); err == nil; n += 1 + n%5 {
		_, err = s.Reserve(ctx, run, n)
		fmt.Println(n)
	}
	panic(err)
}

// KillReserving starts so many processes at the same time, and kills each while it reserves
// numbers. The variable makes the test binary call ReserveForever. No number is given out twice,
// and none is lost.
func KillReserving(t *testing.T, store sink.Store, variable string, processes int) {
	for range 5 {
		var wg sync.WaitGroup
		for range processes {
			wg.Go(func() {
				if err := killReserving(variable); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		given(t, store)
	}
}

func killReserving(variable string) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	for lines, n := bufio.NewScanner(out), rand.N(20); n >= 0 && lines.Scan(); n-- {
	}
	time.Sleep(rand.N(5 * time.Millisecond))
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		return fmt.Errorf("the process ended by itself: %v", cmd.ProcessState)
	}
	return nil
}

// given fails the test unless the store has given each number up to the next one to one run. It
// returns how many there are. (A server may still be at the last commit of a process that was killed.)
func given(t *testing.T, store sink.Store) int64 {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		count, next := givenNow(t, store)
		if count == next-1 {
			return count
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d numbers, with %d as the next one", count, next)
		}
	}
}

func givenNow(t *testing.T, store sink.Store) (count, next int64) {
	t.Helper()
	runs, err := store.Runs(context.Background())
	noError(t, err)
	peek, err := store.Peek(context.Background())
	noError(t, err)
	defer closed(t, peek)
	next, err = peek.NextNumber(context.Background())
	noError(t, err)
	owners := map[int64]int32{}
	for _, run := range runs {
		for _, r := range run.Numbers {
			for n := r.First; n <= r.Last; n++ {
				if owner := owners[n]; owner != 0 || n < 1 || n >= next {
					t.Fatalf("number %d of runs %d and %d, with %d as the next one", n, owner, run.ID, next)
				}
				owners[n] = run.ID
			}
		}
	}
	return int64(len(owners)), next
}
