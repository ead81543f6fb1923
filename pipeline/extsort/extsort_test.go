package extsort_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/linkforge/bulk/pipeline/extsort"
	"pgregory.net/rapid"
)

// head is the number of bytes that the tests ask heads to have.
const head = 2

type rec struct {
	group   uint32
	key     uint64
	content string
}

// byGroup orders groups as their number read backwards, so that the order of
// groups is not that of their numbers.
func byGroup(a, b uint32) int { return cmp.Compare(^a, ^b) }

func compareRecs(a, b rec) int {
	return cmp.Or(byGroup(a.group, b.group), cmp.Compare(a.key, b.key), strings.Compare(a.content, b.content))
}

// write gives the records to as many writers as asked, each in a goroutine.
func write(t testingT, recs []rec, writers int, memory int64) *extsort.Sorter {
	s := extsort.New(extsort.Config{CompareGroups: byGroup, Compare: bytes.Compare, Head: head, Memory: memory, Loads: 2})
	var wg sync.WaitGroup
	for i := range writers {
		w := s.NewWriter()
		wg.Go(func() {
			for j := i; j < len(recs); j += writers {
				copy(w.Reserve(recs[j].group, recs[j].key, len(recs[j].content)), recs[j].content)
			}
		})
	}
	wg.Wait()
	if err := s.Finish(context.Background()); err != nil {
		t.Fatalf("finish: %v", err)
	}
	return s
}

type testingT interface{ Fatalf(string, ...any) }

func read(t testingT, s *extsort.Sorter) []rec {
	recs := []rec{}
	err := s.InOrder(context.Background(), 2, func(i int, b *extsort.Bucket) error {
		if b.Len() != s.Count(i) {
			t.Fatalf("bucket %d has %d records, not %d", i, b.Len(), s.Count(i))
		}
		for j := range b.Len() {
			recs = append(recs, rec{b.Group(j), b.Key(j), string(b.Record(j))})
		}
		b.Release()
		return nil
	})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return recs
}

func check(t testingT, recs []rec, writers int, memory int64) {
	s := write(t, recs, writers, memory)
	defer s.Close()
	if spilled := s.Spilled(); memory == 0 && spilled > 0 {
		t.Fatalf("%d bytes were spilled, without a bound", spilled)
	}
	checkSorter(t, s, recs)
}

// checkSorter checks a sorter that was given these records.
func checkSorter(t testingT, s *extsort.Sorter, recs []rec) {
	got, want := read(t, s), slices.SortedFunc(slices.Values(recs), compareRecs)
	if !slices.Equal(got, want) {
		t.Fatalf("%d records are not in order (%d came back)", len(recs), len(got))
	}
	checkHeads(t, s)
	checkJoined(t, s)
	for i := 0; i < len(recs); i += 1 + len(recs)/100 {
		if !found(t, s, recs[i]) {
			t.Fatalf("record %v is not where Locate and Search look", recs[i])
		}
	}
}

// checkHeads compares the heads of each bucket with its records.
func checkHeads(t testingT, s *extsort.Sorter) {
	for i := range s.Buckets() {
		b, err := s.Load(i)
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		h, err := s.LoadHeads(i)
		if err != nil {
			t.Fatalf("load heads: %v", err)
		}
		var want, got []rec
		for j := range b.Len() {
			want = append(want, rec{b.Group(j), b.Key(j), string(b.Record(j)[:min(head, len(b.Record(j)))])})
			got = append(got, rec{h.Group(j), h.Key(j), string(h.Record(j)[:min(head, len(h.Record(j)))])})
		}
		inOrder := slices.IsSortedFunc(got, func(a, b rec) int { return cmp.Or(byGroup(a.group, b.group), cmp.Compare(a.key, b.key)) })
		slices.SortFunc(want, compareRecs)
		slices.SortFunc(got, compareRecs)
		if h.Len() != b.Len() || !inOrder || !slices.Equal(got, want) {
			t.Fatalf("bucket %d: the heads of %d records are not those of its %d", i, h.Len(), b.Len())
		}
		h.Release()
		b.Release()
	}
}

// checkJoined checks that a group and key goes on only in a bucket that says so.
func checkJoined(t testingT, s *extsort.Sorter) {
	last, known := rec{}, false
	for i := range s.Buckets() {
		b, err := s.Load(i)
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		if n := b.Len(); n > 0 {
			if known && b.Group(0) == last.group && b.Key(0) == last.key && !s.Joined(i) {
				t.Fatalf("bucket %d of %d goes on with key %d and is not joined", i, s.Buckets(), last.key)
			}
			last, known = rec{group: b.Group(n - 1), key: b.Key(n - 1)}, true
		}
		b.Release()
	}
}

