package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/parquet-go/parquet-go"
)

// countBy reads data as CSV with ncols columns and counts the rows.
func countBy(workers int, data []byte, ncols int) (n int64, err error) {
	in, err := openBytes(data, Options{Choice: columns.Choice{URLColumn: "1"}, Header: HeaderNo, Delimiter: ','})
	if err != nil {
		return 0, err
	}
	if len(in.Columns) != ncols {
		return 0, fmt.Errorf("%d columns", len(in.Columns))
	}
	return countRows(workers, in)
}

func countRows(workers int, in *Input) (int64, error) {
	var n atomic.Int64
	err := in.Read(context.Background(), workers, func(_ int, b *Batch) error {
		n.Add(b.Record.NumRows())
		return nil
	})
	return n.Load(), err
}

// workers are the numbers of workers to compare.
var workers = []int{1, 2, 4}

func benchData(cols int, quoted bool, rows int) []byte {
	var b bytes.Buffer
	for i := range rows {
		url := fmt.Sprintf("https://www.example.com/section/%07d/article-name.html?source=mail&id=%d", i, i*7919)
		cells := append([]string{url}, []string{"team-a", fmt.Sprint(i)}[:cols-1]...)
		if quoted {
			for j := range cells {
				cells[j] = `"` + cells[j] + `"`
			}
		}
		b.WriteString(strings.Join(cells, ",") + "\n")
	}
	return b.Bytes()
}

func BenchmarkRead(b *testing.B) {
	const rows = 200_000
	for _, bb := range []struct {
		name string
		data []byte
		cols int
	}{
		{"format=csv/cols=1", benchData(1, false, rows), 1},
		{"format=csv/cols=2", benchData(2, false, rows), 2},
		{"format=csv/cols=3", benchData(3, false, rows), 3},
		{"format=csv/cols=3/quoted=all", benchData(3, true, rows), 3},
		{"format=csv/cols=3/compression=gzip", gzipped(benchData(3, false, rows)), 3},
		{"format=csv/cols=3/compression=zstd", zstded(benchData(3, false, rows)), 3},
	} {
		for _, workers := range workers {
			b.Run(fmt.Sprintf("%s/workers=%d", bb.name, workers), func(b *testing.B) {
				b.SetBytes(int64(len(bb.data)))
				b.ReportAllocs()
				for b.Loop() {
					if n, err := countBy(workers, bb.data, bb.cols); n != rows || err != nil {
						b.Fatal(n, err)
					}
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkReadFormats reads files of the other formats. Text has only URLs, the others
// two more short columns.
func BenchmarkReadFormats(b *testing.B) {
	const n = 200_000
	type row struct {
		URL  string `parquet:"url"`
		Team string `parquet:"team,dict"`
		N    int64  `parquet:"n"`
	}
	rows, lines := make([]row, n), bytes.Buffer{}
	urls, teams, ns := array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
	for i, line := range bytes.Split(bytes.TrimSpace(benchData(1, false, n)), []byte("\n")) {
		rows[i] = row{string(line), fmt.Sprint("team-", i%10), int64(i)}
		lines.Write(append(line, '\n'))
		urls.Append(rows[i].URL)
		teams.Append(rows[i].Team)
		ns.Append(rows[i].N)
	}
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{
		{Name: "url", Type: arrow.BinaryTypes.String}, {Name: "team", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int64},
	}, nil), []arrow.Array{urls.NewArray(), teams.NewArray(), ns.NewArray()}, n)
	for name, file := range map[string]string{
		"format=text":                     write(b, "x.txt", lines.Bytes()),
		"format=parquet/compression=none": write(b, "x", parquetOf(b, rows, parquet.Compression(&parquet.Uncompressed))),
		"format=parquet/compression=zstd": write(b, "x", parquetOf(b, rows, parquet.Compression(&parquet.Zstd))),
		"format=arrow/compression=none":   write(b, "x", arrowOf(b, true, []arrow.Record{rec})),
		"format=arrow/layout=stream":      write(b, "x", arrowOf(b, false, []arrow.Record{rec})),
		"format=parquet/inside=gzip":      write(b, "x", gzipped(parquetOf(b, rows))),
	} {
		for _, workers := range workers {
			b.Run(fmt.Sprintf("%s/workers=%d", name, workers), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					in, err := Open(context.Background(), file, Options{})
					if err != nil {
						b.Fatal(err)
					}
					if got, err := countRows(workers, in); got != n || err != nil {
						b.Fatal(got, err)
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkSplit measures only the parsing, without the digest and other goroutines.
func BenchmarkSplit(b *testing.B) {
	const rows = 100_000
	for cols := 1; cols <= 3; cols++ {
		data := benchData(cols, false, rows)
		b.Run(fmt.Sprintf("cols=%d", cols), func(b *testing.B) {
			in := testInput(nil, cols, Options{})
			defer in.Close()
			batches := testBatcher(in, func(int, *Batch) error { return nil })
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				l := newLines(',', cols, in.opts)
				if err := l.finish(&window{buf: data, err: io.EOF, turn: make(chan *window, 1)}, batches); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
