package source

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// guessed reads data as split does, with every block but the first guessed
// before the window comes, and counts the guesses that were right.
func guessed(data []byte, delim byte, ncols int, opts Options) (recs []rec, blocks, right int, err error) {
	in := testInput(data, ncols, opts)
	w := in.src
	defer w.Close()
	w.lines.Store(true)
	l := newLines(delim, ncols, in.opts)
	from := 0 // 1: g
	emit := func(worker int, b *Batch) error {
		recs = append(recs, records(b)...)
		if worker == 1 && from == 1 {
			right++
			from = 0
		}
		return nil
	}
	if err := w.look(1); err != nil { // as for the header
		return nil, 0, 0, err
	}
	b := testBatcher(in, emit)
	err = l.finish(w, b)
	g := newBatcher(b.reading, 1)
	for ; err == nil; blocks++ {
		blk, e := w.following(w.ctx)
		if blk == nil {
			err = e
			break
		}
		from = 1
		guess := l.guess(blk, g)
		err = l.take(<-blk.turn, blk, b, guess, g)
	}
	slices.SortFunc(recs, func(a, b rec) int { return int(a.row - b.row) })
	return recs, blocks, right, err
}

// What several workers read is what one reads, and what all blocks guessed read.
func checkWorkers(t failer, data []byte, delim byte, ncols int, opts Options) {
	t.Helper()
	want, err := split(data, delim, ncols, opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	got, _, _, err := guessed(data, delim, ncols, opts)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("input %q, %d columns, %+v, guessed: %v\n got %v\nwant %v", data, ncols, opts, err, strs(got), strs(want))
	}
	for _, workers := range []int{2, 5} {
		got, err := splitBy(workers, data, delim, ncols, opts)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("input %q, %d columns, %+v, %d workers: %v\n got %v\nwant %v", data, ncols, opts, workers, err, strs(got), strs(want))
		}
	}
}

// What was guessed and what was read before it share no memory: errors and full
// batches on both sides of a block's start keep their rows.
func TestGuessIsApart(t *testing.T) {
	var rows []string
	for i := range 400 {
		rows = append(rows, []string{"a,b", "too,many,fields", "\"two\nlines\",b", "x\"y,b"}[i%7%4])
	}
	step := 1
	if testing.Short() {
		step = 7
	}
	for block := 1; block < 200; block += step {
		checkWorkers(t, []byte(strings.Join(rows, "\n")), ',', 2, Options{BatchRows: 7, Block: block})
	}
}

// Of well-formed input nearly all guesses are right, quoted lines or not, and all
// of it is as the standard library reads it.
func TestGuesses(t *testing.T) {
	sizes := []int{1, 2, 3, 64, 1000, 10_000}
	if testing.Short() {
		sizes = []int{3, 64, 1000}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name string
		cell func() string
	}{
		{"plain", func() string { return fmt.Sprint("http://example.com/", rnd.IntN(1e6)) }},
		{"quotes", func() string { return strings.Repeat(`say "hi", `, rnd.IntN(3)) }},
		{"quoted lines", func() string { return strings.Repeat("two\nlines, ", rnd.IntN(3)) }},
		{"quotes on quoted lines", func() string { return strings.Repeat("a\n\"b\",\n\n\"", rnd.IntN(3)) }},
	} {
		var buf bytes.Buffer
		w := csv.NewWriter(&buf)
		var want []string
		for range 2000 {
			row := []string{tt.cell(), "x", tt.cell()}
			w.Write(row)
			want = append(want, strings.Join(row, "|"))
		}
		w.Flush()
		for _, block := range sizes {
			recs, blocks, right, err := guessed(buf.Bytes(), ',', 3, Options{Block: block})
			if err != nil || !slices.Equal(cellsOf(recs), want) {
				t.Fatalf("%s, blocks of %d: %d records, want %d: %v", tt.name, block, len(recs), len(want), err)
			}
			if block >= 1000 && right < blocks*9/10 {
				t.Errorf("%s, blocks of %d: %d of %d guesses were right", tt.name, block, right, blocks)
			}
		}
	}
}

// Input that reads as well from within its quotes: a guess is right or wrong to
// the end of the block, and then no record of it is kept.
func TestWrongGuesses(t *testing.T) {
	data := []byte(strings.Repeat("\"\n,\",\n", 5000))
	wrong := 0
	for block := 100; block < 120; block++ {
		recs, blocks, right, err := guessed(data, ',', 2, Options{Block: block})
		if err != nil || len(recs) != 5000 {
			t.Fatalf("blocks of %d: %d records: %v", block, len(recs), err)
		}
		for i, r := range recs {
			if want := (rec{row: int64(i + 1), offset: int64(6 * i), cells: "\n,|"}); r != want {
				t.Fatalf("blocks of %d: %v, want %v", block, r, want)
			}
		}
		wrong += blocks - right
	}
	if wrong == 0 {
		t.Error("no guess was wrong")
	}
}

