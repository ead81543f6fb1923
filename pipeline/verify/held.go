package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// A heldRow is a row that was held against a link: of the mapping, or a reject because of what the
// link is. Layout in the sort: the group is the workspace, the key the first 8 bytes of the url_key;
// the content
//
//	url_key 16 | parameters as of rules.Params.Append | 1 byte: turn | number 8, big-endian
//	| 1 byte: heldReject, heldUnsaid | 1 byte: result as of rules.Result.Pack
//	| of the mapping: each cell of the link up to the reference, as of packed.AppendCell
//
// So the rows of an identity come in their order (package rules, rule 2). Those that differ only in
// cells and places come as in the mapping or, if that has another order, with their link first. If
// legacy codes are kept, a row is held against the link or alias whose code it has, so the url_key is
// that of identity and code. Rejects are left out then: they do not tell whose code they had.
type heldRow struct {
	rules.Params
	number int64 // in its file
	reject bool
	unsaid bool // the parameters are not known
	result rules.Result
	shown  []byte // of a row of the mapping: the cells of its link
}

const (
	heldReject = 1 << iota
	heldUnsaid
)

// A heldCoder makes records of held rows, for one goroutine.
type heldCoder struct {
	run    *run
	groups *grouper
	text   []byte
}

// key returns the url_key of what a row of the mapping is held against.
func (c *heldCoder) key(r *link) sink.Key {
	if !c.run.codes.mode.Keeps() {
		return r.hash.Key()
	}
	c.text = codegen.AppendAlias(c.text[:0], r.Canonical, r.Workspace, r.parts, r.Code)
	return codegen.Sum(c.text).Key()
}

// append appends what follows the parameters.
func (c *heldCoder) append(dst []byte, h *heldRow) []byte {
	dst = append(dst, byte(btoi((c.run.order == report.InputOrder || c.run.codes.mode.Keeps()) && h.result.Outcome == outcome.Duplicate)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.number))
	dst = append(dst, byte(btoi(h.reject)*heldReject+btoi(h.unsaid)*heldUnsaid), h.result.Pack())
	return append(dst, h.shown...)
}

// said returns a row of the mapping on its way to the parameters that its input tells: the number
// of the workspace, 4 bytes, and the record of the held row without them.
func (c *heldCoder) said(r *link) []byte {
	key, h := c.key(r), heldOf(r)
	h.unsaid = false
	said := append(binary.BigEndian.AppendUint32(nil, c.groups.id(r.Workspace)), key[:]...)
	return c.append(said, h)
}

// A heldWriter files rows that were held against links, for one goroutine.
type heldWriter struct {
	codes heldCoder
	to    *extsort.Writer
	buf   []byte
}

// newHeldWriter returns a writer to a sort; nil if there is none.
func newHeldWriter(run *run, groups *grouper, held *extsort.Sorter) *heldWriter {
	if held == nil {
		return nil
	}
	return &heldWriter{codes: heldCoder{run: run, groups: groups}, to: held.NewWriter()}
}

// link files a row of the mapping.
func (w *heldWriter) link(r *link) {
	key := w.codes.key(r)
	w.file(r.Workspace, key, r.params.Append(append(w.buf[:0], key[:]...)), heldOf(r))
}

// reject files a reject.
func (w *heldWriter) reject(workspace []byte, key sink.Key, h *heldRow) {
	w.file(workspace, key, h.Params.Append(append(w.buf[:0], key[:]...)), h)
}

// file files a row, of which rec has the beginning.
func (w *heldWriter) file(workspace []byte, key sink.Key, rec []byte, h *heldRow) {
	rec = w.codes.append(rec, h)
	copy(w.to.Reserve(w.codes.groups.id(workspace), binary.BigEndian.Uint64(key[:]), len(rec)), rec)
	w.buf = rec
}

// heldOf returns a row of the mapping, without its parameters.
func heldOf(r *link) *heldRow {
	h := &heldRow{number: r.Number, unsaid: !r.said, result: rules.Result{Outcome: r.Outcome, Change: r.Rules.Change}}
	for _, cell := range r.Rules.Cells[:rules.Ref] {
		h.shown = packed.AppendCell(h.shown, cell)
	}
	return h
}

// joinHeld files what heldCoder.said returned, with the parameters.
func joinHeld(to *extsort.Writer, said, params []byte) {
	const head = 4 + len(sink.Key{})
	group, key := binary.BigEndian.Uint32(said), binary.BigEndian.Uint64(said[4:])
	rec := slices.Concat(said[4:head], params, said[head:])
	copy(to.Reserve(group, key, len(rec)), rec)
}

