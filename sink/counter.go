package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A Range is the numbers from First to Last.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// FirstNumber returns the number that a new reservation begins with: next, if the store has
// given out numbers; else start, or 1 if that is 0. If there are both, the error wraps
// ErrCounterBegun.
func FirstNumber(next, start int64) (int64, error) {
	switch {
	case next == 0:
		return max(start, 1), nil
	case start > 0:
		return 0, fmt.Errorf("%w: the next one is %d; leave out Config.Scheme.CounterStart", ErrCounterBegun, next)
	}
	return next, nil
}

// Extend is the arithmetic of Reserve. It returns the ranges of a run that has n numbers, and the
// next number of the store after that. That is next itself if the run has them already.
func (r *Run) Extend(n, start, next int64) (numbers []Range, after int64, err error) {
	for _, have := range r.Numbers {
		n -= have.Last - have.First + 1
		start = 0
	}
	first, err := FirstNumber(next, start)
	if err != nil || n <= 0 {
		return r.Numbers, next, err
	}
	numbers, after = slices.Clone(r.Numbers), first+n
	if k := len(numbers) - 1; k >= 0 && numbers[k].Last == first-1 {
		numbers[k].Last = after - 1
	} else {
		numbers = append(numbers, Range{first, after - 1})
	}
	return numbers, after, nil
}

// ErrCounterBegun is the class of the error of a counter that shall start anew.
var ErrCounterBegun = errors.New("the store has given out numbers already")

// A CounterSession is what a Session does for the counter, of which a store has one.
type CounterSession interface {
	// NextNumber returns the number that the store gives out next; 0 if it has given out none.
	NextNumber(ctx context.Context) (int64, error)
	// Reserve gives numbers to an unfinished run until it has n of them, and returns all its
	// numbers in the order in which it got them. It can be repeated: a run that has n numbers
	// gets no more. The numbers stand in Run.Numbers from then on.
	//
	// The first number of the store is start, or 1 if that is 0. If there is a start, and the store
	// has given out numbers, but none to this run, the error wraps ErrCounterBegun. Numbers only
	// grow, and each is given out once: also if the process is killed, if the run is undone, and
	// if many runs reserve at the same time.
	Reserve(ctx context.Context, run Run, n, start int64) ([]Range, error)
}
