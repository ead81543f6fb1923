package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"golang.org/x/sync/errgroup"
)

// openReport opens a report; nil if it cannot be read, which is a finding. The first time
// cells that a spreadsheet would run are findings, too.
func openReport[R any](ctx context.Context, v *verifier, name string, first bool, open func(context.Context, string, readback.Options) (*R, error)) (*R, error) {
	if slices.Contains(v.unread, name) {
		return nil, nil
	}
	opts := readback.Options{ExcelSafe: v.run.terms.ExcelSafe, Columns: v.run.own}
	if first {
		opts.Unsafe = func(row int64, column, cell string) {
			v.fault(name, row).wrong(BadFormula, column, string(report.Defuse([]byte(cell))), cell)
		}
	}
	r, err := open(ctx, filepath.Join(v.cfg.Dir, name), opts)
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
	if cell, ok := errors.AsType[*readback.CellError](err); ok {
		v.fault(name, cell.Row).wrong(Damaged, cell.Column, "", cell.Found)
		return true, nil
	}
	v.broken.Store(true)
	if damage, ok := errors.AsType[*readback.DamageError](err); ok {
		v.fault(name, damage.Row).wrong(Damaged, "", "", damage.Err.Error())
		return false, nil
	}
	return false, fmt.Errorf("verify %s: %w", v.cfg.Dir, err)
}

// isCell reports whether an error of a report that is read again is a damaged cell: that
// is a finding already, and its row is skipped.
func isCell(err error) bool {
	_, ok := err.(*readback.CellError)
	return ok
}

// eachLink visits the rows of the mapping again, in its order; of a run without one, none.
func (v *verifier) eachLink(ctx context.Context, visit func(l *link)) error {
	if v.run.mapping == "" {
		return nil
	}
	m, err := openReport(ctx, v, v.run.mapping, false, readback.OpenMapping)
	if m == nil || err != nil {
		return err
	}
	defer m.Close()
	w := v.newChecker(m)
	for r, err := range m.Rows() {
		switch {
		case isCell(err):
		case err != nil:
			return err
		default:
			w.row.MappingRow = *r
			w.derive(w.row)
			visit(w.row)
		}
	}
	return nil
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
	queue, free := make(chan *B, workers), make(chan *B, 2*workers)
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
