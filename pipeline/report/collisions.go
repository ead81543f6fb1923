package report

import "io"

func collisionColumns() []string {
	return []string{"workspace_id", "canonical_url", "salt", "code", "owner"}
}

// Collisions writes collisions.csv. It is for one goroutine.
type Collisions struct{ csv csvWriter }

// NewCollisions returns a writer for collisions. Nothing is written before the
// first 64 KiB or Close.
func NewCollisions(w io.Writer, excelSafe bool) *Collisions {
	c := &Collisions{csvWriter{w: w, csvCells: csvCells{excelSafe}}}
	c.csv.buf = c.csv.appendHeader(nil, collisionColumns())
	return c
}

// Append writes a collision.
func (c *Collisions) Append(collision *Collision) error {
	c.csv.cell(collision.Workspace)
	c.csv.cell(collision.Canonical)
	c.csv.number(int64(collision.Salt))
	c.csv.cell(collision.Code)
	c.csv.cell(collision.Owner)
	return c.csv.endLine()
}

// Close writes what is left, the header too. It does not close the underlying
// writer.
func (c *Collisions) Close() error { return c.csv.Close() }

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
