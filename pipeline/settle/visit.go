package settle

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/claim"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// maxProbes is the most URLs that the store is asked about at once.
const maxProbes = 1 << 14

// A visit settles one bucket, or several joined ones, where URLs and slots may continue
// from one bucket in the next. It belongs to one goroutine at a time, and is used again for
// other buckets.
type visit struct {
	s       *settling
	number  int // of the bucket in hand
	records *extsort.Bucket

	probes []sink.Probe
	firsts []int // the record of each probe
	codes  []byte
	taken  map[int]bool // URLs of the bucket, by first record, whose code of salt 0 has another owner in the store

	gone     map[int]bool      // URLs of the bucket, by first record, all of whose links are deleted for good
	verdicts *claim.Reader     // nil: no legacy codes are kept
	found    map[int]foundLink // of URLs of the bucket, by first record; only if they are kept
	kept     kept              // the last URL, only if they are kept

	urls, codeOf *extsort.Writer // as in counting; nil: codes are made from hashes
	buf          []byte          // of a record of these

	more    bool     // the last URL of the bucket may continue in the next
	judging judging  // only with link rules
	now     passed   // the verdict on the URL in hand
	passed  passed   // the verdict on the last URL, which may continue
	refused refusals // rows of the URL that continues in the bucket

	last      spot    // the URL that the bucket before ends with
	lastFirst origin  // of its records
	slot      slot    // of the last URL
	rivals    []rival // new URLs of that slot
	slotTaken bool    // by an owner in the store, or by rivals that contest it already
}

// A spot identifies a URL, and says where it is in the order.
type spot struct {
	group uint32
	key   uint64
	url   sink.Key
}

// A slot is the code that a URL has at salt 0, in its workspace.
type slot struct {
	group uint32
	key   uint64
	code  string // as of Order.Slot, if the key does not tell
}

// A rival is a new URL whose slot others may want, too.
type rival struct {
	origin
	canonical []byte   // nil: its bucket is at hand
	salt      int      // of its first code, if it holds that
	rows      int64    // that are rejected if it gets no code
	refused   refusals // of these, the ones that are rejected if it gets one

	// If legacy codes are kept: its first row without one, and the smallest that is new.
	plain origin
	least candidate
}

// do settles the URLs of the buckets [from, to) among themselves and with the store, or
// leaves them to the contest.
func (v *visit) do(ctx context.Context, from, to int) error {
	v.lastFirst = origin{}
	for i := from; i < to; i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if to == from+1 && !v.s.anywhere && v.verdicts == nil && v.s.cfg.Order.Words == nil && v.s.cfg.Counter == nil {
			if alone, err := v.alone(i); alone || err != nil {
				return err
			}
		}
		b, err := v.s.records.Load(i)
		if err != nil {
			return err
		}
		v.number, v.records, v.taken, v.gone, v.found, v.more = i, b, nil, nil, nil, i+1 < to
		if v.verdicts != nil {
			v.bucket().rows = make([]Row, b.Len())
		}
		if err = v.askStore(ctx); err == nil {
			err = v.askGone(ctx)
		}
		if err == nil {
			err = v.findContests(ctx)
		}
		if err == nil {
			err = cmp.Or(v.s.tooContested(), v.err())
		}
		b.Release()
		if err != nil {
			return err
		}
		v.s.cfg.Settled.Add(int64(b.Len()))
	}
	return nil
}

// alone reports whether each URL of a bucket has a key of its own, and so a code of its own.
// Where no workspace has links in the store, all of them are settled by that. Of a bucket on
// disk only the url_keys are read.
func (v *visit) alone(bucket int) (bool, error) {
	b, err := v.s.records.LoadHeads(bucket)
	if err != nil {
		return false, err
	}
	defer b.Release()
	n := int64(0)
	for first, end := range b.Runs(record.KeySize) {
		if end < b.Len() && b.Group(end) == b.Group(first) && b.Key(end) == b.Key(first) || end > first+1 && v.rules() {
			return false, nil
		}
		n++
	}
	v.s.made.buckets[bucket].urls = n
	v.s.cfg.Settled.Add(int64(b.Len()))
	return true, nil
}

// err is the error of what was written.
func (v *visit) err() error {
	if v.urls == nil {
		return nil
	}
	return cmp.Or(v.urls.Err(), v.codeOf.Err())
}

