package settle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// Where legacy codes are kept, a row speaks for the link or the alias whose code it has. So the
// rows are judged once all codes are settled, and the store is asked once more, for the rules of the
// links that it has.

// judgeKept judges the rows of all URLs. The first row of an identity is then the one that is created
// or existing, and a link whose code no row brings goes with it.
func (s *settling) judgeKept(ctx context.Context) error {
	pool := make(chan *keptJudging, s.parallel())
	for range cap(pool) {
		pool <- &keptJudging{judging: s.newJudging()}
	}
	if err := s.eachStretch(ctx, func(ctx context.Context, from, to int) error {
		k := <-pool
		defer func() { pool <- k }()
		return k.do(ctx, from, to)
	}); err != nil {
		return err
	}
	close(pool)
	for k := range pool {
		s.made.Existing -= k.mute
		s.made.failed += k.mute
		s.made.bare -= k.unborn
		s.refused.add(k.refused)
	}
	return nil
}

// A keptJudging judges the rows of the URLs of some buckets.
type keptJudging struct {
	judging
	url     []keptRow // the rows of the URL in hand that are not rejected so far
	first   origin    // where it begins
	group   uint32    // of its workspace
	links   []keptLink
	mute    int64 // links that the store had and whose rows are all refused
	unborn  int64 // new links that no row has and whose rows are all refused
	refused refusals
}

// A keptRow is a row of a URL.
type keptRow struct {
	at  origin
	rec []byte // of a bucket in hand, unless it was cloned
}

// A keptLink is a link or an alias, and the rows that have its code.
type keptLink struct {
	group  uint32
	code   []byte
	stored bool
	bare   bool      // no row has its code
	rows   []keptRow // that speak for it; none: nobody does
	all    []keptRow // of its URL, if one is to bear the link though none of rows may; else nil
}

const chunkLinks = 1 << 12 // that are held while the store is asked about them

func (k *keptJudging) do(ctx context.Context, from, to int) error {
	for n := from; n < to; n++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b, err := k.s.records.Load(n)
		if err != nil {
			return err
		}
		for first, end := range b.Runs(record.KeySize) {
			if first > 0 || !k.s.made.Continues(n) {
				k.endURL()
				k.first, k.group = origin{true, n, first}, b.Group(first)
			}
			for i := first; i < end; i++ {
				if !k.s.made.Row(n, i).Lost() {
					k.url = append(k.url, keptRow{origin{true, n, i}, b.Record(i)})
				}
			}
			if len(k.links) >= chunkLinks {
				if err = k.flush(ctx); err != nil {
					break
				}
			}
		}
		if n+1 == to || !k.s.made.Continues(n+1) {
			k.endURL()
		}
		if err == nil {
			err = k.flush(ctx)
		}
		for i, r := range k.url {
			if r.at.bucket == n { // which goes
				k.url[i].rec = bytes.Clone(r.rec)
			}
		}
		b.Release()
		if err != nil {
			return err
		}
	}
	return k.err()
}

// endURL divides the rows of the URL in hand by the codes that they have.
func (k *keptJudging) endURL() {
	rows := k.url
	if k.url = k.url[:0]; len(rows) == 0 {
		return
	}
	d := k.s.made.Decide(k.first.bucket, k.first.first, k.group, rows[0].rec)
	link := keptLink{group: k.group, code: []byte(d.Code), stored: d.Stored}
	byCode := map[string]int{} // numbers in links
	for _, r := range rows {
		row := k.s.row(r.at)
		if !row.Won() {
			link.rows = append(link.rows, r)
			continue
		}
		code := record.LegacyCode(r.rec)
		if row.has(isLink) {
			link.code = code
		}
		n, known := byCode[string(code)]
		if !known {
			n = len(k.links)
			byCode[string(code)] = n
			k.links = append(k.links, keptLink{group: k.group, code: code})
		}
		l := &k.links[n]
		l.stored = l.stored || row.Stored()
		l.rows = append(l.rows, r)
	}
	if len(link.code) == 0 && k.s.cfg.Counter == nil { // else nobody else has it
		link.code = k.s.cfg.Order.AppendFirst(nil, rows[0].rec)
	}
	n, has := byCode[string(link.code)]
	switch {
	case d.Reason != "":
	case has:
		k.links[n].rows = append(k.links[n].rows, link.rows...)
	case len(link.rows) > 0:
		if d.Stored && d.Salt > 0 {
			link.all = slices.Clone(rows)
		}
		k.links = append(k.links, link)
	case d.Salt >= 0:
		link.bare, link.all = true, slices.Clone(rows)
		if k.s.cfg.Kept.Mode == legacy.Both || !d.Stored {
			link.rows = slices.Clone(rows)
		}
		k.links = append(k.links, link)
	}
}

