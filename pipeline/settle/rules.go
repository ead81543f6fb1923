package settle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// Rules say how rows are held against their links (package rules).
type Rules struct {
	rules.Terms
	Parts    bool                        // identities may have parts
	Original func(*record.Record) []byte // original_url of the link of a row; nil: the same as its canonical URL
	Changes  extsort.Config              // of the sort of changes; all but the order
	Shown    extsort.Config              // of the sort of what links have, other than their rows say; all but the order
}

// A judging judges the rows of one identity after another, for one goroutine.
type judging struct {
	s *settling
	rules.Judge
	changes *extsort.Writer
	shown   *extsort.Writer
	buf     []byte
	row     record.Rules // in hand
	link    rules.Stored // of the identity in hand
}

// newJudging returns what judges, if there are link rules.
func (s *settling) newJudging() judging {
	j := judging{s: s}
	if s.cfg.Rules != nil {
		j.Terms, j.changes, j.shown = s.cfg.Rules.Terms, s.made.changes.NewWriter(), s.made.shown.NewWriter()
	}
	return j
}

// passed is the verdict on an identity, and which of its rows have been held against it.
type passed struct {
	verdict  rules.Verdict
	expected outcome.Outcome // of the first row
	row      int             // the next row
	refused  refusals        // rows of one bucket
}

// rules reports whether rows are held against their links while buckets are visited.
func (v *visit) rules() bool { return v.s.cfg.Rules != nil && v.verdicts == nil }

// agreed is what passes on rows that agree.
var agreed = &passed{verdict: rules.Verdict{Result: rules.Result{Outcome: outcome.Existing}}}

// judge holds the rows of an identity that begins in the bucket in hand against its link; nil: the
// store has none. The result is valid until the next call.
func (v *visit) judge(ctx context.Context, first int, found *sink.Found) (_ *passed, err error) {
	j, stored := &v.judging, v.judging.stored(found)
	end, wants := v.records.EndOf(first, v.records.Len(), record.KeySize), true
	if !(v.more && end == v.records.Len()) && v.agree(first, end, stored) {
		return agreed, j.err()
	}
	p := &v.now
	*p = passed{}
	j.Begin(stored)
	for i := first; i < end && wants; i++ {
		wants = j.See(j.paramsOf(v.records.Record(i)))
	}
	goesOn := v.more && end == v.records.Len()
	var speaker *record.Record // if it is in a later bucket
	if wants && goesOn {
		if speaker, err = v.lookAhead(ctx, first); err != nil {
			return nil, err
		}
	}
	p.verdict = j.Verdict()
	if found != nil && !v.s.isOurs(found) {
		p.expected = outcome.Existing
	}
	if p.verdict.Changes() {
		if speaker == nil {
			r := record.Decode(v.records.Record(first + p.verdict.Speaker))
			speaker = &r
		}
		j.fileChange(v.records.Group(first), found, &p.verdict, speaker)
	}
	p.refused = v.judgeRows(first, end, p)
	if goesOn {
		v.passed = *p
		v.passed.verdict.Keep()
	}
	return p, j.err()
}

// err is the error of what was filed.
func (j *judging) err() error { return cmp.Or(j.changes.Err(), j.shown.Err()) }

// agree reports whether the records [from, to) say of a link what the store says, and it is live: so
// they change nothing, which is the case of nearly all links. It then files what the mapping shows.
func (v *visit) agree(from, to int, l *rules.Stored) bool {
	j := &v.judging
	if l == nil || l.Made || l.Changed != rules.NoChange || !l.Live(j.AsOf) {
		return false
	}
	row, ok := l.AppendRow(j.buf[:0])
	j.buf = row
	shows := true
	for i := from; i < to; i++ {
		rec := v.records.Record(i)
		if ok && record.HasParams(rec, row) {
			continue
		}
		p := j.paramsOf(rec)
		if l.Differs(p) != 0 {
			return false
		}
		shows = shows && l.Shows(p, j.AsOf)
	}
	for i := from; i < to && !shows; i++ {
		j.show(origin{true, v.number, i}, &l.Link, j.paramsOf(v.records.Record(i)))
	}
	return true
}

