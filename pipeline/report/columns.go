package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// groupBytes ends a row group or batch that has not reached its number of
	// rows, after the row with which its cells reach this size: that bounds
	// memory, whatever the input carried, and depends on the rows alone.
	groupBytes = 64 << 20
	// maxCells bounds the bytes of one column of a block. With groupBytes it
	// keeps 32-bit offsets and Parquet's pages within their range.
	maxCells = math.MaxInt32 - groupBytes
)

// The columns of a table that hold bytes; the carried ones follow.
const (
	sourceCells = iota
	workspaceCells
	originalCells
	canonicalCells
	codeCells
	shortURLCells
	carriedCells
)

// cells is a column of byte strings.
type cells struct {
	data  []byte
	ends  []int32 // cell i is data[ends[i]:ends[i+1]]
	valid []byte  // 0 for a null, else 1; empty if the column has no nulls by its type
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

// appendFrom appends cells from to to of another column.
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
	c.data, c.valid = c.data[:0], c.valid[:0]
	c.ends = append(c.ends[:0], 0)
}

// A table holds rows of the mapping, column by column.
type table struct {
	cells   []cells
	row     []int64
	outcome []byte
	salt    []int32 // -1: null
	bytes   []int64 // of all cells up to the end of each row
}

func newTable(carried int) table {
	t := table{cells: make([]cells, carriedCells+carried)}
	t.reset()
	return t
}

func (t *table) len() int { return len(t.row) }

func (t *table) appendFrom(o *table, from, to int) {
	shift := t.size() - o.sizeBefore(from)
	for i := range t.cells {
		t.cells[i].appendFrom(&o.cells[i], from, to)
	}
	t.row = append(t.row, o.row[from:to]...)
	t.outcome = append(t.outcome, o.outcome[from:to]...)
	t.salt = append(t.salt, o.salt[from:to]...)
	for _, n := range o.bytes[from:to] {
		t.bytes = append(t.bytes, n+shift)
	}
}

func (t *table) size() int64 { return t.sizeBefore(t.len()) }

func (t *table) sizeBefore(row int) int64 {
	if row == 0 {
		return 0
	}
	return t.bytes[row-1]
}

func (t *table) reset() {
	for i := range t.cells {
		t.cells[i].reset()
	}
	t.row, t.outcome, t.salt, t.bytes = t.row[:0], t.outcome[:0], t.salt[:0], t.bytes[:0]
}

// A columnBlock gathers the rows of one goroutine.
type columnBlock struct {
	table
	base   []byte
	source string // of the row before
	text   []byte // the same as UTF-8
	err    error
}

func (b *columnBlock) Append(r *Row) {
	if r.Source != b.source || b.text == nil {
		b.source, b.text = r.Source, []byte(validUTF8(r.Source))
	}
	c := b.cells
	c[sourceCells].add(b.text)
	c[workspaceCells].add(r.Workspace)
	c[originalCells].addNullable(r.Original)
	c[canonicalCells].add(r.Canonical)
	c[codeCells].add(r.Code)
	if short := &c[shortURLCells]; b.base == nil {
		short.addNullable(nil)
	} else {
		short.data = append(short.data, b.base...)
		short.addNullable(r.Code)
	}
	for i := range len(c) - carriedCells {
		c[carriedCells+i].addNullable(r.Carried[i])
	}
	b.row = append(b.row, r.Row)
	b.outcome = append(b.outcome, byte(r.Outcome))
	b.salt = append(b.salt, int32(r.Salt))
	b.bytes = append(b.bytes, b.check())
}

// check returns the bytes of all cells, and notes a column that is too large.
func (b *columnBlock) check() (n int64) {
	for i := range b.cells {
		size := len(b.cells[i].data)
		if size > maxCells && b.err == nil {
			b.err = fmt.Errorf("a column of a block of %d rows holds more than %d bytes", b.len(), maxCells)
		}
		n += int64(size)
	}
	return n
}

func (b *columnBlock) Size() int {
	n := 8*cap(b.row) + cap(b.outcome) + 4*cap(b.salt) + 8*cap(b.bytes)
	for _, c := range b.cells {
		n += cap(c.data) + 4*cap(c.ends) + cap(c.valid)
	}
	return n
}

// A columnMapping regroups the rows of blocks into groups of a constant size
// and has each encoded.
type columnMapping struct {
	encoder groupEncoder
	rows    int // of a group
	group   table
	blocks  sync.Pool
	err     error
}

// A groupEncoder writes groups of rows in a columnar format.
type groupEncoder interface {
	encode(*table) error // of at least one row; the table is the caller's again
	close() error
}

func newColumnMapping(e groupEncoder, rows int, opts MappingOptions) *columnMapping {
	m := &columnMapping{encoder: e, rows: rows, group: newTable(len(opts.Carried))}
	m.blocks.New = func() any {
		return &columnBlock{table: newTable(len(opts.Carried)), base: opts.base()}
	}
	return m
}

func (m *columnMapping) Block() Block { return m.blocks.Get().(*columnBlock) }

func (m *columnMapping) Write(b Block) error {
	block := b.(*columnBlock)
	m.err = errors.Join(m.err, block.err)
	for from := 0; from < block.len() && m.err == nil; {
		to := m.fits(&block.table, from)
		m.group.appendFrom(&block.table, from, to)
		if from = to; m.full() {
			m.flush()
		}
	}
	block.reset()
	m.blocks.Put(block)
	return m.err
}

// fits returns the end of the rows of t from from on that the group takes.
func (m *columnMapping) fits(t *table, from int) int {
	most := min(t.len()-from, m.rows-m.group.len())
	limit := groupBytes - m.group.size() + t.sizeBefore(from)
	last := sort.Search(most, func(i int) bool { return t.bytes[from+i] >= limit })
	return from + min(most, last+1)
}

func (m *columnMapping) full() bool {
	return m.group.len() == m.rows || m.group.size() >= groupBytes
}

func (m *columnMapping) flush() {
	if m.group.len() > 0 && m.err == nil {
		m.err = m.encoder.encode(&m.group)
	}
	m.group.reset()
}

func (m *columnMapping) Close() error {
	if m.flush(); m.err == nil {
		m.err = m.encoder.close()
	}
	return m.err
}

// columnNames are the names of all columns as UTF-8, which Parquet and Arrow
// demand, and unique.
func columnNames(opts MappingOptions) []string {
	names := MappingColumns()
	carried := make([]string, len(opts.Carried))
	for i, name := range opts.Carried {
		carried[i] = validUTF8(name)
	}
	return slices.Concat(names, CarriedNames(names, carried))
}

// validUTF8 writes each byte that is not UTF-8 as %XX.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if _, n := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", s[i])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
