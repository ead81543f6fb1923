package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// A Kind is the stable name of what is wrong. The constants are all kinds.
type Kind string

// Kinds of problems, in the files of a run, in the inputs and in the store.
const (
	BadManifest    Kind = "manifest"          // a field of the manifest has a value that no run writes
	ManifestSum    Kind = "manifest_sum"      // the manifest does not have the SHA-256 that was given, or that a run of the store has
	FileMissing    Kind = "file_missing"      // a file that the manifest lists is not there
	FileSum        Kind = "file_sum"          // a file does not have the SHA-256 that the manifest says
	RowDigest      Kind = "row_digest"        // the rows of the mapping do not have the digest that the manifest says
	Damaged        Kind = "damaged"           // a file, or a cell, cannot be read
	BadColumns     Kind = "columns"           // a report does not have the columns that follow from the inputs, or an input not those that the run read
	BadCount       Kind = "count"             // numbers of rows do not add up, or differ between manifest, files and store
	BadSource      Kind = "source"            // a row names an input, or a row of an input, that the manifest does not have
	RowRepeated    Kind = "row_repeated"      // two rows of the reports are the same row of an input
	RowMissing     Kind = "row_missing"       // a row of an input is in no report
	BadVariant     Kind = "variant"           // number, parameters and URL of a variant do not agree
	BadOrder       Kind = "order"             // a row should come before the one above it
	BadWorkspace   Kind = "workspace"         // not a valid workspace identifier
	BadCanonical   Kind = "canonical"         // not the canonical form of the original URL
	BadCode        Kind = "code"              // not the code of the URL at its salt
	BadSalt        Kind = "salt"              // not the lowest salt that gives the code, or one that the run does not try
	BadNumber      Kind = "number"            // a number that the run did not take, or that is missing, or not above those of the links before
	Blocked        Kind = "blocked"           // a code that the run made contains a word of the blocklist
	BadKind        Kind = "kind"              // a row is not of the kind that its code has, or the link of its URL does not have the code that it must
	BadLegacy      Kind = "legacy_code"       // a legacy code that is rejected, or that the cells of its row do not have, or that is not another URL's
	BadFormula     Kind = "formula"           // a spreadsheet would run a cell, though the run had --excel-safe
	BadShortURL    Kind = "short_url"         // not the base URL followed by the code
	BadOutcome     Kind = "outcome"           // the first row of a URL is a duplicate, or another one is not
	BadParameter   Kind = "parameter"         // a parameter of a row does not follow from its cells and the options
	BadChange      Kind = "change"            // the change of a row does not follow from the other rows of its link, or no link explains it
	BadDuplicate   Kind = "duplicate"         // a duplicate does not have the code and the salt of its link
	CodeShared     Kind = "code_shared"       // two links have one code
	Uncollided     Kind = "collision_missing" // a link has a salt above 0, but collisions.csv has no line for a code of a lower salt
	BadCollision   Kind = "collision"         // a line of collisions.csv that belongs to no link of the mapping
	BadOwner       Kind = "owner"             // collisions.csv names a URL that does not own the code
	BadPrecedence  Kind = "precedence"        // the code belongs to another URL, which sorts first
	BadReason      Kind = "reason"            // a reject has another reason, or its URL has a link
	BadDetail      Kind = "detail"            // the detail of a reject does not follow from its reason and its URL
	BadOffset      Kind = "byte_offset"       // of a reject: not above the one of the reject before; or missing; or there, though the format of the input has none
	BadCells       Kind = "cells"             // a reject has both a raw line and cells, or neither
	InputSum       Kind = "input_sum"         // an input is not the one that the run read: SHA-256, number of records, size, compression or dialect differ
	InputDiffers   Kind = "input"             // a row of the reports does not follow from its record of the input
	StoreMissing   Kind = "store_missing"     // a link of the mapping is not in the store
	StoreExtra     Kind = "store_extra"       // the store has a link of the run that the mapping does not have as created
	StoreDiffers   Kind = "store_link"        // the store has a link of the mapping with other values
	StoreRun       Kind = "store_run"         // the store has other values of a run, or another time of its links
	StoreKey       Kind = "store_key"         // the url_key of a link in the store does not follow from its URL
	StoreCanonical Kind = "store_canonical"   // the canonical URL of a link in the store is not canonical, or does not follow from the original one
	StoreCode      Kind = "store_code"        // no salt gives the code of a link in the store, and no run has kept it
	StoreScheme    Kind = "store_scheme"      // the store has another scheme for a workspace of the run
	StoreAlias     Kind = "store_alias"       // the store has an alias, but not the link of its URL

	// Kinds that are no problems.
	Unexplained  Kind = "unexplained"   // a link has its second or a later code, and it cannot be seen who had the earlier one
	FileUnlisted Kind = "file_unlisted" // the output directory has a file that the manifest does not list
)