// lookAhead goes on with the rows of the identity that the bucket in hand ends with, in the buckets
// that follow, and returns the speaker if it is there.
func (v *visit) lookAhead(ctx context.Context, first int) (speaker *record.Record, err error) {
	j, url, wants := &v.judging, v.spotOf(first), true
	for n := v.number + 1; wants && n < v.s.records.Buckets(); n++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		b, err := v.s.records.Load(n)
		if err != nil {
			return nil, err
		}
		i := 0
		for ; wants && i < b.Len() && (spot{b.Group(i), b.Key(i), record.Key(b.Record(i))}) == url; i++ {
			before, rec := j.Speaker(), bytes.Clone(b.Record(i)) // the bucket goes
			if wants = j.See(j.paramsOf(rec)); j.Speaker() != before {
				r := record.Decode(rec)
				speaker = &r
			}
		}
		wants = wants && i == b.Len()
		b.Release()
	}
	return speaker, nil
}

// judgeRows notes what becomes of the records [from, to) of the bucket in hand, the next ones of an
// identity, unless it is what is to be expected. It returns how many are rejected.
func (v *visit) judgeRows(from, to int, p *passed) (refused refusals) {
	for i := from; i < to; i++ {
		params := v.judging.paramsOf(v.records.Record(i))
		r := p.verdict.Row(v.judging.Terms, p.row, params)
		refused.count(r)
		if r.Reason == rules.Accepted {
			v.judging.show(origin{true, v.number, i}, &p.verdict.Link, params)
		}
		expected := rules.Result{Outcome: outcome.Duplicate}
		if p.row == 0 {
			expected.Outcome = p.expected
		}
		if p.row++; r.Outcome == expected.Outcome && r.Change == rules.NoChange && r.Reason == rules.Accepted {
			continue
		}
		v.bucket().note(i, v.records.Len(), r)
	}
	v.bucket().refused.add(refused)
	return refused
}

// note notes what becomes of a record of the bucket, which has so many.
func (b *bucket) note(i, records int, r rules.Result) {
	if b.results == nil {
		b.results = make([]byte, records)
	}
	b.results[i] = r.Pack()
}

// askGone finds the URLs of the bucket that get no link and no alias, since all that the store has of
// them are deleted and the run does not revive them. URLs whose link lives are not asked about; if
// no legacy codes are kept, nor are those whose link is found: it speaks for itself.
func (v *visit) askGone(ctx context.Context) error {
	if r := v.s.cfg.Rules; r == nil || r.Revive == rules.ReviveAll || !v.s.anywhere {
		return nil
	}
	var firsts []int
	var bases []sink.Key
	var input []byte
	for first := range v.records.Runs(record.KeySize) {
		if first == 0 && v.bucket().origin.known || !v.s.populated[v.records.Group(first)] || !v.mayBeGone(first) {
			continue
		}
		input = codegen.AppendInput(input[:0], record.Canonical(v.records.Record(first)), v.s.names.Name(v.records.Group(first)), 0)
		firsts, bases = append(firsts, first), append(bases, codegen.Sum(input).Key())
	}
	for from := 0; from < len(bases); from += maxProbes {
		asked := bases[from:min(from+maxProbes, len(bases))]
		gone, err := v.s.session.Gone(ctx, asked)
		if err == nil && len(gone) != len(asked) {
			err = fmt.Errorf("%w: of %d URLs it told of %d whether they are deleted", ErrBroken, len(asked), len(gone))
		}
		if err != nil {
			return err
		}
		for i, is := range gone {
			if is {
				v.goneURL(firsts[from+i])
			}
		}
	}
	return nil
}

// mayBeGone reports whether a URL of the bucket needs more than the answer about its link.
func (v *visit) mayBeGone(first int) bool {
	if v.verdicts != nil {
		l, found := v.found[first]
		return !found || l.deleted
	}
	return v.s.made.fate(v.number, first) == isNew
}

