package rules

import (
	"bytes"

	"github.com/linkforge/bulk/pipeline/outcome"
)

// A Deletion decides about one row of a delete: a URL, with all links of it, or a code, with that
// link. Rows are taken in this order: URLs before codes; canonical URL or code; row.
type Deletion struct {
	Owner []byte // only links of this owner are deleted; empty: of any

	found, owned bool // a link; of the owner
	elsewhere    bool // the link of its code is that of another URL
	left, marked bool // a link of the owner that no earlier row named; that this row marks
}

// Link takes a link of the row, and reports whether the row marks it as DELETED. The caller says
// whether an earlier row named the link.
func (d *Deletion) Link(s *Stored, named bool) (marks bool) {
	d.found = true
	if len(d.Owner) > 0 && !bytes.Equal(d.Owner, s.Owner) {
		return false
	}
	d.owned = true
	if named {
		return false
	}
	d.left = true
	marks = s.Status != StatusDeleted
	d.marked = d.marked || marks || s.Changed == Deleted
	return marks
}

// Elsewhere takes the link of the code of the row, if it is not that of its URL. The row names no
// link then.
func (d *Deletion) Elsewhere() { d.elsewhere = true }

// Result returns what becomes of the row, after all of its links.
func (d *Deletion) Result() Result {
	switch {
	case d.elsewhere:
		return Result{Reason: ForURL}
	case !d.found:
		return Result{Reason: NotFound}
	case !d.owned:
		return Result{Reason: ForOwner}
	case !d.left:
		return Result{Outcome: outcome.Duplicate}
	case d.marked:
		return Result{Outcome: outcome.Existing, Change: Deleted}
	}
	return Result{Outcome: outcome.Existing}
}
