package verify

import (
	"bytes"
	"cmp"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/shorturl"
)

// A rowChecker checks rows of the mapping, for one goroutine.
type rowChecker struct {
	findings *findings
	run      *run
	books    *books
	order    rowOrder
	at       window
	codes    *codeChecker
	cells    *cellChecker
	told     *told // that of cells
	claims   *claimer
	wanted   *wantWriter     // nil: the store is not compared
	held     *heldWriter     // nil: rows are not held against links, or only the inputs tell what they say
	variants *variantChecker // nil: a row is one link
	numbers  *numberWriter   // nil: the scheme has no counter
	sums     *rowHasher      // nil: the inputs are not read again
	tally    tally
	canon    []byte
	text     []byte
	ok       string // the last valid workspace; "": none yet
}

// A tally counts rows of the mapping.
type tally struct {
	outcomes [outcome.Duplicate + 1]int64
	changes  rules.ChangeCounts
	digest   report.RowDigest
	mixed    bool // they are not in order
}

// check checks the rows of a stretch.
func (w *rowChecker) check(s *stretch) {
	w.at.begin(s)
	for i := range s.rows.Len() {
		faults := w.at.load(s, i)
		w.tally.outcomes[w.at.row.Outcome]++
		w.tally.changes[w.at.row.Rules.Change]++
		w.tally.digest.Add(&w.at.row.Row)
		for _, f := range faults {
			w.found(Damaged, f.Column, "", f.Found)
		}
		if len(faults) == 0 {
			w.checkRow()
			if w.numbers != nil {
				w.numbers.file(w.at.row)
			}
		}
		w.at.next()
	}
}

// found makes a finding of a cell of the row in hand.
func (w *rowChecker) found(kind Kind, column, expected, got string) {
	w.at.row.at(w.findings, w.run.mapping).wrong(kind, column, expected, got)
}

func (w *rowChecker) checkRow() {
	r := w.at.row
	if w.books.account(r.at(w.findings, w.run.mapping), r.Source, r.source, r.Row.Row) && w.sums != nil {
		w.sums.row(r, nil)
	}
	if w.ok == "" || string(r.Workspace) != w.ok {
		if err := codegen.CheckWorkspace(r.Workspace); err != nil {
			w.found(BadWorkspace, "workspace_id", err.Error(), string(r.Workspace))
		} else {
			w.ok = string(r.Workspace)
		}
	}
	var err error
	w.canon, err = w.run.terms.URLs.Append(w.canon[:0], r.Original)
	if err != nil {
		w.found(BadCanonical, "original_url", "a URL that is not rejected: "+err.Error(), string(r.Original))
	} else if !bytes.Equal(w.canon, r.Canonical) {
		w.found(BadCanonical, "canonical_url", string(w.canon), string(r.Canonical))
	}
	w.checkShortURL(r)
	if w.run.terms.Base != nil && w.variants == nil {
		if want := w.run.resolved(&w.text, r.InputURL); !bytes.Equal(want, r.Original) {
			w.found(BadCanonical, "original_url", string(want), string(r.Original))
		}
	}
	if w.variants != nil {
		if column, expected, got := w.variants.check(r); column != "" {
			w.found(BadVariant, column, expected, got)
		}
	}
	if w.run.coding.spec.Counts && r.Salt >= 0 {
		w.found(BadSalt, "salt", "", saltText(r.Salt))
	}
	same := w.at.old.known && bytes.Equal(r.Workspace, w.at.old.Workspace) && bytes.Equal(r.Canonical, w.at.old.Canonical) && bytes.Equal(r.parts, w.at.old.parts)
	w.checkOrder(r, same)
	if r.source >= 0 {
		w.cells.check(r.at(w.findings, w.run.mapping), r)
	}
	if w.run.ruling.ruled {
		w.checkParams(r)
	}
	if w.run.codes.mode.Keeps() {
		w.checkIdentity(r)
		return
	}
	if same {
		w.checkSameLink(r)
	} else if w.at.old.known && bytes.Equal(r.Code, w.at.old.Code) && bytes.Equal(r.Workspace, w.at.old.Workspace) {
		w.found(CodeShared, "short_code", "a code of its own", string(r.Code))
	}
	isLink := !same
	if w.run.ruling.ruled {
		w.fileHeld(r)
		isLink = r.Outcome != outcome.Duplicate
	} else {
		w.checkFirst(r, isLink)
	}
	if isLink {
		w.codes.check(r, "short_code", "salt")
		w.claims.link(r, 0)
		w.mustStore(r)
	}
}

// checkFirst checks that the first row of a URL is its link, and no other.
func (w *rowChecker) checkFirst(r *link, first bool) {
	switch duplicate := r.Outcome == outcome.Duplicate; {
	case first && duplicate:
		w.found(BadOutcome, "outcome", "created or existing: it is the first row of its URL", r.Outcome.String())
	case !first && !duplicate:
		w.found(BadOutcome, "outcome", outcome.Duplicate.String(), r.Outcome.String())
	}
}

