package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/text/encoding/unicode"
)

type testRow struct {
	URL  string `parquet:"url"`
	Team string `parquet:"team,dict"`
}

var testRows = []testRow{{"http://a/", "red"}, {"http://b/", "blue"}, {"http://c/", "red"}}

var testCells = []string{"http://a/|red", "http://b/|blue", "http://c/|red"}

func parquetOf[T any](t testing.TB, rows []T, opts ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, opts...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// arrowOf writes records as an IPC file or stream.
func arrowOf(t testing.TB, file bool, recs []arrow.Record, opts ...ipc.Option) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "arrow"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	opts = append(opts, ipc.WithSchema(recs[0].Schema()))
	var w interface {
		Write(arrow.Record) error
		Close() error
	} = ipc.NewWriter(f, opts...)
	if file {
		if w, err = ipc.NewFileWriter(f, opts...); err != nil {
			t.Fatal(err)
		}
	}
	for _, rec := range recs {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fromJSON makes a record of rows in JSON.
func fromJSON(t testing.TB, rows string, fields ...arrow.Field) arrow.Record {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.NewGoAllocator(), arrow.NewSchema(fields, nil), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func testRecords(t testing.TB) []arrow.Record {
	fields := []arrow.Field{
		{Name: "url", Type: arrow.BinaryTypes.String},
		{Name: "team", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}},
	}
	rec := fromJSON(t, `[{"url":"http://a/","team":"red"},{"url":"http://b/","team":"blue"},{"url":"http://c/","team":"red"}]`, fields...)
	return []arrow.Record{rec.NewSlice(0, 2), rec.NewSlice(2, 3)}
}

// Every format, under every compression, from a file and from a stream, gives
// the same cells, its own digest and its progress.
func TestFormats(t *testing.T) {
	const text = "url,team\nhttp://a/,red\nhttp://b/,blue\nhttp://c/,red\n"
	utf16 := func(e unicode.Endianness) []byte {
		b, err := unicode.UTF16(e, unicode.UseBOM).NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, f := range []struct {
		name, format string
		data         []byte
	}{
		{"csv", "csv", []byte(text)},
		{"BOM", "csv", []byte(utf8BOM + text)},
		{"UTF-16LE", "csv", utf16(unicode.LittleEndian)},
		{"UTF-16BE", "csv", utf16(unicode.BigEndian)},
		{"parquet", "parquet", parquetOf(t, testRows)},
		{"arrow file", "arrow", arrowOf(t, true, testRecords(t), ipc.WithZstd())},
		{"arrow stream", "arrow", arrowOf(t, false, testRecords(t), ipc.WithDictionaryDeltas(true))},
		{"rejects", "rejects", []byte("source,row,byte_offset,reason,detail,url,team,raw\n" +
			"x,1,0,malformed_row,text,,,\"http://a/,red\"\nx,2,0,userinfo,,http://b/,blue,\nx,3,0,userinfo,,http://c/,red,\n")},
	} {
		for compression, data := range map[string][]byte{"": f.data, "gzip": gzipped(f.data), "zstd": zstded(f.data)} {
			file := write(t, "input", data)
			for i, name := range []string{file, "-", file, "-"} {
				workers := 1 + i/2*2
				t.Run(fmt.Sprintf("%s/%s/%t/workers=%d", f.name, compression, name == "-", workers), func(t *testing.T) {
					in, err := Open(context.Background(), name, Options{Choice: columns.Choice{WorkspaceColumn: "Team"}, Stdin: bytes.NewReader(data), BatchRows: 2, Block: 64 + 1<<16*(1-i/2)})
					if err != nil {
						t.Fatal(err)
					}
					if in.Format != f.format || in.Compression != compression || !slices.Equal(in.Columns, []string{"url", "team"}) ||
						!slices.Equal(in.URLs, []int{0}) || in.Workspace != 1 || in.Size() != 0 {
						t.Errorf("%+v", in)
					}
					checkInputBy(t, workers, in, data, testCells)
				})
			}
		}
	}
}

// checkInput reads an input of raw bytes data and compares cells.
func checkInput(t *testing.T, in *Input, data []byte, want []string) {
	t.Helper()
	checkInputBy(t, 1, in, data, want)
}

func checkInputBy(t *testing.T, workers int, in *Input, data []byte, want []string) {
	t.Helper()
	recs, err := collectBy(in, workers)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range recs {
		if r.row != int64(i+1) {
			t.Fatalf("record %d has number %d", i+1, r.row)
		}
	}
	if got := cellsOf(recs); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if in.SHA256() != sha256.Sum256(data) || in.Size() != int64(len(data)) || in.Rows() != int64(len(want)) || in.Cut() {
		t.Errorf("digest, size %d of %d, %d records", in.Size(), len(data), in.Records())
	}
	if read, total := in.Progress(); read != int64(len(data)) || total != read && in.Name != "-" {
		t.Errorf("progress %d of %d", read, total)
	}
}

// checkBytes is checkInput of a file that needs no options.
func checkBytes(t *testing.T, data []byte, want []string) {
	t.Helper()
	in, err := openBytes(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkInput(t, in, data, want)
}

// checkParts is checkBytes in batches of several sizes, by several workers.
func checkParts(t *testing.T, data []byte, want []string) {
	t.Helper()
	for _, batch := range []int{1, 7, 65536} {
		for _, workers := range []int{1, 2, 9} {
			in, err := openBytes(data, Options{BatchRows: batch})
			if err != nil {
				t.Fatal(err)
			}
			checkInputBy(t, workers, in, data, want)
		}
	}
}

// There is at least one worker, and it may be asked how far it has come.
func TestProgressWhileReading(t *testing.T) {
	in, err := Open(t.Context(), write(t, "a.csv", []byte("url\n"+strings.Repeat("http://a/\n", 100_000))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	var over atomic.Bool
	asked := make(chan struct{})
	asking.Go(func() {
		in.Progress()
		close(asked)
		for !over.Load() {
			in.Progress()
		}
	})
	<-asked
	if err := in.Read(t.Context(), 0, func(int, *Batch) error { return nil }); err != nil || in.Records() != 100_000 {
		t.Errorf("%d records, %v", in.Records(), err)
	}
	over.Store(true)
	asking.Wait()
}

func TestTextFormat(t *testing.T) {
	data := gzipped([]byte("\ufeffhttp://a/x,y;z\n\nurl\n \n"))
	in, err := Open(context.Background(), write(t, "Links.TXT.gz", data), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if in.Format != "text" || in.Dialect != nil || fmt.Sprint(in.Columns, in.URLs) != "[url] [0]" {
		t.Errorf("%+v", in)
	}
	checkInput(t, in, data, []string{"http://a/x,y;z", "url"})
}

func TestCompressedMembers(t *testing.T) {
	want := []string{"http://a/", "http://b/"}
	for name, data := range map[string][]byte{
		"gzip members":   slices.Concat(gzipped([]byte("url\nhttp://a/\n")), gzipped([]byte("http://b/\n"))),
		"zstd frames":    slices.Concat(zstded([]byte("url\nhttp://a/\n")), zstded([]byte("http://b/\n"))),
		"zstd skippable": slices.Concat([]byte{0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2}, zstded([]byte("url\nhttp://a/\nhttp://b/\n"))),
	} {
		t.Run(name, func(t *testing.T) {
			checkBytes(t, data, want)
		})
	}
}

type wideRow struct {
	URL     string  `parquet:"url"`
	Note    *string `parquet:"note,optional"`
	Dict    *string `parquet:"dict,optional,dict"`
	Raw     []byte  `parquet:"raw"`
	Fixed   [3]byte `parquet:"fixed"`
	Bool    bool
	I32     int32
	I64     int64 `parquet:"i64,dict"`
	U32     uint32
	U64     uint64 `parquet:"u64,delta"`
	F32     float32
	F64     float64
	Day     int32     `parquet:"day,date"`
	At      time.Time `parquet:"at,timestamp(microsecond)"`
	Old     int64     `parquet:"old,timestamp(millisecond)"`
	Local   int64     `parquet:"local,timestamp(nanosecond:local)"`
	Legacy  int64     `parquet:"legacy,timestamp(millisecond:local)"`
	Clock   int32     `parquet:"clock,time(millisecond)"`
	Span    [12]byte  `parquet:"span,interval"`
	Price   int64     `parquet:"price,decimal(2:18)"`
	Big     [16]byte  `parquet:"big,decimal(3:38)"`
	ID      [16]byte  `parquet:"id,uuid"`
	Int96   int64     `parquet:"plainint"`
	Tags    []string  `parquet:"tags"`
	Created struct {
		By *struct {
			Name string `parquet:"name"`
		} `parquet:"by,optional"`
	} `parquet:"created"`
}

func wideRows() []wideRow {
	note, dict := "n", ""
	r := wideRow{
		URL: "http://a/\n\x00", Note: &note, Dict: &dict, Raw: []byte{0xff, 0}, Fixed: [3]byte{'a', 'b', 'c'},
		Bool: true, I32: -1, I64: 1 << 40, U32: 1<<32 - 1, U64: 1<<64 - 1, F32: 0.1, F64: 1e300,
		Day: -1, At: time.Date(2024, 2, 29, 1, 2, 3, 456789000, time.UTC), Old: -1, Local: -1, Legacy: -1, Clock: 3723004, Price: -5,
		Span:  [12]byte{1, 0, 0, 0, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		ID:    [16]byte{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff},
		Int96: 7, Tags: []string{"x", "y"},
	}
	new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(123456)).FillBytes(r.Big[:])
	r.Created.By = &struct {
		Name string `parquet:"name"`
	}{"me"}
	return []wideRow{r, {URL: ""}}
}

const wideWant = "http://a/\n\x00|n||\xff\x00|abc|true|-1|1099511627776|4294967295|18446744073709551615|0.1|1e+300|" +
	"1969-12-31|2024-02-29T01:02:03.456789Z|1969-12-31T23:59:59.999Z|1969-12-31T23:59:59.999999999|" +
	"1969-12-31T23:59:59.999Z|01:02:03.004|" + `{"months":1,"days":2,"nanoseconds":4294967295000000}` + "|-0.05|-123.456|" +
	"00112233-4455-6677-8899-aabbccddeeff|7|me"

func TestParquetTypes(t *testing.T) {
	for name, codec := range map[string]compress.Codec{
		"none": &parquet.Uncompressed, "snappy": &parquet.Snappy, "gzip": &parquet.Gzip,
		"brotli": &parquet.Brotli, "lz4": &parquet.Lz4Raw, "zstd": &parquet.Zstd,
	} {
		for _, version := range []int{1, 2} {
			data := relabelled(t, parquetOf(t, wideRows(), parquet.Compression(codec), parquet.DataPageVersion(version)), func(m *format.FileMetaData) {
				i := slices.IndexFunc(m.Schema, func(e format.SchemaElement) bool { return e.Name == "legacy" })
				m.Schema[i].LogicalType = format.LogicalType{} // ConvertedType is left
			})
			in, recs, err := readBytes(data, Options{Choice: columns.Choice{URLColumn: "url"}})
			if err != nil || len(recs) != 2 {
				t.Fatalf("%s: %v, %v", name, recs, err)
			}
			if last := in.Columns[len(in.Columns)-1]; last != "created.by.name" || slices.Contains(in.Columns, "tags") {
				t.Errorf("columns %q", in.Columns)
			}
			if recs[0].cells != wideWant || recs[0].row != 1 || recs[0].offset != -1 {
				t.Errorf("%s, version %d:\n got %v\nwant %q", name, version, recs[0], wideWant)
			}
			if !strings.HasPrefix(recs[1].cells, "|∅|∅||") || !strings.HasSuffix(recs[1].cells, "|0|∅") {
				t.Errorf("%s: %v", name, recs[1])
			}
		}
	}
}

// A column that has more values than its row group has rows is an error, whatever else
// the file says: those rows would be lost.
func TestParquetHiddenRows(t *testing.T) {
	for _, hidden := range []int64{1, 3} {
		data := relabelled(t, parquetOf(t, testRows), func(m *format.FileMetaData) {
			m.RowGroups[0].NumRows -= hidden
			m.NumRows -= hidden
		})
		_, recs, err := readBytes(data, Options{})
		const want = `row group 1: column "url": it has more values than its row group has rows`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d hidden: %d records, %v", hidden, len(recs), err)
		}
	}
}

// The levels of a column that is said to need none are not read as values.
func TestParquetLevels(t *testing.T) {
	type row struct {
		URL *string `parquet:"url,optional,dict"`
		On  *bool   `parquet:"on,optional"`
	}
	a, b, on := "http://a/", "http://b/", true
	for i, want := range []string{
		`column "url": page 2: its values: a run of 1 values, where there should be 0`,
		`column "on": page 1: its values: 2 values in 7 bytes`,
	} {
		data := relabelled(t, parquetOf(t, []row{{&a, &on}, {&b, &on}}, parquet.DataPageVersion(1)), func(m *format.FileMetaData) {
			m.Schema[1+i].RepetitionType.V = format.Required
		})
		if _, recs, err := readBytes(data, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %s", recs, err, want)
		}
	}
}

// The pages of a row group that are held at once are counted with their dictionaries,
// decoded and as text, and may reach a limit.
func TestHeldPages(t *testing.T) {
	type row struct {
		URL  string `parquet:"url"`
		Dict string `parquet:"dict,dict"`
		Bool bool   `parquet:"bool"`
	}
	rows := make([]row, 1000)
	for i := range rows {
		rows[i] = row{strings.Repeat("u", 1000), fmt.Sprintf("%01000d", i%500), false}
	}
	const least int64 = 1000*(1000+4) + (500*(1000+4) + 1000*4) + 1000*(5+4) // cells and offsets, a dictionary and indexes, "false" and offsets
	in, err := openBytes(parquetOf(t, rows, parquet.PageBufferSize(1<<24)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, _, err := in.parquet()
	if err != nil {
		t.Fatal(err)
	}
	leaves, _ := parquetLeaves(f.Root())
	first := func(most int64) (int64, error) {
		part, h := &table{}, &held{most: most}
		in.columns(part, f.RowGroups()[0], leaves, make([]bool, len(leaves)), h)
		defer part.close()
		for _, next := range part.cols {
			if _, _, err := next(); err != nil {
				return h.bytes, err
			}
		}
		return h.bytes, nil
	}
	n, err := first(1 << 40)
	if n < least || n > 2*least || err != nil {
		t.Errorf("%d bytes, where at least %d must be held, %v", n, least, err)
	}
	if _, err := first(n); err != nil {
		t.Error(err)
	}
	if _, err := first(n - 1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("take over %d bytes", n-1)) {
		t.Errorf("more than the limit: %v", err)
	}
}

// relabelled changes what the footer of a Parquet file says.
func relabelled(t testing.TB, data []byte, change func(m *format.FileMetaData)) []byte {
	t.Helper()
	end := len(data) - 8
	start := end - int(binary.LittleEndian.Uint32(data[end:]))
	var m format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), data[start:end], &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &m)
	if err != nil {
		t.Fatal(err)
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return slices.Concat(data[:start], footer, []byte("PAR1"))
}

// Integers of 32 bits may be delta encoded as if they had 64.
func TestParquetWideDeltas(t *testing.T) {
	type row struct {
		URL string `parquet:"url"`
		N   int64  `parquet:"n,optional,delta"`
		U   int64  `parquet:"u,delta"`
	}
	var rows []row
	var want []string
	for i := range int64(1000) {
		r := row{fmt.Sprint("http://a/", i), (i%2*2 - 1) * (1<<31 - 1 - i), (1 - i%2) * (1<<32 - 1 - i)}
		cells := fmt.Sprintf("%s|%d|%d", r.URL, r.N, r.U)
		if i%5 == 0 {
			r.N, cells = 0, fmt.Sprintf("%s|∅|%d", r.URL, r.U) // 0 is null
		}
		rows, want = append(rows, r), append(want, cells)
	}
	for _, version := range []int{1, 2} {
		data := relabelled(t, parquetOf(t, rows, parquet.DataPageVersion(version), parquet.PageBufferSize(1000)), func(m *format.FileMetaData) {
			for i := 2; i <= 3; i++ {
				e := &m.Schema[i]
				e.Type.V, m.RowGroups[0].Columns[i-1].MetaData.Type = format.Int32, format.Int32
				e.ConvertedType.Valid, e.LogicalType.Value = false, &format.IntType{BitWidth: 32, IsSigned: i == 2}
			}
		})
		checkBytes(t, data, want)
	}
}

// A column without a type has nulls alone, whatever its type is said to be; if it has
// values, they would be lost.
func TestParquetNull(t *testing.T) {
	type row struct {
		URL   string  `parquet:"url"`
		None  *int32  `parquet:"none,optional"`
		Dict  *string `parquet:"dict,optional,dict"`
		Delta string  `parquet:"delta,optional,delta"` // null if empty
	}
	for _, version := range []int{1, 2} {
		of := func(rows ...row) []byte {
			return relabelled(t, parquetOf(t, rows, parquet.DataPageVersion(version)), func(m *format.FileMetaData) {
				for i := 2; i <= 4; i++ {
					m.Schema[i].ConvertedType.Valid, m.Schema[i].LogicalType.Value = false, new(format.NullType)
				}
			})
		}
		checkBytes(t, of(row{URL: "http://a/"}, row{URL: "http://b/"}), []string{"http://a/|∅|∅|∅", "http://b/|∅|∅|∅"})
		_, recs, err := readBytes(of(row{URL: "http://a/", None: new(int32)}), Options{})
		const want = `column "none": page 1: its values: there are 1 in a column of nulls alone`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v, %v", version, recs, err)
		}
	}
	required := parquet.NewSchema("links", parquet.Group{"none": parquet.Leaf(parquet.NullType), "url": parquet.String()})
	checkBytes(t, parquetOf(t, []map[string]any{{"url": "http://a/"}, {"url": "http://b/"}}, required), []string{"∅|http://a/", "∅|http://b/"})
}

// An old decimal without a scale has the scale 0; its precision, which it must have, does
// not change how it is written.
func TestParquetOldDecimal(t *testing.T) {
	type row struct {
		URL   string  `parquet:"url"`
		Big   [2]byte `parquet:"big,decimal(0:4)"`
		Price int32   `parquet:"price,decimal(2:9)"`
	}
	data := relabelled(t, parquetOf(t, []row{{"http://a/", [2]byte{0xff, 0xfe}, 1234}}), func(m *format.FileMetaData) {
		for i := 2; i <= 3; i++ {
			m.Schema[i].LogicalType = format.LogicalType{} // ConvertedType is left
		}
		m.Schema[2].Scale.Valid, m.Schema[3].Precision.Valid = false, false
	})
	checkBytes(t, data, []string{"http://a/|-2|12.34"})
}

// Numbers of 16 bits are the same in either format, those next to 0 as well.
func TestHalves(t *testing.T) {
	type row struct {
		URL string   `parquet:"url"`
		F   *[2]byte `parquet:"f,optional"`
	}
	rows := []row{{URL: "http://a/"}}
	want := []string{"http://a/|∅"}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema([]arrow.Field{
		{Name: "url", Type: arrow.BinaryTypes.String}, {Name: "f", Type: arrow.FixedWidthTypes.Float16, Nullable: true}}, nil))
	b.Field(0).(*array.StringBuilder).Append("http://a/")
	b.Field(1).AppendNull()
	for _, half := range []struct {
		bits uint16
		text string
	}{{0x3e00, "1.5"}, {0x8000, "-0"}, {0xfbff, "-65504"}, {0x0001, "5.9604645e-08"}, {0x83ff, "-6.097555e-05"},
		{0x0400, "6.1035156e-05"}, {0x7c00, "+Inf"}, {0xfc00, "-Inf"}, {0xfe00, ""}} {
		rows = append(rows, row{"http://a/", &[2]byte{byte(half.bits), byte(half.bits >> 8)}})
		want = append(want, "http://a/|"+half.text)
		b.Field(0).(*array.StringBuilder).Append("http://a/")
		b.Field(1).(*array.Float16Builder).Append(float16.FromBits(half.bits))
	}
	for _, data := range [][]byte{
		arrowOf(t, true, []arrow.Record{b.NewRecord()}),
		relabelled(t, parquetOf(t, rows), func(m *format.FileMetaData) { m.Schema[2].LogicalType.Value = new(format.Float16Type) }),
	} {
		checkBytes(t, data, want)
	}
}

// Columns may share a name, at any depth.
func TestParquetNames(t *testing.T) {
	type row struct {
		URL   string `parquet:"url"`
		A     string `parquet:"a"`
		N     int64  `parquet:"n"`
		Group struct {
			A string `parquet:"a,optional"`
			B string `parquet:"b"`
		} `parquet:"g"`
	}
	r := row{URL: "http://a/", A: "x", N: 5}
	r.Group.A, r.Group.B = "y", "z"
	data := relabelled(t, parquetOf(t, []row{r}), func(m *format.FileMetaData) {
		m.Schema[3].Name, m.Schema[6].Name = "a", "a"
	})
	in, err := openBytes(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"url", "a", "a_2", "g.a", "g.a_2"}; !slices.Equal(in.Columns, want) {
		t.Errorf("columns %q", in.Columns)
	}
	checkInput(t, in, data, []string{"http://a/|x|5|y|z"})
}

// Pages, row groups and batches may end anywhere.
func TestParquetPages(t *testing.T) {
	type row struct {
		URL  string  `parquet:"url"`
		Dict *string `parquet:"dict,optional,dict"`
		N    *int64  `parquet:"n,optional"`
	}
	var rows []row
	var want []string
	for i := range int64(3000) {
		r, cells := row{URL: fmt.Sprint("http://x/", i)}, fmt.Sprint("http://x/", i)
		if i%3 == 0 {
			r.Dict, cells = new(string), cells+"|d"+fmt.Sprint(i%50)
			*r.Dict = "d" + fmt.Sprint(i%50)
		} else {
			cells += "|∅"
		}
		if i%7 != 0 && i < 2000 {
			r.N, cells = &i, cells+fmt.Sprint("|", i)
		} else {
			cells += "|∅"
		}
		rows, want = append(rows, r), append(want, cells)
	}
	data := parquetOf(t, rows, parquet.PageBufferSize(500), parquet.MaxRowsPerRowGroup(700))
	checkParts(t, data, want)
}

// Of nulls the levels tell; what the header of a page says of their number does not
// count, as in other readers.
func TestParquetNullCount(t *testing.T) {
	type row struct {
		URL string `parquet:"url"`
		N   *int64 `parquet:"n,optional"`
	}
	five := int64(5)
	data := parquetOf(t, []row{{"http://a/", nil}, {"http://b/", &five}}, parquet.DataPageVersion(2))
	of := func(urls, ns byte) []byte { // two values, so many nulls, two rows
		data := bytes.Replace(data, []byte{0x15, 4, 0x15, 0, 0x15, 4}, []byte{0x15, 4, 0x15, 2 * urls, 0x15, 4}, 1)
		return bytes.Replace(data, []byte{0x15, 4, 0x15, 2, 0x15, 4}, []byte{0x15, 4, 0x15, 2 * ns, 0x15, 4}, 1)
	}
	for _, lie := range [][]byte{of(0, 0), of(0, 2), of(2, 1)} {
		if bytes.Equal(lie, data) {
			t.Fatal("where is the header?")
		}
		checkBytes(t, lie, []string{"http://a/|∅", "http://b/|5"})
	}
}

// Record batches may have any size, and be read by any number of workers.
func TestArrowBatches(t *testing.T) {
	var recs []arrow.Record
	var want []string
	for i := range 40 {
		var rows []string
		for j := range i * 7 % 30 {
			rows = append(rows, fmt.Sprintf(`{"url":"http://a/%d/%d"}`, i, j))
			want = append(want, fmt.Sprintf("http://a/%d/%d", i, j))
		}
		recs = append(recs, fromJSON(t, "["+strings.Join(rows, ",")+"]", arrow.Field{Name: "url", Type: arrow.BinaryTypes.String}))
	}
	for _, file := range []bool{true, false} {
		checkParts(t, arrowOf(t, file, recs), want)
	}
}

func TestParquetRepeated(t *testing.T) {
	_, err := openBytes(parquetOf(t, wideRows()), Options{Choice: columns.Choice{URLColumn: "tags"}})
	var usage *columns.UsageError
	if !errors.As(err, &usage) || !strings.Contains(usage.Msg, `These may have several values a row and cannot be used: ["tags"]`) {
		t.Errorf("%v", err)
	}
}

func TestArrowTypes(t *testing.T) {
	f := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	rows := `[{"url":"http://a/","large":"l","bin":"/w==","lbin":"AA==","fixed":"YWJj","view":"v","dict":"ZA==","bool":true,
		"i8":-1,"u64":12345,"f32":0.1,"f64":1e300,"d32":"1969-12-31","d64":"2024-02-29","d64t":-1,
		"at":"2024-02-29T01:02:03.456789Z","local":"2024-02-29T01:02:03.4","took":"90s","span":{"months":1,"days":2,"nanoseconds":4294967295000000},"t32":"01:02:03.004","t64":"01:02:03","dec":"-0.05",
		"s":{"name":"me","deep":{"x":1}},"tags":["x"]},{"url":"http://b/"}]`
	rec := fromJSON(t, rows,
		f("url", arrow.BinaryTypes.String), f("large", arrow.BinaryTypes.LargeString), f("bin", arrow.BinaryTypes.Binary),
		f("lbin", arrow.BinaryTypes.LargeBinary), f("fixed", &arrow.FixedSizeBinaryType{ByteWidth: 3}), f("view", arrow.BinaryTypes.StringView),
		f("dict", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: arrow.BinaryTypes.Binary}),
		f("bool", arrow.FixedWidthTypes.Boolean), f("i8", arrow.PrimitiveTypes.Int8), f("u64", arrow.PrimitiveTypes.Uint64),
		f("f32", arrow.PrimitiveTypes.Float32), f("f64", arrow.PrimitiveTypes.Float64), f("d32", arrow.FixedWidthTypes.Date32),
		f("d64", arrow.FixedWidthTypes.Date64), f("d64t", arrow.FixedWidthTypes.Date64), f("at", arrow.FixedWidthTypes.Timestamp_us),
		f("local", &arrow.TimestampType{Unit: arrow.Microsecond}), f("took", arrow.FixedWidthTypes.Duration_s),
		f("span", arrow.FixedWidthTypes.MonthDayNanoInterval), f("t32", arrow.FixedWidthTypes.Time32ms),
		f("t64", arrow.FixedWidthTypes.Time64ns), f("dec", &arrow.Decimal128Type{Precision: 38, Scale: 2}),
		f("s", arrow.StructOf(f("name", arrow.BinaryTypes.String), f("deep", arrow.StructOf(f("x", arrow.PrimitiveTypes.Int64))))),
		f("tags", arrow.ListOf(arrow.BinaryTypes.String)))
	want := []string{
		"http://a/|l|\xff|\x00|abc|v|d|true|-1|12345|0.1|1e+300|1969-12-31|2024-02-29|1969-12-31T23:59:59.999|" +
			"2024-02-29T01:02:03.456789Z|2024-02-29T01:02:03.4|90s|" + `{"months":1,"days":2,"nanoseconds":4294967295000000}` +
			"|01:02:03.004|01:02:03|-0.05|me|1",
		"http://b/" + strings.Repeat("|∅", 23),
	}
	for _, file := range []bool{true, false} {
		data := arrowOf(t, file, []arrow.Record{rec, rec.NewSlice(1, 2), rec.NewSlice(0, 1)}, ipc.WithLZ4())
		in, err := openBytes(data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(in.Columns, "s.deep.x") {
			t.Errorf("columns %q", in.Columns)
		}
		checkInput(t, in, data, []string{want[0], want[1], want[1], want[0]})
	}
}

// An array of runs, and one of no type, have nulls that no bitmap tells of.
func TestArrowNulls(t *testing.T) {
	runs := array.NewRunEndEncodedBuilder(memory.NewGoAllocator(), arrow.PrimitiveTypes.Int16, arrow.BinaryTypes.Binary)
	values := runs.ValueBuilder().(*array.BinaryBuilder)
	runs.Append(2)
	values.Append([]byte("\xff"))
	runs.AppendNull()
	runs.Append(1)
	values.Append(nil)
	urls := array.NewStringBuilder(memory.NewGoAllocator())
	urls.AppendValues([]string{"a", "b", "c", "d"}, nil)
	columns := []arrow.Array{urls.NewArray(), runs.NewArray(), array.NewNull(4)}
	var fields []arrow.Field
	for i, name := range []string{"url", "runs", "none"} {
		fields = append(fields, arrow.Field{Name: name, Type: columns[i].DataType(), Nullable: true})
	}
	rec := array.NewRecord(arrow.NewSchema(fields, nil), columns, 4)
	for _, file := range []bool{true, false} {
		data := arrowOf(t, file, []arrow.Record{rec, rec.NewSlice(1, 3)})
		checkBytes(t, data, []string{"a|\xff|∅", "b|\xff|∅", "c|∅|∅", "d||∅", "b|\xff|∅", "c|∅|∅"})
	}
}

// After a stream there may be zeros, and nothing else.
func TestArrowStreamEnd(t *testing.T) {
	stream := arrowOf(t, false, testRecords(t))
	const follows = "something follows the end of the stream"
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"alone":             {stream, ""},
		"zeros":             {slices.Concat(stream, make([]byte, 200_000)), ""},
		"twice":             {slices.Concat(stream, stream), follows},
		"text":              {slices.Concat(stream, []byte("\n")), follows},
		"text behind zeros": {slices.Concat(stream, make([]byte, 200_000), []byte("\n")), follows},
	} {
		in, err := openBytes(tt.data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		recs, err := collect(in)
		if len(recs) == 0 || tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %d records, %v", name, len(recs), err)
		}
	}
}

// That values are UUIDs stands in the metadata of their field. What stands there of
// others is no matter.
func TestArrowUUID(t *testing.T) {
	extends := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true, Metadata: arrow.MetadataFrom(map[string]string{
			ipc.ExtensionTypeKeyName: "arrow.uuid", ipc.ExtensionMetadataKeyName: ""})}
	}
	sixteen := &arrow.FixedSizeBinaryType{ByteWidth: 16}
	rec := fromJSON(t, `[{"url":"http://a/","id":"MDEyMzQ1Njc4OTo7PD0+Pw==","in":{"id":"MDEyMzQ1Njc4OTo7PD0+Pw=="},
		"plain":"MDEyMzQ1Njc4OTo7PD0+Pw==","short":"YWJj"},{"url":"u"}]`,
		arrow.Field{Name: "url", Type: arrow.BinaryTypes.String, Nullable: true}, extends("id", sixteen),
		arrow.Field{Name: "in", Type: arrow.StructOf(extends("id", sixteen)), Nullable: true},
		arrow.Field{Name: "plain", Type: sixteen, Nullable: true}, extends("short", &arrow.FixedSizeBinaryType{ByteWidth: 3}))
	const id = "30313233-3435-3637-3839-3a3b3c3d3e3f"
	for _, file := range []bool{true, false} {
		data := arrowOf(t, file, []arrow.Record{rec, rec.NewSlice(1, 2)})
		checkBytes(t, data, []string{"http://a/|" + id + "|" + id + "|0123456789:;<=>?|abc", "u|∅|∅|∅|∅", "u|∅|∅|∅|∅"})
	}
}

// An Arrow stream from before version 0.15 is refused, whatever its name.
func TestOldArrowStream(t *testing.T) {
	data, err := os.ReadFile("../../testdata/source/js-old.arrows")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openBytes(data, Options{}); err == nil || !strings.Contains(err.Error(), "is an Arrow stream in the format from before 2019") {
		t.Errorf("%v", err)
	}
}

// Files made by other programs; testdata/source/README.md says how.
func TestForeignFiles(t *testing.T) {
	const row = "http://example.com/2|team 2|2|2|0.5|-1.00|1969-12-30|2024-02-29T01:02:05.5|true|" +
		"00112233-4455-6677-8899-aabbccddeeff|∅|01:02:03|\xff\x00"
	for name, want := range map[string]string{
		"duckdb-v1.parquet": row, "duckdb-v2.parquet": row,
		"js.arrow": "http://example.com/2|red|∅|∅", "js.arrows": "http://example.com/2|red|∅|∅",
		"polars.arrow": "http://example.com/2|red|-2", "rust-v2.parquet": "http://example.com/2|true",
	} {
		name = "../../testdata/source/" + name
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			in, err := Open(context.Background(), name, Options{})
			if err != nil {
				t.Fatal(err)
			}
			recs, err := collect(in)
			if err != nil || in.SHA256() != sha256.Sum256(data) {
				t.Fatal(err)
			}
			if recs[2].cells != want {
				t.Errorf("got %v\nwant %q", recs[2], want)
			}
		})
	}
}

