package report

import (
	"io"
	"slices"

	"github.com/linkforge/bulk/pipeline/outcome"
)

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
	csvWriter
	columns int
}

// NewRejects returns a writer for rejects whose inputs have these columns; a
// name that the file itself uses is changed by CarriedNames. Nothing is written
// before the first 64 KiB or Close.
func NewRejects(w io.Writer, columns []string) *Rejects {
	return &Rejects{newCSVWriter(w, false, rejectColumns(columns)), len(columns)}
}

// Append writes a reject. Cells that it lacks are empty.
func (r *Rejects) Append(reject *outcome.Reject) error {
	r.cell([]byte(reject.Source))
	r.number(reject.Row)
	if reject.Offset >= 0 {
		r.number(reject.Offset)
	} else {
		r.cell(nil)
	}
	r.cell([]byte(reject.Reason))
	r.cell([]byte(reject.Detail))
	for i := range r.columns {
		if i < len(reject.Cells) {
			r.cell(reject.Cells[i])
		} else {
			r.cell(nil)
		}
	}
	r.cell(reject.Raw)
	return r.endLine()
}
