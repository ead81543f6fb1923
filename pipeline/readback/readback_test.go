package readback_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/pipeline/columnar"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/shorturl"
	"github.com/parquet-go/parquet-go"
)

func TestMain(m *testing.M) { os.Exit(quick.Main(m)) }

func formats() []report.Format { return []report.Format{report.CSV, report.Parquet, report.Arrow} }

// mapping writes rows in blocks of a size.
func mapping(t testing.TB, f report.Format, opts report.MappingOptions, rows []report.Row, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	m, err := report.NewMapping(&out, f, opts)
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(rows, size) {
		b := m.Block()
		for i := range part {
			b.Append(&part[i])
		}
		if err := m.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func exampleRows() []report.Row {
	return []report.Row{
		{Source: "links.csv", Row: 1, Workspace: []byte("ws"), Original: []byte("HTTP://a.example/?x=1,2"), Canonical: []byte("http://a.example/?x=1,2"),
			Code: []byte("7Yq2pQx1Ab"), Outcome: outcome.Created, Salt: 0, Carried: [][]byte{[]byte(`say "hi"`), nil}},
		{Source: "links.csv", Row: 3, Workspace: []byte("ws"), Original: []byte("http://a.example/?x=1,2"), Canonical: []byte("http://a.example/?x=1,2"),
			Code: []byte("7Yq2pQx1Ab"), Outcome: outcome.Duplicate, Salt: 0, Carried: [][]byte{{}, []byte("=1+1")}},
		{Source: "b,\xff.csv", Row: 2, Workspace: []byte("-ü"), Original: []byte("\thttp://b.example/\xff"), Canonical: []byte("http://b.example/%FF"),
			Code: []byte("8aaaaaaaaa"), Outcome: outcome.Existing, Salt: -1, Carried: [][]byte{[]byte("\xfe\n"), []byte("x")}},
		{Source: "links.csv", Row: 9, Workspace: []byte("ws"), Original: nil, Canonical: []byte("http://c.example/"),
			Code: []byte("9bbbbbbbbb"), Outcome: outcome.Created, Salt: 3, Carried: [][]byte{nil, nil}},
	}
}

// nastyRows are rows of every shape that cells may have.
func nastyRows(n int) []report.Row {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"", "", "'", "=", "+", "-", "@", "\t", "\r", "\n", "\r\n", `"`, `""`, ",", "\x00", "\xff", "\ufeff", "é", "a", "http://a.example/"}
	cell := func() []byte {
		cell := []byte{}
		for range random.IntN(5) {
			cell = append(cell, pieces[random.IntN(len(pieces))]...)
		}
		return cell
	}
	orNull := func() []byte {
		if random.IntN(8) == 0 {
			return nil
		}
		return cell()
	}
	rows := exampleRows()
	rows = append(rows, report.Row{Source: "-", Row: 1, Workspace: []byte("a,b"), Original: []byte("\x00http://d.example/\"\r\n\x00"),
		Canonical: []byte("http://d.example/"), Code: []byte("x"), Outcome: outcome.Created, Carried: [][]byte{[]byte("\""), bytes.Repeat([]byte("\n,"), 3<<20)}})
	for len(rows) < n {
		rows = append(rows, report.Row{
			Source: string(cell()), Row: random.Int64N(1 << 43), Workspace: cell(), Original: orNull(), Canonical: cell(), Code: cell(),
			Outcome: outcome.Outcome(random.IntN(3)), Salt: random.IntN(4) - 1, Carried: [][]byte{orNull(), orNull()},
		})
	}
	return rows
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(path string) (*readback.Mapping, error) {
	return readback.OpenMapping(context.Background(), path, readback.Options{})
}

// asRead returns a row as a format gives it back.
func asRead(f report.Format, r report.Row, number int64) readback.MappingRow {
	got := readback.MappingRow{Row: r, Number: number, ShortURL: shorturl.NewBase("https://sho.rt").Append(nil, r.Workspace, nil, r.Code)}
	got.Carried = slices.Clone(r.Carried)
	cells := []*[]byte{&got.Original}
	for i := range got.Carried {
		cells = append(cells, &got.Carried[i])
	}
	for _, cell := range cells {
		if *cell == nil && f == report.CSV {
			*cell = []byte{}
		}
	}
	if f != report.CSV {
		got.Source = string(canon.EscapeInvalid([]byte(got.Source)))
	}
	return got
}

// A mapping of any format reads back as it was written, whatever its cells hold, row by
// row and in blocks; and so has the digest of the rows that were written.
func TestMapping(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 5000
	}
	rows := nastyRows(n)
	for _, safe := range []bool{false, true} {
		for _, format := range formats() {
			t.Run(fmt.Sprintf("%s,safe=%t", format, safe), func(t *testing.T) {
				opts := report.MappingOptions{Carried: []string{"note", "=b,\"c\r"}, BaseURL: "https://sho.rt", ExcelSafe: safe}
				path := write(t, "mapping.txt", mapping(t, format, opts, rows, 999))
				opened := readback.Options{ExcelSafe: safe, Unsafe: func(row int64, column, cell string) {
					t.Errorf("row %d: %s: %q is not safe", row, column, cell)
				}}
				both := [2]*readback.Mapping{}
				for i := range both {
					m, err := readback.OpenMapping(context.Background(), path, opened)
					if err != nil {
						t.Fatal(err)
					}
					defer m.Close()
					if both[i] = m; m.Format != format || fmt.Sprint(m.Carried) != fmt.Sprint(opts.Carried) {
						t.Errorf("format %s, carried %q", m.Format, m.Carried)
					}
				}
				blocks := [2]readback.Block{}
				var row readback.MappingRow
				at, of := 0, 0
				var written, read report.RowDigest
				for i, r := range rows {
					want := asRead(format, r, int64(i+1))
					got, err := both[0].Next()
					if err != nil || !reflect.DeepEqual(*got, want) {
						t.Fatalf("row %d: %+v, %v\nwant %+v", i+1, got, err, want)
					}
					if at == blocks[of].Len() { // the block before stays as it is
						at, of = 0, 1-of
						if err := both[1].Read(&blocks[of]); err != nil {
							t.Fatal(err)
						}
					}
					if faults := blocks[of].Row(at, &row); len(faults) > 0 || !reflect.DeepEqual(row, want) {
						t.Fatalf("row %d: %+v, %v\nwant %+v", i+1, row, faults, want)
					}
					at++
					written.Add(&r)
					read.Add(&got.Row)
				}
				if written.Sum() != read.Sum() {
					t.Error("another digest of the rows")
				}
				if _, err := both[0].Next(); err != io.EOF {
					t.Errorf("after the last row: %v", err)
				}
				if err := both[1].Read(&blocks[0]); err != io.EOF {
					t.Errorf("after the last block: %v", err)
				}
			})
		}
	}
}

// Of links only, no other cells are read.
func TestLinksOnly(t *testing.T) {
	want := exampleRows()[0]
	for _, format := range formats() {
		opts := report.MappingOptions{Carried: []string{"a", "b"}, BaseURL: "https://sho.rt"}
		path := write(t, "mapping", mapping(t, format, opts, []report.Row{want}, 1))
		m, err := readback.OpenMapping(context.Background(), path, readback.Options{LinksOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		r, err := m.Next()
		if err != nil || string(r.Canonical) != string(want.Canonical) || string(r.Code) != string(want.Code) || r.Outcome != want.Outcome {
			t.Errorf("%s: %+v, %v", format, r, err)
		}
		if format != report.CSV && (r.Original != nil || r.Salt >= 0 || r.ShortURL != nil || r.Carried[0] != nil) {
			t.Errorf("%s: %+v", format, r)
		}
	}
}

const header = "source,row,workspace_id,original_url,canonical_url,short_code,short_url,outcome,salt"

// Damage is named, with file and row, and never a panic. The rows before it can be read.
func TestDamage(t *testing.T) {
	head, row := header+"\n", "a,1,w,o,c,s,,created,0\n"
	for text, want := range map[string]string{
		"":                            "is empty",
		"\xff\xfes\x00":               "is utf-16le",
		"\x1f\x8b":                    "its gzip ends too early",
		"source,row,workspace_id\n":   "not a mapping written by bulk: its column 4 is not named original_url",
		"\xef\xbb\xbf" + head:         "not a mapping written by bulk: its column 1 is not named source",
		"\"source":                    "the first line is no header: the quote of field 1 is never closed",
		head + row + "a,1\n":          "row 2: 2 fields where there should be 9",
		head + row + row[:9]:          "row 2: 5 fields where there should be 9",
		head + row + row[:len(row)-1]: "row 2: the file ends within it",
		head + `"a`:                   "row 1: the quote of field 1 is never closed",
		head + `a"b",1` + "\n":        "row 1: quote inside unquoted field 1",
		head + row + `"a"b,1` + "\n":  "row 2: text after the closing quote of field 1",
		head + row + strings.Replace(row, ",1,", ",01,", 1):           `row 2: column row: "01" is not a valid value`,
		head + row + strings.Replace(row, ",1,", ",,", 1):             `row 2: column row: "" is not a valid value`,
		head + row + strings.Replace(row, "created", "creates", 1):    `row 2: column outcome: "creates" is not a valid value`,
		head + row + strings.Replace(row, ",0\n", ",-1\n", 1):         `row 2: column salt: "-1" is not a valid value`,
		head + row + strings.Replace(row, ",0\n", ",9876543210\n", 1): `row 2: column salt: "9876543210" is not a valid value`,
		"PAR1PAR1":       "mapping: the file is too short to be whole",
		"ARROW1\x00\x00": "mapping: the file is too short to be whole",
	} {
		m, err := open(write(t, "mapping", []byte(text)))
		rows := 0
		for ; err == nil; rows++ {
			_, err = m.Next()
		}
		var damage *readback.DamageError
		var cell *readback.CellError
		if !errors.As(err, &damage) && !errors.As(err, &cell) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if strings.HasPrefix(want, "row 2") && rows != 2 {
			t.Errorf("%q: failed at row %d", text, rows)
		}
	}
	safe := readback.Options{ExcelSafe: true}
	var found []string
	safe.Unsafe = func(row int64, column, cell string) { found = append(found, fmt.Sprint(row, column, cell)) }
	m, err := readback.OpenMapping(context.Background(), write(t, "mapping", []byte(header+",=a\n=a,1,'=w,o,c,s,,created,0,'-\n")), safe)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := m.Next(); err != nil || string(r.Workspace) != "=w" || string(r.Carried[0]) != "-" || fmt.Sprint(found) != "[0=a=a 1source=a]" {
		t.Errorf("%+v, %v, %q", r, err, found)
	}
}

// A report may have as many columns as all its inputs, and its own.
func TestColumns(t *testing.T) {
	carried := make([]string, 1<<14)
	row := exampleRows()[0]
	row.Carried = make([][]byte, len(carried))
	for i := range carried {
		carried[i] = fmt.Sprint("c", i)
	}
	for _, format := range formats() {
		m, err := open(write(t, "mapping", mapping(t, format, report.MappingOptions{Carried: carried}, []report.Row{row}, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := m.Next(); err != nil || len(r.Carried) != len(carried) {
			t.Errorf("%s: %v", format, err)
		}
		m.Close()
	}
}

// What is no mapping of a run in a columnar format is found: a null where no run writes one,
// in whatever column, and in a dictionary too; and lists. Names may be there twice.
func TestColumnar(t *testing.T) {
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
		_, _, err := readAll(t, write(t, "mapping", arrowFile(t, array.NewRecord(record.Schema(), columns, 1))))
		var cell *readback.CellError
		name := report.Columns{}.Names()[c]
		found := errors.As(err, &cell) && cell.Row == 1 && cell.Column == name && cell.Found == "null"
		if nullable := record.Schema().Field(c).Nullable; found == nullable || nullable && err != nil {
			t.Errorf("column %s: %v", name, err)
		}
	}
	for c, column := range record.Columns() {
		read(c, null(column.Data(), nil))
	}
	none := array.NewStringBuilder(memory.DefaultAllocator)
	for range outcome.Duplicate + 1 {
		none.AppendNull()
	}
	read(7, null(record.Column(7).Data(), none.NewArray().Data()))

	for c, field := range record.Schema().Fields() {
		schema := arrow.NewSchema(append(record.Schema().Fields(), field), nil)
		twice := array.NewRecord(schema, append(slices.Clone(record.Columns()), record.Column(c)), record.NumRows())
		rows, m, err := readAll(t, write(t, "mapping", arrowFile(t, twice)))
		if err != nil || m.Carried[0] != field.Name || len(rows[0].Carried) != 1 {
			t.Errorf("column %s twice: %v, %+v", field.Name, err, rows)
		}
	}
	path := filepath.Join(t.TempDir(), "mapping")
	if err := parquet.WriteFile(path, []struct {
		Source []string `parquet:"source"`
	}{{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := open(path); err == nil || !strings.Contains(err.Error(), "its column source may have several values a row") {
		t.Error(err)
	}
}

// arrowRecord is the batch of an Arrow mapping of a few rows.
func arrowRecord(t *testing.T, rows []report.Row) arrow.Record {
	t.Helper()
	return arrowRecordOf(t, report.MappingOptions{}, rows)
}

func arrowRecordOf(t *testing.T, opts report.MappingOptions, rows []report.Row) arrow.Record {
	t.Helper()
	data := mapping(t, report.Arrow, opts, rows, len(rows))
	r, err := columnar.OpenArrow(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	record, err := r.Read(0)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func arrowFile(t *testing.T, record arrow.Record) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "arrow"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := ipc.NewFileWriter(f, ipc.WithSchema(record.Schema()))
	if err == nil {
		err = errors.Join(a.Write(record), a.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// An error of the system is returned as it is, and not as damage, whatever the format; so
// is the end of the context.
func TestErrors(t *testing.T) {
	row := exampleRows()[0]
	row.Carried = [][]byte{bytes.Repeat([]byte{'a'}, 2<<20)} // more than is read on opening
	for _, format := range formats() {
		path := write(t, "mapping", mapping(t, format, report.MappingOptions{Carried: []string{"a"}}, []report.Row{row}, 1))
		failing := false
		m, err := readback.OpenMapping(context.Background(), path, readback.Options{FS: fsystest.FS{Before: func(operation string) error {
			if failing && strings.HasPrefix(operation, "read") {
				return syscall.EIO
			}
			return nil
		}}})
		if err != nil {
			t.Fatal(err)
		}
		failing = true
		var damage *readback.DamageError
		for range 2 {
			if err := m.Read(new(readback.Block)); !errors.Is(err, syscall.EIO) || errors.As(err, &damage) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", format, err)
			}
		}
		m.Close()

		ctx, cancel := context.WithCancelCause(context.Background())
		if m, err = readback.OpenMapping(ctx, path, readback.Options{}); err != nil {
			t.Fatal(err)
		}
		stop := errors.New("stop")
		cancel(stop)
		if _, err := m.Next(); err != stop {
			t.Errorf("%s: %v", format, err)
		}
		m.Close()
	}
	if _, err := open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A bit changed anywhere in a columnar mapping is an error or another row; it is
// never a panic, and never a demand for absurd memory.
func TestFlipped(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	for _, format := range []report.Format{report.Parquet, report.Arrow} {
		data := mapping(t, format, report.MappingOptions{Carried: []string{"a", "b"}}, exampleRows(), 2)
		path := write(t, "mapping", data)
		for i := 0; i < len(data); i += step {
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << (i % 8)
			if err := os.WriteFile(path, flipped, 0o666); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			readAll(t, path)
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 16<<20 {
				t.Errorf("%s: byte %d: took %d bytes", format, i, after.TotalAlloc-before.TotalAlloc)
			}
		}
	}
}

func TestRejects(t *testing.T) {
	rejects := []outcome.Reject{
		{Source: "a,\xff", Row: 1, Offset: 0, Reason: "empty", Detail: `say "so"`, Cells: [][]byte{{}, []byte("=\x00")}, Raw: []byte{}},
		{Source: "b", Row: 7, Offset: -1, Reason: "malformed_row", Detail: "x", Cells: [][]byte{{}, {}}, Raw: []byte("a\rb,\n")},
	}
	columns, got, ok := readRejects(rejectsFile(t, []string{"raw", "note"}, rejects))
	if !ok || fmt.Sprint(columns) != "[in_raw note]" || !reflect.DeepEqual(got, rejects) {
		t.Errorf("columns %q, %+v, want %+v", columns, got, rejects)
	}
	_, err := readback.OpenRejects(context.Background(), write(t, "rejects.csv", []byte("source,row,byte_offset,reason,detail,x\n")), readback.Options{})
	if err == nil || !strings.Contains(err.Error(), "its last column is not named raw") {
		t.Error(err)
	}
}

// A number that must be there is wrong where it is not, and reading can go on.
func TestMissingNumbers(t *testing.T) {
	path := write(t, "rejects.csv", []byte("source,row,byte_offset,reason,detail,raw\na,,0,empty,,\na,1,,empty,,\n"))
	r, err := readback.OpenRejects(context.Background(), path, readback.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var cell *readback.CellError
	rows := 0
	for reject, err := range r.Rows() {
		if rows++; rows == 1 && (!errors.As(err, &cell) || cell.Row != 1 || cell.Column != "row" || cell.Found != "") {
			t.Errorf("%v", err)
		} else if rows == 2 && (err != nil || reject.Row != 1 || reject.Offset != -1) {
			t.Errorf("%+v, %v", reject, err)
		}
	}
	if rows != 2 {
		t.Errorf("%d rows", rows)
	}
}

func TestCollisions(t *testing.T) {
	collisions := []report.Collision{
		{Workspace: []byte("-w,"), Canonical: []byte("http://a/"), Salt: 0, Code: []byte("a"), Owner: []byte("http://b/,")},
		{Workspace: []byte("w"), Canonical: []byte("http://a/"), Salt: 10, Code: []byte("b")},
	}
	for _, safe := range []bool{false, true} {
		if got, ok := readCollisions(collisionsFile(t, collisions, safe), safe); !ok || !reflect.DeepEqual(got, collisions) {
			t.Errorf("%+v, want %+v", got, collisions)
		}
	}
}

func BenchmarkMapping(b *testing.B) {
	const rows = 1 << 17
	list := make([]report.Row, rows)
	for i := range list {
		list[i] = exampleRows()[i%2]
		list[i].Original = fmt.Appendf(nil, "http://example.com/some/path/of/usual/length/%d?a=1&b=2", i)
		list[i].Canonical = list[i].Original
		list[i].Carried = nil
	}
	for _, format := range formats() {
		path := write(b, "mapping", mapping(b, format, report.MappingOptions{}, list, 4096))
		b.Run("format="+string(format), func(b *testing.B) {
			for b.Loop() {
				m, err := open(path)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for _, err = m.Next(); err == nil; _, err = m.Next() {
					n++
				}
				if m.Close(); err != io.EOF || n != rows {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
