package source

import (
	"fmt"
	"runtime/debug"
)

// cells yields the cells of a column, one a call; false is a null. A cell is
// valid until the next call.
type cells func() ([]byte, bool, error)

// table appends n rows to b, a cell of each column a row. It says whether more
// may follow.
func (b *batcher) table(n int64, cols []cells) (bool, error) {
	for ; n > 0; n-- {
		if b.full() {
			if err := b.flush(); err != nil {
				return false, err
			}
		}
		if b.limited() {
			b.in.cut = true
			return false, nil
		}
		size := 0
		for i, next := range cols {
			cell, ok, err := next()
			switch {
			case err != nil:
				return false, err
			case len(cell) > mostMaxField:
				return false, fmt.Errorf("column %q has a cell of %d bytes", b.in.Columns[i], len(cell))
			case !ok:
				b.null(i)
			default:
				b.cols[i].append(cell)
				size += len(cell)
			}
		}
		b.row(-1, size+8*len(cols)) // rows of nulls have a size too
	}
	return true, nil
}

// safely makes an error of a panic, unless it is one of emit: the decoders of
// Parquet and Arrow panic on some of the damage that a file may have.
func (in *Input) safely(what string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if in.emits {
				panic(p)
			}
			err = fmt.Errorf("%s is damaged: %v", what, p)
		}
	}()
	return f()
}
