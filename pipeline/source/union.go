package source

import (
	"slices"

	"github.com/apache/arrow/go/v17/arrow/array"
)

// A Union is the columns that several inputs have together, by name, in the order in which
// they are first met. All inputs are added before it is used.
type Union struct {
	Names   []string // of all columns
	Carried []string // of those that in some input are carried (Input.IsCarried)

	carried map[string]int // numbers in Carried; -1: not carried
}

// Add adds the columns of an input; isCarried tells of each, by its number, whether it is carried.
func (u *Union) Add(names []string, isCarried func(c int) bool) {
	if u.carried == nil {
		u.carried = map[string]int{}
	}
	for c, name := range names {
		n, known := u.carried[name]
		if !known {
			n = -1
			u.Names = append(u.Names, name)
		}
		if n < 0 && isCarried(c) {
			n = len(u.Carried)
			u.Carried = append(u.Carried, name)
		}
		u.carried[name] = n
	}
}

// A Layout says where the columns of a union lie in an input.
type Layout struct {
	Carried []int // for each carried column of the union, its column in the input; -1: none

	cells []int // for each column of the union: its number in Carried, or one of the constants below
}

const (
	noCell      = -1
	urlCell     = -2
	workspaceOf = -3
)

// Find finds the columns of the union in an input.
func (u *Union) Find(in *Input) (l Layout) {
	at := make(map[string]int, len(in.Columns))
	for c, name := range in.Columns {
		at[name] = c
	}
	l.Carried, l.cells = make([]int, len(u.Carried)), make([]int, len(u.Names))
	for i, name := range u.Carried {
		c, ok := at[name]
		if !ok || !in.IsCarried(c) {
			c = -1
		}
		l.Carried[i] = c
	}
	for i, name := range u.Names {
		switch c, ok := at[name]; {
		case !ok:
			l.cells[i] = noCell
		case c == in.URLs[0]:
			l.cells[i] = urlCell
		case c == in.Workspace:
			l.cells[i] = workspaceOf
		case !in.IsCarried(c):
			l.cells[i] = noCell
		default:
			l.cells[i] = u.carried[name]
		}
	}
	return l
}

// Append appends the cells that a row has in all columns of the union. The carried ones are
// asked for by their number in Union.Carried.
func (l *Layout) Append(cells [][]byte, url, workspace []byte, carried func(n int) []byte) [][]byte {
	for _, from := range l.cells {
		var cell []byte
		switch from {
		case noCell:
		case urlCell:
			cell = url
		case workspaceOf:
			cell = workspace
		default:
			cell = carried(from)
		}
		cells = append(cells, cell)
	}
	return cells
}

// IsKey reports whether the URL or the workspace is taken from a column.
func (in *Input) IsKey(c int) bool { return c == in.Workspace || slices.Contains(in.URLs, c) }

// IsCarried reports whether the cells of a column are carried: they are no keys, and are not left out.
func (in *Input) IsCarried(c int) bool { return !in.IsKey(c) && !slices.Contains(in.LeftOut, c) }

// Cells are the columns of a batch. They are valid as long as the batch is.
type Cells []*array.Binary

// Of makes them those of a batch.
func (c *Cells) Of(b *Batch) {
	*c = (*c)[:0]
	for _, column := range b.Record.Columns() {
		*c = append(*c, column.(*array.Binary))
	}
}

// Cell returns a cell of row i of the batch, from 0; nil for null and for column -1.
func (c Cells) Cell(column, i int) []byte {
	if column < 0 || c[column].IsNull(i) {
		return nil
	}
	if cell := c[column].Value(i); cell != nil {
		return cell
	}
	return []byte{}
}

// URL returns the URL of row i: the first cell of the columns that is not blank; nil: none.
func (c Cells) URL(columns []int, i int) []byte {
	for _, column := range columns {
		if cell := c.Cell(column, i); len(cell) > 0 {
			return cell
		}
	}
	return nil
}
