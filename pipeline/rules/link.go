package rules

import (
	"bytes"
	"strings"
)

// A Status is that of a link in the store.
type Status uint8

// The statuses.
const (
	StatusActive  Status = iota // ACTIVE or null
	StatusExpired               // EXPIRED
	StatusDeleted               // DELETED
	StatusOther                 // any other, that somebody else set
)

var statuses = [...]string{"ACTIVE", "EXPIRED", "DELETED"}

// StatusOf returns the status of a text in the store; "" stands for null.
func StatusOf(text string) Status {
	if text == "" {
		return StatusActive
	}
	s, err := parse[Status](text, statuses[:])
	if err != nil {
		return StatusOther
	}
	return s
}

// String returns the status as the store has it; "" for StatusOther.
func (s Status) String() string {
	if s == StatusOther {
		return ""
	}
	return statuses[s]
}

// A Link is what the store has of a link beside its URLs and its code. The slices belong to
// whoever made the Link.
type Link struct {
	Expiry Expiry // never Reckoned
	Limit  int64  // 0: none. A store that has a limit of 0 gives -1: the link is used up.
	Uses   int64
	Type   Type
	Owner  []byte // empty: none
	Ref    []byte // of an identity ByRow; empty: none
	Status Status
	Marked bool  // it is known when the Status became what it is; only StatusExpired and StatusDeleted
	Mark   int64 // when; 0 if it is not known
}

// A Stored is a link as the store has it, with what an earlier attempt of this run did to it.
type Stored struct {
	Link
	Made    bool   // made it
	Changed Change // made this change, the last one: Updated, Claimed, Revived or Deleted
}

// Deleted reports whether somebody deleted the link: its status is neither ACTIVE nor EXPIRED.
func (s Status) Deleted() bool { return s == StatusDeleted || s == StatusOther }

// Live reports whether the link works at a time.
func (l *Link) Live(at int64) bool {
	return l.Status == StatusActive && !l.Expiry.past(at) && !l.usedUp()
}

func (l *Link) usedUp() bool { return l.Limit != 0 && l.Uses >= l.Limit }

// Foreign reports whether link and row have different owners.
func (l *Link) Foreign(p *Params) bool {
	return len(l.Owner) > 0 && len(p.Owner) > 0 && !bytes.Equal(l.Owner, p.Owner)
}

// Differences are columns in which a row differs from its link.
type Differences uint8

func (d *Differences) add(c Column) { *d |= 1 << c }

// Has reports whether the row differs in a column.
func (d Differences) Has(c Column) bool { return d>>c&1 != 0 }

// String names the columns, with commas between them.
func (d Differences) String() string {
	var names []string
	for c := range Column(ColumnCount) {
		if d.Has(c) {
			names = append(names, c.String())
		}
	}
	return strings.Join(names, ", ")
}

// Differs returns in what the row differs from the link; 0: it does not.
func (l *Link) Differs(p *Params) (d Differences) {
	if l.Limit != p.Limit {
		d.add(MaxUses)
	}
	if p.Expiry.When == Reckoned && l.Expiry.When == Never || p.Expiry.When != Reckoned && l.Expiry != p.Expiry {
		d.add(ExpiresAt)
	}
	if (l.Type == Temporary) != (p.Type == Temporary) {
		d.add(LinkType)
	}
	if len(p.Owner) > 0 && !bytes.Equal(l.Owner, p.Owner) {
		d.add(OwnerID)
	}
	return d
}

// params are those of a row that says what the link has.
func (l *Link) params() Params {
	return Params{Expiry: l.Expiry, Limit: l.Limit, Type: l.Type, Owner: l.Owner}
}

// Shows reports whether the mapping shows the same of the row as of the link.
func (l *Link) Shows(p *Params, asOf int64) bool {
	return l.Expiry == p.Expiry.Reckon(asOf) && l.Limit == p.Limit && l.Type == p.Type && bytes.Equal(l.Owner, p.Owner)
}

// Cells returns what the mapping shows of the link, as [Params.Cells] does; not the reference.
func (l *Link) Cells(buf []byte) (Cells, []byte) {
	p := l.params()
	return p.Cells(buf, 0)
}

// Write gives the row's parameters to the link.
func (l *Link) Write(p *Params, asOf int64) {
	l.Expiry, l.Limit, l.Type = p.Expiry.Reckon(asOf), p.Limit, p.Type
	if len(p.Owner) > 0 {
		l.Owner = p.Owner
	}
	if l.usedUp() {
		l.Uses = 0
	}
}

// revive makes a dead link live, with the parameters of a row that is not over.
func (l *Link) revive(p *Params, asOf int64) {
	l.Status, l.Marked, l.Mark, l.Uses = StatusActive, false, 0, 0
	l.Write(p, asOf)
}
