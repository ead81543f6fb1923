package verify

import (
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
)

// verifyRejects checks every row of rejects.csv.
func (v *verifier) verifyRejects(ctx context.Context) error {
	r, err := openReport(ctx, v, manifest.RejectsName, true, readback.OpenRejects)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	v.checkColumns(manifest.RejectsName, r.Columns, report.CarriedNames(report.RejectColumns(), v.run.columns.Names))
	w := v.newRejectChecker(r.Columns, true)
	rows := int64(0)
	for reject, err := range r.Rows() {
		if rows++; err == nil {
			if w.check(rows, reject); len(w.dead) == deadURLs {
				if err := w.askDead(ctx); err != nil {
					return err
				}
			}
		} else if again, err := v.damaged(manifest.RejectsName, err); !again {
			return err
		}
	}
	if err := w.askDead(ctx); err != nil {
		return err
	}
	v.result.Rejects = rows
	if w.sums != nil {
		v.runTotal.Add(w.sums.total)
	}
	v.addTold(&w.told)
	v.verifyCounts(manifest.RejectsName, rows, map[string]int64{"rejected": rows})
	if !maps.Equal(w.reasons, v.run.manifest.Reasons) {
		v.wrong(BadCount, "reasons", reasonsText(w.reasons), reasonsText(v.run.manifest.Reasons))
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
	checker
	hand    judge.Row
	reasons map[string]int64
	at      map[string]int // of the cells, by the input's name of the column
	source  int            // of the reject before
	last    int64          // its row
	offset  int64          // its byte offset, if it is of the same source
	dead    []deadURL      // to be asked about
}

// newRejectChecker returns a checker of rejects that have these columns; unless it is the first,
// it has no writers.
func (v *verifier) newRejectChecker(columns []string, first bool) *rejectChecker {
	w := &rejectChecker{checker: checker{verifier: v, file: manifest.RejectsName, sources: v.run.inputNumbers(asIs), row: new(link)},
		reasons: map[string]int64{}, at: map[string]int{}, offset: -1}
	if first {
		w.claims = v.claims.NewWriter()
		if v.held != nil {
			w.held = v.held.NewWriter()
		}
	}
	if v.inputs != nil && first {
		w.sums = v.newRowHasher()
	}
	for i, name := range v.run.columns.Names[:min(len(v.run.columns.Names), len(columns))] {
		w.at[name] = i
	}
	return w
}

func (w *rejectChecker) check(row int64, r *outcome.Reject) {
	w.row.Number = row
	w.reasons[r.Reason]++
	i := w.inputOf(r.Source)
	if !w.account(r.Source, i, r.Row) {
		return
	}
	w.checkPlace(r, i)
	code := w.legacy(r, i)
	if w.sums != nil {
		w.books.rejected[i].add(r.Row)
		w.sums.file(i, r.Row, code.Text, w.workspaceOf(r, i, code), rowSums{rejected: w.sums.reject(r.Reason, r.Detail, r.Offset, r.Raw, r.Cells)})
	}
	reason, detail := w.reason(r, i, code)
	if reason != r.Reason {
		w.found(BadReason, "reason", reason, r.Reason)
	} else if detail != r.Detail && detail != "" && w.cfg.Version == w.run.manifest.Version {
		w.found(BadDetail, "detail", detail, r.Detail)
	}
}

// checkPlace checks the order by source, row and byte offset. Binary formats have no
// offsets.
func (w *rejectChecker) checkPlace(r *outcome.Reject, i int) {
	text := isText(w.run.manifest.Inputs[i].Format)
	same, again := i == w.source, false
	if again = same && r.Row == w.last && w.run.many(i); again && r.Offset == w.offset {
		return
	}
	switch {
	case i < w.source || same && r.Row <= w.last && !again:
		w.found(BadOrder, "row", "after the reject before", r.Source+" "+strconv.FormatInt(r.Row, 10))
	case text != (r.Offset >= 0) || same && text && r.Offset <= w.offset || text && r.Offset < r.Row-1:
		w.found(BadOffset, "byte_offset", "one above "+strconv.FormatInt(w.offset, 10), strconv.FormatInt(r.Offset, 10))
	}
	w.source, w.last, w.offset = i, r.Row, r.Offset
}

// reason returns why a run rejects the row. If that cannot be told from the reject, it is the
// reason that the reject has, without a detail.
func (w *rejectChecker) reason(r *outcome.Reject, i int, code columns.Code) (reason, detail string) {
	in := &w.run.manifest.Inputs[i]
	blank := !slices.ContainsFunc(r.Cells, func(cell []byte) bool { return len(cell) > 0 })
	if unsplit(r.Reason) || len(r.Raw) > 0 {
		if !blank || len(r.Raw) == 0 {
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
	original, workspace, cell := w.cell(r, string(in.URLColumns[0])), w.workspaceOf(r, i, code), w.cellsOf(r, i)
	row := &w.hand
	row.Number, row.Original, row.Workspace, row.Code, row.Domain, row.Cell = r.Row, original, workspace, code.Text, code.Domain, cell
	row.Canonical, row.Reserved = w.canon[:0], r.Reason == outcome.CodeReserved && w.run.terms.Codes != nil && w.run.terms.Codes.ReservedSHA256 != ""
	reason, detail = w.run.judge.Row(&w.run.judged[i], row)
	w.canon = row.Canonical
	if row.Placed {
		w.told.damaged.Add(code.Text, record.Place{Source: i, Row: r.Row})
	}
	if reason != "" {
		return reason, detail
	}
	if in := w.run.input(i); w.run.beyond() != nil && in != nil {
		w.told.along.Add(w.run.along[i], w.run.beyond(), &along.Row{At: record.Place{Source: i, Row: r.Row}, Original: original, Domain: code.Domain, Found: row.Found, Cell: cell})
	}
	if w.run.flags() != nil {
		w.row.parts = w.run.flags().Identity.AppendParts(w.row.parts[:0], &row.Params)
	}
	if w.run.ruled && rules.IsRefusal(r.Reason) {
		if code.Text != nil && w.run.conflict() == legacy.Generate {
			w.told.perhaps++
		}
		return r.Reason, w.refuse(r, workspace, &row.Params)
	}
	if code.Text != nil && w.run.mode().Keeps() {
		w.told.conflicts++
		c := claim{what: lost, flags: isReject, row: w.row.Number, code: code.Text, canonical: w.canon}
		if w.run.conflict() != legacy.Generate {
			c.what, c.owner = taken, []byte(r.Detail)
		}
		w.fileClaim(w.group(workspace), &c)
		if c.what == taken {
			return outcome.CodeTaken, ""
		}
	}
	if r.Reason == outcome.CodeSpaceExhausted {
		w.exhaustedBy(w.row.Number, w.canon, workspace, w.row.parts, refused)
	}
	return outcome.CodeSpaceExhausted, outcome.ExhaustedDetail(w.run.retries, w.run.manifest.Scheme.Blocklist != "")
}

// exhaustedBy files the codes that an identity could not have.
func (w *checker) exhaustedBy(row int64, canonical, workspace, parts []byte, what claimKind) {
	c := claim{what: what, row: row, canonical: canonical, parts: parts}
	for c.salt = 0; c.salt <= w.run.retries && (c.salt == 0 || w.run.hashes()); c.salt++ {
		if c.salt == 0 {
			w.code = w.salt0(w.code[:0], canonical, workspace, parts)
		} else {
			w.code = w.appendCode(w.code[:0], nil, canonical, workspace, parts, c.salt)
		}
		c.code = w.code
		w.fileClaim(w.group(workspace), &c)
	}
}

// workspaceOf returns the workspace of a reject.
func (w *rejectChecker) workspaceOf(r *outcome.Reject, i int, code columns.Code) []byte {
	var cell []byte
	if column := w.run.manifest.Inputs[i].WorkspaceColumn; column != nil {
		cell = w.cell(r, string(*column))
	}
	return w.run.workspaceOf(cell, code.Domain)
}

// cellsOf returns how to get the cells of a reject by the columns of its input.
func (w *rejectChecker) cellsOf(r *outcome.Reject, i int) func(column int) []byte {
	return func(c int) []byte { return w.cell(r, w.run.inputs[i].Columns[c]) }
}

// legacy returns the legacy code of a reject, as its cells have it, with its domain; the text is
// nil if there is none.
func (w *rejectChecker) legacy(r *outcome.Reject, i int) (none columns.Code) {
	in := w.run.input(i)
	if in == nil || unsplit(r.Reason) || len(r.Raw) > 0 {
		return none
	}
	w.own = in.CodesOf(w.own[:0], w.cellsOf(r, i))
	if len(w.own) == 0 {
		if w.run.mode() != legacy.Off {
			w.told.withoutCode++
		}
		return columns.Code{Domain: in.Domain(w.cellsOf(r, i))}
	}
	if len(w.own) > 1 && w.claims != nil { // the first time
		w.found(BadLegacy, in.Columns[in.Code], "one code", codesText(w.own))
	}
	return w.own[0]
}

func (w *rejectChecker) cell(r *outcome.Reject, column string) []byte {
	if i, ok := w.at[column]; ok {
		return r.Cells[i]
	}
	return nil
}
