package verify

import (
	"bytes"
	"cmp"

	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A rowOrder is that of the sort of a run, as far as a mapping tells it.
type rowOrder struct {
	run *run
	csv bool // the mapping has no null: it is empty
}

func orderOf(run *run, m *readback.Mapping) rowOrder { return rowOrder{run, m.Format == report.CSV} }

// links compares two rows of different identities as the sort does; 0: they cannot be compared.
func (o rowOrder) links(old, r *link) int {
	if c := bytes.Compare(old.Workspace, r.Workspace); c != 0 {
		return c
	}
	a, isKnown := o.run.firstCode(old)
	b, areKnown := o.run.firstCode(r)
	if !isKnown || !areKnown {
		return 0
	}
	return cmp.Or(bytes.Compare(a, b), bytes.Compare(old.Canonical, r.Canonical), bytes.Compare(old.parts, r.parts))
}

// same compares two rows of one identity as the sort does; 0: they cannot be compared.
func (o rowOrder) same(old, r *link) int {
	codes, sure := record.CompareCodes(o.run.codes.asKept(old.Legacy), o.run.codes.asKept(r.Legacy)), old.said && r.said
	c := 0
	if o.run.codes.mode.Keeps() {
		c = codes
	}
	if c == 0 && sure {
		c = cmp.Or(rules.Compare(&old.params, &r.params), codes, bytes.Compare(old.Original, r.Original))
	}
	for i := 0; i < len(o.run.ruling.inOrder) && c == 0 && sure; i++ {
		if n := o.run.ruling.inOrder[i]; n < len(r.Carried) {
			c, sure = o.cells(old, r, n)
		}
	}
	if c == 0 && sure && o.run.terms.Carry { // otherwise the order may come from cells that the mapping does not have
		c = cmp.Or(cmp.Compare(old.source, r.source), cmp.Compare(old.Row.Row, r.Row.Row), cmp.Compare(old.Variant, r.Variant), 1)
	}
	return c
}

// cells compares carried cells, null first. Not sure means that CSV does not tell
// which is null.
func (o rowOrder) cells(old, r *link, i int) (c int, sure bool) {
	a, b := old.Carried[i], r.Carried[i]
	if o.csv && len(a)+len(b) == 0 {
		return 0, old.source == r.source && r.source >= 0 && fixedNulls(o.run.manifest.Inputs[r.source].Format)
	}
	return cmp.Or(cmp.Compare(btoi(a != nil), btoi(b != nil)), bytes.Compare(a, b)), true
}

// isText reports whether a format is text: then records have byte offsets.
func isText(format string) bool { return format != "parquet" && format != "arrow" }

// fixedNulls reports whether in an input of the format a column is null in all rows or in none.
func fixedNulls(format string) bool { return isText(format) && format != "json" }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
