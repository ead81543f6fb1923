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
