package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// A heldRow is a row that was held against a link: of the mapping, or a reject because of what the
// link is. Layout in the sort: the group is the workspace, the key the first 8 bytes of the url_key;
// the content
//
//	url_key 16 | parameters as of rules.Params.Append | 1 byte: turn | number 8, big-endian
//	| 1 byte: heldReject, heldUnsure | 1 byte: result as of rules.Result.Pack
//
// So the rows of an identity come in their order (package rules, rule 2). Those that differ only in
// cells and places come as in the mapping or, if that has another order, with their link first. If
// legacy codes are kept, a row is held against the link or alias whose code it has, so the url_key is
// that of URL and code. Rejects are left out then: they do not tell whose code they had.
type heldRow struct {
	rules.Params
	number int64 // in its file
	reject bool
	unsure bool // as in link
	result rules.Result
}

const (
	heldReject = 1 << iota
	heldUnsure
)

// fileHeld files a row of the mapping.
func (w *checker) fileHeld(r *link) {
	h := heldRow{Params: r.params, number: r.Number, unsure: r.unsure, result: rules.Result{Outcome: r.Outcome, Change: r.Rules.Change}}
	hash := r.hash
	if w.run.mode.Keeps() {
		w.text = codegen.AppendAlias(w.text[:0], r.Canonical, r.Workspace, r.Code)
		hash = codegen.Sum(w.text)
	}
	w.fileHeldRow(&h, hash, r.Workspace)
}

func (w *checker) fileHeldRow(h *heldRow, hash codegen.Hash, workspace []byte) {
	key := hash.Key()
	rec := h.Params.Append(append(w.input[:0], key[:]...))
	rec = append(rec, byte(btoi((w.run.order == report.InputOrder || w.run.mode.Keeps()) && h.result.Outcome == outcome.Duplicate)))
	rec = binary.BigEndian.AppendUint64(rec, uint64(h.number))
	rec = append(rec, byte(btoi(h.reject)*heldReject+btoi(h.unsure)*heldUnsure), h.result.Pack())
	copy(w.held.Reserve(w.group(workspace), hash.Hi, len(rec)), rec)
	w.input = rec
}

func decodeHeld(rec []byte) (h heldRow) {
	rec = h.Params.Cut(rec[len(codegen.Hash{}.Key()):])
	h.number = int64(binary.BigEndian.Uint64(rec[1:]))
	h.reject, h.unsure = rec[9]&heldReject != 0, rec[9]&heldUnsure != 0
	h.result = rules.Unpack(rec[10])
	return h
}

// refuse files a reject because of what its link is, and returns its detail.
func (w *rejectChecker) refuse(r *outcome.Reject, workspace []byte, p *rules.Params) (detail string) {
	h := heldRow{Params: *p, number: w.row.Number, reject: true}
	if h.result.Reason, _ = rules.ParseReason(r.Reason); h.result.Reason == rules.ForDrift {
		h.result.Differs = drifts[r.Detail]
	}
	detail = h.result.Detail()
	if h.result.RefusesAll() {
		w.refuseDead(r, workspace, w.row.parts, h.result.Reason)
	}
	if w.held != nil && !w.run.mode.Keeps() {
		w.fileHeldRow(&h, w.hash(w.canon, workspace, w.row.parts, 0), workspace)
	}
	return detail
}

// drifts are the differences that a detail names.
var drifts = func() map[string]rules.Differences {
	all := map[string]rules.Differences{}
	for d := rules.Differences(1); d < 1<<rules.Ref; d++ {
		all[rules.Result{Reason: rules.ForDrift, Differs: d}.Detail()] = d
	}
	return all
}()

// verifyHeld checks that the rows of each identity are what they become if they are held against
// its link. Of a link that the run has created, its rows tell what it is. Of any other a link is
// looked for that explains all of them.
func (v *verifier) verifyHeld(ctx context.Context) (err error) {
	defer func() { err, v.held = errors.Join(err, v.held.Close()), nil }()
	if err := v.held.Finish(ctx); err != nil || v.broken.Load() {
		return err
	}
	j := &jury{verifier: v, rows: v.held.Finder()}
	j.Terms = v.run.table
	defer j.rows.Close()
	for at := (heldAt{}); at.bucket < v.held.Buckets() && err == nil; {
		at, err = j.identity(ctx, at)
	}
	return err
}

