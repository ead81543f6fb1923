package source

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/parquet-go/parquet-go"
)

// fuzzFormat reads whatever data is, from a stream: an error or the end, no
// panic, and as many records as are counted.
func fuzzFormat(t *testing.T, data []byte) {
	opts := Options{URLColumn: "1", TempDir: t.TempDir(), BatchRows: 3}
	in, err := openBytes(data, opts)
	if err != nil {
		return
	}
	defer in.Close()
	n := int64(0)
	err = in.Read(context.Background(), 1, func(_ int, b *Batch) error {
		n += b.Record.NumRows() + int64(len(b.Errors))
		if n > 1_000_000 {
			return context.Canceled // a few bytes can stand for very many nulls
		}
		return nil
	})
	if err == nil && n != in.Records() {
		t.Fatalf("%d records, %d counted", n, in.Records())
	}
}

// Each byte of the metadata in turn claims more than there is. The decoders
// would allocate that much, which no process survives.
func TestLyingLengths(t *testing.T) {
	parq, file, stream := parquetOf(t, testRows), arrowOf(t, true, testRecords(t)), arrowOf(t, false, testRecords(t))
	for _, tt := range []struct {
		data     []byte
		from, to int
	}{
		{parq, len(parq) - 300, len(parq)},
		{file, len(file) - 400, len(file)},
		{stream, 0, 400},
	} {
		for i := max(tt.from, 0); i+4 <= tt.to; i++ {
			for _, lie := range []string{"\xf9\xff\xff\xff\x07", "\xff\xff\xff\x0f"} {
				data := bytes.Clone(tt.data)
				copy(data[i:], lie)
				fuzzFormat(t, data)
			}
		}
	}
}

func FuzzParquet(f *testing.F) {
	type row struct {
		URL  string  `parquet:"url"`
		Team *string `parquet:"team,optional,dict"`
		N    int32   `parquet:"n,delta"`
	}
	rows := []row{{"http://a/", new(string), 1}, {"http://b/", nil, 2}, {"", new(string), 3}}
	for _, codec := range []parquet.WriterOption{parquet.Compression(&parquet.Uncompressed), parquet.Compression(&parquet.Snappy)} {
		f.Add(parquetOf(f, rows, codec))
		f.Add(parquetOf(f, rows, codec, parquet.DataPageVersion(1)))
	}
	for _, name := range []string{"duckdb-v1.parquet", "duckdb-v2.parquet"} {
		if data, err := os.ReadFile("../../testdata/source/" + name); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(fuzzFormat)
}

func FuzzArrow(f *testing.F) {
	for _, file := range []bool{true, false} {
		f.Add(arrowOf(f, file, testRecords(f)))
		f.Add(arrowOf(f, file, testRecords(f), ipc.WithLZ4()))
	}
	for _, name := range []string{"js.arrow", "js.arrows"} {
		if data, err := os.ReadFile("../../testdata/source/" + name); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(fuzzFormat)
}
