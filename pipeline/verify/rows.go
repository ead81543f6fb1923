package verify

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A checker checks rows of the mapping, for one goroutine. Other checkers use it to hash and
// to file claims.
type checker struct {
	*verifier
	file     string         // the report
	csv      bool           // the mapping has no null: it is empty
	sources  map[string]int // numbers of the inputs, by their names in the report
	claims   *extsort.Writer
	wanted   *extsort.Writer // nil: the store is not compared
	created  uint64          // sum of links as the run created them
	filed    *extsort.Writer // nil: the mapping is in order
	sums     *rowHasher      // nil: the inputs are not read again
	outcomes [outcome.Duplicate + 1]int64
	changes  rules.ChangeCounts
	held     *extsort.Writer // see heldRow; nil: rows are not held against links
	told     told
	own      []columns.Code // legacy codes that a row has in its cells
	beyond   []byte
	digest   report.RowDigest
	row, old *link
	canon    []byte
	code     []byte
	input    []byte
	text     []byte
	ok       string          // the last valid workspace; "": none yet
	counter  codegen.Counter // nil: not needed yet
	numbers  *extsort.Writer // nil: the scheme has no counter

	grouped   bool // groupName and groupID are those of the last workspace
	groupName string
	groupID   uint32
}

// A link is a row of the mapping with what follows from it.
type link struct {
	readback.MappingRow
	known  bool         // there is such a row
	source int          // number of the input; -1: unknown
	hash   codegen.Hash // of the identity
	code0  []byte       // the first that it may have, of the run's length; empty: it is not known, or comes from a number
	order  []byte       // with a counter: the code by which the mapping is sorted
	salt0  int          // of that; -1: it may have none, and this is that of salt 0

	params  rules.Params
	parts   []byte // of the identity
	said    bool   // the mapping has the cells that params come from; else only the inputs tell them
	refusal string // why its cells should have been rejected; "": they should not
}

// newChecker returns a checker without writers for rows of a mapping.
func (v *verifier) newChecker(m *readback.Mapping) *checker {
	w := &checker{verifier: v, file: v.run.mapping, csv: m.Format == report.CSV, sources: v.run.inputNumbers(m.Text), row: new(link), old: new(link)}
	w.digest.Columns = v.run.own
	return w
}

// check checks the rows of a stretch.
func (w *checker) check(s *stretch) {
	w.begin(s)
	for i := range s.rows.Len() {
		faults := s.rows.Row(i, &w.row.MappingRow)
		w.derive(w.row)
		w.outcomes[w.row.Outcome]++
		w.changes[w.row.Rules.Change]++
		w.digest.Add(&w.row.Row)
		for _, f := range faults {
			w.found(Damaged, f.Column, "", f.Found)
		}
		if len(faults) == 0 {
			w.checkRow()
			if w.numbers != nil {
				w.fileNumber(w.row)
			}
		}
		w.row, w.old = w.old, w.row
	}
}

// begin makes the row before a stretch the old one.
func (w *checker) begin(s *stretch) {
	w.old.known = false
	if s.before != nil {
		w.old.MappingRow = *s.before
		w.derive(w.old)
	}
}

// derive fills in what follows from a row.
func (w *checker) derive(l *link) {
	l.known = true
	l.source = w.inputOf(l.Source)
	w.identify(l)
	l.hash = w.hash(l.Canonical, l.Workspace, l.parts, 0)
	w.fill(l)
}

// inputOf returns the number of the input that the report names; -1: it is unknown.
func (w *checker) inputOf(name string) int {
	if i, ok := w.sources[name]; ok {
		return i
	}
	return -1
}

// hash hashes an identity, which has these parts, at a salt.
func (w *checker) hash(canonical, workspace, parts []byte, salt int) codegen.Hash {
	w.input = codegen.AppendIdentity(w.input[:0], canonical, workspace, parts, salt)
	return codegen.Sum(w.input)
}

// found makes a finding of a cell of the row in hand.
func (w *checker) found(kind Kind, column, expected, got string) {
	w.fault(w.file, w.row.Number).of(w.row.Workspace, w.row.Code).wrong(kind, column, expected, got)
}

