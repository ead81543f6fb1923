package verify

import (
	"bytes"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/shorturl"
)

// A cellChecker checks rows of the mapping against their cells in the inputs, for one goroutine.
type cellChecker struct {
	run  *run
	told *told
	own  []columns.Code // legacy codes that a row has in its cells
	here spot
}

func newCellChecker(run *run) *cellChecker { return &cellChecker{run: run, told: new(told)} }

// found makes a finding of the row in hand.
func (w *cellChecker) found(kind Kind, column, expected, got string) {
	w.here.wrong(kind, column, expected, got)
}

// check checks a row, which is here, against its cells in its input, as far as the mapping has them.
func (w *cellChecker) check(here spot, r *link) {
	w.here = here
	if w.run.codes.mode != legacy.Off {
		w.checkLegacy(r)
	}
	in := w.run.codes.input(r.source)
	if in == nil {
		return
	}
	cell, sure := w.run.cellOf(r, in)
	w.own = in.CodesOf(w.own[:0], cell)
	has := slices.ContainsFunc(w.own, func(code columns.Code) bool { return bytes.Equal(code.Text, r.Legacy) })
	if w.run.codes.mode != legacy.Off && *sure && !has && len(w.own)+len(r.Legacy) > 0 {
		w.found(BadLegacy, "legacy_code", codesText(w.own), string(r.Legacy))
	}
	if w.run.terms.Beyond != nil {
		w.checkMigration(r, in, cell, sure)
	}
}

// checkLegacy checks that the legacy code of a row may be one.
func (w *cellChecker) checkLegacy(r *link) {
	w.told.code(r.Legacy, record.Place{Source: r.source, Row: r.Row.Row})
	if r.Alias {
		w.told.aliases++
	}
	if r.Legacy == nil {
		return
	}
	if _, detail := w.run.judge.Code(w.run.codes.asKept(r.Legacy), false); detail != "" {
		w.found(BadLegacy, "legacy_code", "a code that is not rejected", detail)
	}
}

// codesText lists codes for a finding.
func codesText(codes []columns.Code) string {
	var list []string
	for _, code := range codes {
		list = append(list, string(code.Text))
	}
	return strings.Join(list, " ")
}

// checkShortURL checks a short URL that has the domain of the row, unless that is told by cells which the
// mapping does not have.
func (w *cellChecker) checkShortURL(r *link, domain []byte, sure bool) {
	if w.run.terms.Beyond.ByDomain() { // the workspace tells
		domain, sure = legacy.DomainOf(r.Workspace, w.run.workspace), true
	}
	if want := w.run.base.Append(nil, r.Workspace, domain, r.Code); sure && !bytes.Equal(r.ShortURL, want) {
		w.found(BadShortURL, "short_url", string(want), string(r.ShortURL))
	}
}

// checkMigration checks that a row of the mapping, whose codes are in w.own, was accepted rightly,
// and that it is in the workspace of its domain.
func (w *cellChecker) checkMigration(r *link, in *columns.Table, cell func(column int) []byte, sure *bool) {
	code := columns.Code{Text: r.Legacy}
	if codes := w.own; len(codes) > 0 {
		i := slices.IndexFunc(codes, func(c columns.Code) bool {
			return bytes.Equal(c.Text, r.Legacy) && (!w.run.terms.Beyond.ByDomain() || bytes.Equal(w.run.workspaceOf(nil, c.Domain), r.Workspace))
		})
		code = codes[max(i, 0)]
	} else {
		code.Domain = in.NoCode(cell).Domain
	}
	row := judge.Row{Original: r.Original, Code: code.Text, Domain: code.Domain, Cell: cell}
	reason, _ := w.run.judge.Cells(&w.run.judged[r.source], &row)
	if reason == "" {
		reason, _ = w.run.judge.RedirectCode(&w.run.judged[r.source], &row)
	}
	if reason == "" {
		reason, _ = w.run.judge.URL(&row, r.Canonical)
	}
	if w.run.base.Has(shorturl.Domain) {
		w.checkShortURL(r, code.Domain, *sure)
	}
	w.told.along.Add(w.run.migration.along[r.source], w.run.terms.Beyond, w.run.judge.Hygiene, &along.Row{At: record.Place{Source: r.source, Row: r.Row.Row}, Original: r.Original, Domain: code.Domain, Found: row.Found, Cell: cell})
	w.told.unsure = w.told.unsure || !*sure
	switch want := w.run.workspaceOf(nil, code.Domain); {
	case !*sure:
	case reason != "":
		w.found(BadOutcome, "outcome", "rejected: "+reason, r.Outcome.String())
	case w.run.terms.Beyond.ByDomain() && !bytes.Equal(want, r.Workspace):
		w.found(BadWorkspace, "workspace_id", string(want), string(r.Workspace))
	}
}
