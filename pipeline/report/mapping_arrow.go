package report

import (
	"errors"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// arrowRows is the number of rows of a record batch.
const arrowRows = 1 << 16

// arrowEncoder writes an Arrow IPC file, without compression, so that it can be
// mapped into memory and used as it lies.
type arrowEncoder struct {
	schema   *arrow.Schema
	w        *ipc.FileWriter
	outcomes arrow.Array // the dictionary of the column outcome
	batch    table       // of the group in hand
}

func newArrowMapping(w io.Writer, opts MappingOptions) (Mapping, error) {
	e := &arrowEncoder{schema: arrowSchema(columnNames(opts)), batch: newTable(len(opts.Carried))}
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for o := Created; o <= Duplicate; o++ {
		b.Append(o.String())
	}
	e.outcomes = b.NewArray()
	var err error // of asking the counter where it is
	e.w, err = ipc.NewFileWriter(&counter{Writer: w}, ipc.WithSchema(e.schema))
	return newColumnMapping(e, arrowRows, opts), err
}

func arrowSchema(names []string) *arrow.Schema {
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		fields[i] = arrow.Field{Name: name, Type: arrow.BinaryTypes.Binary, Nullable: nullable(i)}
		switch {
		case i == rowColumn:
			fields[i].Type = arrow.PrimitiveTypes.Int64
		case i == outcomeColumn:
			fields[i].Type = outcomeType()
		case i == saltColumn:
			fields[i].Type = arrow.PrimitiveTypes.Int32
		case isText(i):
			fields[i].Type = arrow.BinaryTypes.String
		}
	}
	return arrow.NewSchema(fields, nil)
}

func outcomeType() arrow.DataType {
	return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
}

// encode makes a piece of each column, which puts its cells together.
func (e *arrowEncoder) encode(g *group) (pieces []func() error, write func() error) {
	piece := func(reset func(), add func(t *table, from, to int)) {
		pieces = append(pieces, func() error {
			reset()
			g.each(0, g.rows, add)
			return nil
		})
	}
	t := &e.batch
	for i := range t.cells {
		c := &t.cells[i]
		piece(c.reset, func(o *table, from, to int) { c.appendFrom(&o.cells[i], from, to) })
	}
	piece(t.resetNumbers, t.appendNumbers)
	return pieces, e.write
}

// write wraps the memory of the batch; the writer copies nothing and keeps nothing.
func (e *arrowEncoder) write() error {
	t := &e.batch
	n := t.len()
	dictionary := array.NewDataWithDictionary(outcomeType(), n,
		[]*memory.Buffer{nil, memory.NewBufferBytes(t.outcome)}, 0, 0, e.outcomes.Data().(*array.Data))
	bitmap, nulls := saltBitmap(t.salt)
	columns := []arrow.Array{
		e.cells(t, sourceCells, sourceColumn),
		fixed(arrow.PrimitiveTypes.Int64, n, nil, arrow.Int64Traits.CastToBytes(t.row), 0),
		e.cells(t, workspaceCells, workspaceColumn),
		e.cells(t, originalCells, originalColumn),
		e.cells(t, canonicalCells, canonicalColumn),
		e.cells(t, codeCells, codeColumn),
		e.cells(t, shortURLCells, shortURLColumn),
		array.MakeFromData(dictionary),
		fixed(arrow.PrimitiveTypes.Int32, n, bitmap, arrow.Int32Traits.CastToBytes(t.salt), nulls),
	}
	for i := carriedCells; i < len(t.cells); i++ {
		columns = append(columns, e.cells(t, i, len(columns)))
	}
	record := array.NewRecord(e.schema, columns, int64(n))
	defer record.Release()
	return e.w.Write(record)
}

func (e *arrowEncoder) cells(t *table, i, column int) arrow.Array {
	c := &t.cells[i]
	bitmap, nulls := bitmapOf(c.valid)
	return array.MakeFromData(array.NewData(e.schema.Field(column).Type, t.len(), []*memory.Buffer{
		bitmap, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(c.ends)), memory.NewBufferBytes(c.data)},
		nil, nulls, 0))
}

func fixed(typ arrow.DataType, n int, bitmap *memory.Buffer, values []byte, nulls int) arrow.Array {
	return array.MakeFromData(array.NewData(typ, n, []*memory.Buffer{bitmap, memory.NewBufferBytes(values)}, nil, nulls, 0))
}

// bitmapOf packs one byte a cell into one bit a cell.
func bitmapOf(valid []byte) (_ *memory.Buffer, nulls int) {
	bits := make([]byte, (len(valid)+7)/8)
	for i, v := range valid {
		bits[i/8] |= v << (i % 8)
		nulls += int(1 - v)
	}
	if nulls == 0 {
		return nil, 0
	}
	return memory.NewBufferBytes(bits), nulls
}

func saltBitmap(salts []int32) (*memory.Buffer, int) {
	valid := make([]byte, len(salts))
	for i, salt := range salts {
		valid[i] = byte(^uint32(salt) >> 31)
	}
	return bitmapOf(valid)
}

func (e *arrowEncoder) close() error { return e.w.Close() }

// counter is all the seeking that an IPC writer does: asking where it is.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

func (c *counter) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.ErrUnsupported
	}
	return c.n, nil
}
