// Package outcome is the vocabulary of what becomes of a row: an accepted row has an
// [Outcome], any other is a [Reject], which has one of a closed list of reasons.
package outcome

import "fmt"

// An Outcome says what became of an accepted row.
type Outcome uint8

const (
	Created   Outcome = iota // this run made the link
	Existing                 // the store had the link
	Duplicate                // an earlier row of the sort is the link
	Count     = iota         // of outcomes
)

func (o Outcome) String() string {
	return [...]string{"created", "existing", "duplicate"}[o]
}

// Reasons of rejects beside those of packages canon and source.
const (
	MissingURL         = "missing_url"   // null or no bytes
	BadWorkspace       = "bad_workspace" // of codegen.CheckWorkspace
	CodeSpaceExhausted = "code_space_exhausted"
)

// MissingURLDetail is the detail of each MissingURL.
const MissingURLDetail = "the URL is blank"

// ExhaustedDetail is the detail of each CodeSpaceExhausted, where salts up to maxRetries were
// tried.
func ExhaustedDetail(maxRetries int) string {
	return fmt.Sprintf("all %d codes of this URL have other owners", maxRetries+1)
}

// A Reject is a row that has no link. The slices belong to the caller.
type Reject struct {
	Source string // the input as it was named
	Row    int64  // its record, from 1
	Offset int64  // byte offset of the record; -1: the format has none
	Reason string
	Detail string
	Cells  [][]byte // one for each input column; nil: null
	Raw    []byte   // the whole line, where it could not be split
}