func decodeHeld(rec []byte) (h heldRow) {
	rec = h.Params.Cut(rec[len(sink.Key{}):])
	h.number = int64(binary.BigEndian.Uint64(rec[1:]))
	h.reject, h.unsaid = rec[9]&heldReject != 0, rec[9]&heldUnsaid != 0
	h.result, h.shown = rules.Unpack(rec[10]), rec[11:]
	return h
}

// cells returns the cells of the link of a row of the mapping.
func (h *heldRow) cells() (cells rules.Cells) {
	rest := h.shown
	for c := range cells[:rules.Ref] {
		cells[c], rest = packed.CutCell(rest)
	}
	return cells
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
// its link, and that the mapping shows what the link has then. Of a link that the run has created, its
// rows tell what it is; of one that it has not changed, the mapping does. Of any other a link is looked
// for that explains all rows.
//
// It does nothing unless all reports were read to the end.
func verifyHeld(ctx context.Context, held *extsort.Sorter, run *run, whole bool, found *findings) error {
	if err := held.Finish(ctx); err != nil || !whole {
		return err
	}
	j := &jury{findings: found, run: run, judge: rules.Judge{Terms: run.ruling.table}, buckets: held.Buckets(), rows: held.Finder()}
	defer j.rows.Close()
	var err error
	for at := (heldAt{}); at.bucket < j.buckets && err == nil; {
		at, err = j.identity(ctx, at)
	}
	return err
}

// A jury holds the rows of one identity after another against a link.
type jury struct {
	findings *findings
	run      *run
	judge    rules.Judge
	buckets  int
	rows     *extsort.Finder
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
	for i := 0; at.bucket < j.buckets; at = (heldAt{at.bucket + 1, 0}) {
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
	if next, err = j.each(ctx, at, c.see); err != nil {
		return next, err
	}
	if c.refused != rules.Accepted {
		_, err = j.each(ctx, at, func(_ int, h *heldRow) bool {
			if h.result.Reason != c.refused {
				j.report(h, rules.Result{Reason: c.refused}, nil)
			}
			return true
		})
		return next, err
	}
	if c.unsaid {
		return next, j.compareUnsaid(ctx, at, &c)
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

// compareUnsaid checks rows of which some are not known by what they say: all show one link, and one of
// them is not its duplicate.
func (j *jury) compareUnsaid(ctx context.Context, at heldAt, c *clues) error {
	if c.shown && c.firsts != 1 {
		j.findings.fault(j.run.mapping, c.number).wrong(BadOutcome, "outcome", "one row of its link that is created or existing", fmt.Sprint(c.firsts))
	}
	_, err := j.each(ctx, at, func(_ int, h *heldRow) bool {
		j.compareShown(h, &c.cells)
		return true
	})
	return err
}

// hold holds the rows of an identity against a link, and returns how many become something else
// than they say. Those it reports, unless report is nil.
func (j *jury) hold(ctx context.Context, at heldAt, link *rules.Stored, report func(h *heldRow, want rules.Result, shown *rules.Cells)) (wrong int64, err error) {
	j.judge.Begin(link)
	if _, err := j.each(ctx, at, func(_ int, h *heldRow) bool {
		h.Owner = bytes.Clone(h.Owner)
		return j.judge.See(&h.Params)
	}); err != nil {
		return 0, err
	}
	verdict := j.judge.Verdict()
	shown, _ := verdict.Link.Cells(nil)
	_, err = j.each(ctx, at, func(i int, h *heldRow) bool {
		if want := verdict.Row(j.judge.Terms, i, &h.Params); !h.becomes(want) || !h.shows(&shown) {
			if wrong++; report != nil {
				report(h, want, &shown)
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

// shows reports whether the row shows a link that has these cells; a reject shows none.
func (h *heldRow) shows(want *rules.Cells) bool {
	got := h.cells()
	return h.reject || slices.EqualFunc(got[:], want[:], bytes.Equal)
}

// compareShown makes findings of cells in which a row of the mapping does not show its link.
func (j *jury) compareShown(h *heldRow, want *rules.Cells) {
	if h.reject {
		return
	}
	for c, got := range h.cells() {
		if !bytes.Equal(want[c], got) {
			j.findings.fault(j.run.mapping, h.number).wrong(BadParameter, rules.Column(c).String(), string(want[c]), string(got))
		}
	}
}

// report makes a finding of a row that becomes something else than it says, or does not show its link.
func (j *jury) report(h *heldRow, want rules.Result, shown *rules.Cells) {
	here, got := j.findings.fault(j.run.mapping, h.number), h.result
	if h.reject {
		here = j.findings.fault(manifest.RejectsName, h.number)
	}
	switch {
	case h.reject && got.Reason == want.Reason:
		here.wrong(BadDetail, "detail", want.Detail(), got.Detail())
	case h.reject:
		here.wrong(BadReason, "reason", resultText(want), got.Reason.String())
	case want.Reason != rules.Accepted || got.Outcome != want.Outcome:
		here.wrong(BadOutcome, "outcome", resultText(want), got.Outcome.String())
	case got.Change != want.Change:
		here.wrong(BadChange, "change", want.Change.String(), got.Change.String())
	default:
		j.compareShown(h, shown)
	}
}

func resultText(r rules.Result) string {
	if r.Reason != rules.Accepted {
		return "rejected: " + r.Reason.String()
	}
	return strings.TrimSpace(r.Outcome.String() + " " + r.Change.String())
}

// clues are what the rows of an identity tell of its link: as it is after the run, if a row shows it,
// or else what rejects tell. A column that is not known is taken to differ from all rows.
type clues struct {
	unsaid bool // it is not known of some row what it says

	refused rules.Reason // a row says that all are rejected, whatever they say

	created bool         // a row says that the run created the link
	change  rules.Change // of the row that is no duplicate

	firsts int // rows that are no duplicates

	shown  bool  // a row shows the link
	number int64 // of the first that does
	cells  rules.Cells
	link   rules.Link
	owner  []byte // nil: not known, or none
}

// unlike is a live link from which each row differs.
var unlike = rules.Link{Limit: -1, Uses: -2, Expiry: rules.Expiry{When: rules.At, Seconds: math.MaxInt64}, Type: rules.Permanent}

// see takes a row.
func (c *clues) see(i int, h *heldRow) (more bool) {
	h.Owner = bytes.Clone(h.Owner)
	if i == 0 {
		c.link = unlike
	}
	c.unsaid = c.unsaid || h.unsaid
	r := h.result
	if r.RefusesAll() {
		c.refused = r.Reason
	}
	if !h.reject && r.Outcome != outcome.Duplicate {
		c.firsts++
		c.created, c.change = c.created || r.Outcome == outcome.Created, r.Change
	}
	switch {
	case c.shown:
	case !h.reject:
		h.shown = bytes.Clone(h.shown)
		c.shown, c.number, c.cells = true, h.number, h.cells()
		c.link = linkOf(&c.cells)
		c.owner = c.link.Owner
	case r.Reason == rules.ForDrift && r.Differs != 0:
		c.tell(&h.Params, r.Differs)
	case r.Reason == rules.ForDrift:
		c.ownedBy(h.Owner)
	}
	return true
}

// linkOf returns a link that has what the mapping shows.
func linkOf(cells *rules.Cells) rules.Link {
	l := rules.Link{Type: rules.TypeOf(string(cells[rules.LinkType])), Owner: cells[rules.OwnerID]}
	if t, err := time.Parse(time.RFC3339, string(cells[rules.ExpiresAt])); err == nil {
		l.Expiry = rules.Expiry{When: rules.At, Seconds: t.Unix()}
	}
	switch limit := string(cells[rules.MaxUses]); limit {
	case "":
	case "0": // of a link that is used up
		l.Limit = -1
	default:
		l.Limit, _ = rules.ParseLimit([]byte(limit))
	}
	return l
}

// ownedBy notes the owner of a reject that is not foreign.
func (c *clues) ownedBy(owner []byte) {
	if len(owner) > 0 && c.owner == nil {
		c.owner = owner
	}
}

// tell takes a reject that differs from the link in these columns, and in no other.
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

// before returns the link as it may have been before the run, and who may have owned it.
func (c *clues) before() (link rules.Link, owners [][]byte) {
	link, owners = c.link, [][]byte{c.owner, nil, {0}}
	switch {
	case c.change == rules.Claimed:
		link, owners = unlike, [][]byte{nil}
		link.Type = rules.Temporary
	case c.change == rules.Updated || c.change == rules.Revived:
		link, owners = unlike, owners[:2]
	case c.shown:
		owners = owners[:1]
	}
	return link, owners
}

// links yields links that may explain the rows, the likeliest first; nil: there was none before the
// run.
func (c *clues) links() iter.Seq[*rules.Stored] {
	return func(yield func(*rules.Stored) bool) {
		if c.created {
			yield(nil)
			return
		}
		link, owners := c.before()
		for _, dead := range []bool{c.change == rules.Revived, c.change != rules.Revived} {
			for _, owner := range owners {
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