// A sample is rows that begin row groups or record batches all over a file, with their numbers. It needs no
// digest.
func TestSample(t *testing.T) {
	type row struct {
		URL string `parquet:"url"`
	}
	const all, group = 6000, 20
	var rows []row
	var text []string
	for n := range all {
		rows = append(rows, row{fmt.Sprintf("http://a/%d", n+1)})
		text = append(text, fmt.Sprintf(`{"url":"http://a/%d"}`, n+1))
	}
	table := fromJSON(t, "["+strings.Join(text, ",")+"]", arrow.Field{Name: "url", Type: arrow.BinaryTypes.String})
	var batches []arrow.Record
	for n := int64(0); n < all; n += group {
		batches = append(batches, table.NewSlice(n, n+group))
	}
	for format, data := range map[string][]byte{
		"parquet":      parquetOf(t, rows, parquet.MaxRowsPerRowGroup(group)),
		"arrow file":   arrowOf(t, true, batches),
		"arrow stream": arrowOf(t, false, batches),
	} {
		in, err := Open(t.Context(), write(t, "in", data), Options{Sample: 320})
		if err != nil {
			t.Fatal(err)
		}
		sample, err := collect(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range sample {
			if want := fmt.Sprintf("http://a/%d", r.row); r.cells != want {
				t.Fatalf("%s: row %d is %s", format, r.row, r.cells)
			}
		}
		most, last := 400, sample[len(sample)-1].row
		if format == "arrow stream" { // all of it is read
			most = all / group * 16
		}
		if in.Extent() < all || in.Extent() > all+all/10 || len(sample) < 200 || len(sample) > most || last < all*9/10 || in.SHA256() != [32]byte{} {
			t.Errorf("%s: %d rows of %d up to %d, digest %x", format, len(sample), in.Extent(), last, in.SHA256())
		}
	}
}
