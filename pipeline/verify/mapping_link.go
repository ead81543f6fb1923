package verify

import (
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A link is a row of the mapping with what follows from it.
type link struct {
	readback.MappingRow
	known  bool         // there is such a row
	source int          // number of the input; -1: unknown
	hash   codegen.Hash // of the identity
	code0  []byte       // the first that it may have, of the run's length; empty: it is not known, or comes from a number
	order  []byte       // with a counter: the code by which the mapping is sorted
	salt0  int          // of that; -1: it may have none, and this is that of salt 0

	params  rules.Params
	parts   []byte // of the identity
	said    bool   // the mapping has the cells that params come from; else only the inputs tell them
	refusal string // why its cells should have been rejected; "": they should not
}

// at is where something is found in the row.
func (l *link) at(f *findings, file string) spot {
	return f.fault(file, l.Number).of(l.Workspace, l.Code)
}

// A deriver fills in what follows from rows of the mapping, for one goroutine.
type deriver struct {
	run     *run
	sources inputNumbers // as the mapping names them
	codes   *coder
}

// newDeriver returns a deriver for rows of a mapping, which writes names as text gives them.
func newDeriver(run *run, text func(name string) string) *deriver {
	return &deriver{run: run, sources: run.inputNumbers(text), codes: newCoder(run)}
}

// derive fills in what follows from a row.
func (d *deriver) derive(l *link) {
	l.known = true
	l.source = d.sources.of(l.Source)
	d.identify(l)
	l.hash = d.codes.hash(l.Canonical, l.Workspace, l.parts, 0)
	d.codes.fill(l)
}

// identify fills in the parts of the identity of a row, and the parameters that the row gives, if the
// mapping has all of its cells.
func (d *deriver) identify(l *link) {
	l.parts, l.params, l.said, l.refusal = l.Rules.Parts, rules.Params{}, d.run.ruling.flags == nil, ""
	if d.run.ruling.flags == nil || l.source < 0 || d.run.codes.inputs[l.source] == nil {
		return
	}
	cell, all := d.run.cellOf(l, d.run.codes.inputs[l.source])
	row := judge.Row{Number: l.Row.Row, Cell: cell}
	refusal, _ := d.run.judge.Params(&d.run.judged[l.source], &row)
	if l.said = *all; l.said {
		l.params, l.refusal = row.Params, refusal
	}
}

// cellOf returns how to get the cells of a row of the mapping by the columns of its input, and
// whether all that were asked for are in the mapping.
func (r *run) cellOf(l *link, in *columns.Table) (cell func(column int) []byte, sure *bool) {
	sure = new(bool)
	*sure = true
	return func(c int) []byte {
		switch n := r.codes.carried[l.source][c]; {
		case n >= 0 && n < len(l.Carried):
			return l.Carried[n]
		case len(in.URLs) == 1 && c == in.URLs[0]:
			if r.codes.own.Resolved || r.terms.Campaign != nil {
				return l.InputURL
			}
			return l.Original
		}
		*sure = false
		return nil
	}, sure
}

// A window is a row of a stretch and the one before.
type window struct {
	rows     *deriver
	row, old *link // the row in hand, and the one before, if that is known
}

func newWindow(rows *deriver) window { return window{rows: rows, row: new(link), old: new(link)} }

// begin makes the row before a stretch the old one.
func (w *window) begin(s *stretch) {
	w.old.known = false
	if s.before != nil {
		w.old.MappingRow = *s.before
		w.rows.derive(w.old)
	}
}

// load makes a row of a stretch that in hand, and returns its faults.
func (w *window) load(s *stretch, i int) (faults []*readback.CellError) {
	faults = s.rows.Row(i, &w.row.MappingRow)
	w.rows.derive(w.row)
	return faults
}

// next makes the row in hand the old one.
func (w *window) next() { w.row, w.old = w.old, w.row }
