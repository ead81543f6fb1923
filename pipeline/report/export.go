package report

import (
	"cmp"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// An Export writes rows of texts under named columns.
type Export interface {
	// Append adds a row with a cell for each column; nil is null. It copies the cells.
	Append(row [][]byte) error
	// Close writes what is left, the header or footer too. It does not close the underlying
	// writer.
	Close() error
}

// NewCSVExport returns an export in CSV, in which null is empty.
func NewCSVExport(w io.Writer, columns []string) Export {
	return &csvExport{newCSVWriter(w, false, columns)}
}

type csvExport struct{ csvWriter }

func (e *csvExport) Append(row [][]byte) error {
	for _, cell := range row {
		e.cell(cell)
	}
	return e.endLine()
}

// NewParquetExport returns an export in Parquet, in which all columns are optional strings.
// It needs memory for a row group, whose cells have about 32 MiB.
func NewParquetExport(w io.Writer, columns []string) Export {
	group := parquet.Group{}
	for _, name := range columns {
		group[name] = parquet.Optional(parquet.String())
	}
	schema := parquet.NewSchema("links", exportColumns{group, columns})
	return &parquetExport{w: parquet.NewGenericWriter[any](w, schema, parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}))}
}

// exportColumns is a group in the order of its columns: a parquet.Group alone sorts them by name.
type exportColumns struct {
	parquet.Group
	names []string
}

func (c exportColumns) Fields() []parquet.Field {
	fields := c.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return cmp.Compare(slices.Index(c.names, a.Name()), slices.Index(c.names, b.Name()))
	})
	return fields
}

type parquetExport struct {
	w    *parquet.GenericWriter[any]
	row  parquet.Row
	size int // bytes of the cells in the row group
}

// exportGroup is the size at which a row group ends.
const exportGroup = 32 << 20

func (e *parquetExport) Append(row [][]byte) error {
	e.row = e.row[:0]
	for i, cell := range row {
		value := parquet.NullValue().Level(0, 0, i)
		if cell != nil {
			value = parquet.ByteArrayValue(cell).Level(0, 1, i)
		}
		e.row = append(e.row, value)
		e.size += len(cell)
	}
	if _, err := e.w.WriteRows([]parquet.Row{e.row}); err != nil || e.size < exportGroup {
		return err
	}
	e.size = 0
	return e.w.Flush()
}

func (e *parquetExport) Close() error { return e.w.Close() }
