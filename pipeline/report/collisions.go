package report

import "io"

func CollisionColumns() []string {
	return []string{"workspace_id", "canonical_url", "salt", "code", "owner"}
}

// Collisions writes collisions.csv. It is for one goroutine.
type Collisions struct{ csvWriter }

// NewCollisions returns a writer for collisions. Nothing is written before the
// first 64 KiB or Close.
func NewCollisions(w io.Writer, excelSafe bool) *Collisions {
	return &Collisions{newCSVWriter(w, excelSafe, CollisionColumns())}
}

// Append writes a collision.
func (c *Collisions) Append(collision *Collision) error {
	c.cell(collision.Workspace)
	c.cell(collision.Canonical)
	c.number(int64(collision.Salt))
	c.cell(collision.Code)
	c.cell(collision.Owner)
	return c.endLine()
}

// A CollisionsReader reads collisions.csv back. It is for one goroutine.
type CollisionsReader struct {
	*csvReader
	collision Collision
}

// OpenCollisions opens a collisions file. The caller closes the reader.
func OpenCollisions(path string) (*CollisionsReader, error) {
	csv, err := openCSV(path, CollisionColumns())
	if err != nil {
		return nil, err
	}
	return &CollisionsReader{csvReader: csv}, nil
}

// Next returns the next line, valid until the one after; of a code that nobody
// holds the owner is nil. Errors are as those of RejectsReader.Next.
func (r *CollisionsReader) Next() (*Collision, error) {
	if err := r.next(); err != nil {
		return nil, err
	}
	salt, err := r.number(2, "salt", 0)
	if err != nil {
		return nil, err
	}
	f := r.fields
	r.collision = Collision{Workspace: f[0], Canonical: f[1], Salt: int(salt), Code: f[3], Owner: f[4]}
	if len(f[4]) == 0 {
		r.collision.Owner = nil
	}
	return &r.collision, nil
}
