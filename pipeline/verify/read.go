package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/linkforge/bulk/pipeline/report"
	"golang.org/x/sync/errgroup"
)

// openReport opens a report; nil if it cannot be read, which is a finding.
func openReport[R any](v *verifier, name string, open func(path string) (*R, error)) (*R, error) {
	if slices.Contains(v.unread, name) {
		return nil, nil
	}
	r, err := open(filepath.Join(v.cfg.Dir, name))
	if err != nil {
		_, err = v.damaged(name, err)
		return nil, err
	}
	return r, nil
}

// damaged makes a finding of an error that means a damaged report, and returns any other
// error. Again says that only a cell is damaged and reading can continue; otherwise v.broken
// is set.
func (v *verifier) damaged(name string, err error) (again bool, _ error) {
	if cell, ok := errors.AsType[*report.CellError](err); ok {
		v.fault(name, cell.Row).wrong(Damaged, cell.Column, "", cell.Found)
		return true, nil
	}
	v.broken.Store(true)
	if damage, ok := errors.AsType[*report.DamageError](err); ok {
		v.fault(name, damage.Row).wrong(Damaged, "", "", damage.Err.Error())
		return false, nil
	}
	return false, fmt.Errorf("verify %s: %w", v.cfg.Dir, err)
}

// eachRow visits the rows that next returns, numbered from 1. It gives an error to bad, which
// says whether to continue with the next row; the number of the bad row is used up. It
// returns the number of rows, and whether these are all: bad may end the reading without an
// error.
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

// unreadable is the bad of eachRow for a report that is read again. Damaged cells are
// findings already; their rows are skipped.
func unreadable(err error) (again bool, _ error) {
	if _, ok := err.(*report.CellError); ok {
		return true, nil
	}
	return false, err
}

// eachLink visits the rows of the mapping again, in its order; of a run without one, none.
func (v *verifier) eachLink(ctx context.Context, visit func(l *link)) error {
	if v.run.mapping == "" {
		return nil
	}
	m, err := openReport(v, v.run.mapping, report.OpenMapping)
	if m == nil || err != nil {
		return err
	}
	defer m.Close()
	w := v.newChecker(m, true)
	_, _, err = eachRow(ctx, m.Next, unreadable, func(_ int64, r *report.MappingRow) {
		w.row.MappingRow = *r
		w.resolve(&w.row, false)
		visit(&w.row)
	})
	return err
}

// eof returns err; nil if it is io.EOF.
func eof(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// inBlocks lets workers visit blocks. One goroutine runs read, which fills them: it is given
// the first block, and send takes a full block and returns an empty one. There are two blocks
// for each worker.
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
				return <-free, context.Cause(ctx) // one will be: the workers go on until the queue is closed
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
