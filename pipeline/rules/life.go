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
	left, marked bool // a link of the owner that no earlier row named; that this row marks
}

// Link takes a link of the row, and reports whether the row marks it: see [Link.Delete]. The
// caller says whether an earlier row named the link.
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

// Result returns what becomes of the row, after all of its links.
func (d *Deletion) Result() Result {
	switch {
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

// Delete marks the link as DELETED at a time.
func (l *Link) Delete(at int64) {
	l.Status, l.Marked, l.Mark = StatusDeleted, true, at
}

// Expire is the first phase of a sweep at a time: a dead link of StatusActive is marked as
// EXPIRED, which it reports. A mark that somebody else set is as old as the first sweep that
// sees it.
func (l *Link) Expire(at int64) (marked bool) {
	switch marked = l.Status == StatusActive && !l.Live(at); {
	case marked:
		l.Status, l.Marked, l.Mark = StatusExpired, true, at
	case l.isMarked() && !l.Marked:
		l.Marked, l.Mark = true, at
	}
	return marked
}

// Due reports whether the second phase of a sweep at a time deletes the link: its mark is at least
// grace seconds old.
func (l *Link) Due(at, grace int64) bool { return l.isMarked() && l.Marked && at-l.Mark >= grace }

func (l *Link) isMarked() bool { return l.Status == StatusExpired || l.Status == StatusDeleted }

// Answers to a code, as statuses of HTTP.
const (
	Found  = 302 // with the original URL
	Absent = 404
	Gone   = 410
)

// Resolve returns the answer to the code of a link at a time; nil: there is no link.
func Resolve(l *Link, at int64) int {
	switch {
	case l == nil || l.Status == StatusDeleted:
		return Absent
	case l.Live(at):
		return Found
	}
	return Gone
}
