package settle

import (
	"bytes"
	"context"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/claim"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// Kept says how legacy codes are kept.
type Kept struct {
	Mode     legacy.Mode // Keep or Both
	Conflict legacy.Conflict
	Claims   *extsort.Sorter // of package claim
	Sorter   extsort.Config  // of verdicts; all but the order
}

// claims settles who has the legacy codes.
func (s *settling) claims(ctx context.Context) (err error) {
	k := s.cfg.Kept
	s.made.claims, err = claim.Settle(ctx, k.Claims, claim.Config{
		Order: s.cfg.Order, Names: s.names, Populated: s.populated, Run: s.run, Parts: s.cfg.Rules != nil, Lookup: s.lookup, Sorter: k.Sorter,
	})
	return err
}

// parts reports whether identities may have parts.
func (s *settling) parts() bool { return s.cfg.Rules != nil && s.cfg.Rules.Parts }

// A Row is what becomes of a row of a run that keeps legacy codes.
type Row uint8

const (
	won    Row = 1 << iota // its code is its URL's
	lost                   // it is rejected: see Row.Lost
	first                  // of its identity: the URL, and the code if it is won
	made                   // of a first row: the store has its link or alias, from an earlier attempt
	there                  // of a first row: the store had it before the run
	isLink                 // of a first row: its code is that of the URL's link
	bears                  // the link of the URL goes with this row, if no row has its code
)

func (r Row) has(bit Row) bool { return r&bit != 0 }

// Won reports whether the row has its legacy code. Any other row has the code of the link of
// its URL.
func (r Row) Won() bool { return r.has(won) }

// Lost reports whether the row is rejected: because another URL has its code or, if
// Settlement.Result says so, because all links of its URL are deleted.
func (r Row) Lost() bool { return r.has(lost) }

// First reports whether the row is Created or Existing. Any other is a duplicate.
func (r Row) First() bool { return r.has(first) }

// Stored reports, of a first row, whether the store has its link or alias already.
func (r Row) Stored() bool { return r.has(made | there) }

// Bears reports whether the link of the URL goes with this row, if no row has its code: it is
// to be stored, or its lower codes are to be told, once.
func (r Row) Bears() bool { return r.has(bears) }

// Outcome is that of a first row.
func (r Row) Outcome() outcome.Outcome {
	if r.has(there) {
		return outcome.Existing
	}
	return outcome.Created
}

// Row returns what becomes of record i of a bucket.
func (s *Settlement) Row(bucket, i int) Row { return s.buckets[bucket].rows[i] }

// LinkRow returns the record that has the code of its URL's link, where the decision is Kept
// and gives no code: the URL begins with the given record of the bucket.
func (s *Settlement) LinkRow(bucket, from int) int {
	for !s.buckets[bucket].rows[from].has(isLink) {
		from++
	}
	return from
}

// Claims returns who has the legacy codes; nil: the run keeps none.
func (s *Settlement) Claims() *claim.Settled { return s.claims }

// A kept is what is known of the URL in hand and its legacy codes. Rows of it may still follow in
// the next bucket.
type kept struct {
	rival          // if it is new and its code is to be generated
	open      bool // what its link is has not been decided
	spans     bool // it has records in several buckets
	gone      bool // all of its links and aliases are deleted, and the run revives none: it gets no more
	workspace uint32
	key       sink.Key
	hash      codegen.Hash // of its first code
	url       []byte       // its canonical form, with the parts of its identity; of the bucket in hand, unless it was cloned
	accepted  origin       // the first row that is not lost
	marked    candidate

	stored foundLink
	linkAt origin // the first row that has the code of the stored link

	code  []byte // of the row before, if that has its code; else empty
	group origin // the first row with this code
}

// A candidate is a new code that the link of a URL may have.
type candidate struct {
	at   origin // its first row
	code []byte // of the bucket in hand, unless it was cloned
}

// A foundLink is the link that the store has of a URL.
type foundLink struct {
	code    string // "": there is none
	made    bool   // by an earlier attempt of this run
	deleted bool   // and the run does not revive it
}

// row is what a first row that goes with the link is, beside that.
func (l *foundLink) row() Row {
	switch {
	case l.code == "":
		return 0
	case l.made:
		return made
	}
	return there
}

// askClaims finds the verdicts on the claims of the URL that begins with a record, and whether
// its code of salt 0 is claimed.
func (v *visit) askClaims(ctx context.Context, from int) ([]claim.Verdict, error) {
	rec := v.records.Record(from)
	url := record.Key(rec)
	list, err := v.verdicts.At(ctx, v.records.Group(from), v.records.Key(from))
	for ; len(list) > 0 && list[0].Taken(); list = list[1:] {
		if string(list[0].Code) == v.s.firstSlot(rec) {
			v.take(from)
		}
	}
	for len(list) > 0 && bytes.Compare(list[0].URL[:], url[:]) < 0 {
		list = list[1:]
	}
	return list, err
}

// keep settles the records [from, end) of a URL: which have their code.
func (v *visit) keep(from, end int, verdicts []claim.Verdict) {
	url := record.Key(v.records.Record(from))
	if from == 0 && v.bucket().origin.known {
		v.kept.spans = true
	} else {
		v.kept = kept{
			rival: rival{origin: origin{true, v.number, from}}, open: true, gone: v.gone[from], stored: v.found[from], code: v.kept.code[:0],
			workspace: v.records.Group(from), key: url, hash: v.s.cfg.Order.FirstOf(v.records.Record(from)).Hash, url: v.s.urlOf(v.records.Record(from)),
		}
	}
	for i := from; i < end; i++ {
		r := record.Decode(v.records.Record(i))
		var verdict claim.Verdict
		old := r.Legacy()
		if old.Code != nil {
			for len(verdicts) > 0 && verdicts[0].URL == url && bytes.Compare(verdicts[0].Code, old.Code) < 0 {
				verdicts = verdicts[1:]
			}
			if len(verdicts) > 0 && verdicts[0].URL == url && bytes.Equal(verdicts[0].Code, old.Code) {
				verdict = verdicts[0]
			}
		}
		v.keepRow(i, url, &old, &verdict)
	}
}

// leave clones what refers to the bucket in hand, which goes.
func (u *kept) leave() {
	if u.open {
		u.url, u.least.code, u.marked.code = bytes.Clone(u.url), bytes.Clone(u.least.code), bytes.Clone(u.marked.code)
	}
}

// keepRow settles record i of the URL in hand.
func (v *visit) keepRow(i int, url sink.Key, old *record.Legacy, verdict *claim.Verdict) {
	u, b, at := &v.kept, v.bucket(), origin{true, v.number, i}
	row := &b.rows[i]
	if verdict.State == claim.Lost {
		b.conflicts++
		if v.s.cfg.Kept.Conflict != legacy.Generate {
			*row, b.lost = lost, b.lost+1
			return
		}
	}
	if u.gone {
		*row = lost
		gone := rules.Result{Reason: rules.LinkDeleted}
		b.note(i, len(b.rows), gone)
		b.refused.count(gone)
		return
	}
	if !u.accepted.known {
		u.accepted = at
	}
	if old.Code == nil || verdict.State == claim.Lost {
		u.count(at, *row, nil)
		u.code = u.code[:0]
		return
	}
	code := old.Code
	*row = won
	if !bytes.Equal(u.code, code) {
		u.group = at
		v.firstOf(row, at, code, verdict.State)
	}
	u.code = append(u.code[:0], code...)
	if m := &u.marked; old.Link && verdict.State == 0 && (!m.at.known || bytes.Compare(code, m.code) < 0) {
		*m = candidate{u.group, code}
	}
}

// firstOf makes a row the first of its identity.
func (v *visit) firstOf(row *Row, at origin, code []byte, state claim.State) {
	u, b := &v.kept, v.bucket()
	*row |= first
	b.urls++
	switch state {
	case claim.There:
		*row |= there
		b.existing++
	case claim.Made:
		*row |= made
		b.stored++
	}
	if string(code) == u.stored.code {
		u.linkAt = at
	}
	u.count(at, *row, code)
}

// endKept decides what the link of the URL in hand is, or that its code is to be generated:
// then it is a rival.
func (v *visit) endKept() {
	u, s := &v.kept, v.s
	u.open = false
	switch {
	case !u.accepted.known:
		s.mark(u.bucket, u.first, isNone)
		if u.stored.made { // before another writer took the codes of all its rows
			b := v.bucket()
			b.bare, b.stored = b.bare+1, b.stored+1
		}
	case u.stored.code != "":
		v.linkStored()
	case s.cfg.Kept.Mode == legacy.Keep && u.least.at.known:
		if !u.marked.at.known {
			u.marked = u.least
		}
		v.linkKept(u.marked.at, Decision{Kept: true, Code: string(u.marked.code), Salt: -1})
	default:
		v.bear()
		if s.cfg.Counter != nil {
			v.countURL(u.origin, u.workspace, u.url)
			return
		}
		if u.bucket != v.number {
			u.canonical = bytes.Clone(u.url)
		}
		v.rivals = append(v.rivals, u.rival)
	}
}

// bear finds the row of the URL in hand that its link goes with, where no row has its code: the
// first without a code of its own, which is then the first of that identity, or the first of all.
func (v *visit) bear() {
	u, b := &v.kept, v.bucket()
	bearer := u.accepted
	if u.plain.known {
		bearer = u.plain
		b.urls++
		*v.s.row(bearer) |= first | u.stored.row()
	} else {
		b.bare++
	}
	*v.s.row(bearer) |= bears
}

// linkStored decides about a URL whose link is in the store.
func (v *visit) linkStored() {
	u, b := &v.kept, v.bucket()
	as, d := isThere, Decision{Outcome: outcome.Existing, Stored: true, Code: u.stored.code, Salt: -1, Kept: true}
	if u.stored.made {
		as, d.Outcome = isStored, outcome.Created
	}
	if !u.linkAt.known { // else it was counted with that row
		v.bear()
		switch {
		case u.stored.made:
			b.stored++
		case u.plain.known:
			b.existing++
		default:
			b.bare-- // nothing is to be stored
		}
	}
	var code [codegen.MaxLength]byte
	switch {
	case u.linkAt.known: // kept, whatever salt would give it
	case v.s.cfg.Counter != nil:
		v.haveCode(u.origin, u.workspace, u.url, []byte(u.stored.code), u.stored.made)
		if v.s.cfg.Rules == nil {
			v.s.mark(u.bucket, u.first, as)
			return
		}
		d.Kept, d.Salt = false, 0 // judgeKept looks at the code, before new URLs have theirs
	case u.stored.code == string(v.s.cfg.Order.AppendCode(code[:0], u.hash)):
		v.s.mark(u.bucket, u.first, as)
		return
	default:
		d.Kept, d.URL = false, assign.URL{Workspace: u.workspace, Canonical: bytes.Clone(u.url)}
		d.Salt = v.s.saltOf(u.url, v.s.names.Name(u.workspace), []byte(d.Code))
	}
	v.linkKept(u.linkAt, d)
}

// linkKept notes the link of the URL in hand: with the row that has its code or, if there is
// none in this bucket, in a decision.
func (v *visit) linkKept(at origin, d Decision) {
	u, s := &v.kept, v.s
	if at.known && !u.spans {
		*s.row(at) |= isLink
		s.mark(u.bucket, u.first, isKept)
		return
	}
	s.mark(u.bucket, u.first, isSpecial)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decide(u.key, d)
}

// count counts a row in: what becomes of it, and the code of a first row.
func (r *rival) count(at origin, row Row, code []byte) {
	switch {
	case row.has(lost):
	case !row.has(won):
		if r.rows++; !r.plain.known {
			r.plain = at
		}
	case row.has(first) && !row.Stored() && !r.least.at.known:
		r.least = candidate{at, code}
	}
}

// exhaust decides about a URL for which no code can be generated. It has the smallest of its
// own codes as that of its link; else the rows without one are rejected.
func (s *settling) exhaust(r *rival, d Decision) Decision {
	if r.least.at.known {
		d = Decision{Kept: true, Code: string(r.least.code), Salt: -1}
	}
	switch {
	case !r.plain.known:
		s.made.bare--
	case d.Kept:
		*s.row(r.plain) &^= first
		s.made.urls--
	default:
		s.made.failed++
	}
	if !d.Kept && r.rows > 0 {
		s.made.Rejected[d.Reason] += r.rows
	}
	return d
}

func (s *settling) row(at origin) *Row { return &s.made.buckets[at.bucket].rows[at.first] }
