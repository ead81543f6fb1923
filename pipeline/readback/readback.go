// Package readback reads what package report wrote: a report is an input of package
// source in a fixed dialect.
//
// Each reader reads in order, once, and is for one goroutine. It holds what source holds of
// an input that one worker reads, in batches of at most 4,096 rows. An error of its methods
// is
//
//   - io.EOF at the end,
//   - a *[CellError] for a row that has a cell no run writes: reading can go on,
//   - a *[DamageError] for a file that is no report, or cannot be read on,
//   - an error of the system that names the file, or the cause of the context.
package readback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"syscall"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
)

const (
	batchRows = 1 << 12
	// mostField is the most bytes of a cell: a quote that somebody put in would otherwise
	// make a cell of the rest of the file.
	mostField = 256 << 20
)

// Options say how a report is read. The zero value is right for one that was not made safe
// for spreadsheets.
type Options struct {
	// ExcelSafe undoes report.Defuse in a mapping in CSV, and in collisions.
	ExcelSafe bool
	// Unsafe is called for each cell that is a formula in spite of ExcelSafe, with its row
	// from 1, or 0 for the name of a column, before that can be read; nil: they do not
	// matter.
	Unsafe func(row int64, column, cell string)
	FS     fsys.FS // of the file; nil: that of the system
}

// A CellError is a cell that no run writes, such as a row number that is no number.
type CellError struct {
	File   string // as it was named
	Row    int64  // of the file, from 1, the header not counted
	Column string
	Found  string
}

func (e *CellError) Error() string {
	return fmt.Sprintf("%s: row %d: column %s: %.100q is not a valid value", e.File, e.Row, e.Column, e.Found)
}

// A DamageError is a file that is no report, or cannot be read on.
type DamageError struct {
	File string // as it was named
	Row  int64  // the first that could not be read, from 1; 0: the header, or the file as a whole
	Err  error
}

func (e *DamageError) Error() string {
	if e.Row == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s: row %d: %v", e.File, e.Row, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// A file is a report that is being read, batch by batch.
type file struct {
	name    string
	in      *source.Input
	columns []string // all names, without what ExcelSafe undoes
	opts    Options
	pull    func() (*source.Batch, error, bool)
	stop    func()
	rows    int64 // of all batches so far
	err     error // what ended the reading
	batch   Block // of next
	at      int   // the row of it that is next
}

// open opens a report whose first columns are to be own.
func open(ctx context.Context, path string, own []string, opts Options) (*file, error) {
	in, err := source.OpenReport(ctx, path, source.Options{BatchRows: batchRows, MaxField: mostField, FS: opts.FS})
	if err != nil {
		return nil, damage(path, err)
	}
	f := &file{name: path, in: in, columns: slices.Clone(in.Header()), opts: opts}
	f.opts.ExcelSafe = opts.ExcelSafe && in.Format == string(report.CSV)
	for i, name := range own {
		if i >= len(f.columns) || f.columns[i] != name {
			err = fmt.Errorf("its column %d is not named %s", i+1, name)
			break
		}
	}
	if len(in.Skipped) > 0 {
		err = fmt.Errorf("its column %s may have several values a row", in.Skipped[0])
	}
	if err != nil {
		return nil, errors.Join(&DamageError{File: path, Err: err}, in.Close())
	}
	for i, name := range f.columns {
		f.unsafe(0, i, []byte(name))
		f.columns[i] = string(f.undefuse([]byte(name)))
	}
	f.pull, f.stop = iter.Pull2(func(yield func(*source.Batch, error) bool) {
		err := in.Read(ctx, 1, func(_ int, b *source.Batch) error {
			if !yield(b, nil) {
				return errClosed
			}
			return nil
		})
		if err != nil && err != errClosed {
			yield(nil, damage(path, err))
		}
	})
	return f, nil
}

// errClosed ends a source that is not read to its end.
var errClosed = errors.New("the report was closed")

// damage makes a *DamageError of an error of source, unless the system or the context is
// to blame.
func damage(name string, err error) error {
	if usage, ok := errors.AsType[*source.UsageError](err); ok {
		return &DamageError{File: name, Err: errors.New(usage.Msg)}
	}
	read, ok := errors.AsType[*source.ReadError](err)
	if _, system := errors.AsType[syscall.Errno](err); system || !ok {
		return err
	}
	return &DamageError{name, read.After + 1, read.Err}
}

// Close closes the file. The reader cannot be used afterwards.
func (f *file) Close() error {
	f.stop()
	return f.in.Close()
}

// load makes b the next batch, which is valid until the one after.
func (f *file) load(b *Block) error {
	if f.err != nil {
		return f.err
	}
	batch, err, ok := f.pull()
	if !ok {
		err = io.EOF
	}
	if f.err = err; err != nil {
		return err
	}
	*b = Block{file: f, first: f.rows + 1, rows: len(batch.Rows), columns: b.columns[:0], memory: b.memory}
	if len(batch.Errors) > 0 {
		bad := &batch.Errors[0]
		f.err = &DamageError{f.name, bad.Row, errors.New(bad.Detail)}
		if b.rows = int(bad.Row - b.first); b.rows == 0 {
			return f.err
		}
	}
	f.rows += int64(b.rows)
	for _, column := range batch.Record.Columns() {
		b.columns = append(b.columns, column.(*array.Binary))
	}
	for i := 0; f.opts.Unsafe != nil && i < b.rows; i++ {
		for c := range b.columns {
			f.unsafe(b.first+int64(i), c, b.cell(i, c))
		}
	}
	return nil
}

// next moves to the next row and returns its index in f.batch.
func (f *file) next() (int, error) {
	if f.at == f.batch.rows {
		f.at = 0
		if err := f.load(&f.batch); err != nil {
			f.batch.rows = 0
			return 0, err
		}
	}
	f.at++
	return f.at - 1, nil
}

// rowsOf yields what next returns, until the end, an error that ends the reading, or the
// end of the loop.
func rowsOf[T any](next func() (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			row, err := next()
			if _, cell := err.(*CellError); err == io.EOF || !yield(row, err) || err != nil && !cell {
				return
			}
		}
	}
}