// bucket returns what is known of the bucket in hand.
func (v *visit) bucket() *bucket { return &v.s.made.buckets[v.number] }

// askStore finds what the store has of the URLs of the bucket.
func (v *visit) askStore(ctx context.Context) error {
	for first, end := range v.records.Runs(record.KeySize) {
		if first == 0 && v.lastFirst.known && v.spotOf(0) == v.last {
			v.bucket().origin = v.lastFirst
			if v.s.made.fate(v.number, 0) == isGone {
				v.bucket().refused[rules.LinkDeleted] += int64(end)
			} else if v.rules() {
				v.refused = v.judgeRows(0, end, &v.passed)
			}
			continue
		}
		if v.verdicts == nil {
			v.bucket().urls++
		}
		if v.more && end == v.records.Len() {
			v.last, v.lastFirst = v.spotOf(first), origin{true, v.number, first}
		}
		if !v.s.populated[v.records.Group(first)] {
			continue
		}
		v.probe(first)
		if len(v.probes) == maxProbes {
			if err := v.ask(ctx); err != nil {
				return err
			}
		}
	}
	return v.ask(ctx)
}

func (v *visit) spotOf(i int) spot {
	return spot{v.records.Group(i), v.records.Key(i), record.Key(v.records.Record(i))}
}

func (v *visit) slotOf(i int) slot {
	s := slot{group: v.records.Group(i), key: v.records.Key(i)}
	if !v.s.cfg.Order.KeyIsCode() {
		s.code = v.s.firstSlot(v.records.Record(i))
	}
	return s
}

func (v *visit) url(first int) assign.URL {
	return assign.URL{Workspace: v.records.Group(first), Canonical: identity(v.records.Record(first))}
}

// identity returns the URL of a record, with the parts of its identity, as of rules.AppendKey.
func identity(rec []byte) []byte {
	var with record.Rules
	record.CutRules(rec, &with)
	return rules.AppendKey(nil, record.Canonical(rec), with.Parts)
}

// urlOf is identity, of the record itself if identities have no parts.
func (s *settling) urlOf(rec []byte) []byte {
	if s.parts() {
		return identity(rec)
	}
	return record.Canonical(rec)
}

func (v *visit) probe(first int) {
	rec := v.records.Record(first)
	v.firsts = append(v.firsts, first)
	p := sink.Probe{
		Workspace: v.s.names.Name(v.records.Group(first)), Key: record.Key(rec), Canonical: record.Canonical(rec), WantRun: v.s.run != 0,
	}
	if order := &v.s.cfg.Order; v.s.cfg.Counter == nil {
		start := len(v.codes)
		v.codes = order.AppendFirst(v.codes, rec)
		if p.Code = v.codes[start:len(v.codes):len(v.codes)]; !order.IsPlain() {
			p.Position = order.Position(order.FirstOf(rec).Hash)
		}
	}
	if r := v.s.cfg.Rules; r != nil {
		p.WantRules, p.Parts = true, r.Parts
	}
	v.probes = append(v.probes, p)
}

// ask looks the collected probes up.
func (v *visit) ask(ctx context.Context) error {
	if len(v.probes) == 0 {
		return nil
	}
	err := v.s.lookup(ctx, v.probes, func(f sink.Found) error {
		first, probe := v.firsts[f.Probe], &v.probes[f.Probe]
		if f.Same {
			return v.have(ctx, first, probe, f)
		}
		v.take(first)
		return nil
	})
	v.probes, v.firsts, v.codes = v.probes[:0], v.firsts[:0], v.codes[:0]
	return err
}

// take notes that the code of salt 0 of a URL of the bucket has another owner.
func (v *visit) take(first int) {
	if v.taken == nil {
		v.taken = map[int]bool{}
	}
	v.taken[first] = true
}