// found looks for a record in all buckets that may have its group and key.
func found(t testingT, s *extsort.Sorter, r rec) bool {
	first := s.Locate(r.group, r.key)
	for i := first; i < s.Buckets() && (i == first || s.Joined(i)); i++ {
		b, err := s.Load(i)
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		defer b.Release()
		for at := b.Search(r.group, r.key); at < b.Len() && b.Group(at) == r.group && b.Key(at) == r.key; at++ {
			if string(b.Record(at)) == r.content {
				return true
			}
		}
	}
	return false
}

// Long records that the sample misses, of few keys: buckets that contents divide are
// divided again, and where their keys are more, by these.
func TestDividedAgain(t *testing.T) {
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		recs := make([]rec, 2000)
		for i := range recs {
			recs[i] = rec{0, uint64(rnd.ExpFloat64() * 30), fmt.Sprintf("%04d", rnd.IntN(10_000)) + strings.Repeat("x", 2000+rnd.IntN(6000))}
		}
		check(t, append(slices.Repeat([]rec{{0, 1 << 60, "y"}}, 1<<14), recs...), 1, 1)
	}
}

// Inputs of every shape that the ranges can meet: few and many groups, spread
// and equal keys, sorted input, that which the sample misses.
func TestOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	shapes := map[string]func(i int) rec{
		"one group":           func(i int) rec { return rec{0, rnd.Uint64() >> 6, ""} },
		"all keys equal":      func(i int) rec { return rec{0, 7, ""} },
		"extreme keys":        func(i int) rec { return rec{0, -uint64(i % 2), ""} },
		"few keys":            func(i int) rec { return rec{0, uint64(rnd.IntN(5)), ""} },
		"sorted keys":         func(i int) rec { return rec{0, uint64(i), ""} },
		"many groups":         func(i int) rec { return rec{uint32(rnd.IntN(20000)), rnd.Uint64(), ""} },
		"sorted by group":     func(i int) rec { return rec{uint32(i / 30), rnd.Uint64(), ""} },
		"late hot group":      func(i int) rec { return rec{uint32(i / 20000), rnd.Uint64() % 3, ""} },
		"exponential lengths": func(i int) rec { return rec{0, rnd.Uint64(), strings.Repeat("x", 1<<(i%18))} },
	}
	n, writers, memories := 60_000, []int{1, 3}, []int64{0, 1 << 20, 1 << 23}
	if testing.Short() {
		n, writers, memories = 30_000, []int{3}, []int64{0, 1 << 20}
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			n := n
			if name == "exponential lengths" {
				n = 2000
			}
			recs := make([]rec, n)
			for i := range recs {
				recs[i] = shape(i)
				recs[i].content += fmt.Sprint(i)
			}
			for _, w := range writers {
				for _, memory := range memories {
					check(t, recs, w, memory)
				}
			}
		})
	}
}

// Records of one key, as writers got them in their order, cost a merge and not a
// sort: few comparisons each.
func TestRunsAreMerged(t *testing.T) {
	const n, writers = 100_000, 4
	for _, groups := range []int{1, 1000} {
		var compared atomic.Int64
		s := extsort.New(extsort.Config{CompareGroups: byGroup, Compare: func(a, b []byte) int {
			compared.Add(1)
			return bytes.Compare(a, b)
		}})
		for i := range writers {
			w := s.NewWriter()
			for j := i; j < n; j += writers {
				binary.BigEndian.PutUint64(w.Reserve(uint32(j/writers%groups), 7, 8), uint64(j))
			}
		}
		if err := s.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range s.Buckets() {
			if _, err := s.Load(i); err != nil {
				t.Fatal(err)
			}
		}
		if got := compared.Load(); got > 4*n {
			t.Errorf("%d groups: %d comparisons of %d records", groups, got, n)
		}
		s.Close()
	}
}

func TestSmall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "n")
		recs := make([]rec, n)
		for i := range recs {
			recs[i] = rec{
				rapid.Uint32Range(0, 3).Draw(t, "group"),
				rapid.Uint64Range(0, 9).Draw(t, "key"),
				rapid.StringN(0, 5, 20).Draw(t, "content") + fmt.Sprint(i),
			}
		}
		check(t, recs, rapid.IntRange(1, 4).Draw(t, "writers"), rapid.Int64Range(0, 1).Draw(t, "memory"))
	})
}

