package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"
	"unsafe"

	"github.com/linkforge/bulk/pipeline/columnar"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/outcome"
)

// A MappingRow is a row that was read back.
type MappingRow struct {
	Row
	Number   int64  // in the mapping, from 1
	ShortURL []byte // nil: null, or blank in CSV
}

// A MappingBlock holds consecutive rows of a mapping. It belongs to the caller,
// who passes it to MappingReader.Read again and again.
type MappingBlock struct {
	table
	First int64 // number of its first row, from 1
	// Faults are the cells that no run writes, in the order of their rows. Row gives them
	// meaningless values.
	Faults []*CellError

	numbers []int64 // of rows that were appended; empty: First and those after it
}

// Reset empties a block for rows with so many carried cells.
func (b *MappingBlock) Reset(carried int) {
	if len(b.cells) != ownColumns+carried {
		b.table = newTable(carried)
	}
	b.table.reset()
	b.Faults, b.numbers = b.Faults[:0], b.numbers[:0]
}

// Append adds a row, whose cells it copies and whose number it keeps. Either all
// rows of a block are appended or none.
func (b *MappingBlock) Append(r *MappingRow) {
	c := b.cells
	c[sourceColumn].add(bytesOf(r.Source))
	for i, cell := range [...][]byte{r.Workspace, r.Original, r.Canonical, r.Code, r.ShortURL} {
		c[workspaceColumn+i].addNullable(cell)
	}
	for i, cell := range r.Carried {
		c[ownColumns+i].addNullable(cell)
	}
	b.row = append(b.row, r.Row.Row)
	b.outcome = append(b.outcome, byte(r.Outcome))
	b.salt = append(b.salt, int32(r.Salt))
	b.numbers = append(b.numbers, r.Number)
}

// Len returns the number of rows.
func (b *MappingBlock) Len() int { return b.len() }

// Row fills in row i of the block, from 0. Its strings and slices lie in the
// block and are valid until the block is read into again. Null is nil, but CSV
// has no null: there it is empty.
func (b *MappingBlock) Row(i int, r *MappingRow) {
	source := b.cells[sourceColumn].cell(i)
	r.Number = b.First + int64(i)
	if len(b.numbers) > 0 {
		r.Number = b.numbers[i]
	}
	r.Source, r.Row.Row = unsafe.String(unsafe.SliceData(source), len(source)), b.row[i]
	r.Workspace = b.cells[workspaceColumn].cellOrNil(i)
	r.Original = b.cells[originalColumn].cellOrNil(i)
	r.Canonical = b.cells[canonicalColumn].cellOrNil(i)
	r.Code = b.cells[codeColumn].cellOrNil(i)
	r.Outcome, r.Salt = outcome.Outcome(b.outcome[i]), int(b.salt[i])
	if r.ShortURL = b.cells[shortURLColumn].cellOrNil(i); len(r.ShortURL) == 0 {
		r.ShortURL = nil
	}
	r.Carried = r.Carried[:0]
	for c := range b.cells[ownColumns:] {
		r.Carried = append(r.Carried, b.cells[ownColumns+c].cellOrNil(i))
	}
}

// The size of a block that Read fills, in rows and, past the row with which it
// is reached, in bytes.
const (
	readRows  = 1 << 12
	readBytes = 4 << 20
)

// A MappingReader reads a mapping of any format back, in order and in bounded
// memory: a block, and what the format needs beside it (CSV: 1 MiB or four times
// a longer record; Arrow: one batch; Parquet: one page a column). Cells are as they
// stand in the file, those that were defused too (see Undefuse). It is for one
// goroutine.
type MappingReader struct {
	Format  Format
	Carried []string // names of the carried columns, as they stand in the file

	rows  rowReader
	name  string
	file  *os.File
	read  int64
	block MappingBlock // of Next
	at    int
	row   MappingRow
}

// rowReader reads the rows of one format.
type rowReader interface {
	// readInto adds up to readRows rows to the block, which is empty; the error is
	// io.EOF if there are none.
	readInto(b *MappingBlock) error
}