// A Finding is one thing that was found. In the store, Row is the number of a link in the
// order of workspace and code, from 1; or, if Column is run_id, state, as_of, counts or
// manifest_sha256, the ID of a run. Expected and Found are cut after 16 KiB, and then say how
// many bytes there are.
type Finding struct {
	Kind     Kind          `json:"kind"`
	File     manifest.Text `json:"file"`          // of the output directory; an input as the run named it; or "store"
	Row      int64         `json:"row,omitempty"` // of the file, from 1, without the header; 0: the file as a whole
	Column   manifest.Text `json:"column,omitempty"`
	Expected manifest.Text `json:"expected"`
	Found    manifest.Text `json:"found"`
	// The link that it is about, as the store has it, or else the mapping; "": about none, or a row.
	Workspace manifest.Text `json:"workspace_id,omitempty"`
	Code      manifest.Text `json:"short_code,omitempty"`
}

// compare orders findings by place, then by what they say. It is 0 only if they are equal.
func (f Finding) compare(o Finding) int {
	return cmp.Or(cmp.Compare(f.File, o.File), cmp.Compare(f.Row, o.Row), cmp.Compare(f.Column, o.Column),
		cmp.Compare(f.Kind, o.Kind), cmp.Compare(f.Expected, o.Expected), cmp.Compare(f.Found, o.Found),
		cmp.Compare(f.Workspace, o.Workspace), cmp.Compare(f.Code, o.Code))
}

// findings are what was found: faults are problems, doubts are not. It is safe for concurrent
// use.
type findings struct {
	faults, doubts list
	once           list // faults of which the first of each kind is told, once all is found
}

func newFindings(most int) *findings {
	return &findings{faults: newList(most), doubts: newList(most), once: list{single: true, kinds: map[Kind]int64{}}}
}

// A spot is where something is found: a row of a file, or if that is 0 the file.
type spot struct {
	to              *list
	file            string
	row             int64
	workspace, code []byte // of a link; nil: of none
}

func (f *findings) fault(file string, row int64) spot {
	return spot{to: &f.faults, file: file, row: row}
}

func (f *findings) doubt(file string, row int64) spot {
	return spot{to: &f.doubts, file: file, row: row}
}

// of names the link that is found fault with. The spot refers to the texts.
func (s spot) of(workspace, code []byte) spot {
	s.workspace, s.code = workspace, code
	return s
}

// wrong makes a fault of a field of the manifest.
func (f *findings) wrong(kind Kind, field string, expected, found any) {
	f.fault(manifest.Name, 0).wrong(kind, field, fmt.Sprint(expected), fmt.Sprint(found))
}

// checkColumns compares the columns of a file.
func (f *findings) checkColumns(file string, got, want []string) {
	if !slices.Equal(got, want) {
		f.fault(file, 0).wrong(BadColumns, "", strings.Join(want, ","), strings.Join(got, ","))
	}
}

// wrong makes a finding.
func (s spot) wrong(kind Kind, column, expected, found string) {
	s.to.add(Finding{Kind: kind, File: manifest.Text(s.file), Row: s.row, Column: manifest.Text(column), Expected: cut(expected), Found: cut(found),
		Workspace: cut(string(s.workspace)), Code: cut(string(s.code))})
}

// mostText is how many bytes of a text a finding keeps. A cell may have megabytes, and
// there may be many findings.
const mostText = 16 << 10

// cut shortens a text to mostText bytes, and says so.
func cut(text string) manifest.Text {
	n := mostText
	if len(text) <= n {
		return manifest.Text(text)
	}
	for n > mostText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return manifest.Text(fmt.Sprintf("%s… (%d of %d bytes)", text[:n], n, len(text)))
}

// A list keeps the first findings in the order of compare, and counts all.
type list struct {
	most   int
	single bool // it keeps the first of each kind
	mu     sync.Mutex
	first  []Finding
	kinds  map[Kind]int64
}

func newList(most int) list { return list{most: most, kinds: map[Kind]int64{}} }

func (l *list) add(f Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds[f.Kind]++
	if l.single {
		at := slices.IndexFunc(l.first, func(o Finding) bool { return o.Kind == f.Kind })
		switch {
		case at < 0:
			l.first = append(l.first, f)
		case f.compare(l.first[at]) < 0:
			l.first[at] = f
		}
		return
	}
	l.first = append(l.first, f)
	if len(l.first)/2-32 >= l.most { // not 2*most: it may be math.MaxInt, for no limit
		l.cut()
	}
}

// count counts n more findings, without keeping them.
func (l *list) count(kind Kind, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 {
		l.kinds[kind] += n
	}
}

// cut drops what is not among the first.
func (l *list) cut() {
	slices.SortFunc(l.first, Finding.compare)
	l.first = l.first[:min(len(l.first), l.most)]
}

// all returns the first findings and the number of the others.
func (l *list) all() (first []Finding, others int64) {
	l.cut()
	for _, n := range l.kinds {
		others += n
	}
	return l.first, others - int64(len(l.first))
}

// tellOnce tells of the faults of which one of each kind was kept.
func (f *findings) tellOnce() {
	for _, first := range f.once.first {
		if more := f.once.kinds[first.Kind] - 1; more > 0 {
			first.Expected += manifest.Text(fmt.Sprintf(" (%d more faults are of this kind)", more))
		}
		f.faults.add(first)
	}
}
