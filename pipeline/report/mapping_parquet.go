package report

import (
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"golang.org/x/sync/errgroup"
)

const (
	// parquetRows is the number of rows of a row group.
	parquetRows = 1 << 17
	// parquetStep is how many values a column is given at a time. Pages end
	// between two steps.
	parquetStep = 1 << 10
)

// parquetEncoder writes a Parquet file of the plainest kind: pages of version 1
// of about 1 MiB, zstd at its fastest level. With 1 M rows of 228 bytes that
// took 870 ns and 40 bytes a row; snappy 730 and 64, no compression 500 and 228,
// zstd at its default level 1,050 and 42.
type parquetEncoder struct {
	w        *parquet.GenericWriter[any]
	workers  int
	outcomes [Duplicate + 1][]byte
}

func newParquetMapping(w io.Writer, opts MappingOptions) Mapping {
	e := &parquetEncoder{workers: max(1, opts.Workers)}
	for o := range e.outcomes {
		e.outcomes[o] = []byte(Outcome(o).String())
	}
	e.w = parquet.NewGenericWriter[any](w, parquetSchema(columnNames(opts)),
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.CreatedBy("bulk", "1", ""), // the default depends on how this program was built
		parquet.PageBufferSize(1<<20),
		parquet.DataPageVersion(1))
	return newColumnMapping(e, parquetRows, opts)
}

func parquetSchema(names []string) *parquet.Schema {
	text := parquet.Encoded(parquet.String(), &parquet.Plain)
	repeating := parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	binary := parquet.Optional(parquet.Encoded(parquet.Leaf(parquet.ByteArrayType), &parquet.Plain))
	group := parquet.Group{}
	for _, name := range names {
		group[name] = binary
	}
	group["source"] = repeating
	group["row"] = parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked)
	group["workspace_id"] = repeating
	group["canonical_url"] = text
	group["short_code"] = text
	group["short_url"] = parquet.Optional(text)
	group["outcome"] = repeating
	group["salt"] = parquet.Optional(parquet.Encoded(parquet.Int(32), &parquet.RLEDictionary))
	return parquet.NewSchema("mapping", orderedGroup{group, names})
}

// orderedGroup is a group whose columns have an order; a parquet.Group sorts
// them by name.
type orderedGroup struct {
	parquet.Group
	names []string
}

func (g orderedGroup) Fields() []parquet.Field {
	byName := make(map[string]parquet.Field, len(g.names))
	for _, field := range g.Group.Fields() {
		byName[field.Name()] = field
	}
	fields := make([]parquet.Field, len(g.names))
	for i, name := range g.names {
		fields[i] = byName[name]
	}
	return fields
}

// encode encodes columns beside each other, each from first to last, so the
// bytes do not depend on the number of workers.
func (e *parquetEncoder) encode(t *table) error {
	var group errgroup.Group
	group.SetLimit(e.workers)
	for i, value := range e.columns(t) {
		w := e.w.ColumnWriters()[i]
		group.Go(func() error { return writeColumn(w, t.len(), value) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return e.w.Flush()
}

// columns returns, for each column, what gives its values.
func (e *parquetEncoder) columns(t *table) []func(i int) parquet.Value {
	columns := []func(i int) parquet.Value{
		t.cells[sourceCells].value,
		func(i int) parquet.Value { return parquet.Int64Value(t.row[i]) },
		t.cells[workspaceCells].value,
		t.cells[originalCells].value,
		t.cells[canonicalCells].value,
		t.cells[codeCells].value,
		t.cells[shortURLCells].value,
		func(i int) parquet.Value { return parquet.ByteArrayValue(e.outcomes[t.outcome[i]]) },
		func(i int) parquet.Value {
			if t.salt[i] < 0 {
				return parquet.NullValue()
			}
			return parquet.Int32Value(t.salt[i]).Level(0, 1, 0)
		},
	}
	for i := carriedCells; i < len(t.cells); i++ {
		columns = append(columns, t.cells[i].value)
	}
	return columns
}

// value returns a cell; the level tells a column that may have nulls that this
// is none.
func (c *cells) value(i int) parquet.Value {
	if len(c.valid) == 0 {
		return parquet.ByteArrayValue(c.cell(i))
	}
	if c.valid[i] == 0 {
		return parquet.NullValue()
	}
	return parquet.ByteArrayValue(c.cell(i)).Level(0, 1, 0)
}

func writeColumn(w *parquet.ColumnWriter, n int, value func(i int) parquet.Value) error {
	step := make([]parquet.Value, 0, parquetStep)
	for i := 0; i < n; {
		values := step
		for ; i < n && len(values) < cap(values); i++ {
			values = append(values, value(i))
		}
		if _, err := w.WriteRowValues(values); err != nil {
			return err
		}
	}
	return nil
}

func (e *parquetEncoder) close() error { return e.w.Close() }