// have notes that the store has a URL, and under which code if it is another than that of
// salt 0.
func (v *visit) have(ctx context.Context, first int, probe *sink.Probe, f sink.Found) error {
	if v.verdicts != nil {
		if v.found == nil {
			v.found = map[int]foundLink{}
		}
		v.found[first] = foundLink{string(f.Code), v.s.isOurs(&f), v.s.cfg.Rules != nil && v.s.cfg.Rules.Forbids(&v.judging.stored(&f).Link)}
		return nil
	}
	accepts := true
	if v.rules() {
		p, err := v.judge(ctx, first, &f)
		if err != nil {
			return err
		}
		accepts = p.verdict.Accepts()
	}
	as, d := isThere, Decision{Outcome: outcome.Existing, Stored: true}
	switch {
	case v.s.isOurs(&f):
		as, d.Outcome = isStored, outcome.Created
		v.bucket().stored++
	case accepts:
		v.bucket().existing++
	default:
		v.bucket().mute++
	}
	if v.s.cfg.Counter != nil {
		v.haveCode(origin{true, v.number, first}, v.records.Group(first), v.s.urlOf(v.records.Record(first)), f.Code, as == isStored)
		v.s.mark(v.number, first, as)
		return nil
	}
	if string(f.Code) == string(probe.Code) {
		v.s.mark(v.number, first, as)
		return nil
	}
	v.s.mark(v.number, first, isSpecial)
	d.URL, d.Code = v.url(first), string(f.Code)
	d.Salt = v.s.saltOf(d.URL.Canonical, probe.Workspace, f.Code)
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.s.decide(probe.Key, d)
	return nil
}

// findContests hands every new URL whose code another URL wants or has to the contest. The last
// slot may continue in the next bucket, as the last URL may.
func (v *visit) findContests(ctx context.Context) error {
	if v.kept.open && !v.bucket().origin.known { // it ended with the bucket before
		v.endKept()
	}
	for first, end := range v.records.Runs(record.KeySize) {
		r := rival{origin: origin{true, v.number, first}, rows: int64(end - first)}
		if v.verdicts == nil && first == 0 && v.bucket().origin.known {
			v.addRows(v.bucket().origin, r.rows, v.refused)
			continue
		}
		if s := v.slotOf(first); s != v.slot {
			v.closeSlot()
			v.slot = s
		}
		if v.verdicts != nil {
			verdicts, err := v.askClaims(ctx, first)
			if err != nil {
				return err
			}
			v.keep(first, end, verdicts)
			if !v.more || end < v.records.Len() {
				v.endKept()
			}
		} else if v.s.made.fate(r.bucket, r.first) == isNew {
			if v.rules() && (r.rows > 1 || v.more && end == v.records.Len()) { // else the row is the link
				p, err := v.judge(ctx, first, nil)
				if err != nil {
					return err
				}
				r.refused = p.refused
			}
			if v.s.cfg.Counter != nil {
				v.count(r.origin, v.records.Group(first), v.records.Record(first))
			} else {
				v.rivals = append(v.rivals, r)
			}
		}
		v.slotTaken = v.slotTaken || v.taken[first] || v.s.cfg.Order.Words != nil && v.s.cfg.Order.FirstOf(v.records.Record(first)).Salt < 0
	}
	if !v.more {
		v.closeSlot()
		return nil
	}
	v.kept.leave()
	if len(v.rivals) == 0 {
		return nil
	}
	last := len(v.rivals) - 1 // the only one that may have more rows
	for _, r := range v.rivals[:last] {
		v.claim(r)
		v.slotTaken = true
	}
	v.rivals = slices.Delete(v.rivals, 0, last)
	r := &v.rivals[0]
	if r.canonical == nil {
		r.canonical = identity(v.records.Record(r.first))
	}
	r.least.code = bytes.Clone(r.least.code) // of this bucket, even if the URL begins in an earlier one
	return nil
}

// addRows adds rows of a URL that begins in an earlier bucket, if it is the rival that is
// left over from there.
func (v *visit) addRows(of origin, rows int64, refused refusals) {
	if len(v.rivals) > 0 && v.rivals[0].origin == of {
		v.rivals[0].rows += rows
		v.rivals[0].refused.add(refused)
	}
}

// closeSlot lets the rivals of a slot contest it, unless one URL has it to itself and may have it.
func (v *visit) closeSlot() {
	if len(v.rivals) > 1 || v.slotTaken && len(v.rivals) > 0 {
		for _, r := range v.rivals {
			v.claim(r)
		}
	}
	v.rivals, v.slotTaken, v.slot = v.rivals[:0], false, slot{}
}

func (v *visit) claim(r rival) {
	u := assign.URL{Workspace: v.slot.group, Canonical: r.canonical}
	if u.Canonical == nil {
		u = v.url(r.first)
	}
	v.s.mark(r.bucket, r.first, isSpecial)
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.s.contested = append(v.s.contested, u)
	r.canonical, r.least.code = u.Canonical, bytes.Clone(r.least.code)
	v.s.addContested(r)
}
