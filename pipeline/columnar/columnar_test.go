package columnar

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// No file of the corpus ends the process or takes much memory. It is an error or,
// where that does no such harm, a panic of the decoder or rows.
func TestHostile(t *testing.T) {
	names, _ := filepath.Glob("../../testdata/hostile/*.parquet")
	arrows, _ := filepath.Glob("../../testdata/hostile/*.arrow")
	if len(names) < 20 || len(arrows) < 10 {
		t.Fatal("where is the corpus?")
	}
	for _, name := range append(names, arrows...) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rows := 0
		if filepath.Ext(name) == ".arrow" {
			rows, err = readArrow(data)
		} else {
			rows, err = readParquet(data)
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 64<<20 {
			t.Errorf("%s: took %d bytes", name, after.TotalAlloc-before.TotalAlloc)
		}
		t.Logf("%s: %d rows, %v", filepath.Base(name), rows, err)
	}
}

func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
}

func readParquet(data []byte) (rows int, err error) {
	defer recovered(&err)
	f, err := OpenParquet(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return 0, err
	}
	for _, group := range f.RowGroups() {
		for _, leaf := range f.Root().Columns() {
			if leaf.Repeated() {
				continue
			}
			pages := group.ColumnChunks()[leaf.Index()].Pages()
			for {
				page, err := pages.ReadPage()
				if err == io.EOF {
					pages.Close()
					break
				}
				if err != nil {
					return rows, err
				}
				rows += int(page.NumRows())
				parquet.Release(page)
			}
		}
	}
	return rows, nil
}

