package verify

import (
	"cmp"
	"context"
	"slices"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/source"
)

// A replayed input is one that is read again, as the manifest says that it was
// read.
type replayed struct {
	*source.Input
	carried []int // for each carried column of the run, its column here; -1: none
	cells   []int // for each column of the run, the same; fromURL: that of the URL
}

const (
	absent  = -1
	fromURL = -2
)

// find finds the columns of the run in the input. Those that the URL or the
// workspace is taken from are not carried.
func (in *replayed) find(all, carried []string) {
	at := make(map[string]int, len(in.Columns))
	for c, name := range in.Columns {
		at[name] = c
	}
	in.cells, in.carried = make([]int, 0, len(all)), make([]int, 0, len(carried))
	for _, name := range all {
		c, ok := at[name]
		if !ok || slices.Contains(in.URLs[1:], c) {
			c = absent
		} else if c == in.URLs[0] {
			c = fromURL
		}
		in.cells = append(in.cells, c)
	}
	for _, name := range carried {
		c, ok := at[name]
		if !ok || slices.Contains(in.URLs, c) || c == in.Workspace {
			c = absent
		}
		in.carried = append(in.carried, c)
	}
}

// replay makes all rows of an input again, and files or adds up their sums.
func (v *verifier) replay(ctx context.Context, in *replayed, number int, hashers []*rowHasher) error {
	workers := make([]*replayer, in.Workers(v.cfg.Workers))
	for i := range workers {
		workers[i] = &replayer{rowHasher: hashers[i], in: in, number: number}
	}
	return in.Read(ctx, len(workers), func(worker int, b *source.Batch) error {
		w := workers[worker]
		if w.batch(b); w.writer != nil {
			return w.writer.Err()
		}
		return nil
	})
}

// A replayer does rows of an input again, for one goroutine.
type replayer struct {
	*rowHasher
	in      *replayed
	number  int
	columns []*array.Binary
	cells   [][]byte
	canon   []byte
}

func (w *replayer) batch(b *source.Batch) {
	w.columns = w.columns[:0]
	for _, column := range b.Record.Columns() {
		w.columns = append(w.columns, column.(*array.Binary))
	}
	for i, row := range b.Rows {
		w.row(i, row, b.Offsets[i])
	}
	for _, e := range b.Errors {
		w.file(w.number, e.Row, rowSums{input: true, rejected: w.reject(string(e.Reason), e.Detail, e.Offset, e.Raw, nil)})
	}
}

func (w *replayer) row(i int, row, offset int64) {
	var original []byte
	for _, c := range w.in.URLs {
		if original = w.cell(c, i); len(original) > 0 {
			break
		}
	}
	workspace := w.v.run.workspace
	if cell := w.cell(w.in.Workspace, i); len(cell) > 0 {
		workspace = cell
	}
	// While rows are only added up, the run is believed as to what is a link: it
	// is one if it is no reject.
	s := rowSums{input: true, linked: w.writer == nil && !w.v.rejected[w.number].has(row)}
	if !s.linked {
		s.linked, s.rejected = w.refused(i, offset, original, workspace)
	}
	if s.linked {
		w.cells = w.cells[:0]
		for _, c := range w.in.carried {
			w.cells = append(w.cells, w.written(w.cell(c, i)))
		}
		s.link = w.link(w.written(original), w.written(workspace), w.cells)
	}
	w.file(w.number, row, s)
}

// refused sums a row as a reject: for what is wrong with it, or else as one whose codes
// are exhausted. That it may instead be a link, unless it is known to be none.
func (w *replayer) refused(i int, offset int64, original, workspace []byte) (maybe bool, _ parts) {
	w.cells = w.cells[:0]
	for _, c := range w.in.cells {
		if c == fromURL {
			w.cells = append(w.cells, original)
		} else {
			w.cells = append(w.cells, w.cell(c, i))
		}
	}
	reason := ""
	reason, _, w.canon = w.v.run.refuse(w.canon, original, workspace)
	return reason == "" && w.writer != nil, w.reject(cmp.Or(reason, outcome.CodeSpaceExhausted), "", offset, nil, w.cells)
}

// cell returns the bytes of a cell; nil for null and for a column that is absent.
func (w *replayer) cell(column, i int) []byte {
	if column < 0 || w.columns[column].IsNull(i) {
		return nil
	}
	if cell := w.columns[column].Value(i); cell != nil {
		return cell
	}
	return []byte{}
}
