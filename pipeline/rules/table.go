package rules

import (
	"bytes"

	"github.com/linkforge/bulk/pipeline/outcome"
)

// Terms are what a run decides by.
type Terms struct {
	AsOf    int64 // Unix time
	OnDrift OnDrift
	Revive  Revivals
}

// Forbids reports whether no row may have to do with a link, because somebody deleted it.
func (t Terms) Forbids(l *Link) bool { return t.Revive != ReviveAll && l.Status.Deleted() }

// A Result is what becomes of a row.
type Result struct {
	Outcome outcome.Outcome // counts only if the row is Accepted
	Change  Change          // only if it is Accepted
	Reason  Reason
	Done    bool        // an earlier attempt of this run has done it
	Differs Differences // of Drifted and ForDrift
}

// An Action is what is to be done to the link of a row.
type Action uint8

// The actions.
const (
	Nothing Action = iota
	Create         // a new link: the row is written, ACTIVE, uses 0, its original URL and reference
	Revive         // the row is written, ACTIVE, no mark, uses 0, its original URL
	Write          // the row is written
)

// Action returns what is to be done.
func (r Result) Action() Action {
	switch {
	case r.Done || r.Reason != Accepted:
		return Nothing
	case r.Outcome == outcome.Created:
		return Create
	case r.Change == Revived:
		return Revive
	case r.Change == Updated || r.Change == Claimed:
		return Write
	}
	return Nothing
}

// Detail tells a person why the row is rejected.
func (r Result) Detail() string {
	switch r.Reason {
	case ForDrift:
		return "the link has other parameters: " + r.Differs.String()
	case ForOwner:
		return "the link belongs to another owner"
	case NotFound:
		return "there is no such link"
	case LinkDeleted:
		return "the link was deleted: --revive all brings it back"
	case LinkEnded:
		return "the link has ended: --revive ended brings it back"
	}
	return ""
}

// Pack returns the result as a byte that is not 0, so that a run can keep that of each row. [Unpack]
// is the inverse. Differs is kept of rejects only.
func (r Result) Pack() byte {
	if r.Reason != Accepted {
		return packedReject | byte(r.Reason)<<4 | byte(r.Differs)
	}
	n := packedAccept | byte(r.Outcome)<<3 | byte(r.Change)
	if r.Done {
		n |= packedDone
	}
	return n
}

const (
	packedReject = 0x80
	packedAccept = 0x40
	packedDone   = 0x20
)

// Unpack returns the result that Pack made a byte of.
func Unpack(n byte) Result {
	if n&packedReject != 0 {
		return Result{Reason: Reason(n >> 4 & 7), Differs: Differences(n & 15)}
	}
	return Result{Outcome: outcome.Outcome(n >> 3 & 3), Change: Change(n & 7), Done: n&packedDone != 0}
}

// Speak returns what becomes of the row that speaks for an identity, and of its link: the table.
// The link is nil if there is none.
func (t Terms) Speak(l *Link, p *Params) Result {
	if l == nil {
		return Result{Outcome: outcome.Created}
	}
	live, differs := l.Live(t.AsOf), l.Differs(p)
	r := Result{Outcome: outcome.Existing}
	switch {
	case t.Forbids(l):
		r.Reason = LinkDeleted
	case !live && !p.Over(t.AsOf) && t.Revive == ReviveNone:
		r.Reason = LinkEnded
	case !live && !p.Over(t.AsOf):
		r.Change = Revived
	case live && l.Type == Temporary && len(l.Owner) == 0 && p.Type == Permanent && len(p.Owner) > 0:
		r.Change = Claimed
	case differs == 0:
	case t.OnDrift == Reject:
		r.Reason, r.Differs = ForDrift, differs
	case live && t.OnDrift == Update && (len(l.Owner) == 0 || bytes.Equal(l.Owner, p.Owner)):
		r.Change = Updated
	default:
		r.Change, r.Differs = Drifted, differs
	}
	return r
}

// Hold returns what becomes of another row of the identity, which is held against the link as it
// is after the row that speaks (rule 4).
func (t Terms) Hold(l *Link, p *Params) Result {
	r := Result{Outcome: outcome.Duplicate}
	switch differs := l.Differs(p); {
	case l.Foreign(p) && !l.Live(t.AsOf):
		r.Reason = ForOwner
	case l.Foreign(p):
		r.Change = OtherOwner
	case differs == 0:
	case t.OnDrift == Reject:
		r.Reason, r.Differs = ForDrift, differs
	default:
		r.Change, r.Differs = Drifted, differs
	}
	return r
}
