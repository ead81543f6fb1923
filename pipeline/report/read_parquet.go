package report

import (
	"errors"
	"fmt"
	"io"

	"github.com/linkforge/bulk/pipeline/columnar"
	"github.com/parquet-go/parquet-go"
)

// parquetRowReader reads the columns of one row group beside each other.
type parquetRowReader struct {
	groups  []parquet.RowGroup // those to come
	left    int64              // rows of the one in hand
	columns []*parquetColumn
}

// parquetStep is how many values a column gives at a time.
const parquetStep = 1 << 10

// parquetColumn gives the values of a column of a row group.
type parquetColumn struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    []parquet.Value
	got    []parquet.Value // of buf, and not used yet
}

// openParquetRows also returns the names of the carried columns.
func openParquetRows(f io.ReaderAt, size int64) (rowReader, []string, error) {
	file, err := columnar.OpenParquet(f, size)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, field := range file.Schema().Fields() {
		names = append(names, field.Name())
	}
	carried, err := columnsAfter(MappingColumns(), names)
	if err != nil {
		return nil, nil, err
	}
	for i, got := range file.Schema().Fields() {
		if want := parquetType(i); !got.Leaf() || got.Repeated() || !isType(got.Type(), want) {
			return nil, nil, fmt.Errorf("its column %s has the type %s rather than %s", got.Name(), got, want)
		}
	}
	return &parquetRowReader{groups: file.RowGroups()}, carried, nil
}

// parquetType returns the type of column i.
func parquetType(i int) parquet.Type {
	switch i {
	case rowColumn:
		return parquet.Int(64).Type()
	case saltColumn:
		return parquet.Int(32).Type()
	}
	return parquet.String().Type()
}

// isType reports whether values of type t mean what those of want do. A mapping that
// another program rewrote may have lost what says that its integers are signed, and that
// its bytes are text.
func isType(t, want parquet.Type) bool {
	plain := t == parquet.Int32Type || t == parquet.Int64Type || t == parquet.ByteArrayType
	return t.Kind() == want.Kind() && (plain || t.String() == want.String())
}

func (p *parquetRowReader) readInto(b *MappingBlock) error {
	for p.left == 0 {
		if err := p.ended(); err != nil {
			return err
		}
		if err := p.close(); err != nil {
			return err
		}
		if len(p.groups) == 0 {
			return io.EOF
		}
		p.left = p.groups[0].NumRows()
		for _, chunk := range p.groups[0].ColumnChunks() {
			p.columns = append(p.columns, &parquetColumn{pages: chunk.Pages(), buf: make([]parquet.Value, parquetStep)})
		}
		p.groups = p.groups[1:]
	}
	for size := 0; p.left > 0 && b.len() < readRows && size < readBytes; p.left-- {
		n, err := p.appendRow(b)
		if err != nil {
			return err
		}
		size += n
	}
	return nil
}

// appendRow adds the next row and returns its size.
func (p *parquetRowReader) appendRow(b *MappingBlock) (size int, _ error) {
	for c, column := range p.columns {
		v, err := column.next()
		if err == io.EOF {
			err = errors.New("it has fewer values than its row group has rows")
		}
		if err != nil {
			return 0, fmt.Errorf("column %d: %w", c+1, err)
		}
		switch c {
		case rowColumn:
			b.addRow(v.Int64(), !v.IsNull())
		case outcomeColumn:
			size += b.addOutcome(v.ByteArray())
		case saltColumn:
			b.addSalt(v.Int32(), !v.IsNull())
		default:
			size += b.addCell(c, v.ByteArray(), !v.IsNull())
		}
	}
	return size, nil
}

// ended checks that the columns of the row group in hand have no more values.
func (p *parquetRowReader) ended() error {
	for c, column := range p.columns {
		_, err := column.next()
		if err == nil {
			err = errors.New("it has more values than its row group has rows")
		}
		if err != io.EOF {
			return fmt.Errorf("column %d: %w", c+1, err)
		}
	}
	return nil
}

// next returns the next value, valid until the one after; after the last the error is
// io.EOF.
func (p *parquetColumn) next() (v *parquet.Value, err error) {
	if len(p.got) == 0 {
		err = p.load()
	}
	if err == nil {
		v, p.got = &p.got[0], p.got[1:]
	}
	return v, err
}

// load reads values of the page in hand, or of the next one.
func (p *parquetColumn) load() error {
	for {
		if p.values != nil {
			n, err := p.values.ReadValues(p.buf)
			if p.got = p.buf[:n]; n > 0 {
				return nil
			}
			if err != nil && err != io.EOF {
				return err
			}
		}
		parquet.Release(p.page)
		var err error
		if p.page, err = p.pages.ReadPage(); err != nil {
			return err
		}
		p.values = p.page.Values()
	}
}

// close ends the row group in hand.
func (p *parquetRowReader) close() (err error) {
	for _, c := range p.columns {
		parquet.Release(c.page)
		err = errors.Join(err, c.pages.Close())
	}
	p.columns = nil
	return err
}
