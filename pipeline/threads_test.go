package pipeline

import (
	"runtime"
	"testing"
)

// Runs at the same time share the spare threads, and the last one gives them back.
func TestSpareThreads(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	usual := runtime.GOMAXPROCS(0)
	first, second := spareThreads(), spareThreads()
	if n := runtime.GOMAXPROCS(0); n != usual+2 {
		t.Errorf("%d threads beside the usual %d", n-usual, usual)
	}
	first()
	if n := runtime.GOMAXPROCS(0); n != usual+2 {
		t.Errorf("one of two runs took them all: %d", n)
	}
	second()
	if n := runtime.GOMAXPROCS(0); n != usual {
		t.Errorf("%d threads afterwards, usual are %d", n, usual)
	}
	t.Setenv("GOMAXPROCS", "1")
	spareThreads()()
	if n := runtime.GOMAXPROCS(0); n != usual {
		t.Errorf("GOMAXPROCS was set, and there are %d threads", n)
	}
}
