package main

import (
	"os"
	"runtime"
)

// spareThreads lets two more threads run Go code. What reads or writes past the page
// cache keeps its share of the scheduler for a while, though it computes nothing; of a
// run that spilled there is one of each under way, and the workers would go without.
// (30 million rows within 512 MiB on two processors: 27.6 s rather than 31.2; writing
// the mapping of 3 million that fit: 0.58 s rather than 0.62. Whoever waits for a store
// on the same processors is better off without.) Who sets GOMAXPROCS knows better.
func spareThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	}
}
