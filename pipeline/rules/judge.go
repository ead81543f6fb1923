package rules

import (
	"bytes"

	"github.com/linkforge/bulk/pipeline/outcome"
)

// A Judge decides about the rows of one identity after another, and allocates nothing. For each
// identity:
//
//	judge.Begin(stored)
//	for i := 0; i < len(rows) && judge.See(&rows[i]); i++ {
//	}
//	verdict := judge.Verdict()
//	for i := range rows {
//		result := verdict.Row(judge.Terms, i, &rows[i])
//	}
//
// The first walk ends at the first row, unless that is over, foreign or rejected.
type Judge struct {
	Terms

	stored *Stored
	seen   int // rows

	speaker int    // -1: nobody so far
	params  Params // of the speaker
	over    bool   // so is the speaker: one that is not takes its place
	result  Result // of the speaker; a duplicate if there is none

	// Of the other rows, the first that is accepted if no speaker is: one that does not differ,
	// otherwise one that is foreign, if the link is live. -1: none so far.
	same, foreign int
}

// Begin starts with an identity and its link; nil: the store has none. The link must not change
// until Verdict.
func (j *Judge) Begin(stored *Stored) {
	j.stored = stored
	j.seen, j.speaker, j.over, j.result = 0, -1, false, Result{Outcome: outcome.Duplicate}
	j.same, j.foreign = -1, -1
	if stored != nil && !stored.Made && stored.Changed == NoChange && j.Forbids(&stored.Link) {
		j.result = Result{Reason: LinkDeleted}
	}
}

// See takes the next row, in the order of rule 2, and reports whether it needs to see more. What
// the parameters refer to must not change until the last call of Verdict.Row.
func (j *Judge) See(p *Params) (more bool) {
	if j.result.RefusesAll() {
		return false
	}
	i := j.seen
	j.seen++
	if j.stored != nil {
		switch l := &j.stored.Link; {
		case l.Foreign(p) && !j.stored.Made: // if this run made the link, nobody was foreign to it
			if j.foreign < 0 {
				j.foreign = i
			}
			return true
		case j.same < 0 && l.Differs(p) == 0:
			j.same = i
		}
	}
	if over := p.Over(j.AsOf); j.speaker < 0 || j.over && !over {
		j.speaker, j.params, j.over = i, *p, over
		j.result = j.speak()
	}
	return j.over || j.result.Reason != Accepted && j.same < 0 && !j.result.RefusesAll()
}

// RefusesAll reports whether all rows of the identity are rejected, whatever they say.
func (r Result) RefusesAll() bool { return r.Reason == LinkDeleted || r.Reason == LinkEnded }

// speak returns what becomes of the speaker.
func (j *Judge) speak() Result {
	switch {
	case j.stored == nil:
		return j.Speak(nil, &j.params)
	case j.stored.Made:
		return Result{Outcome: outcome.Created, Done: true}
	case j.stored.Changed != NoChange:
		return Result{Outcome: outcome.Existing, Change: j.stored.Changed, Done: true}
	}
	return j.Speak(&j.stored.Link, &j.params)
}

// Verdict returns what becomes of the identity.
func (j *Judge) Verdict() Verdict {
	v := Verdict{Speaker: j.speaker, Result: j.result, existing: -1}
	if j.stored != nil {
		v.Link = j.stored.Link
	}
	if (j.speaker < 0 || j.result.Reason != Accepted) && !j.result.RefusesAll() {
		if v.existing = j.same; j.same < 0 && v.Link.Live(j.AsOf) {
			v.existing = j.foreign
		}
	}
	switch v.Result.Action() {
	case Create:
		v.Link.Ref = j.params.Ref
		v.Link.Write(&j.params, j.AsOf)
	case Revive:
		v.Link.revive(&j.params, j.AsOf)
	case Write:
		v.Link.Write(&j.params, j.AsOf)
	}
	return v
}

// Speaker returns the row that speaks as far as rows were seen; -1: none.
func (j *Judge) Speaker() int { return j.speaker }

// A Verdict is what becomes of an identity. Its slices are those of the link and of the speaker.
type Verdict struct {
	Speaker int    // its row, from 0; -1: all rows are foreign
	Result  Result // of the speaker; a duplicate if there is none
	Link    Link   // as it is after the speaker

	existing int // the row that is existing because no speaker was accepted; -1: none
}

// Accepts reports whether a row of the identity is accepted.
func (v *Verdict) Accepts() bool {
	return v.Speaker >= 0 && v.Result.Reason == Accepted || v.existing >= 0
}

// Changes reports whether a link that exists is to change.
func (v *Verdict) Changes() bool { return v.Result.Action() == Revive || v.Result.Action() == Write }

// Keep makes the verdict independent of the memory of link and rows.
func (v *Verdict) Keep() {
	v.Link.Owner, v.Link.Ref = bytes.Clone(v.Link.Owner), bytes.Clone(v.Link.Ref)
}

// Row returns what becomes of row i of the identity, from 0, in the order of rule 2.
func (v *Verdict) Row(t Terms, i int, p *Params) Result {
	if i == v.Speaker || v.Result.RefusesAll() {
		return v.Result
	}
	r := t.Hold(&v.Link, p)
	if i == v.existing && r.Reason == Accepted {
		r.Outcome = outcome.Existing
	}
	return r
}
