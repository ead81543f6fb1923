// Package report writes the files of a run: the mapping (CSV, Parquet or Arrow), rejects.csv
// and collisions.csv. A [Mapping] is written by blocks, which any number of goroutines fill.
// [RowDigest] is the digest of its rows, whatever their format and order. Package readback
// reads the files. An [Export] writes the links of a store.
//
// The bytes depend on the rows and the options alone, not on the clock, the workers or the
// memory. Row groups of Parquet and batches of Arrow have a constant number of rows (fewer
// only where their cells reach 32 MiB).
package report

import (
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A Row is a row of the mapping. The slices belong to the caller. Alias, Legacy, LinkCode,
// LinkSalt and Rules count only where the mapping has a column for them (Columns).
type Row struct {
	Source    string // the input as it was named
	Row       int64  // its 1-based record
	Workspace []byte
	Original  []byte // the bytes of the input
	Canonical []byte
	Code      []byte
	Outcome   outcome.Outcome
	Salt      int    // -1: no salt gives this code
	Number    int64  // that this run made the code of the link of the row's URL from; 0: it did not make it from any
	Alias     bool   // the code is an alias, else that of the link
	Legacy    []byte // the code that the row brought along, in UTF-8; nil: none
	LinkCode  []byte // that of the link of the row's URL; nil: null
	LinkSalt  int    // of LinkCode, as Salt
	Rules     Rules
	Variant   int64    // of a campaign, from 1
	InputURL  []byte   // of which the variant was made, or that was resolved: the cell of the input; nil: null
	Values    [][]byte // of the parameters of a campaign, in order; nil: it lacks it
	Carried   [][]byte // one for each carried column; nil is null

	// Domain is that of the row's code, or of the row. It is in no column; short_url may have it.
	Domain []byte

	// Generated says that the run creates the link of the row's URL, with a generated code, and
	// counts it with this row. It is in no column.
	Generated bool
}

// Rules are what a mapping with link rules says of the link of a row: its parameters as they are
// after the run, and what the run did to it. All of it is UTF-8.
type Rules struct {
	Parts       []byte // of the identity, as they are hashed; nil: none
	rules.Cells        // nil: none. Expiries are in RFC 3339, UTC, whole seconds; the reference counts only where it is a part of the identity
	Change      rules.Change
}

// value returns the place of the value of a parameter.
func (r *Row) value(n int) *[]byte {
	for len(r.Values) <= n {
		r.Values = append(r.Values, nil)
	}
	return &r.Values[n]
}

// Kind is what the column kind says of the row: alias or link.
func (r *Row) Kind() string { return legacy.KindOf(r.Alias) }

// A Mapping writes the mapping. Blocks are filled by any number of goroutines,
// each with its own, and written in order by one.
type Mapping interface {
	// Block returns an empty block. Safe for concurrent use.
	Block() Block
	// Write appends the rows of a block to the file and takes the block back. After
	// Close the error is fs.ErrClosed.
	Write(b Block) error
	// Close writes what is left, the footer too, and does not close the
	// underlying writer. Further calls return what the first did.
	Close() error
	// Abandon gives up a mapping that will not be closed. When it returns, no goroutine
	// works on the mapping any more.
	Abandon()
}

// A Block holds formatted rows. It copies what it is given.
type Block interface {
	// Append adds a row, which must have as many cells in Carried as MappingOptions has
	// names: that is not checked, and CSV gets a ragged line, the other formats panic
	// or leave cells out.
	Append(r *Row)
}

// A Collision tells the owner of a code that a link of salt > 0 could not have.
type Collision struct {
	Workspace []byte
	Canonical []byte // of the link
	Salt      int    // below the link's own
	Code      []byte
	Owner     []byte // canonical URL; nil: nobody holds it any more
	Parts     []byte // of the identity of the link; counts only where the file has a column for it
}
