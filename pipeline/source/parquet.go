package source

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/columnar"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// openParquet opens a Parquet file. The footer gives the columns: one for each leaf that has one
// value a row, named by its path with dots.
func (in *Input) openParquet() error {
	in.Format = "parquet"
	in.read = in.readParquet
	f, _, err := in.parquet()
	if err != nil {
		return err
	}
	leaves, skipped := parquetLeaves(f.Root())
	names := make([]string, len(leaves))
	for i, leaf := range leaves {
		names[i] = strings.Join(leaf.Path(), ".")
	}
	in.Skipped = skipped
	for _, group := range f.RowGroups() {
		in.groups = append(in.groups, group.NumRows())
	}
	return in.setColumns(names)
}

// parquet opens the file and returns its size in bytes.
func (in *Input) parquet() (f *parquet.File, size int64, err error) {
	r, err := in.random()
	if err != nil {
		return nil, 0, err
	}
	err = in.safely(func() error {
		f, err = columnar.OpenParquet(r, r.size)
		return err
	})
	return f, r.size, err
}

// parquetLeaves returns the leaves below a column that have one value a row, and the names of
// those that may have several. (The decoder's own list merges two columns of one name.)
func parquetLeaves(c *parquet.Column) (leaves []*parquet.Column, skipped []string) {
	for _, child := range c.Columns() {
		switch {
		case !child.Leaf():
			more, less := parquetLeaves(child)
			leaves, skipped = append(leaves, more...), append(skipped, less...)
		case child.MaxRepetitionLevel() > 0:
			skipped = append(skipped, strings.Join(child.Path(), "."))
		default:
			leaves = append(leaves, child)
		}
	}
	return leaves, skipped
}

// readParquet reads the columns of a row group side by side, page by page.
func (in *Input) readParquet(r *reading) error {
	f, size, err := in.parquet()
	if err != nil {
		return &ReadError{Err: err}
	}
	leaves, _ := parquetLeaves(f.Root())
	halves := parquetHalves(f)
	groups, n, before := f.RowGroups(), 0, int64(0)
	step, rows := in.sampling(len(groups))
	in.extent = f.NumRows()
	if part := in.opts.RowGroups; part.To > 0 {
		if len(groups) != part.Of {
			return &ReadError{Err: fmt.Errorf("it has changed: it has %d row groups, and had %d", len(groups), part.Of)}
		}
		for ; n < part.From; n++ {
			before += groups[n].NumRows()
		}
		groups = groups[:part.To]
	}
	return r.readTables(len(groups), func() (*table, error) {
		if n == len(groups) {
			return nil, nil
		}
		group := groups[n]
		t := &table{name: fmt.Sprintf("row group %d", n+1), rows: group.NumRows(), first: before}
		next := min(n+step, len(groups))
		for ; n < next; n++ {
			before += groups[n].NumRows()
		}
		err := in.safely(func() error {
			in.columns(t, group, leaves, halves, &held{most: columnar.MostBatch + 16*size})
			t.shorten(rows)
			if t.rows > 0 {
				return nil
			}
			return t.ended() // no worker will read it
		})
		return t, err
	})
}

// columns adds the columns of a row group to its table. They count what they hold in h.
func (in *Input) columns(t *table, group parquet.RowGroup, leaves []*parquet.Column, halves []bool, h *held) {
	all := group.ColumnChunks()
	var chunks []*chunk
	for i, leaf := range leaves {
		if in.unread(i) {
			t.cols = append(t.cols, nil)
			continue
		}
		c := &chunk{name: in.Columns[i], pages: all[leaf.Index()].Pages().(*parquet.FilePages), max: byte(leaf.MaxDefinitionLevel()), text: parquetText(leaf.Type()), held: h}
		if halves[leaf.Index()] {
			c.text = halfText
		}
		if c.text != nil && isNumber(leaf.Type()) && in.Names(i) {
			c.text = nameText(c.text)
		}
		chunks = append(chunks, c)
		t.cols = append(t.cols, c.next)
	}
	t.ended = func() error {
		for _, c := range chunks {
			if err := c.ended(); err != nil {
				return fmt.Errorf("column %q: %w", c.name, err)
			}
		}
		return nil
	}
	t.close = func() {
		for _, c := range chunks {
			c.close()
		}
	}
}

// parquetHalves says for each leaf of a file whether its values are floating point numbers of 2
// bytes. The decoder has no type for these.
func parquetHalves(f *parquet.File) (halves []bool) {
	for _, e := range f.Metadata().Schema {
		if e.Type.Valid {
			_, half := e.LogicalType.Value.(*format.Float16Type)
			halves = append(halves, half && e.Type.V == format.FixedLenByteArray && e.TypeLength.V == 2)
		}
	}
	return halves
}

// isNumber reports whether the values of a type are numbers that may have a fraction.
func isNumber(t parquet.Type) bool {
	if l := t.LogicalType(); l != nil {
		switch l.Value.(type) {
		case *format.DecimalType, *format.Float16Type:
			return true
		}
	}
	return t.Kind() == parquet.Float || t.Kind() == parquet.Double
}

// held counts the bytes that the chunks of a row group have in memory: a page and a dictionary
// each. They are limited, because a few bytes of a file may stand for a page of any size. The
// limit is that of a record batch of Arrow, and a multiple of the size of the file: the pages
// of thousands of columns may need it.
type held struct{ bytes, most int64 }