// parquetOf returns a Parquet file of row groups with so many rows each.
func parquetOf[T any](t *testing.T, rows []T, group int64) []byte {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[T](&file, parquet.MaxRowsPerRowGroup(group))
	_, err := w.Write(rows)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// changed returns a Parquet file of two row groups, three rows in all, in a column
// with a dictionary and one of lists, with other metadata.
func changed(t *testing.T, change func(m *format.FileMetaData)) []byte {
	t.Helper()
	type row struct {
		A string `parquet:",dict"`
		L []string
	}
	file := parquetOf(t, []row{{A: "a"}, {A: "b"}, {A: "a"}}, 2)
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	meta := f.Metadata()
	change(meta)
	footer, err := appendFooter(meta)
	if err != nil {
		t.Fatal(err)
	}
	return append(file, footer...)
}

// What cannot be read whatever its pages hold is told when the file is opened, before
// a row of it is.
func TestOpenParquetRefuses(t *testing.T) {
	for want, change := range map[string]func(m *format.FileMetaData){
		`row group 2: column 1: its rows lie in other files, such as "part.0.parquet"`: func(m *format.FileMetaData) { m.RowGroups[1].Columns[0].FilePath = "part.0.parquet" },
		"row group 2: column 1: LZ4 is not supported":                                  func(m *format.FileMetaData) { m.RowGroups[1].Columns[0].MetaData.Codec = format.Lz4 },
		`column "A" is neither required nor optional nor repeated`:                     func(m *format.FileMetaData) { m.Schema[1].RepetitionType.V = 3 },
		"column 1: its type, BYTE_ARRAY, is unknown or not one of its annotation": func(m *format.FileMetaData) {
			m.Schema[1].LogicalType.Value = &format.IntType{BitWidth: 16, IsSigned: true}
		},
		"column 1: its type, INT64, is unknown or not one of its annotation": func(m *format.FileMetaData) {
			m.Schema[1].Type.V, m.Schema[1].LogicalType.Value = format.Int64, &format.IntType{BitWidth: 16, IsSigned: true}
		},
		"column 1: its type, Type(?), is unknown or not one of its annotation": func(m *format.FileMetaData) {
			e := &m.Schema[1]
			e.Type.V, e.LogicalType.Value, e.ConvertedType.Valid = 8, nil, false
		},
		"column 1: its type, FIXED_LEN_BYTE_ARRAY, is unknown or not one of its annotation": func(m *format.FileMetaData) {
			e := &m.Schema[1]
			e.Type.V, e.TypeLength, e.LogicalType.Value = format.FixedLenByteArray, thrift.New[int32](8), new(format.UUIDType)
		},
		"its row groups have 2 rows, and all of it 3": func(m *format.FileMetaData) { m.RowGroups[0].NumRows-- },
	} {
		data := changed(t, change)
		if _, err := OpenParquet(bytes.NewReader(data), int64(len(data))); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for name, change := range map[string]func(m *format.FileMetaData){
		"lists, which are left out": func(m *format.FileMetaData) {
			m.RowGroups[0].Columns[1].MetaData.Codec, m.Schema[2].LogicalType.Value = format.Lz4, new(format.DateType)
		},
		"no number of rows": func(m *format.FileMetaData) { m.NumRows = 0 },
	} {
		data := changed(t, change)
		if _, err := OpenParquet(bytes.NewReader(data), int64(len(data))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Names count with those of the groups that they lie in, up to a limit.
func TestNames(t *testing.T) {
	const leaves, path = 1 << 10, mostNames >> 10
	for _, more := range []int{0, 1} {
		group := strings.Repeat("g", path-len("..a")+more)
		schema := []format.SchemaElement{
			{Name: "root", NumChildren: thrift.New[int32](2)}, {Name: group, NumChildren: thrift.New[int32](leaves)},
		}
		for range leaves {
			schema = append(schema, format.SchemaElement{Name: "a", Type: thrift.New(format.ByteArray)})
		}
		schema = append(schema, format.SchemaElement{Name: "", NumChildren: thrift.New[int32](0)})
		if leaves, err := checkTree(schema); (err == nil) != (more == 0) {
			t.Errorf("%d columns, with a group of %d: %v", len(leaves), len(group), err)
		}
	}
}

// A dictionary lies before the data. Where some writers have left another offset of
// it, or that of the dictionary as the one of the data, or none of the data, as those of
// Arrow do where there are no rows, the chunk is read as others do.
func TestDictionaryOffset(t *testing.T) {
	for name, change := range map[string]func(m *format.ColumnMetaData){
		"as it is":          func(m *format.ColumnMetaData) {},
		"none":              func(m *format.ColumnMetaData) { m.DataPageOffset, m.DictionaryPageOffset = m.DictionaryPageOffset, 0 },
		"that of the data":  func(m *format.ColumnMetaData) { m.DataPageOffset = m.DictionaryPageOffset },
		"no data":           func(m *format.ColumnMetaData) { m.DataPageOffset = 0 },
		"of the magic word": func(m *format.ColumnMetaData) { m.DataPageOffset, m.DictionaryPageOffset = m.DictionaryPageOffset, 1 },
		"below the file":    func(m *format.ColumnMetaData) { m.DataPageOffset, m.DictionaryPageOffset = m.DictionaryPageOffset, -1 },
		"behind the data": func(m *format.ColumnMetaData) {
			m.DataPageOffset, m.DictionaryPageOffset = m.DictionaryPageOffset, m.DataPageOffset
		},
		"at the chunk's end": func(m *format.ColumnMetaData) {
			m.DataPageOffset, m.DictionaryPageOffset = m.DictionaryPageOffset, m.DictionaryPageOffset+m.TotalCompressedSize
		},
	} {
		data := changed(t, func(meta *format.FileMetaData) {
			for i := range meta.RowGroups {
				change(&meta.RowGroups[i].Columns[0].MetaData)
			}
		})
		if rows, err := readParquet(data); rows != 3 || err != nil {
			t.Errorf("%s: %d rows, %v", name, rows, err)
		}
	}
}

// A column chunk is read with no more memory than it has bytes, or a file of many
// small row groups would take long.
func TestSmallChunks(t *testing.T) {
	type row struct{ A, B string }
	const groups = 200
	file := parquetOf(t, make([]row, groups), 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if rows, err := readParquet(file); rows != 2*groups || err != nil {
		t.Fatal(rows, err)
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / (2 * groups); n > chunkBuffer/2 {
		t.Errorf("took %d bytes a chunk", n)
	}
}

func readArrow(data []byte) (rows int, err error) {
	defer recovered(&err)
	r, err := OpenArrow(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		rec, err := r.Read(n)
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows += int(rec.NumRows())
	}
}

// A thrift struct is passed over to its end, whatever is in it, or is an error where
// it is cut off.
func TestThrift(t *testing.T) {
	for _, field := range []string{
		"\x11", "\x12", "\x13\xff", "\x14\x02", "\x15\x80\x01", "\x16\x02", "\x17\x11\x22\x33\x44\x55\x66\x77\x88",
		"\x18\x02ab", "\x19\x25\x02\x04", "\x1a\x28\x01a\x00", "\x19\x21\x01\x02", "\x19\xf3\x02\x11\x11", "\x1b\x00",
		"\x1b\x01\x85\x01k\x02", "\x1c\x15\x02\x00", "\x05\x10\x02", "\x19\x2c\x11\x00\x00",
	} {
		whole := field + "\x15\x02\x00"
		if n, err := checkThrift([]byte(whole + "\x15\x02")); n != len(whole) || err != nil {
			t.Errorf("%q: %d of %d bytes, %v", field, n, len(whole), err)
		}
		for cut := range len(whole) {
			if _, err := checkThrift([]byte(whole[:cut])); err == nil {
				t.Errorf("%q, cut at %d: no error", field, cut)
			}
		}
	}
}

// What a page says of itself is held against the limits, and the levels before its
// values against its length.
func TestPageHeaders(t *testing.T) {
	page := func(change func(h *format.PageHeader)) *format.PageHeader {
		h := &format.PageHeader{Type: format.DataPageV2, CompressedPageSize: 10, UncompressedPageSize: 10}
		h.DataPageHeaderV2.Valid = true
		h.DataPageHeaderV2.V.NumValues = 5
		change(h)
		return h
	}
	for _, tt := range []struct {
		good   bool
		change func(h *format.PageHeader)
	}{
		{true, func(h *format.PageHeader) {}},
		{true, func(h *format.PageHeader) { h.CompressedPageSize, h.UncompressedPageSize = mostPage, mostPage }},
		{false, func(h *format.PageHeader) { h.CompressedPageSize = mostPage + 1 }},
		{false, func(h *format.PageHeader) { h.UncompressedPageSize = mostPage + 1 }},
		{false, func(h *format.PageHeader) { h.CompressedPageSize = -1 }},
		{false, func(h *format.PageHeader) { h.UncompressedPageSize = -1 }},
		{true, func(h *format.PageHeader) { h.DataPageHeaderV2.V.NumValues = mostValues }},
		{false, func(h *format.PageHeader) { h.DataPageHeaderV2.V.NumValues = mostValues + 1 }},
		{false, func(h *format.PageHeader) { h.DataPageHeaderV2.V.NumValues = -1 }},
	} {
		h := page(tt.change)
		if err := (&pages{left: 1 << 40}).checkHeader(h); (err == nil) != tt.good {
			t.Errorf("%+v: %v", h, err)
		}
	}
	for _, levels := range [][2]int32{{-1, 1}, {1, -1}, {5, 6}, {11, 0}} {
		h := page(func(h *format.PageHeader) {
			h.DataPageHeaderV2.V.RepetitionLevelsByteLength, h.DataPageHeaderV2.V.DefinitionLevelsByteLength = levels[0], levels[1]
		})
		p := &pages{leaf: &leaf{kind: parquet.Boolean}, inflaters: &inflaters{}}
		if _, err := p.decompress(h, make([]byte, 10)); err == nil {
			t.Errorf("levels of %d bytes in 10: no error", levels)
		}
	}
	for _, tt := range []struct {
		leaf     leaf
		bytes, n int
		good     bool
	}{
		{leaf{kind: parquet.Boolean}, 2, 8, true}, {leaf{kind: parquet.Boolean}, 1, 9, false}, {leaf{kind: parquet.Boolean}, 3, 8, false},
		{leaf{kind: parquet.Int32, width: 4}, 8, 2, true}, {leaf{kind: parquet.Int32, width: 4}, 8, 3, false}, {leaf{kind: parquet.Int32, width: 4}, 14, 2, false},
	} {
		if err := (&pages{leaf: &tt.leaf}).checkPlain(make([]byte, tt.bytes), tt.n); (err == nil) != tt.good {
			t.Errorf("%d values of type %s in %d bytes: %v", tt.n, tt.leaf.kind, tt.bytes, err)
		}
	}
}

// A failing reads no byte of the pages.
type failing struct{ *bytes.Reader }

var errDisk = errors.New("the disk fails")

func (f failing) ReadAt(b []byte, at int64) (int, error) {
	if at < 1000 {
		return 0, errDisk
	}
	return f.Reader.ReadAt(b, at)
}

// What a file has lost since its size was asked for is neither its end nor zeros.
func TestShrunk(t *testing.T) {
	for _, left := range []int{0, 20, 99} {
		data := bytes.NewReader(bytes.Repeat([]byte{'a'}, left))
		_, arrow := OpenArrow(data, 100)
		_, parquet := OpenParquet(data, 100)
		batch := checkBlock(data, 100, 8, 92, 0)
		for _, err := range []error{arrow, parquet, batch} {
			if err != io.ErrUnexpectedEOF {
				t.Errorf("%d of 100 bytes: %v", left, err)
			}
		}
	}
}

// A file whose footer does not list each of its record batches once is an error, be there
// a dictionary before them or the schema. It may list them in another order.
func TestListedBatches(t *testing.T) {
	three := filepath.Join(t.TempDir(), "three.arrow")
	f, err := os.Create(three)
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	for range 3 {
		rec, _, bad := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[{"n": 0}]`))
		err = errors.Join(err, bad, w.Write(rec))
	}
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	last := func(_, list []byte) { list[0]-- }
	first := func(_, list []byte) { copy(list[4:], list[28:76]); list[0]-- }
	bare := func(data []byte) { copy(data[8:], data[16:136]); clear(data[128:136]) } // the schema has no length, as of Polars 2
	for _, tt := range []struct {
		name, file string
		change     func(data, list []byte) // the list: how many batches, in 4 bytes, and 24 of each
		want       string
	}{
		{"after a dictionary", "../../testdata/source/js.arrow", last, "its footer does not list what follows byte 208"},
		{"after the schema", "../../testdata/source/polars.arrow", last, "its footer does not list what follows byte 216"},
		{"last", three, last, "its footer does not list what follows byte 440"},
		{"first", three, first, "its footer does not list what follows byte 136"},
		{"second, for the first", three, func(_, list []byte) { copy(list[4:], list[28:52]) }, "its footer does not list what follows byte 136"},
		{"twice", three, func(data, list []byte) { copy(list[4:], list[28:52]); clear(data[136:144]) }, "its footer lists twice what begins at byte 288"},
		{"another order", three, func(_, list []byte) { copy(list[4:], slices.Concat(list[52:76], list[4:28], list[28:52])) }, ""},
		{"bare schema", three, func(data, _ []byte) { bare(data) }, ""},
		{"first after a bare schema", three, func(data, list []byte) { first(data, list); bare(data) }, "its footer does not list what follows byte 136"},
	} {
		data, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		meta, err := footer(bytes.NewReader(data), int64(len(data)), "ARROW1")
		if err != nil {
			t.Fatal(err)
		}
		table := root(meta)
		tt.change(data, data[len(data)-len("0123ARROW1")-len(meta)+int(table.Vector(flatbuffers.UOffsetT(table.Offset(footerBatches))))-4:])
		if rows, err := readArrow(data); fmt.Sprint(err) != cmp.Or(tt.want, "<nil>") {
			t.Errorf("%s: %d rows, %v", tt.name, rows, err)
		}
	}
}

// A record batch of a file is refused for its size as one of a stream is, and not as
// damaged.
func TestLargeBatch(t *testing.T) {
	data := bytes.NewReader([]byte("\xff\xff\xff\xff\x00\x00\x00\x00"))
	if err := checkBlock(data, 1<<40, 0, 8, 1<<31); err == nil || err.Error() != "a message with a body of 2147483648 bytes, where 0 to 2147483647 may be" {
		t.Errorf("%v", err)
	}
}

// That a page cannot be read is told as it is, and not as a damaged file.
func TestReadError(t *testing.T) {
	data, err := os.ReadFile("../../testdata/source/duckdb-v1.parquet")
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenParquet(failing{bytes.NewReader(data)}, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.RowGroups()[0].ColumnChunks()[0].Pages().ReadPage(); !errors.Is(err, errDisk) {
		t.Errorf("error %v", err)
	}
}
