package verify

import (
	"bytes"

	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
)

// A urlChecker checks, for a run that keeps legacy codes, what rows of one URL say of each other:
// which is the first of its identity, what kind its code has, and that the link of the URL has
// the right code (codegen/README.md, "Kept codes, one at a time", steps 3 to 5). One goroutine
// passes it all rows, those of a URL together and in the order of the sort.
//
// Of a row with a code of its own the identity is the URL and this code, of any other it is the
// URL alone. Where identities have parts, a URL here is one with these.
type urlChecker struct {
	findings *findings
	run      *run
	rows     *deriver
	codes    *codeChecker
	claims   *claimer
	wanted   *wantWriter // nil: the store is not compared
	at       urlState
	urls     int64 // of which no row is the link
	row      link  // that such a link would have
}

// A urlState is the URL in hand. Its texts are copies.
type urlState struct {
	known                        bool
	workspace, canonical, beyond []byte // beyond: run.storedAs of its first row
	parts                        []byte
	row                          int64  // its first
	link                         []byte // code of the rows whose kind is link; nil: there is none
	linkRow                      int64  // the first of them that has the code as its own; 0: none
	linkAs                       outcome.Outcome
	plainRow                     int64 // the first without a code of its own; 0: none
	plainAs                      outcome.Outcome
	plainSalt                    int
	linkCode                     []byte
	linkSalt                     int
	number                       int64
	code                         []byte // the last own code
	last                         owned  // of that
	least, marked                []byte // the smallest own code that is new, and of those whose row says that it is the link; nil: none
}

// owned is what the first row with an own code says.
type owned struct{ created, alias bool }

func (c *mappingCheck) newURLChecker(m *readback.Mapping) *urlChecker {
	rows, groups := newDeriver(c.run, m.Text), newGrouper(c.sorts.groups)
	return &urlChecker{findings: c.findings, run: c.run, rows: rows, codes: newCodeChecker(c.run, rows.codes, c.findings),
		claims: newClaimer(c.run, rows.codes, groups, c.sorts.claims), wanted: newWantWriter(c.run, groups, c.seed, c.sorts.stored)}
}

// addAll takes the rows of a block. Damaged ones are left out.
func (u *urlChecker) addAll(block *readback.Block) {
	var row readback.MappingRow
	for i := range block.Len() {
		if len(block.Row(i, &row)) == 0 {
			u.add(&row)
		}
	}
}

func (u *urlChecker) fault(row int64) spot { return u.findings.fault(u.run.mapping, row) }

// add takes the next row.
func (u *urlChecker) add(r *readback.MappingRow) {
	at := &u.at
	if !at.known || !bytes.Equal(r.Canonical, at.canonical) || !bytes.Equal(r.Workspace, at.workspace) || !bytes.Equal(r.Rules.Parts, at.parts) {
		u.end()
		*at = urlState{known: true, workspace: append(at.workspace[:0], r.Workspace...), canonical: append(at.canonical[:0], r.Canonical...),
			parts: append(at.parts[:0], r.Rules.Parts...), beyond: at.beyond[:0], row: r.Number, linkCode: bytes.Clone(r.LinkCode), linkSalt: r.LinkSalt, number: r.Row.Number, code: at.code[:0]}
		if u.wanted != nil {
			at.beyond = u.run.storedAs(at.beyond, &link{MappingRow: *r, source: u.rows.sources.of(r.Source)})
		}
	}
	here := u.fault(r.Number)
	if !bytes.Equal(r.LinkCode, at.linkCode) {
		here.wrong(BadDuplicate, "link_code", string(at.linkCode), string(r.LinkCode))
	}
	if r.LinkSalt != at.linkSalt {
		here.wrong(BadDuplicate, "link_salt", saltText(at.linkSalt), saltText(r.LinkSalt))
	}
	if alias := !bytes.Equal(r.Code, r.LinkCode); alias != r.Alias {
		here.wrong(BadKind, "kind", legacy.KindOf(alias), legacy.KindOf(r.Alias))
	}
	own := u.run.codes.owns(r)
	switch {
	case r.Alias && !own:
		here.wrong(BadKind, "kind", legacy.KindLink, legacy.KindAlias)
	case r.Alias:
	case at.link == nil:
		at.link = bytes.Clone(r.Code)
	case !bytes.Equal(at.link, r.Code) && own:
		here.wrong(BadKind, "kind", legacy.KindAlias, legacy.KindLink)
	case !bytes.Equal(at.link, r.Code):
		here.wrong(BadDuplicate, "short_code", string(at.link), string(r.Code))
	}
	if own {
		u.addOwn(r)
	} else {
		u.addPlain(r)
	}
}

// addOwn takes a row that has a code of its own.
func (u *urlChecker) addOwn(r *readback.MappingRow) {
	at, here := &u.at, u.fault(r.Number)
	known, again := at.last, len(at.code) > 0 && bytes.Equal(at.code, r.Code)
	switch {
	case !again:
		known = owned{created: r.Outcome == outcome.Created, alias: r.Alias}
		if r.Outcome == outcome.Duplicate && !u.run.ruling.ruled {
			here.wrong(BadOutcome, "outcome", "created or existing: it is the first row of its code", r.Outcome.String())
		}
		if !r.Alias && at.linkRow == 0 {
			at.linkRow, at.linkAs = r.Number, r.Outcome
		}
		if known.created && (at.least == nil || bytes.Compare(r.Code, at.least) < 0) {
			at.least = bytes.Clone(r.Code)
		}
	case r.Outcome != outcome.Duplicate && !u.run.ruling.ruled:
		here.wrong(BadOutcome, "outcome", outcome.Duplicate.String(), r.Outcome.String())
	}
	if again && known.alias != r.Alias {
		here.wrong(BadKind, "kind", legacy.KindOf(known.alias), legacy.KindOf(r.Alias))
	}
	at.code, at.last = append(at.code[:0], r.Code...), known
	if known.created && u.saysLink(r) && (at.marked == nil || bytes.Compare(r.Code, at.marked) < 0) {
		at.marked = bytes.Clone(r.Code)
	}
}

