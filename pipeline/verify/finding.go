package verify

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/manifest"
)

// A Kind is the stable name of what is wrong. The list is closed.
type Kind string

// What Run finds in the files of a run, and then in inputs and store.
const (
	BadManifest    Kind = "manifest"          // a field of the manifest that no run writes
	ManifestSum    Kind = "manifest_sum"      // the manifest does not have the digest that was given, or that the store has
	FileMissing    Kind = "file_missing"      // a file that the manifest lists is not there
	FileSum        Kind = "file_sum"          // a file has another SHA-256 than the manifest says
	RowDigest      Kind = "row_digest"        // the rows of the mapping have another digest than the manifest says
	Damaged        Kind = "damaged"           // a file, or a cell, cannot be read
	BadColumns     Kind = "columns"           // a file has other columns than the inputs make, or an input than the run read
	BadCount       Kind = "count"             // the books do not balance
	BadSource      Kind = "source"            // an input, or a row of it, that the manifest does not know
	RowRepeated    Kind = "row_repeated"      // a row of an input is accounted for twice
	RowMissing     Kind = "row_missing"       // a row of an input is not accounted for
	BadOrder       Kind = "order"             // a row does not come after the one before
	BadWorkspace   Kind = "workspace"         // no identifier of a workspace
	BadCanonical   Kind = "canonical"         // not the canonical form of the original URL
	BadCode        Kind = "code"              // not the code of the URL at its salt
	BadSalt        Kind = "salt"              // not the lowest salt that gives the code, or one that the run would not try
	BadFormula     Kind = "formula"           // a spreadsheet would run a cell that was to be safe
	BadShortURL    Kind = "short_url"         // not base URL and code
	BadOutcome     Kind = "outcome"           // the first row of a URL is a duplicate, or a later one is not
	BadDuplicate   Kind = "duplicate"         // a duplicate does not have the code and the salt of its link
	CodeShared     Kind = "code_shared"       // two links have one code
	Uncollided     Kind = "collision_missing" // a link of a salt above 0 without its line in collisions.csv
	BadCollision   Kind = "collision"         // a line of collisions.csv that no link of the mapping needs
	BadOwner       Kind = "owner"             // not the owner of the code
	BadPrecedence  Kind = "precedence"        // the owner of a code should have given way to a smaller URL
	BadReason      Kind = "reason"            // the URL of a reject has a link, or is refused for another reason
	BadDetail      Kind = "detail"            // of a reject: not what its reason and its URL make
	BadOffset      Kind = "byte_offset"       // of a reject: not above that of the reject before, missing, or there though the format has none
	BadCells       Kind = "cells"             // a reject has a raw line and cells, or neither
	InputSum       Kind = "input_sum"         // an input is not the one that the run read, or is not as the manifest says
	InputDiffers   Kind = "input"             // a row of the run is not what its input makes
	StoreMissing   Kind = "store_missing"     // a link of the mapping is not in the store
	StoreExtra     Kind = "store_extra"       // a link that the run made, says the store, but that its mapping does not have as created
	StoreDiffers   Kind = "store_link"        // a link of the mapping is another in the store
	StoreRun       Kind = "store_run"         // a run of the store, or the time of its links, is not what the run left
	StoreKey       Kind = "store_key"         // a url_key that is not that of its URL
	StoreCanonical Kind = "store_canonical"   // no canonical form, or not that of the original URL
	StoreCode      Kind = "store_code"        // a code that no salt gives its URL

	// No faults by themselves.
	Unexplained  Kind = "unexplained"   // a code of a lower salt that nobody is known to hold, or only by a salt that the run would not try
	FileUnlisted Kind = "file_unlisted" // a file of the folder that the manifest does not list: nothing vouches for it
)

// A Finding is one thing that is wrong. Of the store, the row is the number of a link in
// the order of workspace and code or, if the column is state, as_of, counts or
// manifest_sha256, the ID of a run. Expected and Found are cut after 16 KiB, and then say
// how many bytes there are.
type Finding struct {
	Kind     Kind          `json:"kind"`
	File     manifest.Text `json:"file"`          // of the folder, an input as it was named, or "store"
	Row      int64         `json:"row,omitempty"` // of the file, from 1, the header not counted; 0: the file as a whole
	Column   manifest.Text `json:"column,omitempty"`
	Expected manifest.Text `json:"expected"`
	Found    manifest.Text `json:"found"`
}

// compare orders findings by place first; only equal ones compare as 0.
func (f Finding) compare(o Finding) int {
	return cmp.Or(cmp.Compare(f.File, o.File), cmp.Compare(f.Row, o.Row), cmp.Compare(f.Column, o.Column),
		cmp.Compare(f.Kind, o.Kind), cmp.Compare(f.Expected, o.Expected), cmp.Compare(f.Found, o.Found))
}

// findings are all that was found: faults, and doubts, which are no faults. It is safe for
// concurrent use.
type findings struct{ faults, doubts list }

func newFindings(most int) *findings { return &findings{faults: newList(most), doubts: newList(most)} }

// A spot is where something is found: a row of a file, or if that is 0 the file.
type spot struct {
	to   *list
	file string
	row  int64
}

func (f *findings) fault(file string, row int64) spot { return spot{&f.faults, file, row} }
func (f *findings) doubt(file string, row int64) spot { return spot{&f.doubts, file, row} }

// wrong makes a fault of a field of the manifest.
func (f *findings) wrong(kind Kind, field string, expected, found any) {
	f.fault(manifest.Name, 0).wrong(kind, field, fmt.Sprint(expected), fmt.Sprint(found))
}

// wrong makes a finding.
func (s spot) wrong(kind Kind, column, expected, found string) {
	s.to.add(Finding{Kind: kind, File: manifest.Text(s.file), Row: s.row, Column: manifest.Text(column), Expected: cut(expected), Found: cut(found)})
}

// mostText is how many bytes of a text a finding keeps: a cell may have megabytes, and
// there may be many findings.
const mostText = 16 << 10

// cut cuts a text that is longer, and says so.
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
	most  int
	mu    sync.Mutex
	first []Finding
	kinds map[Kind]int64
}

func newList(most int) list { return list{most: most, kinds: map[Kind]int64{}} }

func (l *list) add(f Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds[f.Kind]++
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