// flush judges the rows of the links in hand.
func (k *keptJudging) flush(ctx context.Context) error {
	defer func() { k.links = k.links[:0] }()
	var stored []*keptLink
	for i := range k.links {
		l := &k.links[i]
		slices.SortFunc(l.rows, func(a, b keptRow) int { return k.s.cfg.Order.CompareRows(a.rec, b.rec) })
		switch {
		case l.stored && len(l.rows) > 0:
			stored = append(stored, l)
		case !l.stored && !l.bare:
			k.judge(l, nil)
		}
	}
	if len(stored) > 0 {
		if err := k.judgeStored(ctx, stored); err != nil {
			return err
		}
	}
	for i := range k.links { // once the rows of aliases are judged, which bear nothing
		switch l := &k.links[i]; {
		case l.bare && !l.stored:
			k.judgeBare(l)
		case l.all != nil && !slices.ContainsFunc(l.rows, func(r keptRow) bool { return k.s.row(r.at).Bears() }):
			if i := slices.IndexFunc(l.all, k.accepted); i >= 0 {
				k.set(l.all[i].at, bears, true)
			}
		}
	}
	return nil
}

// judgeStored judges the rows of links that exist.
func (k *keptJudging) judgeStored(ctx context.Context, stored []*keptLink) error {
	slices.SortFunc(stored, func(a, b *keptLink) int {
		return cmp.Or(k.s.names.Compare(a.group, b.group), bytes.Compare(a.code, b.code))
	})
	probes := make([]sink.Probe, len(stored))
	for i, l := range stored {
		probes[i] = sink.Probe{Workspace: k.s.names.Name(l.group), Code: l.code, WantRun: k.s.run != 0, WantRules: true}
	}
	seen := 0
	err := k.s.lookup(ctx, probes, func(f sink.Found) error {
		if l := stored[f.Probe]; bytes.Equal(f.Canonical, record.Canonical(l.rows[0].rec)) {
			k.judge(l, &f)
			seen++
		}
		return nil
	})
	if err == nil && seen < len(stored) { // since the store was asked about the claims
		err = fmt.Errorf("%w, and deleted links", sink.ErrConflict)
	}
	return err
}

// judge judges the rows of a link, which come in order, and returns the one that speaks for it; found is
// what the store has of it.
func (k *keptJudging) judge(l *keptLink, found *sink.Found) (speaker int) {
	k.Begin(k.stored(found))
	for i := 0; i < len(l.rows) && k.See(k.paramsOf(l.rows[i].rec)); i++ {
	}
	verdict := k.Verdict()
	if verdict.Changes() {
		r := record.Decode(l.rows[verdict.Speaker].rec)
		k.fileChange(l.group, found, &verdict, &r)
	}
	if l.bare { // its rows have other codes
		return verdict.Speaker
	}
	if found != nil && !verdict.Accepts() {
		k.mute++
	}
	for i, r := range l.rows {
		params := k.paramsOf(r.rec)
		result := verdict.Row(k.Terms, i, params)
		k.refused.count(result)
		if result.Reason == rules.Accepted {
			k.show(r.at, &verdict.Link, params)
		}
		k.note(r.at, result, found)
	}
	return verdict.Speaker
}

// judgeBare judges the rows of a new link that no row has; the one that speaks for it bears it. Those that
// are rejected say nothing of it, and if all are, it is not made.
func (k *keptJudging) judgeBare(l *keptLink) {
	l.rows = slices.DeleteFunc(l.rows, func(r keptRow) bool { return !k.accepted(r) })
	if len(l.rows) == 0 {
		k.unborn++
		return
	}
	k.set(l.rows[k.judge(l, nil)].at, bears, true)
}

// accepted reports whether a row that was judged is not rejected.
func (k *keptJudging) accepted(r keptRow) bool {
	result, _ := k.s.made.Result(r.at.bucket, r.at.first)
	return result.Reason == rules.Accepted
}

// set sets a bit of a row, or clears it.
func (k *keptJudging) set(at origin, bit Row, on bool) {
	row := k.s.row(at)
	if *row &^= bit; on {
		*row |= bit
	}
}

// note notes what becomes of a row that has the code of its link.
func (k *keptJudging) note(at origin, result rules.Result, found *sink.Found) {
	is := result.Reason == rules.Accepted && result.Outcome != outcome.Duplicate
	k.set(at, first, is)
	k.set(at, bears, is && !k.s.row(at).Won())
	k.set(at, there, is && result.Outcome == outcome.Existing)
	k.set(at, made, is && found != nil && result.Outcome == outcome.Created)
	b := &k.s.made.buckets[at.bucket]
	if result.Reason != rules.Accepted {
		b.refused.count(result)
	} else if result.Change == rules.NoChange {
		return
	}
	b.note(at.first, len(b.rows), result)
}
