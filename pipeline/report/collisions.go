package report

import "io"

// CollisionColumns returns the columns of collisions.csv, at the end that of the parts of identities
// if these may have any.
func CollisionColumns(parts bool) []string {
	columns := []string{"workspace_id", "canonical_url", "salt", "code", "owner"}
	if parts {
		columns = append(columns, partsName)
	}
	return columns
}

// Collisions writes collisions.csv. It is for one goroutine.
type Collisions struct {
	csvWriter
	parts bool
}

// NewCollisions returns a writer for collisions. Nothing is written before the
// first 64 KiB or Close.
func NewCollisions(w io.Writer, excelSafe, parts bool) *Collisions {
	return &Collisions{newCSVWriter(w, excelSafe, CollisionColumns(parts)), parts}
}

// Append writes a collision.
func (c *Collisions) Append(collision *Collision) error {
	c.cell(collision.Workspace)
	c.cell(collision.Canonical)
	c.number(int64(collision.Salt))
	c.cell(collision.Code)
	c.cell(collision.Owner)
	if c.parts {
		c.cell(collision.Parts)
	}
	return c.endLine()
}