// A record over very many blocks is looked at so seldom that all looks together
// are linear.
func TestLongRecordIsLinear(t *testing.T) {
	for name, data := range map[string]string{
		"one field":  "\"" + strings.Repeat("http://example.com/a\n", 10_000) + "\"\nx\n",
		"never ends": "\"" + strings.Repeat("http://example.com/a\n", 10_000),
		"one line":   strings.Repeat("x,", 50_000) + "\n",
	} {
		in := testInput([]byte(data), 1, Options{Block: 64})
		w, l := in.src, newLines(',', 1, in.opts)
		b := testBatcher(in, func(int, *Batch) error { return nil })
		looked := 0
		for blk, err := w.following(w.ctx); blk != nil; blk, err = w.following(w.ctx) {
			if err != nil {
				t.Fatal(err)
			}
			b.base = w.records
			if !w.add(blk) {
				w.turn <- w
				continue
			}
			looked += len(w.buf) - w.pos
			if err := l.finish(w, b); err != nil {
				t.Fatal(err)
			}
		}
		if looked > 4*len(data) {
			t.Errorf("%s: looked at %d bytes of %d", name, looked, len(data))
		}
		w.Close()
	}
}

// The first error in the input is the one that is returned, and what precedes it
// is counted, whoever of the workers meets it.
func TestFirstError(t *testing.T) {
	own := errors.New("broken off")
	text := "url,n\n" + strings.Repeat("http://a/,\"two\nlines\"\n", 10_000)
	for _, workers := range []int{1, 2, 8} {
		in, err := Open(context.Background(), "-", Options{Stdin: io.MultiReader(strings.NewReader(text+"http://b/,"), failing{own}), Block: 1000})
		if err != nil {
			t.Fatal(err)
		}
		_, err = collectBy(in, workers)
		if want := fmt.Sprintf("read - after record 10000 (near byte %d): broken off", len(text)); err == nil || err.Error() != want {
			t.Errorf("%d workers: %v, want %s", workers, err, want)
		}
	}
}

type failing struct{ err error }

func (r failing) Read([]byte) (int, error) { return 0, r.err }

// An emit that fails ends all workers; no goroutine stays.
func TestEmitFails(t *testing.T) {
	before := runtime.NumGoroutine()
	own := errors.New("own")
	text := []byte("url\n" + strings.Repeat("http://a/\n", 10_000))
	for _, after := range []int64{1, 5, 50} {
		in, err := openBytes(text, Options{Block: 500})
		if err != nil {
			t.Fatal(err)
		}
		var n atomic.Int64
		err = in.Read(context.Background(), 4, func(int, *Batch) error {
			if n.Add(1) >= after {
				return own
			}
			return nil
		})
		if err != own {
			t.Errorf("after %d batches: %v", after, err)
		}
	}
	noneStays(t, before)
}

// Of several damaged row groups the first is the one that is named.
func TestFirstRowGroup(t *testing.T) {
	var rows []testRow
	for i := range 4000 {
		rows = append(rows, testRow{fmt.Sprint("http://a/", i), "t"})
	}
	data := parquetOf(t, rows, parquet.MaxRowsPerRowGroup(100), parquet.Compression(&parquet.Uncompressed))
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []int{20, 21, 27, 35} {
		at := f.Metadata().RowGroups[group].Columns[0].MetaData.DataPageOffset
		copy(data[at:], "\xff\xff\xff\xff\xff\xff\xff\xff")
	}
	name := write(t, "x.parquet", data)
	want := ""
	for _, workers := range []int{1, 2, 8, 30} {
		in, err := Open(context.Background(), name, Options{Block: 100})
		if err != nil {
			t.Fatal(err)
		}
		_, err = collectBy(in, workers)
		if err == nil || !strings.Contains(err.Error(), "after record 2000: row group 21:") || want != "" && err.Error() != want {
			t.Fatalf("%d workers: %v, want %s", workers, err, want)
		}
		want = err.Error()
	}
}

// Several workers are done with a cancelled Read when it returns the cause.
func TestWorkersCancelled(t *testing.T) {
	cause := errors.New("enough")
	text := []byte("url\n" + strings.Repeat("http://a/\n", 10_000))
	for name, data := range map[string][]byte{"csv": text, "parquet": parquetOf(t, slices.Repeat(testRows[:1], 10_000))} {
		ctx, cancel := context.WithCancelCause(context.Background())
		in, err := openBytes(data, Options{Block: 500, BatchRows: 10})
		if err != nil {
			t.Fatal(err)
		}
		var n, running atomic.Int64
		err = in.Read(ctx, 4, func(int, *Batch) error {
			running.Add(1)
			defer running.Add(-1)
			if n.Add(1) == 20 {
				cancel(cause)
			}
			return nil
		})
		if err != cause || running.Load() != 0 {
			t.Errorf("%s: %v, %d calls of emit under way", name, err, running.Load())
		}
	}
}
