package report

import (
	"errors"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/pipeline/outcome"
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
	columns := opts.columns()
	e := &arrowEncoder{schema: arrowSchema(columnNames(opts), columns), batch: newTable(columns)}
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for o := outcome.Created; o <= outcome.Duplicate; o++ {
		b.Append(o.String())
	}
	e.outcomes = b.NewArray()
	var err error // if the counter could not tell where it is
	e.w, err = ipc.NewFileWriter(&counter{Writer: w}, ipc.WithSchema(e.schema))
	return newColumnMapping(e, arrowRows, opts), err
}

func arrowSchema(names []string, columns []*Column) *arrow.Schema {
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		c := columns[i]
		fields[i] = arrow.Field{Name: name, Type: arrow.BinaryTypes.Binary, Nullable: c.nullable}
		switch {
		case c.cellType == numberCells:
			fields[i].Type = arrow.PrimitiveTypes.Int64
		case c.cellType == outcomeCells:
			fields[i].Type = outcomeType()
		case c.cellType == saltCells:
			fields[i].Type = arrow.PrimitiveTypes.Int32
		case c.isText():
			fields[i].Type = arrow.BinaryTypes.String
		}
	}
	return arrow.NewSchema(fields, nil)
}

func outcomeType() arrow.DataType {
	return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}
}

// encode makes a piece of each column, which puts its values together.
func (e *arrowEncoder) encode(g *group) (pieces []func() error, write func() error) {
	e.batch.reset()
	for i := range e.batch.cells {
		pieces = append(pieces, func() error {
			g.each(0, g.rows, func(t *table, from, to int) { e.batch.appendColumn(i, t, from, to) })
			return nil
		})
	}
	return pieces, e.write
}

// write wraps the memory of the batch; the writer copies nothing and keeps nothing.
func (e *arrowEncoder) write() error {
	columns := make([]arrow.Array, len(e.batch.cells))
	for i := range columns {
		columns[i] = e.column(i)
	}
	record := array.NewRecord(e.schema, columns, int64(e.batch.len()))
	defer record.Release()
	return e.w.Write(record)
}

func (e *arrowEncoder) column(i int) arrow.Array {
	t := &e.batch
	var valid, ends, values []byte
	var dictionary *array.Data
	switch c := &t.cells[i]; t.columns[i].cellType {
	case numberCells:
		if t.columns[i].nullable {
			valid = validOf(c.numbers, validNumber)
		}
		values = arrow.Int64Traits.CastToBytes(c.numbers)
	case outcomeCells:
		values, dictionary = t.outcome, e.outcomes.Data().(*array.Data)
	case saltCells:
		valid, values = validOf(c.salts, validSalt), arrow.Int32Traits.CastToBytes(c.salts)
	default:
		valid, ends, values = c.valid, arrow.Int32Traits.CastToBytes(c.ends), c.data
	}
	bitmap, nulls := bitmapOf(valid)
	buffers := []*memory.Buffer{bitmap}
	if ends != nil {
		buffers = append(buffers, memory.NewBufferBytes(ends))
	}
	buffers = append(buffers, memory.NewBufferBytes(values))
	return array.MakeFromData(array.NewDataWithDictionary(e.schema.Field(i).Type, t.len(), buffers, nulls, 0, dictionary))
}

// validOf returns 0 for each cell that is null, else 1.
func validOf[T any](cells []T, isValid func(T) byte) []byte {
	valid := make([]byte, len(cells))
	for i, cell := range cells {
		valid[i] = isValid(cell)
	}
	return valid
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

func (e *arrowEncoder) close() error { return e.w.Close() }

// counter is an io.WriteSeeker that can only tell where it is. An IPC writer asks for no
// more.
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
