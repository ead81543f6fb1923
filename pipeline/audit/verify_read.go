package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/linkforge/bulk/pipeline/report"
	"golang.org/x/sync/errgroup"
)

// openReport opens a report; nil if it cannot be read, which is a finding.
func openReport[R any](v *verifier, name string, open func(path string) (*R, error)) (*R, error) {
	if slices.Contains(v.unread, name) {
		return nil, nil
	}
	r, err := open(v.path(name))
	if err != nil {
		_, err = v.damaged(name, err)
		return nil, err
	}
	return r, nil
}

// damaged makes a finding of a report that cannot be read, and returns any other
// error. Where it cannot be read on, the run is broken.
func (v *verifier) damaged(name string, err error) (again bool, _ error) {
	var cell *report.CellError
	if errors.As(err, &cell) {
		v.fault(name, cell.Row).wrong(Damaged, cell.Column, "", cell.Found)
		return true, nil
	}
	v.broken.Store(true)
	var damage *report.DamageError
	if errors.As(err, &damage) {
		v.fault(name, damage.Row).wrong(Damaged, "", "", damage.Err.Error())
		return false, nil
	}
	return false, fmt.Errorf("verify %s: %w", v.cfg.Dir, err)
}

// eachRow visits the rows that next gives, numbered from 1, and returns how many
// there are, those too that bad goes on after. They are not all if bad ends the
// reading without an error.
func eachRow[T any](ctx context.Context, next func() (T, error), bad func(error) (again bool, _ error), visit func(number int64, row T)) (rows int64, all bool, _ error) {
	for ; ; rows++ {
		if rows%(1<<12) == 0 && ctx.Err() != nil {
			return rows, false, context.Cause(ctx)
		}
		row, err := next()
		if err == io.EOF {
			return rows, true, nil
		}
		if err == nil {
			visit(rows+1, row)
		} else if again, err := bad(err); !again {
			return rows, false, err
		}
	}
}

// unreadable says what to do about an error of a reader that has been at its end
// before: faults of cells are findings already.
func unreadable(err error) (again bool, _ error) {
	if _, ok := err.(*report.CellError); ok {
		return true, nil
	}
	return false, err
}

// eof returns an error that is not the end of the rows.
func eof(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// inBlocks has workers visit the blocks that read fills. One goroutine reads: it is given
// a block, and for each one that it sends another. At most two a worker are under way.
func inBlocks[B any](ctx context.Context, workers int, read func(block *B, send func(*B) (*B, error)) error, visit func(worker int, block *B)) error {
	g, ctx := errgroup.WithContext(ctx)
	queue, free := make(chan *B), make(chan *B, 2*workers)
	for range cap(free) {
		free <- new(B)
	}
	g.Go(func() error {
		defer close(queue)
		return read(<-free, func(block *B) (*B, error) {
			select {
			case queue <- block:
				return <-free, context.Cause(ctx) // the workers go on to the end
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
	})
	for worker := range workers {
		g.Go(func() error {
			for block := range queue {
				visit(worker, block)
				free <- block
			}
			return nil
		})
	}
	return g.Wait()
}