// A chunk is a column of a row group that is being read.
type chunk struct {
	name  string
	pages *parquet.FilePages
	max   byte      // definition level of a value that is not null
	text  valueText // nil: the values are bytes
	held  *held
	size  int64 // bytes of it that are held

	page    parquet.Page
	i, n    int    // values taken, and in the page
	k       int    // those that are not null
	nulls   bool   // the page has only nulls
	levels  []byte // definition levels; empty: no nulls, or only nulls
	index   []int32
	data    []byte // of the page, or of the dictionary if there is an index
	offsets []uint32
	dict    parquet.Dictionary // the dictionary that data has, as text
}

func (c *chunk) close() {
	parquet.Release(c.page)
	c.pages.Close()
}

// next is a cells function.
func (c *chunk) next() ([]byte, bool, error) {
	for c.i == c.n {
		err := c.load()
		switch err {
		case nil:
			err = c.hold()
		case io.EOF:
			err = errors.New("it ends before its row group does")
		}
		if err != nil {
			return nil, false, err
		}
	}
	i := c.i
	c.i++
	if c.nulls || len(c.levels) > 0 && c.levels[i] < c.max {
		return nil, false, nil
	}
	k := c.k
	c.k++
	if c.index != nil {
		k = int(c.index[k])
	}
	return c.data[c.offsets[k]:c.offsets[k+1]], true, nil
}

// ended checks that no further value follows.
func (c *chunk) ended() error {
	for c.i == c.n {
		if err := c.load(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	return errors.New("it has more values than its row group has rows")
}

// load reads the next page. After the last one it returns io.EOF.
func (c *chunk) load() error {
	parquet.Release(c.page)
	c.page = nil
	page, err := c.pages.ReadPage()
	if err != nil {
		return err
	}
	c.page, c.i, c.k, c.n = page, 0, 0, int(page.NumValues())
	c.nulls = page.NumNulls() == page.NumValues()
	c.levels, c.index = page.DefinitionLevels(), nil
	dict := page.Dictionary()
	switch {
	case c.nulls:
	case dict != nil:
		values := page.Data()
		if c.index = values.Int32(); c.dict != dict {
			c.dict = dict
			return c.values(dict.Page())
		}
	default:
		c.dict = nil
		return c.values(page)
	}
	return nil
}

// hold counts the page and the dictionary, as decoded and as text. The page may not use the
// dictionary.
func (c *chunk) hold() error {
	size := c.page.Size()
	if dict, _ := c.pages.ReadDictionary(); dict != nil {
		size += dict.Page().Size()
	}
	if c.text != nil {
		size += int64(cap(c.data) + 4*cap(c.offsets))
	}
	c.held.bytes += size - c.size
	c.size = size
	if c.held.bytes > c.held.most {
		return fmt.Errorf("with it the pages that are held at once take over %d bytes: write the file with smaller pages", c.held.most)
	}
	return nil
}

var errTextPage = fmt.Errorf("it has a page of over %d bytes, as text", mostRecord)

// values sets data and offsets to the values of a page or of a dictionary.
func (c *chunk) values(page parquet.Page) error {
	if c.text == nil {
		values := page.Data()
		c.data, c.offsets = values.ByteArray()
		return nil
	}
	c.data, c.offsets = c.data[:0], append(c.offsets[:0], 0)
	if page.Type().Kind() == parquet.Int64 { // faster than by ReadValues
		data := page.Data()
		values := data.Int64()
		c.data, c.offsets = slices.Grow(c.data, 8*len(values)), slices.Grow(c.offsets, len(values))
		for part := range slices.Chunk(values, 1024) {
			for _, v := range part {
				c.data = c.text(c.data, parquet.Int64Value(v))
				c.offsets = append(c.offsets, uint32(len(c.data)))
			}
			if len(c.data) > mostRecord {
				return errTextPage
			}
		}
		return nil
	}
	buf := make([]parquet.Value, 1024)
	for r := page.Values(); ; {
		n, err := r.ReadValues(buf)
		for _, v := range buf[:n] {
			if !v.IsNull() {
				c.data = c.text(c.data, v)
				c.offsets = append(c.offsets, uint32(len(c.data)))
			}
		}
		if len(c.data) > mostRecord {
			return errTextPage
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// parquetText returns how to write values of a type; nil: they are bytes.
func parquetText(t parquet.Type) valueText {
	if l := t.LogicalType(); l != nil {
		switch l := l.Value.(type) {
		case *format.DecimalType:
			return decimalText(t.Kind(), int(l.Scale))
		case *format.DateType:
			return func(dst []byte, v parquet.Value) []byte { return appendDate(dst, int64(v.Int32())) }
		case *format.TimeType:
			return timeText(t.Kind(), l.Unit.Value.Duration())
		case *format.TimestampType:
			unit, write := l.Unit.Value.Duration(), appendTimestamp
			if !l.IsAdjustedToUTC {
				write = appendLocal
			}
			return func(dst []byte, v parquet.Value) []byte { return write(dst, sinceEpoch(v.Int64(), unit)) }
		case *format.UUIDType:
			return func(dst []byte, v parquet.Value) []byte { return appendUUID(dst, v.ByteArray()) }
		case *format.IntType:
			if !l.IsSigned {
				return unsignedText(t.Kind())
			}
		}
	} else if c := t.ConvertedType(); c != nil && *c == deprecated.Interval && t.Length() == 12 {
		return intervalText
	}
	return physicalText(t.Kind())
}
