package report

import "errors"

// A RejectsReader reads rejects.csv back. It is for one goroutine.
type RejectsReader struct {
	Columns []string // of the inputs, as CarriedNames made them unique
	csv     *csvReader
	reject  Reject
}

// OpenRejects opens a rejects file. The caller closes the reader.
func OpenRejects(path string) (*RejectsReader, error) {
	own := rejectColumns(nil)
	lead := len(own) - 1
	csv, err := openCSV(path, own[:lead])
	if err != nil {
		return nil, err
	}
	r := &RejectsReader{csv: csv}
	if last := len(csv.fields) - 1; last >= lead && string(csv.fields[last]) == own[lead] {
		r.Columns = csv.names(lead, last)
		return r, nil
	}
	return nil, errors.Join(csv.damage(errors.New("its last column is not raw")), csv.Close())
}

// Next returns the next reject, valid until the one after: null cells are empty.
// At the end the error is io.EOF. After a *CellError it can be called again; any
// other error, such as a *DamageError, ends the reading.
func (r *RejectsReader) Next() (*Reject, error) {
	c := r.csv
	err := c.next()
	if err != nil {
		return nil, err
	}
	rej := &r.reject
	rej.Source = string(c.fields[0])
	if rej.Row, err = c.number(1, "row", 0); err != nil {
		return nil, err
	}
	if rej.Offset, err = c.number(2, "byte_offset", -1); err != nil {
		return nil, err
	}
	rej.Reason, rej.Detail = string(c.fields[3]), string(c.fields[4])
	last := len(c.fields) - 1
	rej.Cells, rej.Raw = c.fields[5:last], c.fields[last]
	return rej, nil
}

// Close closes the file.
func (r *RejectsReader) Close() error { return r.csv.Close() }
