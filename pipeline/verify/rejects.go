package verify

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
)

// A rejectCheck checks every row of rejects.csv.
type rejectCheck struct {
	findings *findings
	run      *run
	reports  *reports
	books    *books
	sorts    *sorters
	sums     *sums      // nil: the inputs are not read again
	store    sink.Store // nil: it is not compared
	version  string     // of this program
}

// rejected is what all rejects say together. If they could not be read to the end, only since is told.
type rejected struct {
	rows  int64
	told  told
	sum   uint64 // of all rejects, as of rowHasher; 0: the inputs are not read again
	since Since
}

// check checks them, and fills in what they say together.
func (c *rejectCheck) check(ctx context.Context, to *rejected) error {
	r, err := openReport(ctx, c.reports, manifest.RejectsName, true, readback.OpenRejects)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	c.findings.checkColumns(manifest.RejectsName, r.Columns, report.CarriedNames(report.RejectColumns(), c.run.columns.Names))
	w := c.newChecker(r.Columns)
	defer func() { to.since = w.dead.since }()
	rows := int64(0)
	for reject, err := range r.Rows() {
		if rows++; err == nil {
			if w.check(rows, reject); w.dead.full() {
				if err := w.dead.ask(ctx); err != nil {
					return err
				}
			}
		} else if again, err := c.reports.damaged(manifest.RejectsName, err); !again {
			return err
		}
	}
	if err := w.dead.ask(ctx); err != nil {
		return err
	}
	to.rows = rows
	to.told.merge(&w.told)
	if w.sums != nil {
		to.sum = w.sums.total
	}
	c.reports.checkCounts(manifest.RejectsName, rows, map[string]int64{"rejected": rows})
	if !maps.Equal(w.reasons, c.run.manifest.Reasons) {
		c.findings.wrong(BadCount, "reasons", reasonsText(w.reasons), reasonsText(c.run.manifest.Reasons))
	}
	return nil
}

// reasonsText lists the reasons with their numbers.
func reasonsText(reasons map[string]int64) string {
	var list []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		list = append(list, fmt.Sprintf("%s %d", reason, reasons[reason]))
	}
	return strings.Join(list, ", ")
}

// A rejectChecker recomputes why rows were rejected.
type rejectChecker struct {
	findings *findings
	run      *run
	version  string
	books    *books
	sources  inputNumbers // as rejects.csv names them
	cells    rejectCells
	codes    *coder
	claims   *claimer
	held     *heldWriter // nil: rows are not held against links
	sums     *rowHasher  // nil: the inputs are not read again
	dead     deadURLs
	variants *variantWriter // nil: a row is one link
	told     told
	reasons  map[string]int64
	before   place
	number   int64  // of the reject in hand
	parts    []byte // of its identity
	canon    []byte
	hand     judge.Row
}

// A place is where the row of a reject was.
type place struct {
	source int
	row    int64
	offset int64 // -1: none
}

// newChecker returns a checker of rejects that have these columns.
func (c *rejectCheck) newChecker(columns []string) *rejectChecker {
	codes, groups := newCoder(c.run), newGrouper(c.sorts.groups)
	w := &rejectChecker{findings: c.findings, run: c.run, version: c.version, books: c.books, sources: c.run.inputNumbers(asIs), cells: cellsOfRejects(c.run, columns),
		codes: codes, claims: newClaimer(c.run, codes, groups, c.sorts.claims), held: newHeldWriter(c.run, groups, c.sorts.held),
		dead: deadURLs{store: c.store, run: c.run, codes: codes}, reasons: map[string]int64{}, before: place{offset: -1}}
	if c.sums != nil {
		w.sums = c.sums.newHasher()
	}
	w.variants = c.sorts.newVariantWriter()
	return w
}

// found makes a finding of a cell of the reject in hand.
func (w *rejectChecker) found(kind Kind, column, expected, got string) {
	w.findings.fault(manifest.RejectsName, w.number).wrong(kind, column, expected, got)
}

