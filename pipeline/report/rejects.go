package report

import (
	"io"
	"slices"
	"strings"
)

// Reasons of rejects beside those of packages canon and source.
const (
	MissingURL         = "missing_url"   // null or no bytes
	BadWorkspace       = "bad_workspace" // of codegen.CheckWorkspace
	CodeSpaceExhausted = "code_space_exhausted"
)

// MissingURLDetail is the detail of each MissingURL.
const MissingURLDetail = "the URL is blank"

// ownRejectColumns returns the columns of the rejects file, without those of the input,
// which stand before the last.
func ownRejectColumns() []string {
	return []string{"source", "row", "byte_offset", "reason", "detail", "raw"}
}

// rejectColumns returns them with those of the input.
func rejectColumns(columns []string) []string {
	own := ownRejectColumns()
	return slices.Concat(own[:5], RejectNames(columns), own[5:])
}

// RejectNames returns the names that the rejects file has for columns of the input: one
// that is the file's own, be it after in_, however often, gets in_ before it. So whoever
// reads the file can tell what it was.
func RejectNames(columns []string) []string {
	names, own := slices.Clone(columns), ownRejectColumns()
	for i, name := range names {
		bare := name
		for strings.HasPrefix(bare, "in_") {
			bare = bare[len("in_"):]
		}
		if slices.Contains(own, bare) {
			names[i] = "in_" + name
		}
	}
	return names
}

// Rejects writes the rejects file: always CSV, and never defused for
// spreadsheets, because it holds the original bytes and can be an input again.
// It is for one goroutine.
type Rejects struct {
	csv     csvWriter
	columns int
}

// NewRejects returns a writer for rejects whose inputs have these columns; a
// name that the file itself uses is changed by RejectNames. Nothing is written
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
