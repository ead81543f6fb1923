package source

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// A batch ends with the record with which it has batchBytes bytes of cells or
// Options.BatchRows records.
const batchBytes = 1 << 20

// A column is one column of a batch under construction, in Arrow's layout.
type column struct {
	data  []byte
	ends  []int32 // 0, then the end of each cell in data
	nulls []int32 // rows
}

func (c *column) append(cell []byte) {
	c.data = append(c.data, cell...)
	c.ends = append(c.ends, int32(len(c.data)))
}

// A batcher collects records into batches for one worker and hands them to emit. It reuses its
// memory for the next batch.
type batcher struct {
	*reading
	worker int

	base       int64 // records of the input before the batch
	n          int64 // records of the batch
	size       int   // bytes of cells and raw lines
	cols       []column
	rows, offs []int64 // rows count from the batch's first record
	errs       []RowError
	raw        []byte  // of errs
	blanks     []int64 // offsets of the records that are no rows (see blank.go)
	skipped    int     // first rows of the batch that are not handed on
}

// newBatcher makes a batcher for a worker. A worker may have several.
func newBatcher(r *reading, worker int) *batcher {
	b := &batcher{reading: r, worker: worker, cols: make([]column, len(r.in.Columns))}
	b.reset()
	return b
}

// schema is that of Batch.Record.
func (in *Input) schema() *arrow.Schema {
	fields := make([]arrow.Field, len(in.Columns))
	for i, name := range in.Columns {
		fields[i] = arrow.Field{Name: name, Type: arrow.BinaryTypes.Binary, Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

// reset forgets the records of the batch.
func (b *batcher) reset() {
	for i := range b.cols {
		c := &b.cols[i]
		if cap(c.data) > 4*batchBytes {
			c.data = nil // do not keep the room of one large cell
		}
		c.data, c.ends, c.nulls = c.data[:0], append(c.ends[:0], 0), c.nulls[:0]
	}
	if cap(b.raw) > 4*batchBytes {
		b.raw = nil
	}
	b.n, b.size, b.skipped = 0, 0, 0
	b.rows, b.offs, b.errs, b.raw, b.blanks = b.rows[:0], b.offs[:0], b.errs[:0], b.raw[:0], b.blanks[:0]
}

// full says that the batch must be flushed before it takes another record.
func (b *batcher) full() bool {
	return b.n >= int64(b.in.opts.BatchRows) || b.size >= batchBytes || b.limited()
}

// limited says that Input.Limit allows no further record.
func (b *batcher) limited() bool { return b.in.Limit > 0 && b.base+b.n >= b.in.Limit }

// row completes a record whose cells, of size bytes, are in the columns.
func (b *batcher) row(offset int64, size int) {
	b.n++
	b.size += size
	b.rows = append(b.rows, b.n)
	b.offs = append(b.offs, offset)
}

// append adds a record.
func (b *batcher) append(offset int64, cells [][]byte) {
	size := 0
	for i, cell := range cells {
		b.cols[i].append(cell)
		size += len(cell)
	}
	b.row(offset, size)
}

// undo removes the cells of a record that was not completed.
func (b *batcher) undo() {
	n := len(b.rows) + 1
	for i := range b.cols {
		c := &b.cols[i]
		c.ends = c.ends[:min(n, len(c.ends))]
		c.data = c.data[:c.ends[len(c.ends)-1]]
		if last := len(c.nulls) - 1; last >= 0 && int(c.nulls[last]) == n-1 {
			c.nulls = c.nulls[:last]
		}
	}
}

// blank completes a blank record, whose cells are dropped.
func (b *batcher) blank(offset int64) {
	b.undo()
	b.n++
	b.blanks = append(b.blanks, offset)
}

// null appends a null to column i.
func (b *batcher) null(i int) {
	c := &b.cols[i]
	c.nulls = append(c.nulls, int32(len(c.ends)-1))
	c.append(nil)
}

// bad completes a record that could not be split, or has only some cells; nil: none.
func (b *batcher) bad(offset int64, f *fault, raw []byte, cells [][]byte) {
	b.n++
	b.size += len(raw)
	start := len(b.raw)
	b.raw = append(b.raw, raw...)
	detail := f.detail
	if f.reason == MalformedRow && b.in.others && !strings.HasSuffix(detail, fillCells) {
		detail += otherColumns
	}
	e := RowError{b.n, offset, f.reason, detail, b.raw[start:len(b.raw):len(b.raw)], nil}
	for _, cell := range cells {
		start = len(b.raw)
		b.raw = append(b.raw, cell...)
		e.Cells = append(e.Cells, b.raw[start:len(b.raw):len(b.raw)])
	}
	b.errs = append(b.errs, e)
}

// dropBefore drops the records before the one that starts at offset. It returns false if no
// record starts there.
func (b *batcher) dropBefore(offset int64) bool {
	row, good := slices.BinarySearch(b.offs, offset)
	e, bad := slices.BinarySearchFunc(b.errs, offset, func(e RowError, at int64) int { return cmp.Compare(e.Offset, at) })
	blanks, blank := slices.BinarySearch(b.blanks, offset)
	if !good && !bad && !blank {
		return false
	}
	b.skipped = row
	b.errs, b.blanks = slices.Delete(b.errs, 0, e), slices.Delete(b.blanks, 0, blanks)
	b.base -= int64(row + e + blanks)
	return true
}

// flush hands the batch to emit unless it is empty.
func (b *batcher) flush() error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	batch := &Batch{Rows: b.rows[b.skipped:], Offsets: b.offs[b.skipped:], Errors: b.errs, from: b}
	n := len(batch.Rows) + len(batch.Errors)
	b.in.records.Add(int64(n + len(b.blanks)))
	b.in.blanks.Add(int64(len(b.blanks)))
	if b.in.Inspect {
		b.inspect()
	}
	if n > 0 || b.in.sums != nil {
		for i := range batch.Rows {
			batch.Rows[i] += b.base
		}
		for i := range batch.Errors {
			batch.Errors[i].Row += b.base
		}
		batch.Record = b.record()
		if b.in.sums != nil {
			b.digest(batch.Record)
		}
	}
	if n > 0 {
		if err := b.emit(b.worker, batch); err != nil {
			b.cancel(err)
			return err
		}
	}
	b.base += b.n
	b.reset()
	return nil
}

// record makes an Arrow record of the columns, without copying them. Their memory is Go's, so
// nothing has to be released.
func (b *batcher) record() arrow.Record {
	n := len(b.rows) - b.skipped
	arrays := make([]arrow.Array, len(b.cols))
	for i := range b.cols {
		c := &b.cols[i]
		var valid *memory.Buffer
		nulls := len(c.nulls)
		if nulls > 0 {
			valid = memory.NewBufferBytes(validity(len(b.rows), c.nulls))
		} else if nulls = len(b.rows) + 1 - len(c.ends); nulls > 0 { // the column is unread
			c.ends = append(c.ends, make([]int32, nulls)...)
			valid = memory.NewBufferBytes(make([]byte, (nulls+7)/8))
		}
		arrays[i] = array.NewBinaryData(array.NewData(arrow.BinaryTypes.Binary, n, []*memory.Buffer{
			valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(c.ends)), memory.NewBufferBytes(c.data),
		}, nil, nulls, b.skipped))
	}
	return array.NewRecord(b.schema, arrays, int64(n))
}

// validity makes a bitmap of n bits: all are set except those of the nulls.
func validity(n int, nulls []int32) []byte {
	bits := bytes.Repeat([]byte{0xff}, (n+7)/8)
	for _, i := range nulls {
		bits[i/8] &^= 1 << (i % 8)
	}
	return bits
}

// digest adds the records of the batch, in order, to the sum over records: for each a byte 0 and
// its cells, or a byte 1 and its raw line; for a blank one a byte 2. Before a cell or line stands its length, in 8 bytes,
// big-endian; of a null there is only that, all ones.
func (b *batcher) digest(rec arrow.Record) {
	i, errs := 0, b.errs
	for row := b.base + 1; row <= b.base+b.n; row++ {
		if len(errs) > 0 && errs[0].Row == row {
			b.in.sums.Write([]byte{1})
			b.hash(errs[0].Raw)
			errs = errs[1:]
			continue
		}
		if i == int(rec.NumRows()) || b.rows[b.skipped+i] != row {
			b.in.sums.Write([]byte{2})
			continue
		}
		b.in.sums.Write([]byte{0})
		for _, col := range rec.Columns() {
			if col.IsNull(i) {
				b.in.sums.Write([]byte{255, 255, 255, 255, 255, 255, 255, 255})
			} else {
				b.hash(col.(*array.Binary).Value(i))
			}
		}
		i++
	}
}

// hash adds a cell after its length.
func (b *batcher) hash(cell []byte) {
	b.in.sums.Write(binary.BigEndian.AppendUint64(nil, uint64(len(cell))))
	b.in.sums.Write(cell)
}
