package intake

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/claim"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/shorturl"
	"github.com/linkforge/bulk/pipeline/source"
)

// readInput has workers read an input.
func (r *Rows) readInput(ctx context.Context, i int, workers []*worker, cfg *Config) error {
	in := r.List[i]
	err := in.Read(ctx, len(workers), func(n int, b *source.Batch) error {
		cfg.Read.Add(b.Record.NumRows() + int64(len(b.Errors)))
		in.progress(cfg)
		w := workers[n]
		w.file(i, b)
		return cmp.Or(w.records.Err(), w.rejects.Err(), r.checkRoom(cfg))
	})
	in.progress(cfg)
	return err
}

// progress counts the bytes of an input that were read since it was last called.
func (i *Input) progress(cfg *Config) {
	i.counting.Lock()
	defer i.counting.Unlock()
	now, _ := i.Progress()
	cfg.Bytes.Add(now - i.counted)
	i.counted = now
}

// roomStep is how much is spilled between two looks at the room that is left.
const roomStep = 1 << 20

// checkRoom ends a run whose rows will clearly not fit where they are spilled, rather than
// let it meet the full disk hours later. Once a row is on disk all have to go there. Those
// that are held are certain. The estimate for those still to be read is halved, so that an
// input whose rows get shorter is no false alarm. It is 0 if the size of the inputs is
// unknown.
func (r *Rows) checkRoom(cfg *Config) error {
	spilled := r.Records.Spilled() + r.Rejects.Spilled()
	next := r.room.Load()
	if spilled <= next || !r.room.CompareAndSwap(next, spilled+roomStep) {
		return nil
	}
	need := max(0, r.Records.Held()-cfg.Slack)
	if read := cfg.Bytes.Load(); cfg.Limit == 0 && 0 < read && read < r.Size {
		need += int64(float64(spilled+need) * float64(r.Size-read) / float64(read) / 2)
	}
	return cfg.Room(need)
}

// A worker canonicalizes, hashes and files rows for one goroutine.
type worker struct {
	rows        *Rows
	cfg         *Config
	records     *extsort.Writer
	rejects     *extsort.Writer
	workspaces  *record.WorkspaceCache
	hasher      *codegen.Hasher
	reasons     map[string]int64 // rejects by reason
	rewritten   int64
	dates       int64
	nones       int64
	changes     canon.ChangeCounts
	claims      *extsort.Writer // nil: no codes are kept
	withoutCode int64           // rows
	variants    int64           // beyond the first of their rows
	expanded    int64           // as of Rows
	tagged      record.Noted
	notUTF8     record.Noted
	inputURL    []byte // of the row in hand
	resolved    record.Noted
	damaged     record.Damaged
	given       bool            // of the code in hand: as of columns.Code
	sound       []byte          // the last domain that can be a part of a short URL
	noHost      record.Noted    // rows whose domain cannot
	defaulted   int64           // accepted rows with the default domain
	codes       []columns.Code  // of the row in hand
	row         judge.Row       // in hand
	at          int             // its index in the batch
	params      record.Rules    // of it; the zero value if they are not looked at
	identity    []byte          // of it, as of rules.AppendKey; only if it claims a code
	ruled       map[uint32]bool // as of Rows.Ruled
	lastRuled   uint32          // the last one of these; MaxUint32: none
	told        along.Told      // beyond code and URL
	ofDomain    []byte          // the workspace of a domain
	others      *extsort.Writer // nil: no other profiles are looked at
	other       []byte          // a URL under one of them

	cells [][]byte     // of a reject
	buf   []byte       // of a record or a reject
	batch source.Cells // of the batch in hand
}

func newWorker(rows *Rows, cfg *Config) *worker {
	w := &worker{
		rows: rows, cfg: cfg, records: rows.Records.NewWriter(), rejects: rows.Rejects.NewWriter(),
		workspaces: rows.Workspaces.NewCache(), hasher: codegen.NewHasher(), reasons: map[string]int64{}, ruled: map[uint32]bool{}, lastRuled: math.MaxUint32,
		codes: make([]columns.Code, 0, 8), // so many that no two workers write to one cache line
	}
	w.row.Cell = func(column int) []byte { return w.batch.Cell(column, w.at) }
	if rows.Claims != nil {
		w.claims = rows.Claims.NewWriter()
	}
	if rows.others != nil {
		w.others = rows.others.NewWriter()
	}
	return w
}

