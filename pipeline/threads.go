package pipeline

import (
	"os"
	"runtime"
	"sync"
)

// spare counts the runs that have spare threads.
var spare struct {
	mu          sync.Mutex
	runs, usual int // usual is GOMAXPROCS without them
}

// spareThreads lets two more threads run Go code, until its result is called. What
// reads or writes past the page cache keeps its share of the scheduler for a while,
// though it computes nothing; of a run that spilled there is one of each under way,
// and the workers would go without. (30 million rows within 512 MiB on two
// processors: 27.6 s rather than 31.2.) Who sets GOMAXPROCS knows better.
func spareThreads() (restore func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	spare.mu.Lock()
	defer spare.mu.Unlock()
	if spare.runs++; spare.runs == 1 {
		spare.usual = runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(spare.usual + 2)
	}
	return func() {
		spare.mu.Lock()
		defer spare.mu.Unlock()
		if spare.runs--; spare.runs == 0 {
			runtime.GOMAXPROCS(spare.usual)
		}
	}
}