// addPlain takes a row that has no code of its own.
func (u *urlChecker) addPlain(r *readback.MappingRow) {
	at, here := &u.at, u.fault(r.Number)
	if at.plainRow == 0 {
		at.plainRow, at.plainAs, at.plainSalt = r.Number, r.Outcome, r.Salt
		return
	}
	if r.Outcome != outcome.Duplicate && !u.run.ruling.ruled {
		here.wrong(BadOutcome, "outcome", outcome.Duplicate.String(), r.Outcome.String())
	}
	if r.Salt != at.plainSalt {
		here.wrong(BadDuplicate, "salt", saltText(at.plainSalt), saltText(r.Salt))
	}
}

// saysLink reports whether a row of the input says that its code is that of the link.
func (u *urlChecker) saysLink(r *readback.MappingRow) bool {
	i := u.rows.sources.of(r.Source)
	if i < 0 || u.run.codes.inputs[i] == nil || u.run.codes.inputs[i].Kind < 0 {
		return false
	}
	n := u.run.codes.carried[i][u.run.codes.inputs[i].Kind]
	return n >= 0 && string(r.Carried[n]) == legacy.KindLink
}

// end checks the URL in hand.
func (u *urlChecker) end() {
	at := &u.at
	if !at.known {
		return
	}
	if at.plainRow > 0 {
		here, first := u.fault(at.plainRow), at.linkRow == 0
		switch isFirst := at.plainAs != outcome.Duplicate; {
		case u.run.ruling.ruled: // verifyHeld knows
		case first && !isFirst:
			here.wrong(BadOutcome, "outcome", "created or existing: it is the first row of its link", at.plainAs.String())
		case !first && isFirst:
			here.wrong(BadOutcome, "outcome", "duplicate: another row has the code of the link", at.plainAs.String())
		}
		if !first && at.plainSalt >= 0 {
			here.wrong(BadSalt, "salt", "", saltText(at.plainSalt))
		}
	}
	if at.linkRow > 0 && at.number > 0 { // a row brought the code of the link
		u.fault(at.row).wrong(BadNumber, "number", "", numberText(at.number))
	}
	if u.run.codes.mode == legacy.Keep {
		u.checkSmallest()
	}
	u.checkLink()
}

// checkSmallest checks that a new link of a run with Keep has the smallest of the URL's new codes.
func (u *urlChecker) checkSmallest() {
	at := &u.at
	want := at.least
	if at.marked != nil {
		want = at.marked
	}
	sure := u.run.terms.Carry || !u.run.hasKinds()
	switch {
	case at.link == nil, want == nil, u.run.ruling.ruled: // a row that speaks for a new link need not be the one that has its code
	case at.linkRow > 0 && at.linkAs == outcome.Created && sure && !bytes.Equal(at.link, want):
		u.fault(at.linkRow).wrong(BadKind, "kind", string(want)+" as the link", string(at.link))
	case at.linkRow == 0 && at.plainAs == outcome.Created:
		u.fault(at.plainRow).wrong(BadKind, "kind", string(want)+" as the link", string(at.link))
	}
}

// checkLink checks the code and the salt of the URL's link. With Both a row has that code as its own
// only if all codes were taken.
func (u *urlChecker) checkLink() {
	at := &u.at
	here := u.fault(at.row)
	switch {
	case at.linkCode == nil || at.linkRow > 0:
		if at.linkSalt >= 0 {
			here.wrong(BadSalt, "link_salt", "", saltText(at.linkSalt))
		}
		if u.run.codes.mode == legacy.Keep || at.linkRow == 0 || at.linkAs != outcome.Created || u.run.ruling.ruled {
			return
		}
		if !bytes.Equal(at.link, at.least) {
			u.fault(at.linkRow).wrong(BadKind, "kind", string(at.least)+" as the link", string(at.link))
		}
		u.claims.exhausted(at.linkRow, at.canonical, at.workspace, at.parts, full)
	case at.plainRow > 0: // filed with that row
		if at.plainSalt != at.linkSalt {
			u.fault(at.plainRow).wrong(BadDuplicate, "salt", saltText(at.linkSalt), saltText(at.plainSalt))
		}
	default:
		u.fileBare()
	}
}

// fileBare files the claim of a link whose code no row has.
func (u *urlChecker) fileBare() {
	at, l := &u.at, &u.row
	u.urls++
	l.MappingRow = readback.MappingRow{Number: at.row}
	l.Workspace, l.Canonical, l.Code = at.workspace, at.canonical, at.linkCode
	l.Row.Number, l.Rules.Parts = at.number, at.parts
	if l.Salt, l.Outcome = at.linkSalt, outcome.Existing; at.number > 0 { // perhaps
		l.Outcome = outcome.Created
	}
	u.rows.derive(l)
	u.codes.check(l, "link_code", "link_salt")
	u.claims.link(l, bare)
	if u.wanted != nil {
		u.wanted.fileAs(l, bare, at.beyond)
	}
}

// hasKinds reports whether rows of an input say which code is that of the link.
func (r *run) hasKinds() bool {
	for _, in := range r.manifest.Inputs {
		if in.KindColumn != nil {
			return true
		}
	}
	return false
}
