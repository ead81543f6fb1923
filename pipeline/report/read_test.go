package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/pipeline/columnar"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sys/unix"
)

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// openMapping opens a mapping, which is closed when the test ends.
func openMapping(t *testing.T, path string) *MappingReader {
	t.Helper()
	m, err := OpenMapping(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// asRead returns a row as a format gives it back.
func asRead(f Format, r Row, number int64) MappingRow {
	got := MappingRow{Row: r, Number: number, ShortURL: []byte("https://sho.rt/" + string(r.Code))}
	got.Carried = append([][]byte{}, r.Carried...)
	cells := []*[]byte{&got.Original}
	for i := range got.Carried {
		cells = append(cells, &got.Carried[i])
	}
	for _, cell := range cells {
		if *cell == nil && f == CSV {
			*cell = []byte{}
		}
	}
	if f != CSV {
		got.Source = validUTF8(got.Source)
	}
	return got
}

// A mapping of any format reads back as it was written, whatever its cells hold.
func TestReadMapping(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 5000
	}
	rows := append(exampleRows(), Row{Source: "-", Row: 1, Workspace: []byte("a,b"), Original: []byte("\x00http://d.example/\"\r\n\x00"),
		Canonical: []byte("http://d.example/"), Code: []byte("x"), Outcome: outcome.Created, Carried: [][]byte{[]byte("\""), bytes.Repeat([]byte("\n,"), 3<<20)}})
	for i := range n {
		r := rows[i%4]
		r.Row = int64(i + 100)
		rows = append(rows, r)
	}
	for _, format := range formats() {
		t.Run(string(format), func(t *testing.T) {
			opts := MappingOptions{Carried: []string{"note", "=b,\"c"}, BaseURL: "https://sho.rt"}
			m := openMapping(t, write(t, "mapping", mapping(t, format, opts, rows, 999)))
			if m.Format != format || fmt.Sprint(m.Carried) != fmt.Sprint(opts.Carried) {
				t.Errorf("format %s, carried %q", m.Format, m.Carried)
			}
			for i, r := range rows {
				got, err := m.Next()
				if err != nil {
					t.Fatal(err)
				}
				if want := asRead(format, r, int64(i+1)); !reflect.DeepEqual(*got, want) {
					t.Fatalf("row %d: %+v\nwant %+v", i+1, got, want)
				}
			}
			if _, err := m.Next(); err != io.EOF {
				t.Errorf("after the last row: %v", err)
			}
		})
	}
}

// Damage is named, with file and row, and never a panic.
func TestReadDamage(t *testing.T) {
	header := "source,row,workspace_id,original_url,canonical_url,short_code,short_url,outcome,salt\n"
	row := "a,1,w,o,c,s,,created,0\n"
	for text, want := range map[string]string{
		"":                              "it is empty",
		"source,row,workspace_id\n":     "its column 4 is not named original_url",
		header + row + "a,1\n":          "row 2: its number of cells is 2 rather than 9",
		header + strings.TrimSpace(row): "row 1: the file ends within it",
		header + `"a`:                   "row 1: the file ends within it",
		header + `a"b",1` + "\n":        "row 1: a quote in a cell without quotes",
		header + `"a"b,1` + "\n":        "row 1: something follows a closing quote",
		header + strings.Replace(row, ",1,", ",01,", 1):              `row 1: column row: "01" is not a valid value`,
		header + row + strings.Replace(row, "created", "creates", 1): `row 2: column outcome: "creates" is not a valid value`,
		header + strings.Replace(row, ",0\n", ",-1\n", 1):            `row 1: column salt: "-1" is not a valid value`,
		"PAR1PAR1":       "mapping: the file is too short to be whole",
		"ARROW1\x00\x00": "mapping: the file is too short to be whole",
	} {
		m, err := OpenMapping(write(t, "mapping", []byte(text)))
		for err == nil {
			_, err = m.Next()
		}
		var damage *DamageError
		var cell *CellError
		if !errors.As(err, &damage) && !errors.As(err, &cell) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A null of Arrow where no run writes one is found, in whatever column, and in a
// dictionary too.
func TestReadNulls(t *testing.T) {
	record := arrowRecord(t, exampleRows()[:1])
	null := func(a, dictionary arrow.ArrayData) arrow.Array { // in the dictionary, if there is one
		buffers, nulls := slices.Clone(a.Buffers()), 0
		if dictionary == nil {
			buffers[0], nulls, dictionary = memory.NewBufferBytes(make([]byte, 1)), 1, a.Dictionary()
		}
		return array.MakeFromData(array.NewDataWithDictionary(a.DataType(), 1, buffers, nulls, 0, dictionary.(*array.Data)))
	}
	read := func(c int, column arrow.Array) {
		t.Helper()
		columns := slices.Clone(record.Columns())
		columns[c] = column
		m := openMapping(t, write(t, "mapping", arrowFile(t, array.NewRecord(record.Schema(), columns, 1))))
		_, err := m.Next()
		var cell *CellError
		found := errors.As(err, &cell) && cell.Row == 1 && cell.Column == MappingColumns()[c] && cell.Found == "null"
		if nullable := record.Schema().Field(c).Nullable; found == nullable || nullable && err != nil {
			t.Errorf("column %s: %v", MappingColumns()[c], err)
		}
	}
	for c, column := range record.Columns() {
		read(c, null(column.Data(), nil))
	}
	none := array.NewStringBuilder(memory.DefaultAllocator)
	for range outcome.Duplicate + 1 {
		none.AppendNull()
	}
	read(outcomeColumn, null(record.Column(outcomeColumn).Data(), none.NewArray().Data()))
}

// What follows the mapping's own columns is carried, whatever its name: of a second row or
// salt, a block would have more numbers than rows.
func TestReadArrowNameTwice(t *testing.T) {
	record := arrowRecord(t, exampleRows())
	for c, field := range record.Schema().Fields() {
		schema := arrow.NewSchema(append(record.Schema().Fields(), field), nil)
		twice := array.NewRecord(schema, append(slices.Clone(record.Columns()), record.Column(c)), record.NumRows())
		_, _, err := readAll(t, write(t, "mapping", arrowFile(t, twice)))
		if want := "its column " + field.Name + " has the type"; c != originalColumn && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %s", err, want)
		} else if c == originalColumn && err != nil {
			t.Error(err)
		}
	}
}

// arrowRecord is the batch of an Arrow mapping of a few rows.
func arrowRecord(t *testing.T, rows []Row) arrow.Record {
	t.Helper()
	data := mapping(t, Arrow, MappingOptions{}, rows, len(rows))
	r, err := columnar.OpenArrow(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	record, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func arrowFile(t *testing.T, record arrow.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&counter{Writer: &out}, ipc.WithSchema(record.Schema()))
	if err == nil {
		err = errors.Join(w.Write(record), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What the metadata of a Parquet mapping says against its rows is damage; so is a null
// where a run writes none.
func TestReadParquetLies(t *testing.T) {
	typed := func(column int, value format.LogicalTypeValue) func(*format.FileMetaData) {
		return func(m *format.FileMetaData) {
			m.Schema[1+column].LogicalType.Value, m.Schema[1+column].ConvertedType = value, thrift.Null[deprecated.ConvertedType]{}
		}
	}
	for name, c := range map[string]struct {
		lie  func(m *format.FileMetaData)
		want string
	}{
		"nothing":             {func(*format.FileMetaData) {}, "EOF"},
		"no types of numbers": {func(m *format.FileMetaData) { typed(rowColumn, nil)(m); typed(saltColumn, nil)(m) }, "EOF"},
		"a hidden row":        {func(m *format.FileMetaData) { m.RowGroups[0].NumRows--; m.NumRows-- }, "row 2: column 1: it has more values than its row group has rows"},
		"the last one":        {func(m *format.FileMetaData) { m.RowGroups[1].NumRows--; m.NumRows-- }, "row 4: column 1: it has more values than its row group has rows"},
		"a row too many":      {func(m *format.FileMetaData) { m.RowGroups[1].NumRows++; m.NumRows++ }, "row 3: column 1: it has fewer values than its row group has rows"},
		"rows of all":         {func(m *format.FileMetaData) { m.NumRows++ }, "its row groups have 4 rows, and all of it 5"},
		"date":                {typed(saltColumn, new(format.DateType)), "its column salt has the type"},
		"unsigned":            {typed(rowColumn, &format.IntType{BitWidth: 64}), "its column row has the type"},
		"no text":             {typed(sourceColumn, nil), "EOF"},
		"text":                {typed(originalColumn, new(format.StringType)), "EOF"},
		"json":                {typed(outcomeColumn, new(format.JsonType)), "its column outcome has the type"},
		"null":                {func(m *format.FileMetaData) { m.Schema[1+rowColumn].RepetitionType.V = format.Optional }, `row 1: column row: "null" is not a valid value`},
	} {
		var out bytes.Buffer
		m := newParquetMapping(&out, MappingOptions{Carried: []string{"a", "b"}}).(*columnMapping)
		e, b := m.encoder.(*parquetEncoder), m.Block()
		if m.rows = 2; name == "null" {
			e.columns[rowColumn].fill = func(b *pageBuffer, g *group, _, _ int) error {
				b.valid = make([]byte, g.rows)
				return errors.Join(b.levels(), b.pack(new(delta.BinaryPackedEncoding).EncodeInt64(b.packed, nil)))
			}
		}
		for _, r := range exampleRows() {
			b.Append(&r)
		}
		if err := m.Write(b); err != nil {
			t.Fatal(err)
		}
		m.flush()
		m.finish()
		c.lie(&e.meta)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := OpenMapping(write(t, "mapping", out.Bytes()))
		if err == nil {
			defer r.Close()
		}
		for err == nil {
			_, err = r.Next()
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// That a mapping cannot be read is told as it is, and not as damage, whatever the
// format.
func TestReadError(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenMapping(dir); err == nil || err.Error() != "read "+dir+": is a directory" {
		t.Error(err)
	}
	row := exampleRows()[0]
	row.Carried = [][]byte{bytes.Repeat([]byte{'a'}, 2<<20)} // more than is read on opening
	for _, format := range formats() {
		path := write(t, "mapping", mapping(t, format, MappingOptions{Carried: []string{"a"}}, []Row{row}, 1))
		m := openMapping(t, path)
		folder, err := os.Open(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		if err := unix.Dup2(int(folder.Fd()), int(m.file.Fd())); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if err := m.Read(new(MappingBlock)); !errors.Is(err, unix.EISDIR) || errors.As(err, &damage) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// rowsFunc is a rowReader that fails.
type rowsFunc func() error

func (f rowsFunc) readInto(*MappingBlock) error { return f() }

// Where damage is found there is a row that could not be read, but where the file as
// a whole is damaged.
func TestReadDamagedRow(t *testing.T) {
	bad := errors.New("bad")
	for name, f := range map[string]func() error{"error": func() error { return bad }, "panic": func() error { panic(bad) }} {
		for row, m := range map[int64]*MappingReader{0: {}, 6: {rows: rowsFunc(f), read: 5}} {
			var damage *DamageError
			if err := m.safely(f); !errors.As(err, &damage) || damage.Row != row {
				t.Errorf("%s: %v, want row %d", name, err, row)
			}
		}
	}
}

// A bit changed anywhere in a columnar mapping is an error or another row; it is
// never a panic, and never a demand for absurd memory.
func TestReadFlipped(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for _, format := range []Format{Parquet, Arrow} {
		data := mapping(t, format, MappingOptions{Carried: []string{"a", "b"}}, exampleRows(), 2)
		path := write(t, "mapping", data)
		for i := 0; i < len(data); i += step {
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << (i % 8)
			if err := os.WriteFile(path, flipped, 0o666); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if m, err := OpenMapping(path); err == nil {
				for n := 0; err == nil && n < 100; n++ {
					_, err = m.Next()
				}
				m.Close()
			}
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 16<<20 {
				t.Errorf("%s: byte %d: took %d bytes", format, i, after.TotalAlloc-before.TotalAlloc)
			}
		}
	}
}

// A dictionary of one large cell stands for as many of them as a file has rows.
// They are read in blocks of the usual size all the same.
func TestReadRepeated(t *testing.T) {
	const rows, size = 64, 64 << 10
	large := bytes.Repeat([]byte{'a'}, size)
	for name, lie := range map[string]func(e groupEncoder, r *Row){
		"parquet, workspace": func(_ groupEncoder, r *Row) { r.Workspace = large },
		"parquet, outcome": func(e groupEncoder, r *Row) {
			columns := e.(*parquetEncoder).columns
			columns[outcomeColumn].fill = columns[sourceColumn].fill
			r.Source = string(large)
		},
		"arrow, outcome": func(e groupEncoder, _ *Row) {
			b := array.NewStringBuilder(memory.DefaultAllocator)
			b.Append(string(large))
			e.(*arrowEncoder).outcomes = b.NewArray()
		},
	} {
		t.Run(name, func(t *testing.T) {
			format, _, _ := strings.Cut(name, ",")
			var out bytes.Buffer
			m := newMapping(t, &out, Format(format), MappingOptions{})
			e, b := m.(*closable).Mapping.(*columnMapping).encoder, m.Block().(*columnBlock)
			r := Row{Row: 1, Original: []byte{}, Outcome: outcome.Created}
			lie(e, &r)
			for range rows {
				b.Append(&r)
			}
			var g group
			for range readRows / rows {
				g.add(part{b, 0, rows})
			}
			pieces, end := e.encode(&g)
			for _, piece := range append(pieces, end, e.close) {
				if err := piece(); err != nil {
					t.Fatal(err)
				}
			}
			readsBounded(t, write(t, "mapping", out.Bytes()), readRows, size)
		})
	}
}

// readsBounded reads a mapping of so many rows, of which each holds little more
// than size bytes.
func readsBounded(t *testing.T, path string, rows, size int) {
	t.Helper()
	m := openMapping(t, path)
	var err error
	n := 0
	for b := new(MappingBlock); err == nil; err = m.Read(b) {
		n += b.Len()
		held := 0
		for i := range b.cells {
			held += len(b.cells[i].data)
		}
		for _, fault := range b.Faults {
			held += len(fault.Found)
		}
		if held > readBytes+3*size {
			t.Errorf("a block of %d rows holds %d bytes", b.Len(), held)
		}
	}
	if err != io.EOF || n != rows {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestReadRejects(t *testing.T) {
	rejects := []outcome.Reject{
		{Source: "a,\xff", Row: 1, Offset: 0, Reason: "empty", Detail: `say "so"`, Cells: [][]byte{{}, []byte("=\x00")}, Raw: []byte{}},
		{Source: "b", Row: 7, Offset: -1, Reason: "malformed_row", Detail: "x", Cells: [][]byte{{}, {}}, Raw: []byte("a\rb,\n")},
	}
	columns, got, ok := readRejects(rejectsFile(t, []string{"raw", "note"}, rejects))
	if !ok || fmt.Sprint(columns) != "[in_raw note]" || !reflect.DeepEqual(got, rejects) {
		t.Errorf("columns %q, %+v, want %+v", columns, got, rejects)
	}
}

// A number that must be there is wrong where it is not.
func TestReadMissingNumbers(t *testing.T) {
	r, err := OpenRejects(write(t, "rejects.csv", []byte("source,row,byte_offset,reason,detail,raw\na,,0,empty,,\n")))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var cell *CellError
	if _, err := r.Next(); !errors.As(err, &cell) || cell.Row != 1 || cell.Column != "row" || cell.Found != "" {
		t.Errorf("%v", err)
	}
}

func TestReadCollisions(t *testing.T) {
	collisions := []Collision{
		{Workspace: []byte("w,"), Canonical: []byte("http://a/"), Salt: 0, Code: []byte("a"), Owner: []byte("http://b/,")},
		{Workspace: []byte("w"), Canonical: []byte("http://a/"), Salt: 10, Code: []byte("b")},
	}
	if got, ok := readCollisions(collisionsFile(t, collisions)); !ok || !reflect.DeepEqual(got, collisions) {
		t.Errorf("%+v, want %+v", got, collisions)
	}
}

func BenchmarkReadMapping(b *testing.B) {
	const rows = 1 << 17
	list := make([]Row, rows)
	for i := range list {
		list[i] = exampleRows()[i%2]
		list[i].Original = fmt.Appendf(nil, "http://example.com/some/path/of/usual/length/%d?a=1&b=2", i)
		list[i].Canonical = list[i].Original
		list[i].Carried = nil
	}
	for _, format := range formats() {
		path := write(b, "mapping", mapping(b, format, MappingOptions{}, list, 4096))
		b.Run("format="+string(format), func(b *testing.B) {
			for b.Loop() {
				m, err := OpenMapping(path)
				if err != nil {
					b.Fatal(err)
				}
				var block MappingBlock
				n := 0
				for err = m.Read(&block); err == nil; err = m.Read(&block) {
					n += block.Len()
				}
				if m.Close(); err != io.EOF || n != rows {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