// file files the rows of a batch of an input, which is known by its number.
func (w *worker) file(number int, b *source.Batch) {
	in := w.rows.List[number]
	w.batch.Of(b)
	for i, row := range b.Rows {
		w.at = i
		at := record.Place{Source: number, Row: row, Offset: b.Offsets[i]}
		if w.cfg.Judge.Campaign != nil {
			w.fileVariants(in, at)
			continue
		}
		if w.cfg.Judge.Codes == nil {
			w.fileRow(in, at, nil, w.noCode(in))
			continue
		}
		w.codes = in.Codes(w.codes[:0], w.batch, i)
		old := record.Legacy{Link: in.Kind >= 0 && string(w.batch.Cell(in.Kind, i)) == legacy.KindLink}
		if len(w.codes) == 0 {
			w.withoutCode++
			w.fileRow(in, at, &old, w.noCode(in))
			continue
		}
		for n, code := range w.codes {
			if old.Code, old.Written = code.Text, code.Text; len(w.codes) > 1 {
				at.Variant = n + 1
			}
			w.fileRow(in, at, &old, code)
		}
		w.variants += int64(len(w.codes) - 1)
	}
	for i := range b.Errors {
		e := &b.Errors[i]
		at := record.Place{Source: number, Row: e.Row, Offset: e.Offset}
		w.reject(at, in.Unsplit(e))
	}
}

// Unsplit returns the reject of a record that could not be split.
func (i *Input) Unsplit(e *source.RowError) *outcome.Reject {
	reject := &outcome.Reject{Reason: string(e.Reason), Detail: e.Detail, Raw: e.Raw}
	if e.Cells != nil {
		reject.Cells = i.Layout.AppendShort(nil, e.Cells)
	}
	return reject
}

// noCode returns what stands for the code of a row that has none.
func (w *worker) noCode(in *Input) columns.Code {
	if in.Roles == nil {
		return columns.Code{}
	}
	return in.NoCode(w.row.Cell)
}

// fileRow files a row, or its reject. Without old, legacy codes are not looked at.
func (w *worker) fileRow(in *Input, at record.Place, old *record.Legacy, code columns.Code) {
	reason, detail := w.judge(in, at, old, code)
	if reason != "" {
		w.rejectRow(in, at, old, reason, detail)
	}
}

// rejectRow rejects a row.
func (w *worker) rejectRow(in *Input, at record.Place, old *record.Legacy, reason, detail string) {
	cell := func(n int) []byte { return w.batch.Cell(in.Layout.Carried[n], w.at) }
	w.cells = in.Layout.Append(w.cells[:0], w.batch.URL(in.URLs, w.at), w.batch.Cell(in.Workspace, w.at), in.Variant(at, old, cell))
	w.reject(at, &outcome.Reject{Reason: reason, Detail: detail, Cells: w.cells})
}

// Variant returns the carried cells of a row, of which cell returns those that it has in the
// input: one of several variants has its own code alone.
func (i *Input) Variant(at record.Place, old *record.Legacy, cell func(n int) []byte) func(n int) []byte {
	if at.Variant == 0 || old == nil || old.Code == nil { // or it is one of a campaign
		return cell
	}
	only := i.VariantCells(i.variant(at, old.Written, cell))
	return func(n int) []byte {
		if c, ok := only[i.Layout.Carried[n]]; ok {
			return c
		}
		return cell(n)
	}
}

// variant returns the code of a variant, with its domain if the cells of the row tell it.
func (i *Input) variant(at record.Place, text []byte, cell func(n int) []byte) columns.Code {
	if i.Roles != nil {
		codes := i.CodesOf(nil, func(c int) []byte {
			if n := slices.Index(i.Layout.Carried, c); n >= 0 {
				return cell(n)
			}
			return nil
		})
		if n := at.Variant - 1; n < len(codes) && bytes.Equal(codes[n].Text, text) {
			return codes[n]
		}
	}
	return columns.Code{Text: text}
}

