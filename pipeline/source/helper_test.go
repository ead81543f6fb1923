package source

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/klauspost/compress/zstd"
	"github.com/linkforge/bulk/pipeline/columns"
)

// A rec is a record as a test sees it: its cells joined by "|" (a null is ∅),
// or what is wrong with it.
type rec struct {
	row, offset         int64
	cells               string
	reason, detail, raw string
}

func (r rec) String() string {
	if r.reason == "" {
		return fmt.Sprintf("%d@%d %q", r.row, r.offset, r.cells)
	}
	return fmt.Sprintf("%d@%d %s (%s) %q", r.row, r.offset, r.reason, r.detail, r.raw)
}

// collect reads an input to its end, checks the shape of the batches and puts
// rows and errors in order.
func collect(in *Input) ([]rec, error) { return collectBy(in, 1) }

// collectBy does it with so many workers. A single one must keep the order.
func collectBy(in *Input, workers int) ([]rec, error) {
	parts := make([][]rec, workers)
	err := in.Read(context.Background(), workers, func(worker int, b *Batch) error {
		parts[worker] = append(parts[worker], records(b)...)
		return nil
	})
	recs := slices.Concat(parts...)
	if workers > 1 {
		slices.SortFunc(recs, func(a, b rec) int { return cmp.Compare(a.row, b.row) })
	}
	return recs, err
}

func records(b *Batch) (recs []rec) {
	n := int(b.Record.NumRows())
	if len(b.Rows) != n || len(b.Offsets) != n {
		panic("rows and offsets do not fit the record")
	}
	errs := b.Errors
	flush := func(before int64) {
		for len(errs) > 0 && errs[0].Row < before {
			e := errs[0]
			recs = append(recs, rec{row: e.Row, offset: e.Offset, reason: string(e.Reason), detail: e.Detail, raw: string(e.Raw)})
			errs = errs[1:]
		}
	}
	for i := range n {
		flush(b.Rows[i])
		r := rec{row: b.Rows[i], offset: b.Offsets[i]}
		for j := range int(b.Record.NumCols()) {
			if j > 0 {
				r.cells += "|"
			}
			if col := b.Record.Column(j).(*array.Binary); col.IsNull(i) {
				r.cells += "∅"
			} else {
				r.cells += string(col.Value(i))
			}
		}
		recs = append(recs, r)
	}
	flush(1 << 62)
	return recs
}

func cellsOf(recs []rec) (cells []string) {
	for _, r := range recs {
		if r.reason == "" {
			cells = append(cells, r.cells)
		} else {
			cells = append(cells, r.reason+": "+r.detail+": "+r.raw)
		}
	}
	return cells
}

// openBytes opens data as standard input, as a program would.
func openBytes(data []byte, opts Options) (*Input, error) {
	opts.Stdin = bytes.NewReader(data)
	return Open(context.Background(), "-", opts)
}

// readBytes opens data as standard input and reads all of it.
func readBytes(data []byte, opts Options) (in *Input, recs []rec, err error) {
	if in, err = openBytes(data, opts); err == nil {
		recs, err = collect(in)
	}
	return in, recs, err
}

// write makes a file in the test's folder and returns its name.
func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func zstded(data []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	defer w.Close()
	return w.EncodeAll(data, nil)
}

// noneStays waits for goroutines to end until there are no more than before.
func noneStays(t *testing.T, before int) {
	t.Helper()
	for i := 0; runtime.NumGoroutine() > before && i < 10_000; i++ {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, were %d:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}

// split reads data as CSV (or lines, with no delimiter) with ncols columns and
// no header, past all detection.
func split(data []byte, delim byte, ncols int, opts Options) ([]rec, error) {
	return splitBy(1, data, delim, ncols, opts)
}

func splitBy(workers int, data []byte, delim byte, ncols int, opts Options) ([]rec, error) {
	in := testInput(data, ncols, opts)
	in.openLines(0, func() *lines { return newLines(delim, ncols, in.opts) })
	recs, err := collectBy(in, workers)
	if err == nil && in.Rows() != int64(len(recs)) {
		err = fmt.Errorf("%d rows counted, %d seen", in.Rows(), len(recs))
	}
	if err == nil && !in.Cut() && (in.SHA256() != sha256.Sum256(data) || in.Size() != int64(len(data))) {
		err = fmt.Errorf("wrong digest or size %d", in.Size())
	}
	return recs, err
}

// testInput is an input of ncols columns, before its first record.
func testInput(data []byte, ncols int, opts Options) *Input {
	opts, err := opts.settled()
	if err != nil {
		panic(err)
	}
	in := &Input{Table: columns.New("test", columns.Choice{}), opts: opts, total: -1}
	in.Format, in.Columns = "csv", make([]string, ncols)
	in.src = newWindow(context.Background(), newStream(newDigest(bytes.NewReader(data), &in.done, false), opts.Block, ""))
	return in
}

// testBatcher is that of the only worker of a Read.
func testBatcher(in *Input, emit func(int, *Batch) error) *batcher {
	ctx, cancel := context.WithCancelCause(context.Background())
	return newBatcher(&reading{in: in, ctx: ctx, cancel: cancel, schema: in.schema(), emit: emit}, 0)
}

func newLines(delim byte, ncols int, opts Options) *lines {
	if delim == 0 {
		return &lines{splitter: newLineSplitter(opts.MaxField), ncols: ncols}
	}
	return &lines{splitter: newSplitter(delim, opts.Quote, opts.MaxField, true), ncols: ncols}
}
