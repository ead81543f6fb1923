package report

import (
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/linkforge/bulk/pipeline/columnar"
)

// arrowRowReader reads one batch after the other.
type arrowRowReader struct {
	r      *columnar.ArrowReader
	record arrow.Record
	at     int // in record
}

// openArrowRows also returns the names of the carried columns.
func openArrowRows(f io.ReaderAt, size int64) (rowReader, []string, error) {
	r, err := columnar.OpenArrow(f, size)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, field := range r.Schema().Fields() {
		names = append(names, field.Name)
	}
	carried, err := columnsAfter(MappingColumns(), names)
	if err != nil {
		return nil, nil, err
	}
	want := arrowSchema(names)
	for i, field := range r.Schema().Fields() {
		if !arrow.TypeEqual(field.Type, want.Field(i).Type) {
			return nil, nil, fmt.Errorf("its column %s has the type %s rather than %s", field.Name, field.Type, want.Field(i).Type)
		}
	}
	return &arrowRowReader{r: r}, carried, nil
}

func (a *arrowRowReader) readInto(b *MappingBlock) (err error) {
	for a.record == nil || a.at == int(a.record.NumRows()) {
		if a.record, err = a.r.Read(); err != nil {
			return err
		}
		a.at = 0
	}
	for size := 0; a.at < int(a.record.NumRows()) && b.len() < readRows && size < readBytes; a.at++ {
		size += a.appendRow(b)
	}
	return nil
}

// appendRow adds the row in hand and returns its size.
func (a *arrowRowReader) appendRow(b *MappingBlock) (size int) {
	i := a.at
	for c, column := range a.record.Columns() {
		switch column := column.(type) {
		case *array.Int64:
			b.addRow(column.Value(i), column.IsValid(i))
		case *array.Int32:
			b.addSalt(column.Value(i), column.IsValid(i))
		case *array.Dictionary:
			outcome := "null"
			if column.IsValid(i) {
				if values, at := column.Dictionary().(*array.String), column.GetValueIndex(i); values.IsValid(at) {
					outcome = values.Value(at)
				}
			}
			size += b.addOutcome(bytesOf(outcome))
		case *array.String:
			size += b.addCell(c, bytesOf(column.Value(i)), column.IsValid(i))
		case *array.Binary:
			size += b.addCell(c, column.Value(i), column.IsValid(i))
		}
	}
	return size
}
