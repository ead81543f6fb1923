package verify

import (
	"cmp"
	"context"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/source"
)

// replay computes all rows of an input again, and adds up or sorts their sums.
func (c *inputCheck) replay(ctx context.Context, in *source.Input, number int, hashers []*rowHasher) error {
	workers := make([]*replayer, in.Workers(c.workers))
	layout := c.run.columns.Find(&in.Table)
	for i := range workers {
		workers[i] = &replayer{run: c.run, sums: hashers[i], rejected: c.books.rejected[number], joins: c.joins, in: in, layout: layout, number: number}
	}
	return in.Read(ctx, len(workers), func(worker int, b *source.Batch) error {
		w := workers[worker]
		if w.batch(b); w.sums.writer != nil {
			return w.sums.writer.Err()
		}
		return nil
	})
}

// A replayer computes rows of an input again, for one goroutine.
type replayer struct {
	run      *run
	sums     *rowHasher
	rejected *rowSet // rows of the input in rejects.csv; empty if it is read for the second time
	joins    bool    // only the inputs tell what rows say of their links
	in       *source.Input
	layout   columns.Layout
	number   int
	columns  source.Cells
	cells    [][]byte
	hand     judge.Row
	text     []byte // parts of the identity
	codes    []columns.Code
	url      []byte // that was resolved
}

func (w *replayer) batch(b *source.Batch) {
	w.columns.Of(b)
	for i, row := range b.Rows {
		if w.run.terms.Campaign != nil {
			w.variants(i, row, b.Offsets[i])
			continue
		}
		if w.codes = w.in.Codes(w.codes[:0], w.columns, i); len(w.codes) == 0 {
			w.row(i, row, b.Offsets[i], w.in.NoCode(w.cellOf(i)))
		}
		for _, code := range w.codes {
			w.row(i, row, b.Offsets[i], code)
		}
	}
	for _, e := range b.Errors {
		if w.cells = w.cells[:0]; e.Cells != nil {
			w.cells = w.layout.AppendShort(w.cells, e.Cells)
		}
		w.sums.file(w.number, e.Row, nil, nil, rowSums{input: true, rejected: w.sums.reject(string(e.Reason), e.Detail, e.Offset, e.Raw, w.cells)})
	}
}

// cellOf returns how to get the cells of a row.
func (w *replayer) cellOf(i int) func(column int) []byte {
	return func(c int) []byte { return w.columns.Cell(c, i) }
}

// row computes a row again that has a legacy code, whose text is nil if there is none.
func (w *replayer) row(i int, row, offset int64, code columns.Code) {
	original, input := w.columns.URL(w.in.URLs, i), []byte(nil)
	if w.run.terms.Base != nil {
		input = w.sums.written(original)
	}
	workspace := w.run.workspaceOf(w.columns.Cell(w.in.Workspace, i), code.Domain)
	// While sums are only added up, a row that is no reject of the run is taken for a
	// link, as the run says.
	s := rowSums{input: true, linked: w.sums.writer == nil && !w.rejected.has(row)}
	if !s.linked {
		s.linked, s.rejected = w.refused(i, row, offset, original, workspace, code)
	}
	if s.linked {
		s.said = w.say(i, row)
		s.link = w.sums.link(w.sums.written(w.run.resolved(&w.url, original)), input, w.sums.written(workspace), w.cells, code.Text, w.text)
	}
	w.sums.file(w.number, row, code.Text, workspace, s)
}

// say takes the carried cells of a row and the parts of its identity in hand, and returns what it says of its link, if
// only the inputs tell it.
func (w *replayer) say(i int, row int64) (said []byte) {
	w.cells = w.cells[:0]
	for _, c := range w.layout.Carried {
		w.cells = append(w.cells, w.sums.written(w.columns.Cell(c, i)))
	}
	w.text = w.text[:0]
	if flags := w.run.ruling.flags; flags != nil {
		w.hand.Number, w.hand.Cell = row, w.cellOf(i)
		_, _ = w.run.judge.Params(&w.run.judged[w.number], &w.hand)
		w.text = flags.Identity.AppendParts(w.text, &w.hand.Params)
		if w.sums.writer != nil && w.joins {
			said = w.hand.Params.Append(nil)
		}
	}
	return said
}

// variants computes the variants of a row of a campaign again, or its reject.
func (w *replayer) variants(i int, row, offset int64) {
	r, input := &w.hand, w.columns.URL(w.in.URLs, i)
	domain := w.in.NoCode(w.cellOf(i)).Domain
	workspace := w.run.workspaceOf(w.columns.Cell(w.in.Workspace, i), domain)
	r.Number, r.Original, r.Workspace, r.Code, r.Domain, r.Cell, r.Canonical = row, input, workspace, nil, domain, w.cellOf(i), r.Canonical[:0]
	reason, _ := w.run.judgeRow(w.number, r, 0)
	rejected := func(reason string) parts {
		w.cells = w.layout.Append(w.cells[:0], input, w.columns.Cell(w.in.Workspace, i), func(n int) []byte { return w.columns.Cell(w.layout.Carried[n], i) })
		return w.sums.reject(reason, "", offset, nil, w.cells)
	}
	if reason != "" {
		w.sums.file(w.number, row, nil, workspace, rowSums{input: true, rejected: rejected(reason)})
		return
	}
	late := rejected(outcome.CodeSpaceExhausted)
	said, to := w.say(i, row), w.sums.written(workspace)
	for r.Canonical = r.Canonical[:0]; w.run.judge.Variant(r); r.Canonical = r.Canonical[:0] {
		s := rowSums{input: true, linked: true, rejected: late, said: said}
		s.link = w.sums.link(w.sums.written(r.Original), input, to, w.cells, nil, w.text)
		w.sums.file(w.number, row, variantKey(r.Variants.Number()), workspace, s)
	}
}

// refused returns the sum of a row as a reject: for its reason, or, if it has none, as one
// whose codes are all taken. In that case the row may be a link instead.
func (w *replayer) refused(i int, row, offset int64, original, workspace []byte, code columns.Code) (maybe bool, _ parts) {
	var only map[int][]byte // one of several rows that one row became has its own code alone
	if len(w.codes) > 1 {
		only = w.in.VariantCells(code)
	}
	w.cells = w.layout.Append(w.cells[:0], original, w.columns.Cell(w.in.Workspace, i), func(n int) []byte {
		if cell, ok := only[w.layout.Carried[n]]; ok {
			return cell
		}
		return w.columns.Cell(w.layout.Carried[n], i)
	})
	r := &w.hand
	r.Number, r.Original, r.Workspace, r.Code, r.Domain, r.Cell, r.Canonical = row, original, workspace, code.Text, code.Domain, w.cellOf(i), r.Canonical[:0]
	reason, _ := w.run.judge.Row(&w.run.judged[w.number], r)
	return reason == "" && w.sums.writer != nil, w.sums.reject(cmp.Or(reason, outcome.CodeSpaceExhausted), "", offset, nil, w.cells)
}