// A jury holds the rows of one identity after another against a link.
type jury struct {
	*verifier
	rules.Judge
	rows *extsort.Finder
}

// A heldAt is where a record of the sort is.
type heldAt struct{ bucket, record int }

// each visits the rows of the identity that begins at a record, by their numbers in it from 0, until
// visit returns false. A row is valid during the visit. Next is where the next identity begins, if
// all were visited.
func (j *jury) each(ctx context.Context, at heldAt, visit func(i int, h *heldRow) (more bool)) (next heldAt, err error) {
	type identity struct {
		group uint32
		key   sink.Key
	}
	var first identity
	for i := 0; at.bucket < j.held.Buckets(); at = (heldAt{at.bucket + 1, 0}) {
		b, err := j.rows.Load(ctx, at.bucket)
		if err != nil {
			return at, err
		}
		for ; at.record < b.Len(); at.record++ {
			rec := b.Record(at.record)
			id := identity{b.Group(at.record), sink.Key(rec)}
			if i == 0 {
				first = id
			}
			if h := decodeHeld(rec); id != first || !visit(i, &h) {
				return at, nil
			}
			i++
		}
	}
	return at, nil
}

// identity checks the rows of the identity that begins at a record, and returns where the next one
// begins.
func (j *jury) identity(ctx context.Context, at heldAt) (next heldAt, err error) {
	var c clues
	if next, err = j.each(ctx, at, c.see); err != nil || c.unsure && c.differ {
		return next, err
	}
	if c.refused != rules.Accepted {
		_, err = j.each(ctx, at, func(_ int, h *heldRow) bool {
			if h.result.Reason != c.refused {
				j.report(h, rules.Result{Reason: c.refused})
			}
			return true
		})
		return next, err
	}
	var best *rules.Stored
	least := int64(math.MaxInt64)
	for link := range c.links() {
		wrong, err := j.hold(ctx, at, link, nil)
		if err != nil || wrong == 0 {
			return next, err
		}
		if wrong < least {
			best, least = link, wrong
		}
	}
	_, err = j.hold(ctx, at, best, j.report)
	return next, err
}

// hold holds the rows of an identity against a link, and returns how many become something else
// than they say. Those it reports, unless report is nil.
func (j *jury) hold(ctx context.Context, at heldAt, link *rules.Stored, report func(h *heldRow, want rules.Result)) (wrong int64, err error) {
	j.Begin(link)
	if _, err := j.each(ctx, at, func(_ int, h *heldRow) bool {
		h.Owner = bytes.Clone(h.Owner)
		return j.See(&h.Params)
	}); err != nil {
		return 0, err
	}
	verdict := j.Verdict()
	_, err = j.each(ctx, at, func(i int, h *heldRow) bool {
		if want := verdict.Row(j.Terms, i, &h.Params); !h.becomes(want) {
			if wrong++; report != nil {
				report(h, want)
			}
		}
		return true
	})
	return wrong, err
}

// becomes reports whether the row says that it becomes this. A reject may not tell in what it differs.
func (h *heldRow) becomes(want rules.Result) bool {
	got := h.result
	if want.Reason != rules.Accepted {
		return got.Reason == want.Reason && (got.Differs == 0 || got.Differs == want.Differs)
	}
	return got.Reason == rules.Accepted && got.Outcome == want.Outcome && got.Change == want.Change
}

// report makes a finding of a row that becomes something else than it says.
func (j *jury) report(h *heldRow, want rules.Result) {
	here, got := j.fault(j.run.mapping, h.number), h.result
	if h.reject {
		here = j.fault(manifest.RejectsName, h.number)
	}
	switch {
	case h.reject && got.Reason == want.Reason:
		here.wrong(BadDetail, "detail", want.Detail(), got.Detail())
	case h.reject:
		here.wrong(BadReason, "reason", resultText(want), got.Reason.String())
	case want.Reason != rules.Accepted || got.Outcome != want.Outcome:
		here.wrong(BadOutcome, "outcome", resultText(want), got.Outcome.String())
	default:
		here.wrong(BadChange, "change", want.Change.String(), got.Change.String())
	}
}

