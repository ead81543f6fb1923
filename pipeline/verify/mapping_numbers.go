package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/rules"
)

// readNumbers reads which numbers the run took.
func (r *run) readNumbers(bad func(field string, expected, got any)) {
	n := r.manifest.Numbers
	if n == nil || !r.coding.spec.Counts {
		if n != nil || r.coding.spec.Counts && len(r.manifest.Files) > 1 { // a run that had too many rejects may have none
			bad("numbers", "there if, and only if, the scheme has a counter", n != nil)
		}
		return
	}
	last, all := int64(0), int64(0)
	for i, g := range n.Ranges {
		if g.First <= last || g.Last < g.First {
			bad(fmt.Sprintf("numbers.ranges[%d]", i), fmt.Sprint("numbers above ", last), fmt.Sprint(g.First, " to ", g.Last))
			return
		}
		last, all = g.Last, all+g.Last-g.First+1
	}
	r.coding.numbers = n.Ranges
	if n.Skipped < 0 || n.Skipped > all {
		bad("numbers.skipped", fmt.Sprint("0 to ", all), n.Skipped)
	}
}

// took reports whether the run took a number.
func (c *coding) took(number int64) bool {
	_, found := slices.BinarySearchFunc(c.numbers, number, func(g manifest.Range, number int64) int {
		switch {
		case g.Last < number:
			return -1
		case g.First > number:
			return 1
		}
		return 0
	})
	return found
}

// A numberWriter files numbers of rows, for one goroutine.
type numberWriter struct {
	groups *grouper
	to     *extsort.Writer
	buf    []byte
}

// newNumberWriter returns a writer to a sort; nil if there is none.
func newNumberWriter(groups *grouper, numbered *extsort.Sorter) *numberWriter {
	if numbered == nil {
		return nil
	}
	return &numberWriter{groups: groups, to: numbered.NewWriter()}
}

// file files the number of a row.
func (w *numberWriter) file(l *link) {
	rec := packed.AppendCell(w.buf[:0], rules.AppendKey(nil, l.Canonical, l.parts))
	rec = binary.AppendUvarint(binary.AppendUvarint(rec, uint64(l.Number)), uint64(l.Row.Number))
	copy(w.to.Reserve(w.groups.id(l.Workspace), urlSortKey(l.Canonical), len(rec)), rec)
	w.buf = rec
}

// compareNumbered orders numbers as they are given out: by identity; then by row.
func compareNumbered(a, b []byte) int {
	x, a := packed.CutCell(a)
	y, b := packed.CutCell(b)
	rowA, _ := binary.Uvarint(a)
	rowB, _ := binary.Uvarint(b)
	return cmp.Or(bytes.Compare(x, y), cmp.Compare(rowA, rowB))
}

// verifyNumbers checks the numbers of all rows.
func verifyNumbers(ctx context.Context, numbered *extsort.Sorter, run *run, found *findings) error {
	if err := numbered.Finish(ctx); err != nil {
		return err
	}
	n := numberChecker{findings: found, run: run}
	rows := numbered.Cursor(ctx, 1)
	defer rows.Close()
	for rows.Next() {
		identity, rest := packed.CutCell(rows.Record())
		row, size := binary.Uvarint(rest)
		number, _ := binary.Uvarint(rest[size:])
		n.add(rows.Group(), identity, int64(row), int64(number))
	}
	if rows.Err() == nil {
		n.end()
	}
	return rows.Err()
}

// A numberChecker checks the numbers of all rows, in the order of workspace and identity: in that
// order numbers are given out.
type numberChecker struct {
	findings  *findings
	run       *run
	known     bool // there is an identity in hand
	workspace uint32
	identity  []byte // that in hand, as of rules.AppendKey
	number    int64  // of its first row
	last      int64  // the highest so far
	used      int64  // how many stand for a link
}

// add takes the number of the next row.
func (n *numberChecker) add(workspace uint32, identity []byte, row, number int64) {
	here := n.findings.fault(n.run.mapping, row)
	if n.known && n.workspace == workspace && bytes.Equal(identity, n.identity) {
		if n.run.codes.mode.Keeps() && number != n.number { // else rows are compared with their link
			here.wrong(BadDuplicate, "number", numberText(n.number), numberText(number))
		}
		return
	}
	n.known, n.workspace, n.identity, n.number = true, workspace, append(n.identity[:0], identity...), number
	switch {
	case number == 0:
		return
	case !n.run.coding.took(number):
		here.wrong(BadNumber, "number", "one that the run took", fmt.Sprint(number))
		return
	case number <= n.last:
		here.wrong(BadNumber, "number", fmt.Sprint("above ", n.last, ", that of a link before"), fmt.Sprint(number))
		return
	}
	n.used++
	n.last = max(n.last, number)
}

func numberText(number int64) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprint(number)
}

// end compares how many numbers stand for links with how many the run took.
func (n *numberChecker) end() {
	all := int64(0)
	for _, g := range n.run.coding.numbers {
		all += g.Last - g.First + 1
	}
	if skipped := n.run.manifest.Numbers.Skipped; n.used+skipped != all {
		n.findings.wrong(BadCount, "numbers.skipped", all-n.used, skipped)
	}
}