func (w *checker) checkRow() {
	r := w.row
	if w.account(r.Source, r.source, r.Row.Row) && w.sums != nil {
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
	if w.run.spec.Counts && r.Salt >= 0 {
		w.found(BadSalt, "salt", "", saltText(r.Salt))
	}
	same := w.old.known && bytes.Equal(r.Workspace, w.old.Workspace) && bytes.Equal(r.Canonical, w.old.Canonical) && bytes.Equal(r.parts, w.old.parts)
	w.checkOrder(r, same)
	if r.source >= 0 {
		w.checkSource(r)
	}
	if w.run.ruled {
		w.checkParams(r)
	}
	if w.run.mode().Keeps() {
		w.checkIdentity(r)
		return
	}
	if same {
		w.checkSameLink(r)
	} else if w.old.known && bytes.Equal(r.Code, w.old.Code) && bytes.Equal(r.Workspace, w.old.Workspace) {
		w.found(CodeShared, "short_code", "a code of its own", string(r.Code))
	}
	isLink := !same
	if w.held != nil {
		w.fileHeld(r)
		isLink = r.Outcome != outcome.Duplicate
	} else {
		w.checkFirst(r, isLink)
	}
	if isLink {
		w.checkCode(r)
		w.claim(r)
		w.mustStore(r)
	}
}

// checkFirst checks that the first row of a URL is its link, and no other.
func (w *checker) checkFirst(r *link, first bool) {
	switch duplicate := r.Outcome == outcome.Duplicate; {
	case first && duplicate:
		w.found(BadOutcome, "outcome", "created or existing: it is the first row of its URL", r.Outcome.String())
	case !first && !duplicate:
		w.found(BadOutcome, "outcome", outcome.Duplicate.String(), r.Outcome.String())
	}
}

// mustStore notes that the store must have a link.
func (w *checker) mustStore(r *link) {
	switch {
	case w.wanted == nil:
	case r.Outcome == outcome.Created:
		w.beyond = w.run.storedAs(w.beyond[:0], r)
		w.created += w.sumCreated(r.Workspace, r.Code, r.Canonical, w.beyond, r.Alias)
	default:
		w.want(r)
	}
}

// checkSource checks a row against its cells in its input, as far as the mapping has them.
func (w *checker) checkSource(r *link) {
	if w.run.mode() != legacy.Off {
		w.checkLegacy(r)
	}
	in := w.run.input(r.source)
	if in == nil {
		return
	}
	cell, sure := w.cellOf(r, in)
	w.own = in.CodesOf(w.own[:0], cell)
	has := slices.ContainsFunc(w.own, func(code columns.Code) bool { return bytes.Equal(code.Text, r.Legacy) })
	if w.run.mode() != legacy.Off && *sure && !has && len(w.own)+len(r.Legacy) > 0 {
		w.found(BadLegacy, "legacy_code", codesText(w.own), string(r.Legacy))
	}
	if w.run.beyond() != nil {
		w.checkMigration(r, in, cell, sure)
	}
}

// checkLegacy checks that the legacy code of a row may be one.
func (w *checker) checkLegacy(r *link) {
	w.told.code(r.Legacy, record.Place{Source: r.source, Row: r.Row.Row})
	if r.Alias {
		w.told.aliases++
	}
	if r.Legacy == nil {
		return
	}
	if _, detail := w.run.judge.Code(r.Legacy, false); detail != "" {
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

// checkIdentity checks a row of a run that keeps legacy codes, by itself.
func (w *checker) checkIdentity(r *link) {
	if w.held != nil {
		w.fileHeld(r)
	}
	own := w.run.owns(&r.MappingRow)
	switch {
	case own, w.run.ruled && r.Salt < 0 && r.Row.Number == 0: // or it speaks for a link that has the code of another row
		if own && r.Salt >= 0 {
			w.found(BadSalt, "salt", "", saltText(r.Salt))
		}
		if !own && r.Legacy != nil {
			w.lost(r)
		}
		if r.Outcome != outcome.Duplicate {
			w.fileClaim(w.group(r.Workspace), w.holding(r, ownCode))
			w.mustStore(r)
		}
		return
	case r.Legacy != nil:
		w.lost(r)
	}
	if r.Outcome != outcome.Duplicate {
		w.checkCode(r)
		w.claim(r)
		w.mustStore(r)
	}
}

// lost files the claim of a row that has lost its code.
func (w *checker) lost(r *link) {
	w.told.conflicts++
	w.fileClaim(w.group(r.Workspace), &claim{what: lost, row: r.Number, code: r.Legacy, canonical: r.Canonical})
}

func (w *checker) checkShortURL(r *link) {
	if w.code = w.code[:0]; w.run.base != nil {
		w.code = append(w.run.base.Append(w.code, r.Workspace), r.Code...)
	}
	if !bytes.Equal(r.ShortURL, w.code) {
		w.found(BadShortURL, "short_url", string(w.code), string(r.ShortURL))
	}
}

// checkSameLink compares a row with the one before, of the same identity.
func (w *checker) checkSameLink(r *link) {
	if !bytes.Equal(r.Code, w.old.Code) {
		w.found(BadDuplicate, "short_code", string(w.old.Code), string(r.Code))
	}
	if r.Salt != w.old.Salt {
		w.found(BadDuplicate, "salt", saltText(w.old.Salt), saltText(r.Salt))
	}
	if r.Row.Number != w.old.Row.Number {
		w.found(BadDuplicate, "number", numberText(w.old.Row.Number), numberText(r.Row.Number))
	}
}

func saltText(salt int) string {
	if salt < 0 {
		return ""
	}
	return strconv.Itoa(salt)
}

// checkCode checks code and salt of a link. A link that existed before may have a code of
// another length, or one that no salt gives.
func (w *checker) checkCode(r *link) { w.checkCodeOf(r, "short_code", "salt") }

// checkCodeOf does so for a code and a salt of these columns.
func (w *checker) checkCodeOf(r *link, column, saltColumn string) {
	if len(r.code0) > 0 && r.Salt == r.salt0 && bytes.Equal(r.Code, r.code0) {
		return
	}
	if w.run.spec.Counts {
		w.checkNumbered(r, column, saltColumn)
		return
	}
	if r.Outcome == outcome.Created {
		w.checkWord(r, column)
	}
	if !w.run.known {
		w.checkBelieved(r, column, saltColumn)
		return
	}
	salt := w.run.maker.SaltOf(r.Canonical, slices.Concat(r.Workspace, r.parts), r.Code, w.run.mostSalt)
	switch created := r.Outcome == outcome.Created; {
	case created && (r.Salt < 0 || r.Salt > w.run.retries):
		w.fault(w.file, r.Number).of(r.Workspace, r.Code).wrong(BadSalt, saltColumn, "0 to "+strconv.Itoa(w.run.retries), saltText(r.Salt))
	case created && len(r.Code) != w.run.length, salt < 0 && r.Salt >= 0:
		like := r.Code
		if created {
			like = nil
		}
		w.code = w.appendCode(w.code[:0], like, r.Canonical, r.Workspace, r.parts, min(r.Salt, w.run.mostSalt))
		w.fault(w.file, r.Number).of(r.Workspace, r.Code).wrong(BadCode, column, string(w.code), string(r.Code))
	case saltColumn == "link_salt" && r.Salt < 0 && w.run.ruled: // a row that has the code may be rejected
	case salt != r.Salt:
		w.fault(w.file, r.Number).of(r.Workspace, r.Code).wrong(BadSalt, saltColumn, saltText(salt), saltText(r.Salt))
	}
}

// checkOrder checks that the row in hand comes after the one before.
func (w *checker) checkOrder(r *link, same bool) {
	old := w.old
	if !old.known || w.run.order == report.InputOrder {
		return
	}
	c := 0
	if !same {
		c = w.compareLinks(old, r)
	}
	if c == 0 && same {
		c = w.compareSame(old, r)
	}
	if c > 0 {
		w.mixed.Store(true)
		w.found(BadOrder, "", "after the row before", string(r.Canonical))
	}
}

// compareLinks compares two rows of different identities as the sort does; 0: they cannot be compared.
func (w *checker) compareLinks(old, r *link) int {
	if c := bytes.Compare(old.Workspace, r.Workspace); c != 0 {
		return c
	}
	a, isKnown := w.firstCode(old)
	b, areKnown := w.firstCode(r)
	if !isKnown || !areKnown {
		return 0
	}
	folded := 0
	if w.run.terms.Fold() {
		folded = legacy.CompareFolded(a, b)
	}
	return cmp.Or(folded, bytes.Compare(a, b), bytes.Compare(old.Canonical, r.Canonical), bytes.Compare(old.parts, r.parts))
}

// compareSame compares two rows of one identity as the sort does; 0: they cannot be compared.
func (w *checker) compareSame(old, r *link) int {
	codes, sure := record.CompareCodes(old.Legacy, r.Legacy), old.said && r.said
	c := 0
	if w.run.mode().Keeps() {
		c = codes
	}
	if c == 0 && sure {
		c = cmp.Or(rules.Compare(&old.params, &r.params), codes, bytes.Compare(old.Original, r.Original))
	}
	for i := 0; i < len(w.run.inOrder) && c == 0 && sure; i++ {
		if n := w.run.inOrder[i]; n < len(r.Carried) {
			c, sure = w.compareCells(old, r, n)
		}
	}
	if c == 0 && sure && w.run.terms.Carry { // otherwise the order may come from cells that the mapping does not have
		c = cmp.Or(cmp.Compare(old.source, r.source), cmp.Compare(old.Row.Row, r.Row.Row), 1)
	}
	return c
}

// compareCells compares carried cells, null first. Not sure means that CSV does not tell
// which is null.
func (w *checker) compareCells(old, r *link, i int) (c int, sure bool) {
	a, b := old.Carried[i], r.Carried[i]
	if w.csv && len(a)+len(b) == 0 {
		return 0, old.source == r.source && r.source >= 0 && fixedNulls(w.run.manifest.Inputs[r.source].Format)
	}
	return cmp.Or(cmp.Compare(btoi(a != nil), btoi(b != nil)), bytes.Compare(a, b)), true
}

// isText reports whether a format is text: then records have byte offsets.
func isText(format string) bool { return format != "parquet" && format != "arrow" }

// fixedNulls reports whether in an input of the format a column is null in all rows or in none.
func fixedNulls(format string) bool { return isText(format) && format != "json" }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
