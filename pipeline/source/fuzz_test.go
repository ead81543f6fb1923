package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/parquet-go/parquet-go"
)

// What a few bytes may cost: a page, or a batch, of what is not there.
const (
	mostFuzzBytes = 3 << 30
	mostFuzzRows  = 20_000 // a few bytes can stand for very many nulls
)

var errEnough = errors.New("enough")

func TestMain(m *testing.M) { os.Exit(quick.Main(m)) }

// fuzzFormat reads whatever data is, twice.
func fuzzFormat(t *testing.T, data []byte) { readTwice(t, data, 2*mostFuzzBytes) }

// readTwice reads whatever data is, from a stream, with batches of two sizes: an
// error or the end, no panic, no more bytes of memory than most, and both times the
// same cells, as many as are counted.
func readTwice(t *testing.T, data []byte, most uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	seed := maphash.MakeSeed()
	one, errOne := fuzzRead(t, data, Options{BatchRows: 3}, seed)
	two, errTwo := fuzzRead(t, data, Options{BatchRows: 1000}, seed)
	if (errOne == nil) != (errTwo == nil) || errOne == nil && one != two {
		t.Errorf("%d and %d, %v and %v", one, two, errOne, errTwo)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > most {
		t.Errorf("took %d bytes", after.TotalAlloc-before.TotalAlloc)
	}
}

// fuzzRead returns a digest of the cells.
func fuzzRead(t *testing.T, data []byte, opts Options, seed maphash.Seed) (uint64, error) {
	opts.URLColumn = "1"
	in, err := openBytes(data, opts)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	var sum maphash.Hash
	sum.SetSeed(seed)
	n := int64(0)
	err = in.Read(context.Background(), 1, func(_ int, b *Batch) error {
		for i := range int(b.Record.NumRows()) {
			for _, column := range b.Record.Columns() {
				fmt.Fprintf(&sum, "%t %q", column.IsNull(i), column.(*array.Binary).Value(i))
			}
			if n++; n > mostFuzzRows {
				return errEnough
			}
		}
		n += int64(len(b.Errors))
		return nil
	})
	switch {
	case err == nil && n != in.Rows():
		t.Fatalf("%d rows, %d counted, %d blank", n, in.Rows(), in.BlankRows())
	case err == errEnough:
		return sum.Sum64(), nil
	}
	return sum.Sum64(), err
}

// Each byte of the metadata in turn claims more than there is. The decoders
// would allocate that much, which no process survives. It costs 32 MiB at most.
func TestLyingLengths(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, data := range [][]byte{parquetOf(t, testRows), arrowOf(t, true, testRecords(t)), arrowOf(t, false, testRecords(t))} {
		for i := 0; i+4 <= len(data); i += step {
			for _, lie := range []string{"\xf9\xff\xff\xff\x07", "\xff\xff\xff\x0f"} {
				lying := bytes.Clone(data)
				copy(lying[i:], lie)
				readTwice(t, lying, 256<<20)
			}
		}
	}
}

// addFiles adds files as seeds.
func addFiles(f *testing.F, most int, patterns ...string) {
	for _, pattern := range patterns {
		names, _ := filepath.Glob("../../testdata/" + pattern)
		if len(names) == 0 {
			f.Fatalf("no %s", pattern)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			if len(data) <= most {
				f.Add(data)
			}
		}
	}
}

func FuzzParquet(f *testing.F) {
	type row struct {
		URL  string  `parquet:"url"`
		Team *string `parquet:"team,optional,dict"`
		N    int32   `parquet:"n,delta"`
		S    string  `parquet:"s,delta"`
		B    *bool   `parquet:"b,optional"`
	}
	rows := []row{{"http://a/", new(string), 1, "aa", nil}, {"http://b/", nil, 2, "ab", new(bool)}, {"", new(string), 3, "", nil}}
	for _, codec := range []parquet.WriterOption{parquet.Compression(&parquet.Uncompressed), parquet.Compression(&parquet.Snappy), parquet.Compression(&parquet.Zstd)} {
		f.Add(parquetOf(f, rows, codec))
		f.Add(parquetOf(f, rows, codec, parquet.DataPageVersion(1)))
	}
	addFiles(f, 10_000, "source/*.parquet", "hostile/*.parquet")
	f.Fuzz(fuzzFormat)
}

func FuzzArrow(f *testing.F) {
	for _, file := range []bool{true, false} {
		f.Add(arrowOf(f, file, testRecords(f)))
		f.Add(arrowOf(f, file, testRecords(f), ipc.WithLZ4()))
	}
	addFiles(f, 10_000, "source/js.arrow*", "hostile/*.arrow", "hostile/*.arrows")
	f.Fuzz(fuzzFormat)
}

// FuzzOpen reads any text, compressed or in UTF-16, in blocks of two sizes: what
// is detected and read is the same.
func FuzzOpen(f *testing.F) {
	texts := []string{
		"url,team\nhttp://a/,\"x\ny\"\n", "a;http://b/\nc;http://d/\n", "http://a/\r\nhttp://b/\r\n", "\xef\xbb\xbflink\tn\n\"\t", "\"", "",
		"\xff\xfeu\x00r\x00l\x00\n\x00\x00\xd8", "\xfe\xff\x00u\x00\n\xd8\x00\xdc\x00\x00",
		"source,row,byte_offset,reason,detail,url,raw\na,1,0,malformed_row,x,,\"\"\"a\"\n",
	}
	for _, text := range texts {
		f.Add([]byte(text))
		f.Add(gzipped([]byte(text)))
		f.Add(zstded([]byte(text)))
	}
	addFiles(f, 1000, "hostile/*.csv", "hostile/*.csv.gz", "hostile/*.csv.zst")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1000 || bytes.HasPrefix(data, []byte("PAR1")) {
			return // a few bytes more of zstd are gigabytes
		}
		type result struct {
			Format, Compression string
			Dialect             *Dialect
			Columns             []string
			URLs                []int
			Records             int64
			Sum                 [32]byte
			Cells               []string
		}
		read := func(block int) (r result, err error) {
			in, err := openBytes(data, Options{MaxField: 50, Block: block})
			if err != nil {
				return r, err
			}
			in.Limit = 1000
			recs, err := collect(in)
			return result{in.Format, in.Compression, in.Dialect, in.Columns, in.URLs, in.Records(), in.SHA256(), strs(recs)}, err
		}
		one, errOne := read(5)
		two, errTwo := read(0)
		if (errOne == nil) != (errTwo == nil) || errOne == nil && !reflect.DeepEqual(one, two) {
			t.Errorf("\n%+v, %v\n%+v, %v", one, errOne, two, errTwo)
		}
	})
}