// unsafe calls Options.Unsafe for a cell of column c, if it must be.
func (f *file) unsafe(row int64, c int, cell []byte) {
	if f.opts.ExcelSafe && f.opts.Unsafe != nil && report.IsFormula(cell) {
		f.opts.Unsafe(row, f.columns[c], string(cell))
	}
}

// undefuse undoes report.Defuse in a cell, if that was done to the report.
func (f *file) undefuse(cell []byte) []byte {
	if !f.opts.ExcelSafe {
		return cell
	}
	return report.Undefuse(cell)
}

// A Block holds consecutive rows of a report.
type Block struct {
	file    *file
	first   int64 // number of its first row
	rows    int
	columns []*array.Binary
	memory  [][]byte // of columns that were copied
}

// copy gives the block memory of its own.
func (b *Block) copy() {
	for len(b.memory) < 3*len(b.columns) {
		b.memory = append(b.memory, nil)
	}
	for c, column := range b.columns {
		data := column.Data()
		buffers := make([]*memory.Buffer, 3) // of which nulls, the ends of cells, and cells
		for i, buffer := range data.Buffers() {
			if buffer != nil {
				m := &b.memory[3*c+i]
				*m = append((*m)[:0], buffer.Bytes()...)
				buffers[i] = memory.NewBufferBytes(*m)
			}
		}
		b.columns[c] = array.NewBinaryData(array.NewData(arrow.BinaryTypes.Binary, data.Len(), buffers, nil, data.NullN(), data.Offset()))
	}
}

// Len returns the number of rows.
func (b *Block) Len() int { return b.rows }

// cell returns a cell, which is nil if it is null.
func (b *Block) cell(i, c int) []byte {
	column := b.columns[c]
	if column.IsNull(i) {
		return nil
	}
	if cell := column.Value(i); cell != nil {
		return cell[:len(cell):len(cell)]
	}
	return []byte{}
}

// text returns a cell with what ExcelSafe undoes.
func (b *Block) text(i, c int) []byte { return b.file.undefuse(b.cell(i, c)) }

// number reads a cell as report writes numbers: in digits, without leading zeros.
// Nothing at all is blank, if that is negative.
func (b *Block) number(i, c int, blank int64) (int64, error) {
	cell := b.cell(i, c)
	if len(cell) == 0 && blank < 0 {
		return blank, nil
	}
	if len(cell) > 0 && cell[0]-'0' <= 9 && (cell[0] != '0' || len(cell) == 1) {
		if n, err := strconv.ParseInt(string(cell), 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, b.fault(i, c)
}

// fault returns the error of a cell.
func (b *Block) fault(i, c int) *CellError {
	cell := b.cell(i, c)
	if cell == nil {
		cell = []byte("null")
	}
	return &CellError{b.file.name, b.first + int64(i), b.file.columns[c], string(bytes.Clone(cell))}
}