func FuzzOrder(f *testing.F) {
	f.Add([]byte("a b\x01 c\x00\x00 "), byte(2), byte(1))
	f.Fuzz(func(t *testing.T, data []byte, writers, memory byte) {
		var recs []rec
		for i, content := range bytes.Split(data, []byte(" ")) {
			r := rec{content: string(content) + fmt.Sprint(i)}
			if len(content) > 1 {
				r.group, r.key = uint32(content[0]%3), uint64(content[1])<<56
			}
			recs = append(recs, r)
		}
		check(t, recs, int(writers)%4+1, int64(memory)%2)
	})
}

func BenchmarkSort(b *testing.B) {
	for _, c := range []struct {
		groups int
		mask   uint64 // of the keys
		memory int64
	}{{1, math.MaxUint64, 0}, {100_000, math.MaxUint64, 0}, {1, math.MaxUint64, 64 << 20}, {100_000, math.MaxUint64, 64 << 20}, {1, 0, 0}} {
		groups, keys, memory := c.groups, c.mask, c.memory
		b.Run(fmt.Sprintf("rows=1M/groups=%d/mask=%x/memory=%dMiB", groups, keys, memory>>20), func(b *testing.B) {
			const n = 1_000_000
			content := bytes.Repeat([]byte("x"), 120)
			b.ReportAllocs()
			for b.Loop() {
				s := extsort.New(extsort.Config{CompareGroups: byGroup, Compare: bytes.Compare, Memory: memory})
				w := s.NewWriter()
				rnd := rand.New(rand.NewPCG(1, 2))
				for i := range n {
					r := w.Reserve(uint32(rnd.IntN(groups)), rnd.Uint64()&keys, len(content))
					copy(r, content)
					binary.BigEndian.PutUint32(r, uint32(i))
				}
				if err := s.Finish(b.Context()); err != nil {
					b.Fatal(err)
				}
				for i := range s.Buckets() {
					bucket, err := s.Load(i)
					if err != nil {
						b.Fatal(err)
					}
					bucket.Release()
				}
				s.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}

// Where the first to spill is a writer that still had all its records to
// distribute when the writing ended, the records of those before it are not lost.
func TestSpillingBeginsAtTheEnd(t *testing.T) {
	large := strings.Repeat("x", 20_000)
	var recs []rec
	for i := range 1800 {
		content := fmt.Sprint(i)
		if i%3 == 2 {
			content += large
		}
		recs = append(recs, rec{uint32(i % 5), uint64(i*7919) % 100_003, content})
	}
	check(t, recs, 3, 1<<20)
}

// A range in memory that got far more than its share, as of a group that the sample
// missed, is split again.
func TestLargeRangeIsSplit(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for name, key := range map[string]func() uint64{
		"spread":       rnd.Uint64,
		"few keys":     func() uint64 { return uint64(rnd.IntN(40)) },
		"a single key": func() uint64 { return 7 },
	} {
		t.Run(name, func(t *testing.T) {
			recs := make([]rec, 85_000)
			for i := range recs {
				recs[i] = rec{uint32(min(i/17_000, 1)), key(), fmt.Sprint(i)}
			}
			s := write(t, recs, 1, 0)
			defer s.Close()
			checkSorter(t, s, recs)
			most, size := 0, int64(0)
			for i := range s.Buckets() {
				b, err := s.Load(i)
				if err != nil {
					t.Fatal(err)
				}
				most, size = max(most, b.Len()), size+b.Size()
			}
			if name != "a single key" && most > 20_000 || s.Len() != int64(len(recs)) || size < s.Size()*9/10 || size > s.Size() {
				t.Errorf("a bucket has %d of %d records, all %d of %d bytes", most, s.Len(), size, s.Size())
			}
		})
	}
}

// Visits end with the error of the visitor, or with the cause of the context.
func TestInOrderEnds(t *testing.T) {
	var recs []rec
	for i := range 40_000 {
		recs = append(recs, rec{key: uint64(i) << 48})
	}
	s := write(t, recs, 1, 1<<20)
	defer s.Close()
	enough := errors.New("enough")
	for _, cancelled := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		visits := 0
		err := s.InOrder(ctx, 3, func(_ int, b *extsort.Bucket) error {
			defer b.Release()
			if visits++; visits < 3 {
				return nil
			}
			if cancelled {
				cancel(enough)
				return nil
			}
			return enough
		})
		if cancel(nil); err != enough || visits != 3 {
			t.Errorf("cancelled %t: %v after %d visits", cancelled, err, visits)
		}
	}
}

// Nor is a bucket divided to the end where the context ends.
func TestFinishEnds(t *testing.T) {
	s := extsort.New(extsort.Config{CompareGroups: byGroup, Compare: bytes.Compare, Memory: 1})
	defer s.Close()
	w := s.NewWriter()
	for i := range 100 {
		w.Reserve(0, 0, 1<<16)[0] = byte(i)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if err := s.Finish(ctx); err != enough {
		t.Error(err)
	}
}

// Calls in another order would lose records.
func TestOtherOrderPanics(t *testing.T) {
	cfg := extsort.Config{CompareGroups: byGroup, Compare: bytes.Compare}
	for name, call := range map[string]func(s *extsort.Sorter, w *extsort.Writer){
		"New without Compare":       func(*extsort.Sorter, *extsort.Writer) { extsort.New(extsort.Config{CompareGroups: byGroup}) },
		"New without CompareGroups": func(*extsort.Sorter, *extsort.Writer) { extsort.New(extsort.Config{Compare: bytes.Compare}) },
		"InOrder before Finish": func(*extsort.Sorter, *extsort.Writer) {
			s := extsort.New(cfg)
			s.NewWriter().Reserve(0, 0, 1)
			_ = s.InOrder(t.Context(), 0, func(int, *extsort.Bucket) error { return nil })
		},
		"Finish after Finish":                 func(s *extsort.Sorter, _ *extsort.Writer) { _ = s.Finish(t.Context()) },
		"Reserve after Finish":                func(_ *extsort.Sorter, w *extsort.Writer) { w.Reserve(0, 0, 1) },
		"Reserve after Finish by another one": func(s *extsort.Sorter, _ *extsort.Writer) { s.NewWriter().Reserve(0, 0, 1) },
	} {
		for _, records := range []int{0, 1, 20_000} {
			s := extsort.New(cfg)
			w := s.NewWriter()
			for range records {
				w.Reserve(0, 0, 1)
			}
			if err := s.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if said, ok := recover().(string); !ok || !strings.HasPrefix(said, "extsort: ") {
						t.Errorf("%s, %d records: %v", name, records, said)
					}
				}()
				call(s, w)
			}()
		}
	}
}

// Records that have chunks of their own, alone or among others, come back in order,
// and are held within the memory, but for what each writer needs: one of them, an arena
// and a chunk of each range.
func TestLongRecords(t *testing.T) {
	const memory, writers, longest = 32 << 20, 2, 200_000
	const needs = longest + 8<<20 + 512*32<<10
	shares := []int{1, 2, 40}
	if testing.Short() {
		shares = []int{2}
	}
	for _, longOf := range shares {
		var recs []rec
		rnd := rand.New(rand.NewPCG(uint64(longOf), 0))
		for total := 0; total < 4*memory; {
			n := rnd.IntN(2000)
			if len(recs)%longOf == 0 {
				n = longest/2 + rnd.IntN(longest/2)
			}
			recs = append(recs, rec{key: rnd.Uint64(), content: fmt.Sprint(len(recs), strings.Repeat("x", n))})
			total += n
		}
		s := extsort.New(extsort.Config{CompareGroups: byGroup, Compare: bytes.Compare, Memory: memory, Loads: 2})
		defer s.Close()
		var wg sync.WaitGroup
		var most [writers]int64
		for i := range writers {
			w := s.NewWriter()
			wg.Go(func() {
				for j := i; j < len(recs); j += writers {
					copy(w.Reserve(recs[j].group, recs[j].key, len(recs[j].content)), recs[j].content)
					most[i] = max(most[i], s.Held())
				}
			})
		}
		wg.Wait()
		if held := slices.Max(most[:]); held > memory+writers*needs {
			t.Errorf("of every %d a long record: %d bytes were held", longOf, held)
		}
		if err := s.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(recs, compareRecs)
		if got := read(t, s); !slices.Equal(got, recs) {
			t.Errorf("of every %d a long record: not in order", longOf)
		}
	}
}

// A few long records do not make one large bucket, also where memory is not bounded.
func TestLongRecordsApart(t *testing.T) {
	recs := make([]rec, 800)
	for i := range recs {
		recs[i] = rec{key: uint64(i*331%800) << 54, content: strings.Repeat("x", 100_000)}
	}
	s := write(t, recs, 2, 0)
	defer s.Close()
	for i := range s.Buckets() {
		b, err := s.Load(i)
		if err != nil {
			t.Fatal(err)
		}
		if least := int64(b.Len()) * 100_000; b.Size() < least || b.Size() > 8<<20 {
			t.Errorf("bucket %d has %d records and %d bytes", i, b.Len(), b.Size())
		}
		b.Release()
	}
}