// checkIdentity checks a row of a run that keeps legacy codes, by itself.
func (w *rowChecker) checkIdentity(r *link) {
	if w.run.ruling.ruled {
		w.fileHeld(r)
	}
	own := w.run.codes.owns(&r.MappingRow)
	switch {
	case own, w.run.ruling.ruled && r.Salt < 0 && r.Row.Number == 0: // or it speaks for a link that has the code of another row
		if own && r.Salt >= 0 {
			w.found(BadSalt, "salt", "", saltText(r.Salt))
		}
		if !own && r.Legacy != nil {
			w.lost(r)
		}
		if own && w.run.ruling.ruled && !(w.at.old.known && bytes.Equal(w.at.old.Legacy, r.Legacy)) {
			w.claims.file(r.Workspace, &claim{what: brings, row: r.Number, code: w.run.codes.asKept(r.Legacy), canonical: r.Canonical, parts: r.parts})
		}
		if r.Outcome != outcome.Duplicate {
			w.claims.file(r.Workspace, holding(r, ownCode))
			w.mustStore(r)
		}
		return
	case r.Legacy != nil:
		w.lost(r)
	}
	if r.Outcome != outcome.Duplicate {
		w.codes.check(r, "short_code", "salt")
		w.claims.link(r, 0)
		w.mustStore(r)
	}
}

// lost counts a row that has lost its code, and files its claim.
func (w *rowChecker) lost(r *link) {
	w.told.conflicts++
	w.claims.lost(r)
}

// mustStore notes that the store must have a link.
func (w *rowChecker) mustStore(r *link) {
	if w.wanted != nil {
		w.wanted.add(r)
	}
}

// fileHeld files a row that was held against a link.
func (w *rowChecker) fileHeld(r *link) {
	if w.held != nil {
		w.held.link(r)
	}
}

func (w *rowChecker) checkShortURL(r *link) {
	if w.run.base.Has(shorturl.Domain) { // the cells of the row tell (cellChecker)
		return
	}
	if w.text = w.text[:0]; w.run.base != nil {
		w.text = w.run.base.Append(w.text, r.Workspace, nil, r.Code)
	}
	if !bytes.Equal(r.ShortURL, w.text) {
		w.found(BadShortURL, "short_url", string(w.text), string(r.ShortURL))
	}
}

// checkSameLink compares a row with the one before, of the same identity.
func (w *rowChecker) checkSameLink(r *link) {
	if !bytes.Equal(r.Code, w.at.old.Code) {
		w.found(BadDuplicate, "short_code", string(w.at.old.Code), string(r.Code))
	}
	if r.Salt != w.at.old.Salt {
		w.found(BadDuplicate, "salt", saltText(w.at.old.Salt), saltText(r.Salt))
	}
	if r.Row.Number != w.at.old.Row.Number {
		w.found(BadDuplicate, "number", numberText(w.at.old.Row.Number), numberText(r.Row.Number))
	}
}

// checkOrder checks that the row in hand comes after the one before.
func (w *rowChecker) checkOrder(r *link, same bool) {
	old := w.at.old
	if !old.known || w.run.order == report.InputOrder {
		return
	}
	c := 0
	if !same {
		c = w.order.links(old, r)
	}
	if c == 0 && same {
		c = w.order.same(old, r)
	}
	if c > 0 {
		w.tally.mixed = true
		w.found(BadOrder, "", "after the row before", string(r.Canonical))
	}
}

// checkParams checks the cells of link rules of the row in hand by themselves, and against what the row
// gives. What its link has is checked with the other rows of the link.
func (w *rowChecker) checkParams(r *link) {
	if r.refusal != "" {
		w.found(BadOutcome, "outcome", "rejected: "+r.refusal, r.Outcome.String())
	}
	if r.said && r.refusal == "" && w.run.ruling.flags != nil {
		w.text = w.run.ruling.flags.Identity.AppendParts(w.text[:0], &r.params)
		if !bytes.Equal(w.text, r.parts) {
			w.found(BadParameter, "parts", string(w.text), string(r.parts))
		}
	}
	if w.run.codes.own.Ref {
		w.text = rules.ByRow.AppendParts(w.text[:0], &rules.Params{Ref: r.Rules.Cells[rules.Ref]})
		if !bytes.Equal(w.text, r.parts) {
			w.found(BadParameter, rules.Ref.String(), string(r.parts), string(w.text))
		}
	}
	l := linkOf(&r.Rules.Cells)
	want, text := l.Cells(w.text)
	w.text = text
	for c, got := range r.Rules.Cells[:rules.Ref] {
		if !bytes.Equal(want[c], got) {
			w.found(BadParameter, rules.Column(c).String(), cmp.Or(string(want[c]), "a value that a link can have"), string(got))
		}
	}
}
