package source

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// A batch ends with the record that brings it to so many bytes of cells, or to
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

// columns is the memory of a batch.
type columns struct {
	cols       []column
	rows, offs []int64
}

func (c *columns) reset() {
	for i := range c.cols {
		col := &c.cols[i]
		if cap(col.data) > 4*batchBytes {
			col.data = nil // one large cell is no reason to keep its room
		}
		col.data, col.ends, col.nulls = col.data[:0], append(col.ends[:0], 0), col.nulls[:0]
	}
	c.rows, c.offs = c.rows[:0], c.offs[:0]
}

// pooled bounds the batches whose memory waits to be used again.
const pooled = 16

// A batcher gathers records into batches and hands them on. It owns the count
// of records and the limit.
type batcher struct {
	*columns
	in     *Input
	ctx    context.Context
	emit   func(*Batch) error
	schema *arrow.Schema
	pool   chan *columns
	errs   []RowError
	size   int       // bytes of cells and raw lines
	room   int       // records that the batch may still take
	sums   hash.Hash // of the records; nil without a limit
}

func newBatcher(ctx context.Context, in *Input, emit func(*Batch) error) *batcher {
	fields := make([]arrow.Field, len(in.Columns))
	for i, name := range in.Columns {
		fields[i] = arrow.Field{Name: name, Type: arrow.BinaryTypes.Binary, Nullable: true}
	}
	b := &batcher{in: in, ctx: ctx, emit: emit, schema: arrow.NewSchema(fields, nil), pool: make(chan *columns, pooled)}
	if in.Limit > 0 {
		b.sums = sha256.New()
	}
	b.begin()
	return b
}

func (b *batcher) begin() {
	select {
	case b.columns = <-b.pool:
	default:
		b.columns = &columns{cols: make([]column, len(b.in.Columns))}
		b.reset()
	}
	b.errs, b.size, b.room = nil, 0, b.in.opts.BatchRows
	if left := b.in.Limit - b.in.records; b.in.Limit > 0 && left < int64(b.room) {
		b.room = int(left)
	}
}

// full says that the batch must be flushed before it takes another record.
func (b *batcher) full() bool { return b.room <= 0 || b.size >= batchBytes }

// limited says that no record may follow.
func (b *batcher) limited() bool { return b.in.Limit > 0 && b.in.records >= b.in.Limit }

// row completes a record whose cells, of size bytes, are in the columns.
func (b *batcher) row(offset int64, size int) {
	b.in.records++
	b.room--
	b.size += size
	b.rows = append(b.rows, b.in.records)
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

// undo takes back the cells of a record that was not completed.
func (b *batcher) undo() {
	n := len(b.rows) + 1
	for i := range b.cols {
		c := &b.cols[i]
		c.ends = c.ends[:min(n, len(c.ends))]
		c.data = c.data[:c.ends[len(c.ends)-1]]
	}
}

// null appends a null to column i.
func (b *batcher) null(i int) {
	c := &b.cols[i]
	c.nulls = append(c.nulls, int32(len(c.ends)-1))
	c.append(nil)
}

// bad completes a record that could not be split. It takes raw.
func (b *batcher) bad(offset int64, f *fault, raw []byte) {
	b.in.records++
	b.room--
	b.size += len(raw)
	b.errs = append(b.errs, RowError{b.in.records, offset, f.reason, f.detail, raw})
}

// flush hands the batch on, if there is anything in it.
func (b *batcher) flush() error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	if len(b.rows)+len(b.errs) == 0 {
		return nil
	}
	if b.sums != nil {
		b.digest()
	}
	mem := b.columns
	batch := &Batch{Record: b.record(), Rows: b.rows, Offsets: b.offs, Errors: b.errs}
	batch.release = func() {
		mem.reset()
		select {
		case b.pool <- mem:
		default:
		}
	}
	b.begin()
	b.in.emits = true
	err := b.emit(batch)
	b.in.emits = false
	if err != nil {
		return &emitError{err}
	}
	return nil
}

// record makes an Arrow record of the columns, without copying them.
func (b *batcher) record() arrow.Record {
	n := len(b.rows)
	arrays := make([]arrow.Array, len(b.cols))
	for i := range b.cols {
		c := &b.cols[i]
		var valid *memory.Buffer
		if len(c.nulls) > 0 {
			valid = memory.NewBufferBytes(validity(n, c.nulls))
		}
		data := array.NewData(arrow.BinaryTypes.Binary, n, []*memory.Buffer{
			valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(c.ends)), memory.NewBufferBytes(c.data),
		}, nil, len(c.nulls), 0)
		arrays[i] = array.NewBinaryData(data)
		data.Release()
	}
	rec := array.NewRecord(b.schema, arrays, int64(n))
	for _, a := range arrays {
		a.Release()
	}
	return rec
}

// validity makes a bitmap of n bits that are set but for the nulls.
func validity(n int, nulls []int32) []byte {
	bits := make([]byte, (n+7)/8)
	for i := range bits {
		bits[i] = 0xff
	}
	for _, i := range nulls {
		bits[i/8] &^= 1 << (i % 8)
	}
	return bits
}

// digest adds the records of the batch, in order, to the sum over records: for
// each a 0 and its cells, or a 1 and its raw line; each with its length, which
// is all ones for a null, as 8 bytes, big-endian.
func (b *batcher) digest() {
	nulls := make([]int, len(b.cols))
	errs := b.errs
	for i, row := range b.rows {
		for len(errs) > 0 && errs[0].Row < row {
			b.hash(1, errs[0].Raw)
			errs = errs[1:]
		}
		b.sums.Write([]byte{0})
		for j := range b.cols {
			c := &b.cols[j]
			if k := nulls[j]; k < len(c.nulls) && int(c.nulls[k]) == i {
				nulls[j]++
				b.sums.Write([]byte{255, 255, 255, 255, 255, 255, 255, 255})
				continue
			}
			b.hash(-1, c.data[c.ends[i]:c.ends[i+1]])
		}
	}
	for _, e := range errs {
		b.hash(1, e.Raw)
	}
}

// hash adds a cell, after a tag unless that is negative.
func (b *batcher) hash(tag int, cell []byte) {
	var head [9]byte
	head[0] = byte(tag)
	binary.BigEndian.PutUint64(head[1:], uint64(len(cell)))
	if tag < 0 {
		b.sums.Write(head[1:])
	} else {
		b.sums.Write(head[:])
	}
	b.sums.Write(cell)
}

// An emitError is the receiver's own, and says nothing about the input.
type emitError struct{ error }

func (e *emitError) Unwrap() error { return e.error }