func (w *rejectChecker) check(row int64, r *outcome.Reject) {
	w.number = row
	w.reasons[r.Reason]++
	i := w.sources.of(r.Source)
	if !w.books.account(w.findings.fault(manifest.RejectsName, row), r.Source, i, r.Row) {
		return
	}
	w.checkPlace(r, i)
	code := w.legacy(r, i)
	variant, bare := w.run.variantOf(r)
	if w.variants != nil {
		w.variants.file(i, r.Row, variant, false)
	}
	if w.sums != nil {
		w.books.rejected[i].add(r.Row)
		w.sums.rejected(i, r, w.run.keyOfReject(variant, code.Text), w.cells.workspace(r, i, code))
	}
	reason, detail := w.reason(r, i, code, variant, bare)
	if variant > 0 && detail != "" {
		detail = outcome.VariantDetail(int(variant), detail)
	}
	if reason != r.Reason {
		w.found(BadReason, "reason", reason, r.Reason)
	} else if detail != r.Detail && detail != "" && w.version == w.run.manifest.Version {
		w.found(BadDetail, "detail", detail, r.Detail)
	}
}

// checkPlace checks the order by source, row and byte offset. Binary formats have no
// offsets.
func (w *rejectChecker) checkPlace(r *outcome.Reject, i int) {
	text := isText(w.run.manifest.Inputs[i].Format)
	old := w.before
	same, again := i == old.source, false
	if again = same && r.Row == old.row && w.run.many(i); again && r.Offset == old.offset {
		return
	}
	switch {
	case i < old.source || same && r.Row <= old.row && !again:
		w.found(BadOrder, "row", "after the reject before", r.Source+" "+strconv.FormatInt(r.Row, 10))
	case text != (r.Offset >= 0) || same && text && r.Offset <= old.offset || text && r.Offset < r.Row-1:
		w.found(BadOffset, "byte_offset", "one above "+strconv.FormatInt(old.offset, 10), strconv.FormatInt(r.Offset, 10))
	}
	w.before = place{i, r.Row, r.Offset}
}

// reason returns why a run rejects the row. If that cannot be told from the reject, it is the
// reason that the reject has, without a detail.
// Of a variant, bare is the detail without its number.
func (w *rejectChecker) reason(r *outcome.Reject, i int, code columns.Code, variant int64, bare string) (reason, detail string) {
	in := &w.run.manifest.Inputs[i]
	blank := !slices.ContainsFunc(r.Cells, func(cell []byte) bool { return len(cell) > 0 })
	if unsplit(r.Reason) || len(r.Raw) > 0 {
		if !blank && !isShort(r) || len(r.Raw) == 0 {
			w.found(BadCells, "raw", "a raw line and no cells", string(r.Raw))
		}
		if !unsplit(r.Reason) {
			return string(source.MalformedRow), ""
		}
		return r.Reason, ""
	}
	if len(in.URLColumns) == 0 {
		return r.Reason, ""
	}
	original, workspace, cell := w.cells.named(r, string(in.URLColumns[0])), w.cells.workspace(r, i, code), w.cells.of(r, i)
	row := &w.hand
	row.Number, row.Original, row.Workspace, row.Code, row.Domain, row.Cell = r.Row, original, workspace, code.Text, code.Domain, cell
	row.Canonical, row.Reserved = w.canon[:0], r.Reason == outcome.CodeReserved && w.run.codes.reserved
	reason, detail = w.run.judgeRow(i, row, variant)
	if reason == "" && w.run.terms.Campaign != nil && len(row.Canonical) == 0 {
		return "", "" // the row has no such variant
	}
	w.canon = row.Canonical
	if row.Placed {
		w.told.damaged.Add(code.Text, record.Place{Source: i, Row: r.Row})
	}
	if reason != "" {
		return reason, detail
	}
	if in := w.run.codes.input(i); w.run.terms.Beyond != nil && in != nil {
		w.told.along.Add(w.run.migration.along[i], w.run.terms.Beyond, w.run.judge.Hygiene, &along.Row{At: record.Place{Source: i, Row: r.Row}, Original: row.Original, Domain: code.Domain, Found: row.Found, Cell: cell})
	}
	if w.run.ruling.flags != nil {
		w.parts = w.run.ruling.flags.Identity.AppendParts(w.parts[:0], &row.Params)
	}
	if w.run.ruling.ruled && rules.IsRefusal(r.Reason) {
		if code.Text != nil && w.run.codes.conflict == legacy.Generate {
			w.told.perhaps++
		}
		if code.Text != nil && w.run.codes.mode.Keeps() {
			w.claims.file(workspace, &claim{what: asks, code: row.Code, canonical: w.canon, parts: w.parts})
		}
		return r.Reason, w.refuse(r.Reason, bare, workspace, &row.Params)
	}
	if code.Text != nil && w.run.codes.mode.Keeps() {
		w.told.conflicts++
		c := claim{what: lost, flags: isReject, row: w.number, code: row.Code, canonical: w.canon, parts: w.parts}
		if w.run.codes.conflict != legacy.Generate {
			c.what, c.owner = taken, []byte(r.Detail)
		}
		w.claims.file(workspace, &c)
		if c.what == taken {
			return outcome.CodeTaken, ""
		}
	}
	if r.Reason == outcome.CodeSpaceExhausted {
		w.claims.exhausted(w.number, w.canon, workspace, w.parts, refused)
	}
	return outcome.CodeSpaceExhausted, outcome.ExhaustedDetail(w.run.retries, w.run.manifest.Scheme.Blocklist != "")
}

