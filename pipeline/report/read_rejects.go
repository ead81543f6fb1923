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

// A CollisionsReader reads collisions.csv back. It is for one goroutine.
type CollisionsReader struct {
	csv       *csvReader
	collision Collision
}

// OpenCollisions opens a collisions file. The caller closes the reader.
func OpenCollisions(path string) (*CollisionsReader, error) {
	csv, err := openCSV(path, collisionColumns())
	if err != nil {
		return nil, err
	}
	return &CollisionsReader{csv: csv}, nil
}

// Next returns the next line, valid until the one after; of a code that nobody
// holds the owner is nil. Errors are as those of RejectsReader.Next.
func (r *CollisionsReader) Next() (*Collision, error) {
	c := r.csv
	err := c.next()
	if err != nil {
		return nil, err
	}
	salt, err := c.number(2, "salt", 0)
	if err != nil {
		return nil, err
	}
	r.collision = Collision{Workspace: c.fields[0], Canonical: c.fields[1], Salt: int(salt), Code: c.fields[3], Owner: c.fields[4]}
	if len(c.fields[4]) == 0 {
		r.collision.Owner = nil
	}
	return &r.collision, nil
}

// Close closes the file.
func (r *CollisionsReader) Close() error { return r.csv.Close() }
