package verify

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
)

// readNumbers reads which numbers the run took.
func (r *run) readNumbers(bad func(field string, expected, got any)) {
	n := r.manifest.Numbers
	if n == nil || !r.spec.Counts {
		if n != nil || r.spec.Counts && len(r.manifest.Files) > 1 { // a run that had too many rejects may have none
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
	r.numbers = n.Ranges
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

// checkNumbered checks code and number of a link. Only one that the run made has a number.
func (w *checker) checkNumbered(r *link, column, saltColumn string) {
	here, number := w.fault(w.file, r.Number), r.Row.Number
	if saltColumn == "link_salt" && r.Salt >= 0 { // the column salt is checked with the row
		here.wrong(BadSalt, saltColumn, "", saltText(r.Salt))
	}
	switch created := r.Outcome == outcome.Created; {
	case !created && number > 0:
		here.wrong(BadNumber, "number", "", fmt.Sprint(number))
	case !created:
	case number == 0:
		here.wrong(BadNumber, "number", "that of its code", "")
	case !w.run.known && !w.run.isDigits(r.Code):
		here.wrong(BadCode, column, w.run.digitsText(), string(r.Code))
	case w.run.known:
		if w.counter == nil {
			w.counter, _ = w.run.newCounter()
		}
		if w.code = w.counter.AppendCode(w.code[:0], uint64(number)); !bytes.Equal(w.code, r.Code) {
			here.wrong(BadCode, column, string(w.code), string(r.Code))
		}
	}
	if r.Outcome == outcome.Created {
		w.checkWord(r, column)
	}
}

// A numberChecker checks the numbers of all rows. One goroutine passes it the rows in the order of
// workspace, canonical URL and identity: in that order numbers are given out.
type numberChecker struct {
	*checker
	at   link  // the first of the identity in hand; its texts are copies
	last int64 // the highest so far
	used int64 // how many stand for a link
}

// add takes the next row.
func (n *numberChecker) add(l *link) {
	at := &n.at
	sameURL := at.known && bytes.Equal(l.Workspace, at.Workspace) && bytes.Equal(l.Canonical, at.Canonical)
	if sameURL && bytes.Equal(l.parts, at.parts) {
		if n.run.mode.Keeps() && l.Row.Number != at.Row.Number { // else rows are compared with their link
			n.fault(n.run.mapping, l.Number).wrong(BadDuplicate, "number", numberText(at.Row.Number), numberText(l.Row.Number))
		}
		return
	}
	at.known, at.Row.Number = true, l.Row.Number
	at.Workspace, at.Canonical, at.parts = append(at.Workspace[:0], l.Workspace...), append(at.Canonical[:0], l.Canonical...), append(at.parts[:0], l.parts...)
	number := l.Row.Number
	if number == 0 {
		return
	}
	here := n.fault(n.run.mapping, l.Number)
	switch {
	case !n.run.took(number):
		here.wrong(BadNumber, "number", "one that the run took", fmt.Sprint(number))
		return
	case number <= n.last && !(sameURL && n.run.guesses() && number != n.last):
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

// addRow takes a row that is in no checker's hand.
func (n *numberChecker) addRow(l *link) {
	if n.run.hasParts() {
		l.source = n.inputOf(l.Source)
		n.identify(l)
	}
	n.add(l)
}

// addAll takes the rows of a block. Damaged ones are left out.
func (n *numberChecker) addAll(block *readback.Block) {
	for i := range block.Len() {
		if len(block.Row(i, &n.row.MappingRow)) == 0 {
			n.addRow(n.row)
		}
	}
}

// end compares how many numbers stand for links with how many the run took.
func (n *numberChecker) end() {
	all := int64(0)
	for _, g := range n.run.numbers {
		all += g.Last - g.First + 1
	}
	if skipped := n.run.manifest.Numbers.Skipped; n.used+skipped != all {
		n.wrong(BadCount, "numbers.skipped", all-n.used, skipped)
	}
}