func (w *worker) reject(at record.Place, rej *outcome.Reject) {
	w.reasons[rej.Reason]++
	w.cfg.Rejected.Add(1)
	w.buf = record.AppendReject(w.buf[:0], at, rej)
	copy(w.rejects.Reserve(0, at.Key(), len(w.buf)), w.buf)
}

// judge files one row, or says why it is rejected.
func (w *worker) judge(in *Input, at record.Place, old *record.Legacy, code columns.Code) (reason, detail string) {
	row := &w.row
	flags := w.take(in, at, code)
	if old != nil {
		row.Code = old.Code
	}
	row.Canonical = record.Start(w.buf)
	reason, detail = w.cfg.Judge.Row(&in.judged, row)
	w.buf = row.Canonical
	if !row.Placed {
		return reason, detail
	}
	group := w.workspaces.ID(row.Workspace)
	if row.Code != nil {
		old.Code = row.Code
		w.damaged.Add(old.Written, at)
	}
	if reason != "" {
		return reason, detail
	}
	w.countChange(row.Original, row.Changes, at)
	w.accept(in, at, old, group, flags)
	return "", ""
}

// take takes a row in hand.
func (w *worker) take(in *Input, at record.Place, code columns.Code) record.Flags {
	row, domain := &w.row, code.Domain
	w.given = code.Given
	workspace, flags := w.workspace(in)
	if w.cfg.Judge.ByDomain {
		w.ofDomain = legacy.AppendWorkspace(w.ofDomain[:0], workspace, domain)
		workspace = w.ofDomain
	}
	w.inputURL = w.batch.URL(in.URLs, w.at)
	row.Number, row.Original, row.Workspace, row.Domain, row.Code = at.Row, w.inputURL, workspace, domain, nil
	return flags
}

// fileVariants files the variants of a row of a campaign, or the reject of the row.
func (w *worker) fileVariants(in *Input, at record.Place) {
	row, judge := &w.row, w.cfg.Judge
	flags := w.take(in, at, w.noCode(in))
	row.Canonical = w.buf[:0]
	reason, detail := judge.Expand(&in.judged, row)
	w.buf = row.Canonical
	if reason != "" {
		w.rejectRow(in, at, nil, reason, detail)
		return
	}
	if w.expanded++; row.Variants.Tagged {
		w.tagged.Note(w.inputURL, at)
	}
	w.countChanges(row.Whole(w.inputURL), at)
	group := w.workspaces.ID(row.Workspace)
	n := int64(0)
	for row.Canonical = record.Start(w.buf); judge.Variant(row); row.Canonical = record.Start(w.buf) {
		at.Variant = int(row.Variants.Number())
		w.accept(in, at, nil, group, flags)
		n++
	}
	w.variants += n - 1
}

// countChanges counts how the URL of a row of a campaign differs from its canonical form. Where the
// parameters of its variants stand does not count.
func (w *worker) countChanges(url []byte, at record.Place) {
	var changes canon.Changes
	form, err := w.cfg.Judge.Profile.AppendChanged(w.buf[:0], url, &changes)
	w.buf = form[:0]
	if err == nil {
		w.countChange(url, changes, at)
	}
}

// countChange counts how the URL of a row differs from its canonical form, and what else is told of it. Of
// one that is not UTF-8 each such byte differs.
func (w *worker) countChange(url []byte, changes canon.Changes, at record.Place) {
	if w.row.Resolved {
		w.resolved.Note(w.inputURL, at)
	}
	if changes == 0 {
		return
	}
	w.rewritten++
	w.changes.Add(changes)
	if !utf8.Valid(url) {
		w.notUTF8.Note(url, at)
	}
}