func resultText(r rules.Result) string {
	if r.Reason != rules.Accepted {
		return "rejected: " + r.Reason.String()
	}
	return strings.TrimSpace(r.Outcome.String() + " " + r.Change.String())
}

// clues are what the rows of an identity tell of its link: as it was before the run or, if a row
// was written, as it is then. A column that is not known is taken to differ from all rows.
type clues struct {
	seen   bool // there is a row
	first  rules.Params
	differ bool // not all rows have the same parameters
	unsure bool // some row is unsure

	refused rules.Reason // a row says that all are rejected, whatever they say

	created bool         // a row says that the run created the link
	change  rules.Change // of the row that is no duplicate

	link  rules.Link
	owner []byte // nil: not known, or none
}

// unlike is a live link from which each row differs.
var unlike = rules.Link{Limit: -1, Uses: -2, Expiry: rules.Expiry{When: rules.At, Seconds: math.MaxInt64}, Type: rules.Permanent}

// see takes a row.
func (c *clues) see(_ int, h *heldRow) (more bool) {
	h.Owner = bytes.Clone(h.Owner)
	if !c.seen {
		c.seen, c.first, c.link = true, h.Params, unlike
	}
	c.differ, c.unsure = c.differ || rules.Compare(&c.first, &h.Params) != 0, c.unsure || h.unsure
	r := h.result
	if r.RefusesAll() {
		c.refused = r.Reason
	}
	if r.Reason == rules.Accepted && r.Outcome != outcome.Duplicate {
		c.created, c.change = c.created || r.Outcome == outcome.Created, r.Change
	}
	switch {
	case r.Change == rules.OtherOwner || r.Reason == rules.ForOwner:
	case r.Reason == rules.ForDrift && r.Differs != 0:
		c.tell(&h.Params, r.Differs)
	case r.Reason == rules.Accepted && r.Change == rules.NoChange:
		c.tell(&h.Params, 0)
	default:
		c.ownedBy(h.Owner)
	}
	return true
}

// ownedBy notes the owner of a row that is not foreign.
func (c *clues) ownedBy(owner []byte) {
	if len(owner) > 0 && c.owner == nil {
		c.owner = owner
	}
}

// tell takes a row that differs from the link in these columns, and in no other.
func (c *clues) tell(p *rules.Params, d rules.Differences) {
	if !d.Has(rules.MaxUses) {
		c.link.Limit = p.Limit
	}
	switch differs := d.Has(rules.ExpiresAt); {
	case differs && p.Expiry.When == rules.Reckoned:
		c.link.Expiry = rules.Expiry{}
	case !differs && p.Expiry.When != rules.Reckoned:
		c.link.Expiry = p.Expiry
	}
	if c.link.Type = rules.Permanent; d.Has(rules.LinkType) != (p.Type == rules.Temporary) {
		c.link.Type = rules.Temporary
	}
	if !d.Has(rules.OwnerID) {
		c.ownedBy(p.Owner)
	}
}

// links yields links that may explain the rows, the likeliest first; nil: there was none before the
// run.
func (c *clues) links() iter.Seq[*rules.Stored] {
	return func(yield func(*rules.Stored) bool) {
		if c.created {
			yield(nil)
			return
		}
		link := c.link
		switch c.change {
		case rules.Claimed:
			link = unlike
			link.Type = rules.Temporary
		case rules.Updated, rules.Revived:
			link = unlike
		}
		for _, dead := range []bool{c.change == rules.Revived, c.change != rules.Revived} {
			for _, owner := range [][]byte{c.owner, nil, {0}} {
				l := &rules.Stored{Link: link}
				if l.Owner = owner; dead {
					l.Status = rules.StatusExpired
				}
				if !yield(l) {
					return
				}
			}
		}
	}
}