// FuzzExport reads any text as the export of another shortener, in blocks of two sizes: what is
// detected, and what is read, is the same, and a variant's cells have its code.
func FuzzExport(f *testing.F) {
	addFiles(f, 2000, "exports/*.csv", "exports/*.tsv", "exports/*.json", "exports/*.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			return
		}
		read := func(opts Options) (r []string, err error) {
			opts.MaxField = 1000
			in, err := openBytes(data, opts)
			if err != nil {
				return nil, err
			}
			r = append(r, in.Format, in.Profile)
			err = in.Read(context.Background(), 1, func(_ int, b *Batch) error {
				var cells Cells
				cells.Of(b)
				for i := range b.Rows {
					codes := in.Codes(nil, cells, i)
					r = append(r, fmt.Sprintf("%d %q %+v", b.Offsets[i], cells.URL(in.URLs, i), codes))
					for _, code := range codes {
						c := in.Mapped()[slices.IndexFunc(in.Mapped(), func(c profile.Column) bool { return c.Role == profile.Code })]
						if !c.List && string(c.Cut.Of(in.VariantCells(code)[in.Code])) != string(code.Text) {
							t.Errorf("%q of %q", code.Text, in.Profile)
						}
					}
				}
				return nil
			})
			return r, err
		}
		for _, opts := range []Options{{Choice: columns.Choice{Legacy: true}}, {Choice: columns.Choice{Legacy: true, Map: map[string]string{"url": "1", "code": "list(path(1))"}}}} {
			one, errOne := read(opts)
			opts.Block = 5
			two, errTwo := read(opts)
			if (errOne == nil) != (errTwo == nil) || errOne == nil && !reflect.DeepEqual(one, two) {
				t.Errorf("%q, %v\n%q, %v", one, errOne, two, errTwo)
			}
		}
	})
}