// OpenMapping opens a mapping, whose format shows in its first bytes. The error is a
// *DamageError if the file is no mapping, but not, here or later, if the system cannot
// read it. The caller closes the reader.
func OpenMapping(path string) (_ *MappingReader, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	m := &MappingReader{Format: CSV, name: path, file: f}
	magic := make([]byte, 6)
	if _, err := f.ReadAt(magic, 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read %s: %w", path, fsys.Cause(err))
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	err = m.safely(func() (err error) {
		switch {
		case bytes.HasPrefix(magic, []byte("PAR1")):
			m.Format = Parquet
			m.rows, m.Carried, err = openParquetRows(f, info.Size())
		case bytes.HasPrefix(magic, []byte("ARROW1")):
			m.Format = Arrow
			m.rows, m.Carried, err = openArrowRows(f, info.Size())
		default:
			var c *csvReader
			if c, err = newCSVReader(f, path, MappingColumns()); err == nil {
				m.rows, m.Carried = csvRows{c}, c.after
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Read fills a block with the next rows. At the end the error is io.EOF and the
// block is empty; any other error, such as a *DamageError, ends the reading, and
// of CSV the block then holds the rows before.
func (m *MappingReader) Read(b *MappingBlock) error {
	b.Reset(len(m.Carried))
	b.First = m.read + 1
	err := m.safely(func() error { return m.rows.readInto(b) })
	if err != nil && m.Format != CSV {
		b.table.reset() // its columns may have different lengths
		b.Faults = b.Faults[:0]
	}
	for _, fault := range b.Faults {
		fault.File = m.name
	}
	m.read += int64(b.len())
	return err
}

// Next returns the next row, valid until the one after. At the end the error is
// io.EOF. After a *CellError it can be called again. Of a damaged CSV the rows of
// the block in which it ends, which Read has, are lost.
func (m *MappingReader) Next() (*MappingRow, error) {
	if m.at == m.block.len() {
		m.at = 0
		if err := m.Read(&m.block); err != nil {
			return nil, err
		}
	}
	m.block.Row(m.at, &m.row)
	m.at++
	if faults := m.block.Faults; len(faults) > 0 && faults[0].Row == m.row.Number {
		fault := faults[0]
		for len(faults) > 0 && faults[0].Row == fault.Row {
			faults = faults[1:]
		}
		m.block.Faults = faults
		return nil, fault
	}
	return &m.row, nil
}

// Text returns how the mapping writes a name of an input or a column that may
// not be UTF-8.
func (m *MappingReader) Text(name string) string {
	if m.Format == CSV {
		return name
	}
	return validUTF8(name)
}

// Close closes the file.
func (m *MappingReader) Close() error { return m.file.Close() }

// safely makes a *DamageError, which names the file, of whatever goes wrong but for errors
// of the system. That includes panics: the decoders of Parquet and Arrow panic on some
// damage.
func (m *MappingReader) safely(f func() error) (err error) {
	row := m.read + 1
	if m.rows == nil { // it is being opened
		row = 0
	}
	defer func() {
		if p := recover(); p != nil {
			err = &DamageError{m.name, row, fmt.Errorf("%s is damaged: %w", m.Format, columnar.Damage(p))}
		}
	}()
	err = f()
	_, damage := errors.AsType[*DamageError](err)
	_, system := errors.AsType[syscall.Errno](err)
	if err != nil && err != io.EOF && !damage && !system {
		err = &DamageError{m.name, row, err}
	}
	return err
}

// addRow adds the number of a row. A null, which may have any value, is a fault.
func (b *MappingBlock) addRow(row int64, valid bool) {
	if !valid {
		b.fault(len(b.row), "row", []byte("null"))
	}
	b.row = append(b.row, row)
}

// addOutcome adds what a cell of the column outcome says, and returns its size.
func (b *MappingBlock) addOutcome(cell []byte) int {
	for o := outcome.Created; o <= outcome.Duplicate; o++ {
		if string(cell) == o.String() {
			b.outcome = append(b.outcome, byte(o))
			return len(cell)
		}
	}
	b.fault(len(b.outcome), "outcome", cell)
	b.outcome = append(b.outcome, byte(outcome.Created))
	return len(cell)
}

// addSalt adds a salt, or a null.
func (b *MappingBlock) addSalt(salt int32, valid bool) {
	if !valid {
		salt = -1
	} else if salt < 0 {
		b.fault(len(b.salt), "salt", fmt.Append(nil, salt))
	}
	b.salt = append(b.salt, salt)
}

// addCell adds a cell of a column, by its number, and returns its size. Where the
// column has no nulls a null is a fault.
func (b *MappingBlock) addCell(c int, cell []byte, valid bool) int {
	column := &b.cells[c]
	switch {
	case nullable(c):
		if !valid {
			cell = nil
		} else if cell == nil {
			cell = []byte{}
		}
		column.addNullable(cell)
	case !valid:
		b.fault(len(column.ends)-1, MappingColumns()[c], []byte("null"))
		cell = nil
		fallthrough
	default:
		column.add(cell)
	}
	return len(cell)
}

func (b *MappingBlock) fault(i int, column string, cell []byte) {
	b.Faults = append(b.Faults, &CellError{Row: b.First + int64(i), Column: column, Found: string(cell)})
}

// csvRows is the rowReader of CSV.
type csvRows struct{ *csvReader }

func (c csvRows) readInto(b *MappingBlock) error {
	for size := 0; b.len() < readRows && size < readBytes; size += c.appendTo(b) {
		if err := c.next(); err != nil {
			if err == io.EOF && b.len() > 0 {
				return nil
			}
			return err
		}
	}
	return nil
}

// appendTo adds the record in hand and returns its size.
func (c csvRows) appendTo(b *MappingBlock) (size int) {
	f, i := c.fields, b.len()
	b.cells[sourceColumn].add(f[sourceColumn])
	row, ok := parseNumber(f[rowColumn])
	if !ok {
		b.fault(i, "row", f[rowColumn])
	}
	b.row = append(b.row, row)
	for c, cell := range f[workspaceColumn:outcomeColumn] {
		b.cells[workspaceColumn+c].add(cell)
	}
	b.addOutcome(f[outcomeColumn])
	salt, ok := int64(-1), true
	if len(f[saltColumn]) > 0 {
		salt, ok = parseNumber(f[saltColumn])
	}
	if !ok || salt > math.MaxInt32 {
		b.fault(i, "salt", f[saltColumn])
		salt = 0
	}
	b.salt = append(b.salt, int32(salt))
	for c, cell := range f[ownColumns:] {
		b.cells[ownColumns+c].add(cell)
	}
	for _, cell := range f {
		size += len(cell) + 1
	}
	return size
}
