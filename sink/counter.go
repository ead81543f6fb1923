package sink

import (
	"context"
	"slices"
)

// A Range is the numbers from First to Last.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Extend is the arithmetic of Reserve. It returns the ranges of a run that has n numbers, and the
// next number of the store after that. That is next itself if the run has them already. A next number of
// 0 stands for 1.
func (r *Run) Extend(n, next int64) (numbers []Range, after int64) {
	for _, have := range r.Numbers {
		n -= have.Last - have.First + 1
	}
	if n <= 0 {
		return r.Numbers, next
	}
	first := max(next, 1)
	numbers, after = slices.Clone(r.Numbers), first+n
	if k := len(numbers) - 1; k >= 0 && numbers[k].Last == first-1 {
		numbers[k].Last = after - 1
	} else {
		numbers = append(numbers, Range{first, after - 1})
	}
	return numbers, after
}

// A CounterSession is what a Session does for the counter, of which a store has one.
type CounterSession interface {
	// NextNumber returns the number that the store gives out next; 0 if it has given out none, and the
	// counter was not moved.
	NextNumber(ctx context.Context) (int64, error)
	// MoveCounter moves the counter: the store gives out start next. If it gives out that or a higher
	// number next, nothing is changed. It returns what NextNumber returned before.
	MoveCounter(ctx context.Context, start int64) (int64, error)
	// Reserve gives numbers to an unfinished run until it has n of them, and returns all its
	// numbers in the order in which it got them. It can be repeated: a run that has n numbers
	// gets no more. The numbers stand in Run.Numbers from then on.
	//
	// The first number of the store is 1. Numbers only grow, and each is given out once: also if the
	// process is killed, if the run is undone, and if many runs reserve at the same time.
	Reserve(ctx context.Context, run Run, n int64) ([]Range, error)
}
