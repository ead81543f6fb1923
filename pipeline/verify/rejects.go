package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
)

// verifyRejects checks every row of rejects.csv.
func (v *verifier) verifyRejects(ctx context.Context) error {
	r, err := openReport(ctx, v, manifest.RejectsName, true, readback.OpenRejects)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	w := v.newRejectChecker(r.Columns)
	rows := int64(0)
	for reject, err := range r.Rows() {
		if rows++; err == nil {
			w.check(rows, reject)
		} else if again, err := v.damaged(manifest.RejectsName, err); !again {
			return err
		}
	}
	v.result.Rejects = rows
	if w.sums != nil {
		v.runTotal.Add(w.sums.total)
	}
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
	reasons map[string]int64
	at      map[string]int // of the cells, by the input's name of the column
	source  int            // of the reject before
	last    int64          // its row
	offset  int64          // its byte offset, if it is of the same source
}

func (v *verifier) newRejectChecker(columns []string) *rejectChecker {
	v.checkColumns(manifest.RejectsName, columns, report.CarriedNames(report.RejectColumns(), v.run.columns.Names))
	w := &rejectChecker{checker: checker{verifier: v, file: manifest.RejectsName, claims: v.claims.NewWriter(), sources: v.run.inputNumbers(asIs)},
		reasons: map[string]int64{}, at: map[string]int{}, offset: -1}
	if v.inputs != nil {
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
	if w.sums != nil {
		w.books.rejected[i].add(r.Row)
		w.sums.file(i, r.Row, rowSums{rejected: w.sums.reject(r.Reason, r.Detail, r.Offset, r.Raw, r.Cells)})
	}
	reason, detail := w.reason(r, &w.run.manifest.Inputs[i])
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
	switch same := i == w.source; {
	case i < w.source || same && r.Row <= w.last:
		w.found(BadOrder, "row", "after the reject before", r.Source+" "+strconv.FormatInt(r.Row, 10))
	case text != (r.Offset >= 0) || same && text && r.Offset <= w.offset || text && r.Offset < r.Row-1:
		w.found(BadOffset, "byte_offset", "one above "+strconv.FormatInt(w.offset, 10), strconv.FormatInt(r.Offset, 10))
	}
	w.source, w.last, w.offset = i, r.Row, r.Offset
}

// reason returns why a run rejects the row. If that cannot be told from the reject, it is the
// reason that the reject has, without a detail.
func (w *rejectChecker) reason(r *outcome.Reject, in *manifest.Input) (reason, detail string) {
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
	workspace := w.run.workspace
	if in.WorkspaceColumn != nil {
		if cell := w.cell(r, string(*in.WorkspaceColumn)); len(cell) > 0 {
			workspace = cell
		}
	}
	reason, detail, w.canon = w.run.refuse(w.canon, w.cell(r, string(in.URLColumns[0])), workspace)
	if reason != "" {
		return reason, detail
	}
	if r.Reason == outcome.CodeSpaceExhausted {
		w.exhausted(workspace)
	}
	return outcome.CodeSpaceExhausted, outcome.ExhaustedDetail(w.run.retries)
}

// exhausted files the codes that the URL in w.canon could not have.
func (w *rejectChecker) exhausted(workspace []byte) {
	c := claim{what: refused, row: w.row.Number, canonical: w.canon}
	for c.salt = 0; c.salt <= w.run.retries; c.salt++ {
		w.code = w.run.scheme.AppendCode(w.code[:0], w.hash(w.canon, workspace, c.salt))
		c.code = w.code
		file(w.claims, w.group(workspace), &c)
	}
}

func (w *rejectChecker) cell(r *outcome.Reject, column string) []byte {
	if i, ok := w.at[column]; ok {
		return r.Cells[i]
	}
	return nil
}