// accept files the row in hand, which is in order.
func (w *worker) accept(in *Input, at record.Place, old *record.Legacy, group uint32, flags record.Flags) {
	row, rec := &w.row, w.row.Canonical
	if w.given {
		w.defaulted++
	}
	if w.cfg.Beyond != nil {
		w.told.Add(&in.Along, w.cfg.Beyond, w.cfg.Judge.Hygiene, &along.Row{At: at, Original: row.Original, Domain: row.Domain, Found: row.Found, Cell: row.Cell})
	}
	var with *record.Rules
	if w.cfg.Judge.Rules != nil {
		with = w.readParams(in, group)
	}
	h := w.hasher.SumIdentity(record.StartedCanonical(rec), row.Workspace, w.params.Parts, 0)
	if w.others != nil {
		w.fileOthers(row.Original, row.Workspace, h)
	}
	if at.Variant != 0 {
		flags |= record.Variant
	}
	first := w.rows.Order.First(h, record.StartedCanonical(rec), row.Workspace, w.params.Parts)
	if old == nil && with == nil && first == (record.First{Hash: h}) {
		rec = record.Finish(rec, h, row.Original, flags)
	} else {
		if old != nil && old.Code != nil && w.claims != nil {
			claim.File(w.claims, group, claim.Claim{Key: h.Key(), Code: old.Code, Identity: w.claimant(rec)})
		}
		rec = record.FinishWith(rec, h, row.Original, flags, first, old, with)
	}
	for _, c := range in.Layout.Carried {
		rec = packed.AppendNullable(rec, w.batch.Cell(c, w.at))
	}
	if w.rows.KeepURLs() {
		rec = record.AppendInput(rec, row.Original, w.inputURL)
	}
	if w.cfg.Base.Has(shorturl.Domain) {
		w.checkDomain(at)
		rec = packed.AppendNullable(rec, row.Domain)
	}
	rec = record.AppendPlace(rec, at)
	copy(w.records.Reserve(group, w.rows.Order.Key(first.Hash), len(rec)), rec)
	w.buf = rec
}

// claimant returns the identity of the row in hand, whose record ends with the canonical URL.
func (w *worker) claimant(rec []byte) []byte {
	canonical := record.StartedCanonical(rec)
	if len(w.params.Parts) == 0 {
		return canonical
	}
	w.identity = rules.AppendKey(w.identity[:0], canonical, w.params.Parts)
	return w.identity
}

// checkDomain notes the row in hand if its domain cannot be a part of its short URL.
func (w *worker) checkDomain(at record.Place) {
	domain := w.row.Domain
	if w.sound != nil && bytes.Equal(domain, w.sound) {
		return
	}
	if !w.cfg.Base.Takes(shorturl.Domain, domain) {
		w.noHost.Note(domain, at)
		return
	}
	w.sound = append(w.sound[:0], domain...)
}

// readParams returns the parameters of the row in hand, which is in a workspace.
func (w *worker) readParams(in *Input, group uint32) *record.Rules {
	p := &w.params
	p.Params, p.Parts = w.row.Params, w.cfg.Judge.Rules.Identity.AppendParts(p.Parts[:0], &w.row.Params)
	if group != w.lastRuled && !p.Plain() {
		w.ruled[group], w.lastRuled = true, group
	}
	none := false
	for _, c := range [...]rules.Column{rules.ExpiresAt, rules.MaxUses} {
		if column := in.judged.Params[c]; column >= 0 {
			none = none || rules.IsNone(c, w.batch.Cell(column, w.at))
		}
	}
	if none {
		w.nones++
	}
	if column := in.judged.Params[rules.ExpiresAt]; column >= 0 && rules.IsDate(w.batch.Cell(column, w.at)) {
		w.dates++
	}
	return p
}

// workspace returns that of a row, with flags that say what its cell was.
func (w *worker) workspace(in *Input) ([]byte, record.Flags) {
	cell := w.batch.Cell(in.Workspace, w.at)
	switch {
	case len(cell) > 0:
		return cell, 0
	case cell == nil:
		return w.cfg.Workspace, record.NullWorkspace
	}
	return w.cfg.Workspace, record.NoWorkspace
}
