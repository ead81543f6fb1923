package report

import (
	"errors"

	"github.com/linkforge/bulk/pipeline/outcome"
)

// A RejectsReader reads rejects.csv back. It is for one goroutine.
type RejectsReader struct {
	Columns []string // of the inputs, as CarriedNames made them unique
	*csvReader
	reject outcome.Reject
}

// OpenRejects opens a rejects file. The caller closes the reader.
func OpenRejects(path string) (*RejectsReader, error) {
	csv, err := openCSV(path, RejectColumns()[:5])
	if err != nil {
		return nil, err
	}
	last := len(csv.after) - 1
	if last < 0 || csv.after[last] != "raw" {
		return nil, errors.Join(csv.damage(errors.New("its last column is not named raw")), csv.Close())
	}
	return &RejectsReader{Columns: csv.after[:last], csvReader: csv}, nil
}

// Next returns the next reject, valid until the one after: null cells are empty.
// At the end the error is io.EOF. After a *CellError it can be called again; any
// other error, such as a *DamageError, ends the reading.
func (r *RejectsReader) Next() (*outcome.Reject, error) {
	err := r.next()
	if err != nil {
		return nil, err
	}
	rej := &r.reject
	rej.Source = string(r.fields[0])
	if rej.Row, err = r.number(1, "row", 0); err != nil {
		return nil, err
	}
	if rej.Offset, err = r.number(2, "byte_offset", -1); err != nil {
		return nil, err
	}
	rej.Reason, rej.Detail = string(r.fields[3]), string(r.fields[4])
	last := len(r.fields) - 1
	rej.Cells, rej.Raw = r.fields[5:last], r.fields[last]
	return rej, nil
}
