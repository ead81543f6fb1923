// Package readback reads what package report wrote: a report is an input of package
// source in a fixed dialect.
//
// Each reader reads in order, once, and is for one goroutine. It holds what source holds of
// an input that one worker reads, in batches of at most 1,024 rows. An error of its methods
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
	"io/fs"
	"iter"
	"slices"
	"syscall"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
)

const (
	batchRows = 1 << 10
	// mostField is the most bytes of a cell: a quote that somebody put in would otherwise
	// make a cell of the rest of the file.
	mostField = 256 << 20
)

// Options say how a report is read. The zero value is right for one that was not made safe
// for spreadsheets.
type Options struct {
	// ExcelSafe undoes report.Defuse in a mapping in CSV, and in collisions.
	ExcelSafe bool
	// LinksOnly says that original_url, short_url, salt, carried cells and, but for kind, what
	// Columns add to a mapping are not needed: in Parquet and Arrow they are null, whatever the
	// file has there.
	LinksOnly bool
	// Unsafe is called for each cell that is a formula in spite of ExcelSafe, with its row
	// from 1, or 0 for the name of a column, before that can be read; nil: they do not
	// matter.
	Unsafe func(row int64, column, cell string)
	// Columns are those of a mapping, whose manifest tells them; of collisions only Parts counts.
	// Their names do not tell: a column
	// kind or expires_at of a plain run is a carried one.
	report.Columns
	FS fsys.FS // of the file; nil: that of the system
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
	added   []*report.Column // of a mapping, beside the plain ones
	pull    func() (*source.Batch, error, bool)
	stop    func()
	rows    int64 // of all batches so far
	err     error // what ended the reading
	batch   Block // of next
	at      int   // the row of it that is next
}

// open opens a report of a kind, whose first columns are to be own.
func open(ctx context.Context, path, kind string, own []string, opts Options) (*file, error) {
	in, err := source.OpenReport(ctx, path, source.Options{BatchRows: batchRows, MaxField: mostField, FS: opts.FS})
	if err != nil {
		return nil, damage(path, err)
	}
	f := &file{name: path, in: in, columns: slices.Clone(in.Header()), opts: opts}
	if f.opts.ExcelSafe = opts.ExcelSafe && in.Format == string(report.CSV); !f.opts.ExcelSafe {
		f.opts.Unsafe = nil
	}
	for i, name := range own {
		if i >= len(f.columns) || f.columns[i] != name {
			err = fmt.Errorf("not a %s written by bulk: its column %d is not named %s", kind, i+1, name)
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
		if f.opts.ExcelSafe {
			f.columns[i] = string(report.Undefuse([]byte(name)))
		}
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
	if errors.Is(err, fs.ErrNotExist) { // of a report, that is no wrong usage
		return fmt.Errorf("%s: %w", name, syscall.ENOENT)
	}
	if usage, ok := errors.AsType[*columns.UsageError](err); ok {
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

// load makes b the next batch, which is valid until b is loaded again; if there is none, b
// is empty.
func (f *file) load(b *Block) error {
	b.rows = 0
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
	*b = Block{f, f.rows + 1, len(batch.Rows), b.columns[:0], b.memory}
	batch.Keep(&b.memory)
	if len(batch.Errors) > 0 {
		bad := &batch.Errors[0]
		f.err = &DamageError{f.name, bad.Row, errors.New(bad.Detail)}
		if b.rows = int(bad.Row - b.first); b.rows == 0 {
			return f.err
		}
	}
	f.rows += int64(b.rows)
	for _, column := range batch.Record.Columns() {
		b.columns = append(b.columns, columnOf(column))
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
			if err == io.EOF || !yield(row, err) {
				return
			}
			if _, cell := err.(*CellError); err != nil && !cell {
				return
			}
		}
	}
}

// unsafe calls Options.Unsafe for a cell of column c, if it must be.
func (f *file) unsafe(row int64, c int, cell []byte) {
	if f.opts.Unsafe != nil && report.IsFormula(cell) {
		f.opts.Unsafe(row, f.columns[c], string(cell))
	}
}

// A Block holds consecutive rows of a report.
type Block struct {
	file    *file
	first   int64 // number of its first row
	rows    int
	columns []column
	memory  source.Memory // that columns lie in
}

// A column is one of a batch, in Arrow's layout.
type column struct {
	data  []byte
	ends  []int32 // 0, then the end of each cell in data
	valid []byte  // a bit for each cell that is not null; empty: none is
}

// columnOf returns a column of a batch, which begins with its array as a single worker has
// read it.
func columnOf(a arrow.Array) column {
	b := a.Data().Buffers()
	c := column{data: b[2].Bytes(), ends: arrow.Int32Traits.CastFromBytes(b[1].Bytes())}
	if c.data == nil {
		c.data = []byte{}
	}
	if b[0] != nil {
		c.valid = b[0].Bytes()
	}
	return c
}

// Len returns the number of rows.
func (b *Block) Len() int { return b.rows }

// cell returns a cell, which is nil if it is null.
func (b *Block) cell(i, c int) []byte {
	column := &b.columns[c]
	if len(column.valid) > 0 && column.valid[i/8]>>(i%8)&1 == 0 {
		return nil
	}
	from, to := column.ends[i], column.ends[i+1]
	return column.data[from:to:to]
}

// text returns a cell with what ExcelSafe undoes.
func (b *Block) text(i, c int) []byte {
	cell := b.cell(i, c)
	if b.file.opts.ExcelSafe {
		cell = report.Undefuse(cell)
	}
	return cell
}

// number reads a cell as report writes numbers: in digits, without leading zeros.
// Nothing at all is blank, if that is negative.
func (b *Block) number(i, c int, blank int64) (int64, error) {
	cell := b.cell(i, c)
	if len(cell) == 0 && blank < 0 {
		return blank, nil
	}
	n, ok := int64(0), len(cell) == 1 || len(cell) > 1 && len(cell) < 20 && cell[0] != '0'
	for _, digit := range cell {
		digit -= '0'
		n, ok = 10*n+int64(digit), ok && digit <= 9
	}
	if !ok || n < 0 { // 19 digits may be too many
		return 0, b.fault(i, c)
	}
	return n, nil
}

// fault returns the error of a cell.
func (b *Block) fault(i, c int) *CellError {
	cell := b.cell(i, c)
	if cell == nil {
		cell = []byte("null")
	}
	return &CellError{b.file.name, b.first + int64(i), b.file.columns[c], string(bytes.Clone(cell))}
}
