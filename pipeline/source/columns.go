package source

import (
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/linkforge/bulk/pipeline/columns"
)

// checkWidth refuses more columns than there may be.
func (in *Input) checkWidth(n int) error {
	most := columns.MaxColumns
	if in.opts.report {
		most += reportColumns
	}
	return columns.CheckWidth(in.Name, n, most)
}

// setColumns sets the columns of a file that names them, and chooses among them, but for a report.
func (in *Input) setColumns(names []string) error {
	if err := in.checkWidth(len(names)); err != nil {
		return err
	}
	in.SetNames(names)
	if in.opts.report {
		return nil
	}
	return in.Settle()
}

// numbersAreNames says of each column whether a number in it is a name (see columns.Table.Names).
func (in *Input) numbersAreNames() []bool {
	are := make([]bool, len(in.Columns))
	for c := range are {
		are[c] = in.Names(c)
	}
	return are
}

// leastFields returns how many of the first columns have all that have a role.
func (in *Input) leastFields() int {
	n := len(in.Columns)
	for n > 1 && !in.HasRole(n-1) {
		n--
	}
	return n
}

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

// Codes appends the legacy codes of row i of a batch, as columns.Table.CodesOf does.
func (in *Input) Codes(dst []columns.Code, cells Cells, i int) []columns.Code {
	return in.CodesOf(dst, func(c int) []byte { return cells.Cell(c, i) })
}
