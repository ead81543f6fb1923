package pipeline

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/sink"
)

// maxProbes is the most URLs that the store is asked about at once.
const maxProbes = 1 << 14

// A visit settles one bucket, or several joined ones, where URLs and slots may go on from
// one bucket to the next. It belongs to one goroutine at a time, and is used again for
// other buckets.
type visit struct {
	*settlement
	bucket  int
	records *extsort.Bucket

	distinct, stored, own int64 // URLs; of them those that the store has, from before and of this run

	probes []sink.Probe
	firsts []int // the record of each probe
	codes  []byte
	taken  map[int]bool // URLs of the bucket, by first record, whose code of salt 0 has another owner in the store

	last      spot // the URL that the bucket before ends with
	lastHead  head
	slot      slot    // of the last URL
	rivals    []rival // fresh URLs of that slot
	slotTaken bool    // by an owner in the store, or by rivals that contest it already
}

// A spot identifies a URL, and says where it is in the order.
type spot struct {
	group uint32
	key   uint64
	hash  codegen.Hash
}

// A slot is the code that a URL has at salt 0, in its workspace.
type slot struct {
	group uint32
	key   uint64
	code  assign.Code // if the key does not tell
}

// A rival is a fresh URL whose slot others may want, too.
type rival struct {
	head
	canonical []byte // nil: its bucket is at hand
	rows      int64
}

// do settles the URLs of the buckets [from, to) among themselves and with the
// store, or leaves them to the contest.
func (v *visit) do(ctx context.Context, from, to int) error {
	v.lastHead = head{}
	for i := from; i < to; i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if to == from+1 && !v.anyPopulated {
			if alone, err := v.alone(i); alone || err != nil {
				return err
			}
		}
		b, err := v.run.records.Load(i)
		if err != nil {
			return err
		}
		v.bucket, v.records, v.taken = i, b, nil
		if err = v.askStore(ctx, i+1 < to); err == nil {
			v.findContests(i+1 < to)
			err = v.tooContested()
		}
		b.Release()
		if err != nil {
			return err
		}
		v.run.cfg.Status.Settled.Add(int64(b.Len()))
	}
	return nil
}

// alone reports whether each URL of a bucket has a rank of its own. Where no workspace has
// links in the store, all of them are settled by that. Of a bucket on disk only the heads
// are read.
func (v *visit) alone(bucket int) (bool, error) {
	b, err := v.run.records.LoadHeads(bucket)
	if err != nil {
		return false, err
	}
	defer b.Release()
	n := int64(0)
	for first, end := range urlsOf(b) {
		if end < b.Len() && b.Group(end) == b.Group(first) && b.Key(end) == b.Key(first) {
			return false, nil
		}
		n++
	}
	v.distinct += n
	v.run.cfg.Status.Settled.Add(int64(b.Len()))
	return true, nil
}

// askStore finds what the store has of the URLs of the bucket.
func (v *visit) askStore(ctx context.Context, more bool) error {
	for first, end := range urlsOf(v.records) {
		if first == 0 && v.lastHead.known && v.spotOf(0) == v.last {
			v.heads[v.bucket] = v.lastHead
			continue
		}
		v.distinct++
		if more && end == v.records.Len() {
			v.last, v.lastHead = v.spotOf(first), head{true, v.bucket, first}
		}
		if !v.populated[v.records.Group(first)] {
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
	return spot{v.records.Group(i), v.records.Key(i), hashOf(v.records.Record(i))}
}

func (v *visit) slotOf(i int) slot {
	s := slot{group: v.records.Group(i), key: v.records.Key(i)}
	if !v.run.scheme.RankIsCode() {
		s.code = v.run.codeOf(hashOf(v.records.Record(i)))
	}
	return s
}

func (v *visit) url(first int) assign.URL {
	return assign.URL{Workspace: v.records.Group(first), Canonical: bytes.Clone(canonicalOf(v.records.Record(first)))}
}

func (v *visit) probe(first int) {
	rec := v.records.Record(first)
	h := hashOf(rec)
	start := len(v.codes)
	v.codes = v.run.scheme.AppendCode(v.codes, h)
	v.firsts = append(v.firsts, first)
	v.probes = append(v.probes, sink.Probe{
		Workspace: v.run.workspaceName(v.records.Group(first)),
		Code:      v.codes[start:len(v.codes):len(v.codes)],
		Key:       h.Key(), Canonical: canonicalOf(rec), WantRun: v.runID != 0,
	})
}

// ask looks the collected probes up.
func (v *visit) ask(ctx context.Context) error {
	if len(v.probes) == 0 {
		return nil
	}
	asked := time.Now()
	err := v.lookup(ctx, v.probes, func(f sink.Found) error {
		first, probe := v.firsts[f.Probe], &v.probes[f.Probe]
		if f.Same {
			v.have(first, probe, f)
			return nil
		}
		if v.taken == nil {
			v.taken = map[int]bool{}
		}
		v.taken[first] = true
		return nil
	})
	v.run.timings.idled(asked)
	v.probes, v.firsts, v.codes = v.probes[:0], v.firsts[:0], v.codes[:0]
	return err
}

// have notes that the store has a URL, and under which code if it is another than
// that of salt 0.
func (v *visit) have(first int, probe *sink.Probe, f sink.Found) {
	as, n := found, &v.stored
	if v.runID != 0 && f.Run == v.runID {
		as, n = loaded, &v.own
	}
	*n++
	if string(f.Code) == string(probe.Code) {
		v.mark(v.bucket, first, as)
		return
	}
	v.mark(v.bucket, first, special)
	salt := codegen.SaltOf(probe.Canonical, probe.Workspace, f.Code, max(v.run.cfg.MaxRetries, codegen.DefaultRetries))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.special[probe.Key] = decision{as, v.url(first), string(f.Code), salt}
}

// findContests hands every fresh URL whose code somebody else wants or has to
// the contest. With more, the next bucket may go on with the last slot.
func (v *visit) findContests(more bool) {
	for first, end := range urlsOf(v.records) {
		rows := int64(end - first)
		if first == 0 && v.heads[v.bucket].known {
			v.addRows(v.heads[v.bucket], rows)
			continue
		}
		if s := v.slotOf(first); s != v.slot {
			v.closeSlot()
			v.slot = s
		}
		if v.fateOf(v.bucket, first) == created {
			v.rivals = append(v.rivals, rival{head{true, v.bucket, first}, nil, rows})
		}
		v.slotTaken = v.slotTaken || v.taken[first]
	}
	if !more {
		v.closeSlot()
		return
	}
	if len(v.rivals) == 0 {
		return
	}
	last := len(v.rivals) - 1 // the only one that may have more rows
	for _, r := range v.rivals[:last] {
		v.claim(r)
		v.slotTaken = true
	}
	v.rivals = slices.Delete(v.rivals, 0, last)
	if r := &v.rivals[0]; r.canonical == nil {
		r.canonical = bytes.Clone(canonicalOf(v.records.Record(r.first)))
	}
}

// addRows adds rows of a URL that begins in an earlier bucket, if it is the rival that is
// left over from there.
func (v *visit) addRows(of head, rows int64) {
	if len(v.rivals) > 0 && v.rivals[0].head == of {
		v.rivals[0].rows += rows
	}
}

// closeSlot lets the rivals of a slot contest it, if it is not one's alone.
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
	v.mark(r.bucket, r.first, special)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.claims = append(v.claims, u)
	v.rows = append(v.rows, r.rows)
	v.contested += claimCost + int64(len(u.Canonical))
}
