package report

import (
	"fmt"
	"slices"

	"github.com/linkforge/bulk/pipeline/shorturl"
)

// cells is a column of byte strings, or of numbers.
type cells struct {
	data  []byte
	ends  []int32 // cell i is data[ends[i]:ends[i+1]]
	valid []byte  // 0 for a null, else 1; empty if the column has no nulls by its type

	numbers []int64 // 0 is null in a column that may have nulls
	salts   []int32 // -1: null
}

func (c *cells) add(cell []byte) {
	c.data = append(c.data, cell...)
	c.ends = append(c.ends, int32(len(c.data)))
}

// addNullable adds a cell that is null if it is nil.
func (c *cells) addNullable(cell []byte) {
	var valid byte
	if cell != nil {
		valid = 1
	}
	c.valid = append(c.valid, valid)
	c.add(cell)
}

func (c *cells) cell(i int) []byte { return c.data[c.ends[i]:c.ends[i+1]] }

// appendFrom appends the cells [from, to) of another column.
func (c *cells) appendFrom(o *cells, from, to int) {
	shift := int32(len(c.data)) - o.ends[from]
	c.data = append(c.data, o.data[o.ends[from]:o.ends[to]]...)
	for _, end := range o.ends[from+1 : to+1] {
		c.ends = append(c.ends, end+shift)
	}
	if len(o.valid) > 0 {
		c.valid = append(c.valid, o.valid[from:to]...)
	}
}

func (c *cells) reset() {
	c.data, c.valid, c.numbers, c.salts = c.data[:0], c.valid[:0], c.numbers[:0], c.salts[:0]
	c.ends = append(c.ends[:0], 0)
}

// A table holds rows of the mapping, column by column.
type table struct {
	columns []*Column
	cells   []cells // by number of the column; those of outcome stay empty
	outcome []byte
	bytes   []int64 // of all texts of the rows before row i; one more than there are rows
}

func newTable(columns []*Column) table {
	t := table{columns: columns, cells: make([]cells, len(columns))}
	t.reset()
	return t
}

// validSalt returns 0 for the salt that is null, else 1.
func validSalt(salt int32) byte { return byte(^uint32(salt) >> 31) }

// validNumber returns 0 for the number that is null, else 1.
func validNumber(number int64) byte {
	if number == 0 {
		return 0
	}
	return 1
}

func (t *table) len() int { return len(t.outcome) }

// appendColumn appends a column, by its number, of the rows [from, to) of another table.
func (t *table) appendColumn(number int, o *table, from, to int) {
	c, other := &t.cells[number], &o.cells[number]
	switch t.columns[number].cellType {
	case numberCells:
		c.numbers = append(c.numbers, other.numbers[from:to]...)
	case outcomeCells:
		t.outcome = append(t.outcome, o.outcome[from:to]...)
	case saltCells:
		c.salts = append(c.salts, other.salts[from:to]...)
	default:
		c.appendFrom(other, from, to)
	}
}

func (t *table) reset() {
	for i := range t.cells {
		t.cells[i].reset()
	}
	t.outcome, t.bytes = t.outcome[:0], append(t.bytes[:0], 0)
}

// A columnBlock gathers the rows of one goroutine.
type columnBlock struct {
	table
	own    int // columns before the carried ones
	base   *shorturl.Base
	source string // of the row before
	text   []byte // the same as UTF-8
}

func (b *columnBlock) Append(r *Row) {
	if r.Source != b.source || b.text == nil {
		b.source, b.text = r.Source, []byte(validUTF8(r.Source))
	}
	c := b.cells
	c[sourceColumn].add(b.text)
	c[workspaceColumn].add(r.Workspace)
	c[originalColumn].addNullable(r.Original)
	c[canonicalColumn].add(r.Canonical)
	c[codeColumn].add(r.Code)
	if short := &c[shortURLColumn]; b.base == nil {
		short.addNullable(nil)
	} else {
		short.data = b.base.Append(short.data, r.Workspace, r.Domain, r.Code)
		short.addNullable([]byte{}) // its end
	}
	for i, added := range b.columns[plainColumns:b.own] {
		c[plainColumns+i].addOwn(added, r)
	}
	for i := range c[b.own:] {
		c[b.own+i].addNullable(r.Carried[i])
	}
	c[rowColumn].numbers = append(c[rowColumn].numbers, r.Row)
	b.outcome = append(b.outcome, byte(r.Outcome))
	c[saltColumn].salts = append(c[saltColumn].salts, int32(r.Salt))
	size := 0
	for i := range c {
		size += len(c[i].data)
	}
	b.bytes = append(b.bytes, int64(size))
}

// addOwn adds the cell of a column that not all mappings have.
func (c *cells) addOwn(column *Column, r *Row) {
	switch {
	case column.Number != nil:
		c.numbers = append(c.numbers, *column.Number(r))
	case column.Salt != nil:
		c.salts = append(c.salts, int32(*column.Salt(r)))
	case column.nullable:
		c.addNullable(column.text(r))
	default:
		c.add(column.text(r))
	}
}

// check finds a column that is too large.
func (b *columnBlock) check() error {
	if slices.ContainsFunc(b.cells, func(c cells) bool { return len(c.data) > maxCells }) {
		return fmt.Errorf("a column of a block of %d rows holds more than %d bytes", b.len(), maxCells)
	}
	return nil
}
