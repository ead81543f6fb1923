package report

import (
	"io"
	"slices"
)

// Reasons of rejects beside those of packages canon and source.
const (
	MissingURL         = "missing_url"   // null or no bytes
	BadWorkspace       = "bad_workspace" // of codegen.CheckWorkspace
	CodeSpaceExhausted = "code_space_exhausted"
)

// MissingURLDetail is the detail of each MissingURL.
const MissingURLDetail = "the URL is blank"

// RejectColumns returns the columns of the rejects file, without those of the input,
// which stand before the last.
func RejectColumns() []string {
	return []string{"source", "row", "byte_offset", "reason", "detail", "raw"}
}

// rejectColumns returns them with those of the input.
func rejectColumns(columns []string) []string {
	own := RejectColumns()
	return slices.Concat(own[:5], CarriedNames(own, columns), own[5:])
}

// Rejects writes the rejects file: always CSV, and never defused for
// spreadsheets, because it holds the original bytes and can be an input again.
// It is for one goroutine.
type Rejects struct {
	csv     csvWriter
	columns int
}

// NewRejects returns a writer for rejects whose inputs have these columns; a
// name that the file itself uses is changed by CarriedNames. Nothing is written
// before the first 64 KiB or Close.
func NewRejects(w io.Writer, columns []string) *Rejects {
	r := &Rejects{csv: csvWriter{w: w}, columns: len(columns)}
	r.csv.buf = r.csv.appendHeader(nil, rejectColumns(columns))
	return r
}

// Append writes a reject. Cells that it lacks are empty.
func (r *Rejects) Append(reject *Reject) error {
	c := &r.csv
	c.cell([]byte(reject.Source))
	c.number(reject.Row)
	if reject.Offset >= 0 {
		c.number(reject.Offset)
	} else {
		c.cell(nil)
	}
	c.cell([]byte(reject.Reason))
	c.cell([]byte(reject.Detail))
	for i := range r.columns {
		if i < len(reject.Cells) {
			c.cell(reject.Cells[i])
		} else {
			c.cell(nil)
		}
	}
	c.cell(reject.Raw)
	return c.endLine()
}

// Close writes what is left, the header too. It does not close the underlying
// writer.
func (r *Rejects) Close() error { return r.csv.Close() }