// isShort reports whether a reject may be a line with too few fields, which has its cells beside it:
// each is in the line, unless quotes are.
func isShort(r *outcome.Reject) bool {
	return strings.Contains(r.Detail, " where there should be ") && !slices.ContainsFunc(r.Cells, func(cell []byte) bool {
		return !bytes.Contains(r.Raw, cell) && bytes.IndexByte(cell, '"') < 0
	})
}

// refuse files a reject because of what its link is, and returns its detail.
func (w *rejectChecker) refuse(reason, said string, workspace []byte, p *rules.Params) (detail string) {
	h := heldRow{Params: *p, number: w.number, reject: true}
	if h.result.Reason, _ = rules.ParseReason(reason); h.result.Reason == rules.ForDrift {
		h.result.Differs = drifts[said]
	}
	if h.result.RefusesAll() {
		w.dead.add(w.canon, workspace, w.parts, h.result.Reason)
	}
	if w.held != nil && !w.run.codes.mode.Keeps() {
		w.held.reject(workspace, w.codes.hash(w.canon, workspace, w.parts, 0).Key(), &h)
	}
	return h.result.Detail()
}

// legacy returns the legacy code of a reject, as its cells have it, with its domain; the text is
// nil if there is none.
func (w *rejectChecker) legacy(r *outcome.Reject, i int) columns.Code {
	code, codes, ok := w.cells.code(r, i)
	if ok && len(codes) == 0 && w.run.codes.mode != legacy.Off {
		w.told.withoutCode++
	}
	if len(codes) > 1 {
		in := w.run.codes.input(i)
		w.found(BadLegacy, in.Columns[in.Code], "one code", codesText(codes))
	}
	return code
}

// rejectCells finds the cells of rejects by the columns of their inputs.
type rejectCells struct {
	run *run
	at  map[string]int // by the input's name of the column
	own []columns.Code
}

// cellsOfRejects returns how to find the cells of rejects that have these columns.
func cellsOfRejects(run *run, columns []string) rejectCells {
	c := rejectCells{run: run, at: map[string]int{}}
	for i, name := range run.columns.Names[:min(len(run.columns.Names), len(columns))] {
		c.at[name] = i
	}
	return c
}

// named returns the cell of a column; nil if there is none.
func (c *rejectCells) named(r *outcome.Reject, column string) []byte {
	if i, ok := c.at[column]; ok {
		return r.Cells[i]
	}
	return nil
}

// of returns how to get the cells of a reject by the columns of its input.
func (c *rejectCells) of(r *outcome.Reject, i int) func(column int) []byte {
	return func(column int) []byte { return c.named(r, c.run.codes.inputs[i].Columns[column]) }
}

// workspace returns the workspace of a reject.
func (c *rejectCells) workspace(r *outcome.Reject, i int, code columns.Code) []byte {
	var cell []byte
	if column := c.run.manifest.Inputs[i].WorkspaceColumn; column != nil {
		cell = c.named(r, string(*column))
	}
	return c.run.workspaceOf(cell, code.Domain)
}

// code returns the legacy code of a reject, with its domain, and all that its cells have. Not ok: the
// reject has no cells.
func (c *rejectCells) code(r *outcome.Reject, i int) (code columns.Code, all []columns.Code, ok bool) {
	in := c.run.codes.input(i)
	if in == nil || unsplit(r.Reason) || len(r.Raw) > 0 {
		return code, nil, false
	}
	c.own = in.CodesOf(c.own[:0], c.of(r, i))
	if len(c.own) == 0 {
		return in.NoCode(c.of(r, i)), nil, true
	}
	return c.own[0], c.own, true
}