// goneURL rejects a URL of the bucket all of whose links are deleted.
func (v *visit) goneURL(first int) {
	if v.verdicts != nil { // then row by row
		if v.gone == nil {
			v.gone = map[int]bool{}
		}
		v.gone[first] = true
		return
	}
	v.s.mark(v.number, first, isGone)
	b := v.bucket()
	b.mute++
	b.refused[rules.LinkDeleted] += int64(v.records.EndOf(first, v.records.Len(), record.KeySize) - first)
}

// refuse counts the rows that are rejected because of link rules.
func (s *settling) refuse() {
	for reason, rows := range s.refused {
		if rows > 0 {
			s.made.Rejected[rules.Reason(reason).String()] += rows
		}
	}
}

// stored is a link that the store has, as package rules knows it; nil: there is none.
func (j *judging) stored(f *sink.Found) *rules.Stored {
	if f == nil {
		return nil
	}
	l := &j.link
	*l = rules.Stored{Made: j.s.isOurs(f), Link: linkOf(f.Rules)}
	if j.s.run != 0 && f.Rules.ChangedRun == j.s.run {
		l.Changed, _ = rules.ParseChange(f.Rules.Change) // what another program wrote is none
	}
	return l
}

func linkOf(r *sink.Rules) rules.Link {
	l := rules.Link{Limit: r.MaxUses, Uses: r.Uses, Type: rules.TypeOf(string(r.Type)), Owner: r.Owner, Ref: r.Ref, Status: rules.StatusOf(r.Status)}
	if !r.Expires.IsZero() {
		l.Expiry = rules.Expiry{When: rules.At, Seconds: r.Expires.Unix()}
	}
	if !r.Marked.IsZero() {
		l.Marked, l.Mark = true, r.Marked.Unix()
	}
	return l
}

// NewRules are the rules of a link that a row with these parameters makes.
func NewRules(p *rules.Params, asOf int64) sink.Rules {
	var l rules.Link
	l.Write(p, asOf)
	r := rulesOf(&l)
	r.Ref = p.Ref
	return r
}

// rulesOf are the expiry, the limit, the type and the owner of a link.
func rulesOf(l *rules.Link) sink.Rules {
	r := sink.Rules{MaxUses: l.Limit, Type: types[l.Type], Owner: l.Owner}
	if l.Expiry.When == rules.At {
		r.Expires = time.Unix(l.Expiry.Seconds, 0).UTC()
	}
	return r
}

var types = [...][]byte{rules.NoType: nil, rules.Permanent: []byte(rules.Permanent.String()), rules.Temporary: []byte(rules.Temporary.String())}

// paramsOf returns the parameters of a record, valid until the next call.
func (j *judging) paramsOf(rec []byte) *rules.Params {
	record.CutRules(rec, &j.row)
	return &j.row.Params
}

// Result returns what becomes of record i of a bucket, whose identity is not rejected, if that is not
// to be expected: that the first record of an identity has the outcome of its decision, the others are
// duplicates, and nothing more is to be said. If legacy codes are kept, Row tells the outcome.
func (s *Settlement) Result(bucket, i int) (r rules.Result, ok bool) {
	if results := s.buckets[bucket].results; results != nil && results[i] != 0 {
		return rules.Unpack(results[i]), true
	}
	return r, false
}

// ToChange returns the number of existing links that the run has yet to change.
func (s *Settlement) ToChange() int64 {
	if s.changes == nil {
		return 0
	}
	return s.changes.Len()
}

// newChanges returns a sorter of changes by workspace and code.
func newChanges(cfg extsort.Config, names *record.Workspaces) *extsort.Sorter {
	cfg.CompareGroups, cfg.Compare = names.Compare, packed.CompareFirst
	return extsort.New(cfg)
}

// Changes yields the changes of existing links, by workspace and code, in chunks that are valid
// until the next one.
func (s *Settlement) Changes(ctx context.Context) iter.Seq2[[]sink.Change, error] {
	const most = 1 << 12
	return extsort.Chunks(ctx, s.changes, most, func(at *extsort.Cursor, _ int) sink.Change {
		c := decodeChange(at.Record())
		c.Workspace = s.coder.Names.Name(at.Group())
		return c
	})
}
