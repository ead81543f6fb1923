package report

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

var errFull = errors.New("full")

// failingWriter fails after so many writes.
type failingWriter struct{ after int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.after == 0 {
		return 0, errFull
	}
	w.after--
	return len(p), nil
}

func formats() []Format { return []Format{CSV, Parquet, Arrow} }

func newMapping(t testing.TB, w io.Writer, f Format, opts MappingOptions) Mapping {
	t.Helper()
	m, err := NewMapping(w, f, opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mapping writes rows in blocks of a size.
func mapping(t testing.TB, f Format, opts MappingOptions, rows []Row, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	m := newMapping(t, &out, f, opts)
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

func exampleRows() []Row {
	return []Row{
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

func TestMappingCSV(t *testing.T) {
	carried := []string{"note", "=b,c"}
	tests := map[string]MappingOptions{
		"mapping.csv":       {Carried: carried, BaseURL: "https://sho.rt"},
		"mapping_safe.csv":  {Carried: carried, BaseURL: "https://sho.rt/x/", ExcelSafe: true},
		"mapping_base.csv":  {Carried: carried, BaseURL: "=a,b", ExcelSafe: true},
		"mapping_plain.csv": {Carried: carried},
	}
	for name, opts := range tests {
		golden(t, name, mapping(t, CSV, opts, exampleRows(), 2))
	}
}

func TestMappingWithoutRows(t *testing.T) {
	for _, f := range formats() {
		out := mapping(t, f, MappingOptions{Carried: []string{"note"}}, nil, 1)
		columns, rows := readMapping(t, f, out)
		if want := append(Columns{}.Names(), "note"); !slices.Equal(columns, want) || len(rows) != 0 {
			t.Errorf("%s: got columns %q and rows %q", f, columns, rows)
		}
	}
}

func TestMappingRoundTrip(t *testing.T) {
	opts := MappingOptions{Carried: []string{"note", "\xffsalt"}, BaseURL: "https://sho.rt/"}
	want := [][]string{
		{"links.csv", "1", "ws", "HTTP://a.example/?x=1,2", "http://a.example/?x=1,2", "7Yq2pQx1Ab", "https://sho.rt/7Yq2pQx1Ab", "created", "0", `say "hi"`, "NULL"},
		{"links.csv", "3", "ws", "http://a.example/?x=1,2", "http://a.example/?x=1,2", "7Yq2pQx1Ab", "https://sho.rt/7Yq2pQx1Ab", "duplicate", "0", "", "=1+1"},
		{"b,%FF.csv", "2", "-ü", "\thttp://b.example/\xff", "http://b.example/%FF", "8aaaaaaaaa", "https://sho.rt/8aaaaaaaaa", "existing", "NULL", "\xfe\n", "x"},
		{"links.csv", "9", "ws", "NULL", "http://c.example/", "9bbbbbbbbb", "https://sho.rt/9bbbbbbbbb", "created", "3", "NULL", "NULL"},
	}
	for _, f := range []Format{Parquet, Arrow} {
		columns, rows := readMapping(t, f, mapping(t, f, opts, exampleRows(), 3))
		if want := append(Columns{}.Names(), "note", "%FFsalt"); !slices.Equal(columns, want) {
			t.Errorf("%s: columns %q", f, columns)
		}
		if !slices.EqualFunc(rows, want, slices.Equal) {
			t.Errorf("%s: got\n%q\nwant\n%q", f, rows, want)
		}
		_, rows = readMapping(t, f, mapping(t, f, MappingOptions{Carried: opts.Carried}, exampleRows(), 3))
		if rows[0][6] != "NULL" {
			t.Errorf("%s: short_url without a base: %q", f, rows[0][6])
		}
	}
}

// What is the bytes of an input is no text to Parquet and Arrow, and all else of letters is.
func TestMappingTypes(t *testing.T) {
	opts := MappingOptions{Carried: []string{"note"}}
	for f, types := range map[Format][]string{
		Parquet: {"STRING", "INT(64,true)", "STRING", "BYTE_ARRAY, null", "STRING", "STRING", "STRING, null", "STRING", "INT(32,true), null", "BYTE_ARRAY, null"},
		Arrow: {"utf8", "int64", "utf8", "binary, null", "utf8", "utf8", "utf8, null",
			"dictionary<values=utf8, indices=uint8, ordered=false>", "int32, null", "binary, null"},
	} {
		var names, got []string
		note := func(name, typ string, optional bool) {
			if optional {
				typ += ", null"
			}
			names, got = append(names, name), append(got, typ)
		}
		data := mapping(t, f, opts, exampleRows(), 3)
		if f == Parquet {
			file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range file.Schema().Fields() {
				note(field.Name(), field.Type().String(), field.Optional())
			}
		} else {
			file, err := ipc.NewFileReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range file.Schema().Fields() {
				note(field.Name, field.Type.String(), field.Nullable)
			}
		}
		if want := append(Columns{}.Names(), "note"); !slices.Equal(names, want) || !slices.Equal(got, types) {
			t.Errorf("%s: %q are\n%q, want\n%q", f, names, got, types)
		}
	}
}

// readMapping reads a mapping as text, a null as NULL.
func readMapping(t *testing.T, f Format, data []byte) (columns []string, rows [][]string) {
	t.Helper()
	switch f {
	case CSV:
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		for _, line := range lines[1:] {
			rows = append(rows, strings.Split(line, ","))
		}
		return strings.Split(lines[0], ","), rows
	case Parquet:
		return readParquet(t, data)
	}
	return readArrow(t, data)
}

func readParquet(t *testing.T, data []byte) (columns []string, rows [][]string) {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range file.Schema().Columns() {
		columns = append(columns, path[0])
	}
	for _, group := range file.RowGroups() {
		reader := group.Rows()
		buf := make([]parquet.Row, 1000)
		for {
			n, err := reader.ReadRows(buf)
			for _, row := range buf[:n] {
				rows = append(rows, parquetRow(row))
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return columns, rows
}

func parquetRow(row parquet.Row) (cells []string) {
	for _, v := range row {
		switch {
		case v.IsNull():
			cells = append(cells, "NULL")
		case v.Kind() == parquet.ByteArray:
			cells = append(cells, string(v.ByteArray()))
		default:
			cells = append(cells, fmt.Sprint(v.Int64()))
		}
	}
	return cells
}

func readArrow(t *testing.T, data []byte) (columns []string, rows [][]string) {
	t.Helper()
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, field := range r.Schema().Fields() {
		columns = append(columns, field.Name)
	}
	for i := range r.NumRecords() {
		record, err := r.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		for row := range int(record.NumRows()) {
			var cells []string
			for _, column := range record.Columns() {
				cells = append(cells, arrowCell(column, row))
			}
			rows = append(rows, cells)
		}
	}
	return columns, rows
}

func arrowCell(column arrow.Array, row int) string {
	switch c := column.(type) {
	case *array.Binary:
		if !c.IsNull(row) {
			return string(c.Value(row))
		}
	case *array.Dictionary:
		return c.Dictionary().ValueStr(c.GetValueIndex(row))
	default:
		if !c.IsNull(row) {
			return c.ValueStr(row)
		}
	}
	return "NULL"
}

// randomRows makes enough rows for several groups.
func randomRows(n int) []Row {
	random := rand.New(rand.NewPCG(3, 4))
	rows := benchRows(n)
	for i := range rows {
		r := &rows[i]
		r.Source = []string{"a.csv", "b.csv"}[random.IntN(2)]
		r.Salt = random.IntN(12) - 1
		cell := []byte(fmt.Sprint(random.IntN(5)))
		r.Carried = [][]byte{slices.Clip(cell[:random.IntN(2)]), nil}
		if random.IntN(3) == 0 {
			r.Carried[1] = cell
			r.Original = append([]byte("x"), r.Original...)
		}
	}
	return rows
}

func TestMappingDoesNotDependOnBlocks(t *testing.T) {
	sizes := []int{1, 7, 1000, 65_536, 100_000}
	if testing.Short() {
		sizes = []int{1000}
	}
	rows := randomRows(parquetRows + 5000)
	opts := MappingOptions{Carried: []string{"x", "y"}, BaseURL: "https://sho.rt"}
	for _, f := range formats() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			want := mapping(t, f, opts, rows, len(rows))
			for i, size := range sizes {
				opts := opts
				opts.Workers = 3 - i%3
				if !bytes.Equal(mapping(t, f, opts, rows, size), want) {
					t.Errorf("blocks of %d rows: other bytes", size)
				}
			}
			if _, got := readMapping(t, f, want); len(got) != len(rows) {
				t.Errorf("%d rows read back, want %d", len(got), len(rows))
			}
		})
	}
}

// A reader that looks for a code or a row finds in the footer where it can be.
func TestParquetBounds(t *testing.T) {
	rows := benchRows(parquetRows + 100)
	slices.SortFunc(rows, func(a, b Row) int { return bytes.Compare(a.Code, b.Code) })
	for i := range rows {
		rows[i].Workspace = fmt.Appendf(nil, "ws%d", i/parquetRows)
		if i%3 == 0 {
			rows[i].Salt = -1
		}
	}
	data := mapping(t, Parquet, MappingOptions{Workers: 3}, rows, 1000)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	meta := file.Metadata()
	if len(meta.RowGroups) != 2 {
		t.Fatalf("%d row groups", len(meta.RowGroups))
	}
	for i, group := range slices.Collect(slices.Chunk(rows, parquetRows)) {
		least, most, nulls := group[0].Row, group[0].Row, int64(0)
		for _, r := range group {
			least, most = min(least, r.Row), max(most, r.Row)
			if r.Salt < 0 {
				nulls++
			}
		}
		statistics := func(column int) format.Statistics { return meta.RowGroups[i].Columns[column].MetaData.Statistics }
		number := func(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
		for column, want := range map[int][2][]byte{
			0: {[]byte("links.csv"), []byte("links.csv")},
			1: {number(least), number(most)},
			2: {group[0].Workspace, group[0].Workspace},
			5: {group[0].Code, group[len(group)-1].Code},
		} {
			if got := statistics(column); !bytes.Equal(got.MinValue, want[0]) || !bytes.Equal(got.MaxValue, want[1]) {
				t.Errorf("row group %d, column %d: bounds %q, %q, want %q", i, column, got.MinValue, got.MaxValue, want)
			}
		}
		if got := statistics(8).NullCount; got != nulls {
			t.Errorf("row group %d: %d salts are null, want %d", i, got, nulls)
		}
		if got := statistics(6).NullCount; got != int64(len(group)) {
			t.Errorf("row group %d: %d short URLs are null, want %d", i, got, len(group))
		}
		for column := range meta.RowGroups[i].Columns {
			if got, want := nullsOfPages(t, data, &meta.RowGroups[i].Columns[column].MetaData), statistics(column).NullCount; got != want {
				t.Errorf("row group %d, column %d: its pages say that %d cells are null, the footer %d", i, column, got, want)
			}
		}
		if got := meta.RowGroups[i].NumRows; got != int64(len(group)) {
			t.Errorf("row group %d: %d rows, want %d", i, got, len(group))
		}
	}
}

// nullsOfPages adds up the nulls that the headers of a chunk's data pages tell of.
func nullsOfPages(t *testing.T, data []byte, m *format.ColumnMetaData) (nulls int64) {
	t.Helper()
	start := m.DataPageOffset
	if m.DictionaryPageOffset > 0 {
		start = m.DictionaryPageOffset
	}
	for rest := bytes.NewReader(data[start : start+m.TotalCompressedSize]); rest.Len() > 0; {
		var header format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(rest)).Decode(&header); err != nil {
			t.Fatal(err)
		}
		nulls += header.DataPageHeader.V.Statistics.NullCount
		if _, err := rest.Seek(int64(header.CompressedPageSize), io.SeekCurrent); err != nil {
			t.Fatal(err)
		}
	}
	return nulls
}

// groupSizes is an encoder that only notes the rows of each group.
type groupSizes []int

func (g *groupSizes) encode(of *group) ([]func() error, func() error) {
	return nil, func() error { *g = append(*g, of.rows); return nil }
}
func (g *groupSizes) close() error { return nil }

func TestGroupsAreCutByBytesToo(t *testing.T) {
	const rows = 50
	large := make([]byte, groupBytes/10)
	sizes := []int{1, 7, rows}
	if testing.Short() {
		sizes = []int{7}
	}
	for _, size := range sizes {
		var sizes groupSizes
		m := newColumnMapping(&sizes, 20, MappingOptions{Carried: []string{"x"}})
		for i := 0; i < rows; i += size {
			b := m.Block()
			for j := i; j < min(rows, i+size); j++ {
				cell := []byte("small")
				if j >= 25 {
					cell = large
				}
				b.Append(&Row{Code: []byte("c"), Carried: [][]byte{cell}})
			}
			if err := m.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		// The second group has five small rows and ten large ones.
		if want := []int{20, 15, 10, 5}; !slices.Equal(sizes, want) {
			t.Errorf("blocks of %d: got groups of %v, want %v", size, sizes, want)
		}
	}
}

func TestBlocksAreFilledByMany(t *testing.T) {
	rows := randomRows(4000)
	opts := MappingOptions{Carried: []string{"x", "y"}, Workers: 4}
	for _, f := range formats() {
		var out bytes.Buffer
		m := newMapping(t, &out, f, opts)
		blocks := make([]Block, 8)
		var wg sync.WaitGroup
		for i := range blocks {
			wg.Go(func() {
				blocks[i] = m.Block()
				for j := range rows[i*500 : (i+1)*500] {
					blocks[i].Append(&rows[i*500+j])
				}
			})
		}
		wg.Wait()
		for _, b := range blocks {
			if err := m.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), mapping(t, f, opts, rows, 100)) {
			t.Errorf("%s: other bytes", f)
		}
	}
}

// A block without rows is at once another's: Write does not look at it again. The
// race detector sees it if it does.
func TestEmptyBlocks(t *testing.T) {
	const filled = 3000
	row := randomRows(1)[0]
	for _, f := range formats() {
		var out bytes.Buffer
		m := newMapping(t, &out, f, MappingOptions{Carried: []string{"x", "y"}})
		blocks := make(chan Block, 4)
		var filling sync.WaitGroup
		for range 3 {
			filling.Go(func() {
				for i := range 2 * filled {
					b := m.Block()
					if i%2 == 0 {
						b.Append(&row)
					}
					blocks <- b
				}
			})
		}
		go func() {
			filling.Wait()
			close(blocks)
		}()
		for b := range blocks {
			if err := m.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if _, rows := readMapping(t, f, out.Bytes()); len(rows) != 3*filled {
			t.Errorf("%s: %d rows of %d", f, len(rows), 3*filled)
		}
	}
}

func TestMappingTellsOfWriteErrors(t *testing.T) {
	rows := randomRows(2000)
	for _, f := range formats() {
		for n := 0; ; n++ {
			m := newMapping(t, &failingWriter{after: n}, f, MappingOptions{Carried: []string{"x", "y"}})
			b := m.Block()
			for i := range rows {
				b.Append(&rows[i])
			}
			err := m.Write(b)
			if err == nil {
				err = m.Close()
			}
			if err == nil {
				if n == 0 {
					t.Errorf("%s: nothing was written", f)
				}
				break
			}
			if !errors.Is(err, errFull) {
				t.Fatalf("%s: write %d failed with %v", f, n, err)
			}
		}
	}
}

// A report is closed once: later calls return what the first did and write nothing, and
// a row that comes then is not lost without a word.
func TestClosedReports(t *testing.T) {
	type closer interface{ Close() error }
	for _, failing := range []bool{false, true} {
		var out bytes.Buffer
		var w io.Writer = &out
		if failing {
			w = &failingWriter{}
		}
		rejects, collisions := NewRejects(w, nil), NewCollisions(w, false, false)
		reports, appends := []closer{rejects, collisions}, []func() error{
			func() error { return rejects.Append(&outcome.Reject{}) }, func() error { return collisions.Append(&Collision{}) },
		}
		for _, f := range formats() {
			m := newMapping(t, w, f, MappingOptions{})
			b := m.Block()
			b.Append(&exampleRows()[0])
			reports, appends = append(reports, m), append(appends, func() error { return m.Write(b) })
		}
		for i, r := range reports {
			out.Reset()
			if err := r.Close(); failing != errors.Is(err, errFull) || !failing && err != nil {
				t.Errorf("%T, failing %t: %v", r, failing, err)
			}
			written := out.Len()
			if err := appends[i](); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("report %d: append after close: %v", i, err)
			}
			if err := r.Close(); failing != errors.Is(err, errFull) || out.Len() != written {
				t.Errorf("report %d, failing %t: closed again: %v, %d bytes more", i, failing, err, out.Len()-written)
			}
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := NewMapping(io.Discard, "xlsx", MappingOptions{}); err == nil || !strings.Contains(err.Error(), `"xlsx"`) {
		t.Errorf("got %v", err)
	}
}
