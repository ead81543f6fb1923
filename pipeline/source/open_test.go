package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/fsys"
)

func TestExpand(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"b.csv", "a.csv", "c.txt", ".hidden.csv", "x[1].csv", "sub/d.csv"} {
		os.MkdirAll(filepath.Dir(name), 0o777)
		os.WriteFile(name, []byte(name), 0o666)
	}
	os.Symlink("a.csv", "link.txt")
	stdin, _ := os.Open("sub/d.csv")
	defer stdin.Close()
	for _, tt := range []struct {
		in   string
		want string // names, or the error after "!"
	}{
		{"b.csv a.csv", "a.csv b.csv"},
		{"[ab].csv", "a.csv b.csv"},
		{"*.csv -", "- a.csv b.csv x[1].csv"},
		{"x[1].csv", "x[1].csv"},
		{".*.csv", ".hidden.csv"},
		{"*/*.csv c.txt", "c.txt sub/d.csv"},
		{"missing.csv", "missing.csv"},
		{"z*", "!z*: no file matches"},
		{"[", "!not a valid pattern"},
		{"- -", "!-: is given twice"},
		{"a.csv *.csv", "!a.csv: is given twice"},
		{"a.csv ./a.csv", "!a.csv: is the same file as ./a.csv"},
		{"a.csv link.txt", "!link.txt: is the same file as a.csv"},
		{"sub/*.csv -", "!sub/d.csv: is the same file as -"},
	} {
		got, err := Expand(strings.Fields(tt.in), stdin, false)
		if msg, bad := strings.CutPrefix(tt.want, "!"); bad {
			var usage *columns.UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), msg) {
				t.Errorf("%s: %v", tt.in, err)
			}
		} else if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, %v", tt.in, got, err)
		}
	}
	if got, err := Expand([]string{"z*", "a.csv"}, nil, true); err != nil || strings.Join(got, " ") != "a.csv" {
		t.Errorf("none is allowed: %q, %v", got, err)
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		opts Options
		want bool
	}{
		{Options{}, true}, {Options{MaxField: 1, BatchRows: 1, Block: 1}, true}, {Options{MaxField: 1 << 30}, true}, {Options{Delimiter: 0x7f}, true},
		{Options{MaxField: -1}, false}, {Options{MaxField: 1<<30 + 1}, false}, {Options{BatchRows: -1}, false}, {Options{Block: -1}, false},
		{Options{Header: HeaderNo}, true}, {Options{Header: -1}, false}, {Options{Header: HeaderNo + 1}, false},
		{Options{Delimiter: 0x80}, false}, {Options{Quote: 0x80}, false}, {Options{Delimiter: '\r'}, false}, {Options{Quote: '\n'}, false}, {Options{Delimiter: '"'}, false},
	} {
		if err := tt.opts.Validate(); (err == nil) != tt.want {
			t.Errorf("%+v: %v", tt.opts, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	parq := parquetOf(t, testRows)
	arr := arrowOf(t, true, testRecords(t))
	for name, data := range map[string][]byte{
		"truncated.csv.gz":  gzipped([]byte(strings.Repeat("url\nhttp://a/\n", 10)))[:30],
		"truncated.csv.zst": zstded([]byte(strings.Repeat("url\nhttp://a/\n", 10)))[:20],
		"truncated.parquet": parq[:len(parq)-10],
		"short.parquet":     []byte("PAR1"),
		"truncated.arrow":   arr[:len(arr)-10],
		"start.parquet":     append([]byte("PAR2"), parq[4:]...),
		"start.Arrow.gz":    gzipped(append([]byte("ARR0"), arr[4:]...)),
		"start.csv.gz":      append([]byte{0x1e}, gzipped([]byte("url\nhttp://a/\n"))[1:]...),
		"start.csv.ZST":     append([]byte{0x29}, zstded([]byte("url\nhttp://a/\n"))[1:]...),
		"plain.csv.gz":      []byte("url\nhttp://a/\n"),
		"some.zip":          []byte("PK\x03\x04..."),
		"sheet.xlsx":        []byte("PK\x03\x04...\x00xl/workbook.xml"),
		"sheet.ods":         []byte("PK\x03\x04...mimetypeapplication/vnd.oasis.opendocument.spreadsheet"),
		"sheet.xls":         []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
		"page.csv":          []byte("\xef\xbb\xbf\r\n<!doctype html><title>Log in</title>"),
		"links.xml":         []byte("<?xml version=\"1.0\"?><links/>"),
		"paper.pdf":         []byte("%PDF-1.7\n%\xe2\xe3"),
		"chart.png":         []byte("\x89PNG\r\n\x1a\n\x00\x00"),
		"dot.gif":           []byte("GIF89a\x01\x00\x01\x00"),
		"random.csv":        randomBytes(2000),
		"python.json.gz":    gzipped([]byte("[{'url': 'http://a/'}]")),
		"secret.parquet":    []byte("PARE\x1c\x00\x00\x00..."),
		"one.feather":       []byte("FEA1\x00\x00\x00\x00..."),
		"frame.lz4":         []byte("\x04\x22\x4d\x18..."),
		"frame.lz4.gz":      gzipped([]byte("\x04\x22\x4d\x18...")),
		"a.bz2.gz":          gzipped([]byte("BZh...")),
		"a.xz.gz":           gzipped([]byte("\xfd7zXZ\x00...")),
		"sheet.xlsx.gz":     gzipped([]byte("PK\x03\x04...")),
		"links.db.zst":      zstded([]byte("SQLite format 3\x00...")),
		"secret.parquet.gz": gzipped([]byte("PARE\x1c\x00\x00\x00...")),
		"twice.gz":          gzipped(gzipped([]byte("url\n"))),
		"twice.zst":         zstded(gzipped([]byte("url\n"))),
		"garbage.gz":        append(gzipped([]byte("url\nhttp://a/\n")), "garbage after the member"...),
		"columns.csv":       bytes.Repeat([]byte("a,"), columns.MaxColumns),
		"long.csv":          bytes.Repeat([]byte("a"), 3<<20),
		"empty.parquet":     nil,
		"empty.csv.gz":      nil,
		"unreadable":        nil,
	} {
		os.WriteFile(at(name), data, 0o666)
	}
	os.Chmod(at("unreadable"), 0)
	for name, want := range map[string]string{
		"truncated.csv.gz":  "open NAME: its gzip ends too early, or something follows it",
		"truncated.csv.zst": "open NAME: its zstd ends too early, or something follows it",
		"truncated.parquet": "open NAME: the file does not end with PAR1: it is not whole",
		"short.parquet":     "open NAME: the file is too short to be whole",
		"truncated.arrow":   "open NAME: the file does not end with ARROW1: it is not whole",
		"start.parquet":     "open NAME: does not begin as a .parquet file: it is damaged, or a text that needs another name",
		"start.Arrow.gz":    "open NAME: does not begin as a .arrow file: it is damaged, or a text that needs another name",
		"start.csv.gz":      "open NAME: does not begin as a .gz file, and is not text: it is damaged",
		"start.csv.ZST":     "open NAME: does not begin as a .zst file, and is not text: it is damaged",
		"sheet.xlsx":        "NAME: is a spreadsheet file (.xlsx or .ods), which cannot be read: save it as CSV",
		"sheet.ods":         "NAME: is a spreadsheet file (.xlsx or .ods), which cannot be read: save it as CSV",
		"sheet.xls":         "NAME: is a file of an old Office program (.xls, .doc), which cannot be read: save it as CSV",
		"page.csv":          "NAME: is an HTML page, which cannot be read: a page to log in, or an error, may have been saved instead of the file",
		"links.xml":         "NAME: is XML, which cannot be read: convert it to CSV or JSON",
		"paper.pdf":         "NAME: is a PDF file, which cannot be read: export the table as CSV",
		"chart.png":         "NAME: is an image, which cannot be read: give the table that it shows",
		"dot.gif":           "NAME: is an image, which cannot be read: give the table that it shows",
		"random.csv":        "NAME: is neither text nor in a known format: give CSV, JSON, Parquet or Arrow",
		"python.json.gz":    "NAME: is not JSON: neither its first value nor a line in its beginning can be parsed. If it is CSV, give it another name",
		"some.zip":          "NAME: is a ZIP archive, which cannot be read: unzip -p FILE | bulk run -",
		"secret.parquet":    "NAME: is an encrypted Parquet file, which cannot be read: write it without encryption",
		"one.feather":       "NAME: is Feather of version 1, which cannot be read: write it as version 2, or as Parquet",
		"frame.lz4":         "NAME: is LZ4, which cannot be read: lz4 -dc FILE | bulk run -",
		"frame.lz4.gz":      "NAME: is LZ4, which cannot be read: decompress it with gzip, then: lz4 -dc FILE | bulk run -",
		"a.bz2.gz":          "NAME: is bzip2, which cannot be read: decompress it with gzip, then: bzip2 -dc FILE | bulk run -",
		"a.xz.gz":           "NAME: is xz, which cannot be read: decompress it with gzip, then: xz -dc FILE | bulk run -",
		"sheet.xlsx.gz":     "NAME: is a ZIP archive, which cannot be read: decompress it with gzip, then: unzip -p FILE | bulk run -",
		"links.db.zst":      "NAME: is a SQLite database, which cannot be read: decompress it with zstd, then: sqlite3 -csv -header FILE 'SELECT ...' | bulk run -",
		"secret.parquet.gz": "NAME: is an encrypted Parquet file, which cannot be read: write it without encryption",
		"twice.gz":          "NAME: is compressed twice, which cannot be read: gzip -dc FILE | bulk run -",
		"twice.zst":         "NAME: is compressed twice, which cannot be read: zstd -dc FILE | bulk run -",
		"garbage.gz":        "open NAME: something follows its gzip: gzip: invalid header",
		"columns.csv":       "NAME: has 16385 columns, more than 16384",
		"long.csv":          "NAME: cannot tell the columns: no record in the first",
		"empty.parquet":     "open NAME: is empty: a .parquet file has bytes even without rows",
		"empty.csv.gz":      "open NAME: is empty: a .gz file has bytes even without rows",
		".":                 "NAME: is a directory; give its files: '",
		"missing":           "NAME: no such file or directory",
		"unreadable":        "open NAME: permission denied",
	} {
		if name == "unreadable" && os.Getuid() == 0 {
			continue
		}
		_, err := Open(context.Background(), at(name), Options{})
		if err == nil || !strings.HasPrefix(err.Error(), strings.ReplaceAll(want, "NAME", at(name))) {
			t.Errorf("%s: %v", name, err)
		}
	}
	run := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(run, "mapping"), 0o777), os.WriteFile(filepath.Join(run, "manifest.json"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), filepath.Join(run, "mapping"), Options{}); err == nil || !strings.HasSuffix(err.Error(), "is a directory of a run in parts; give the files that manifest.json beside it lists") {
		t.Error(err)
	}
	if _, err := Open(context.Background(), at("plain.csv.gz"), Options{}); err != nil {
		t.Errorf("a text that was compressed before: %v", err)
	}
	if _, err := Open(context.Background(), "-", Options{}); err == nil {
		t.Error("standard input that is not there")
	}
	if _, err := Open(context.Background(), at("missing"), Options{Quote: ',', Delimiter: ','}); !errors.As(err, new(*columns.UsageError)) {
		t.Error(err)
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// A gone is a file system that has lost its files, and says so in its own words.
type gone struct{ fsys.OS }

var errGone = errors.New("the disk is gone")

func (gone) Stat(string) (fs.FileInfo, error) { return nil, errGone }

func TestOpenTellsWhy(t *testing.T) {
	_, err := Open(t.Context(), "a.csv", Options{FS: gone{}})
	if !errors.Is(err, errGone) || err.Error() != "open a.csv: the disk is gone" {
		t.Errorf("%v", err)
	}
}

// What is damaged behind the start is an error of Read that names the place.
func TestReadErrors(t *testing.T) {
	lines := "url\n" + strings.Repeat("http://a/b/c\n", 50_000)
	gz := gzipped([]byte(lines))
	var rows []testRow
	for range 5000 {
		rows = append(rows, testRow{"http://example.com/some/path", "t"})
	}
	parq := parquetOf(t, rows)
	copy(parq[200:], bytes.Repeat([]byte{0xff}, 100))
	stream := arrowOf(t, false, testRecords(t))
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"x.csv.gz", gz[:len(gz)-20], "after record"},
		{"x.parquet", parq, "row group 1"},
		{"x.arrow", stream[:len(stream)-100], "record batch"},
	} {
		name := write(t, tt.name, tt.data)
		in, err := Open(context.Background(), name, Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		_, err = collect(in)
		if err == nil || !strings.HasPrefix(err.Error(), "read "+name) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// A stream that is cut off inside a message is damaged, wherever that is.
func TestArrowStreamCut(t *testing.T) {
	data := arrowOf(t, false, testRecords(t))
	whole := map[int]bool{}
	for n := range len(data) {
		in, err := openBytes(data[:n], Options{Choice: columns.Choice{URLColumn: "1"}})
		if n < 4 || err != nil {
			continue
		}
		if in.Format != "arrow" {
			continue
		}
		recs, err := collect(in)
		if err == nil {
			whole[len(recs)] = true
			if n%8 != 0 {
				t.Errorf("cut at %d: %d records and no error", n, len(recs))
			}
		}
	}
	if len(whole) > 3 {
		t.Errorf("record counts without an error: %v", whole)
	}
}

func TestChangedFile(t *testing.T) {
	name := write(t, "x.csv", []byte("url\nhttp://a/\n"))
	in, err := Open(context.Background(), name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(name, []byte("url\nhttp://a/\nhttp://b/\n"), 0o666)
	if _, err := collect(in); err == nil || !strings.Contains(err.Error(), "changed after it was opened") {
		t.Error(err)
	}
	in, err = Open(context.Background(), name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = in.Read(context.Background(), 1, func(_ int, b *Batch) error {
		return os.WriteFile(name, []byte("url\n"), 0o666)
	})
	if err == nil || !strings.Contains(err.Error(), "changed after it was opened") {
		t.Error(err)
	}
}

func TestLimit(t *testing.T) {
	text := "url,team\nhttp://a/,x\nragged\nhttp://b/,\"y\"\nhttp://c/,z\n\n\n"
	parq := parquetOf(t, testRows)
	arr := arrowOf(t, false, testRecords(t))
	for _, tt := range []struct {
		name  string
		data  []byte
		limit int64
		n     int
		cut   bool
	}{
		{"text", []byte(text), 2, 2, true},
		{"text", []byte(text), 3, 3, true},
		{"text, all", []byte(text), 4, 4, false},
		{"text, more", []byte(text), 5, 4, false},
		{"parquet", parq, 2, 2, true},
		{"parquet, all", parq, 3, 3, false},
		{"arrow", arr, 1, 1, true},
		{"arrow, at a batch's end", arr, 2, 2, true},
		{"arrow, all", arr, 3, 3, false},
	} {
		var sums [][32]byte
		for _, batch := range []int{1, 2, 1000} {
			in, err := Open(context.Background(), write(t, "x", tt.data), Options{BatchRows: batch})
			if err != nil {
				t.Fatal(err)
			}
			in.Limit = tt.limit
			recs, err := collect(in)
			if err != nil || len(recs) != tt.n || in.Cut() != tt.cut || in.Records() != int64(tt.n) {
				t.Errorf("%s %d: %d records, cut %t, %v", tt.name, tt.limit, len(recs), in.Cut(), err)
			}
			if tt.cut != (in.Size() == 0) {
				t.Errorf("%s: size %d", tt.name, in.Size())
			}
			sums = append(sums, in.SHA256())
		}
		if len(slices.Compact(sums)) != 1 {
			t.Errorf("%s %d: digests differ", tt.name, tt.limit)
		}
	}
}

// A standard input of which no more records are wanted is not read on, but for a Read
// that was waiting.
func TestLimitLeavesTheRest(t *testing.T) {
	r := &limitedReader{left: peekBytes, met: make(chan struct{})}
	in, err := Open(t.Context(), "-", Options{Stdin: r, Block: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	in.Limit = 5
	src := in.src
	recs, err := collect(in)
	close(r.met)
	<-src.done
	if len(recs) != 5 || err != nil || r.after > 1 {
		t.Errorf("%d records, %v, then %d reads", len(recs), err, r.after)
	}
}

// A limitedReader has lines of one byte, and gives one a call. After those that
// are left it waits until the limit is met, and counts.
type limitedReader struct {
	left, after int
	met         chan struct{}
}

func (r *limitedReader) Read(p []byte) (int, error) {
	if r.left--; r.left < 0 {
		<-r.met
		r.after++
	}
	p[0] = "x\n"[r.left&1]
	return 1, nil
}

// The digest of a part tells records apart that their bytes in a row do not.
func TestCutDigest(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, text := range []string{
		"u,v\na,bc\nx,y\n", "u,v\nab,c\nx,y\n", "u,v\nabc,\nx,y\n", "u,v\nabc\nx,y\n", "u,v\n\"ab\",\"c\"x\nx,y\n",
	} {
		in, err := openBytes([]byte(text), Options{Choice: columns.Choice{URLColumn: "u"}})
		if err != nil {
			t.Fatal(err)
		}
		in.Limit = 1
		collect(in)
		if other, ok := seen[in.SHA256()]; ok || !in.Cut() {
			t.Errorf("%q and %q, cut %t", text, other, in.Cut())
		}
		seen[in.SHA256()] = text
	}
}

func TestEmit(t *testing.T) {
	own := errors.New("own")
	for name, data := range map[string][]byte{"csv": []byte("url\nhttp://a/\n"), "parquet": parquetOf(t, testRows), "arrow": arrowOf(t, true, testRecords(t))} {
		in, err := openBytes(data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Read(context.Background(), 1, func(_ int, b *Batch) error { return own }); err != own {
			t.Errorf("%s: %v", name, err)
		}
		if err := in.Read(context.Background(), 1, nil); err == nil {
			t.Errorf("%s is read twice", name)
		}
		in, _ = openBytes(data, Options{})
		func() {
			defer func() {
				if p := recover(); p != own {
					t.Errorf("%s: the panic of emit became %v", name, p)
				}
			}()
			in.Read(context.Background(), 1, func(_ int, b *Batch) error { panic(own) })
		}()
	}
}

// What was closed is not read, be it a stream or a file.
func TestReadAfterClose(t *testing.T) {
	path := write(t, "a.csv", []byte("url\nhttp://a/\n"))
	for _, name := range []string{path, "-"} {
		in, err := Open(t.Context(), name, Options{Stdin: strings.NewReader("url\nhttp://a/\n")})
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if recs, err := collect(in); err == nil || len(recs) > 0 {
			t.Errorf("%s: %v, %v", name, recs, err)
		}
	}
}

// The error of emit ends a Read although other workers wait for a stream that pauses.
func TestEmitWhileAStreamPauses(t *testing.T) {
	own := errors.New("own")
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema([]arrow.Field{{Name: "url", Type: arrow.BinaryTypes.String}}, nil))
	b.Field(0).(*array.StringBuilder).Append(strings.Repeat("x", 2*peekBytes))
	data := arrowOf(t, false, []arrow.Record{b.NewRecord()})
	r, w := io.Pipe()
	defer w.Close()
	// The mark of its end is to come. Messages fill blocks of 8 bytes: one that is not full
	// is not handed on.
	go w.Write(data[:len(data)-8])
	in, err := Open(t.Context(), "-", Options{Stdin: r, Block: 8})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		ended <- in.Read(t.Context(), 4, func(int, *Batch) error { return own })
	}()
	select {
	case err := <-ended:
		if err != own {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for the stream")
	}
}

// A cancelled Read returns the cause, also from a FIFO that never ends, and no
// goroutine stays.
func TestCancel(t *testing.T) {
	before := runtime.NumGoroutine()
	cause := errors.New("enough")
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		defer w.Close()
		for ctx.Err() == nil {
			if _, err := io.WriteString(w, "url\n"+strings.Repeat("http://a/\n", 50_000)); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	in, err := Open(ctx, fifo, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = in.Read(ctx, 1, func(_ int, b *Batch) error {
		if n++; n == 3 {
			cancel(cause)
		}
		return nil
	})
	if err != cause {
		t.Error(err)
	}
	if _, err := Open(ctx, fifo, Options{}); err != cause {
		t.Error(err)
	}
	parq := write(t, "x.parquet", parquetOf(t, testRows))
	in, err = Open(context.Background(), parq, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Read(ctx, 1, func(_ int, b *Batch) error { return nil }); err != cause {
		t.Error(err)
	}
	// A writer lets the Open that was left behind go, once it is there.
	for i := 0; runtime.NumGoroutine() > before && i < 10_000; i++ {
		if w, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			w.Close()
		}
		time.Sleep(time.Millisecond)
	}
	noneStays(t, before)
}

// Thousands of opened inputs hold no descriptor.
func TestDescriptors(t *testing.T) {
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(fds)
	}
	names := []string{
		write(t, "a.csv", []byte("url\nhttp://a/\n")), write(t, "b.parquet", parquetOf(t, testRows)),
		write(t, "c.arrow.gz", gzipped(arrowOf(t, true, testRecords(t)))),
	}
	before := open()
	for range 50 {
		for _, name := range names {
			in, err := Open(context.Background(), name, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
		}
	}
	if after := open(); after > before+2 {
		t.Errorf("%d descriptors, were %d", after, before)
	}
}

// countingReader counts the calls of Read.
type countingReader struct {
	io.Reader
	calls int
}

func (r *countingReader) Read(p []byte) (int, error) {
	r.calls++
	return r.Reader.Read(p)
}

// Of compressed inputs whole blocks are read, however small what is compressed in
// them: a call of the system for each part of each frame would take far longer than
// to decompress them.
func TestSmallFrames(t *testing.T) {
	for name, compress := range map[string]func([]byte) []byte{"gzip": gzipped, "zstd": zstded} {
		data := append(compress([]byte("url\n")), bytes.Repeat(compress([]byte("http://a/\n")), 1000)...)
		r := &countingReader{Reader: bytes.NewReader(data)}
		in, err := Open(t.Context(), "-", Options{Stdin: r})
		if err != nil {
			t.Fatal(err)
		}
		recs, err := collect(in)
		if want := 10 + len(data)/4096; len(recs) != 1000 || err != nil || r.calls > want {
			t.Errorf("%s: %d records, %v, read by %d calls; want at most %d", name, len(recs), err, r.calls, want)
		}
	}
}
