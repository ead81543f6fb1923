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
	"runtime"
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

// arenas are of the sorters of all tests.
var arenas extsort.Arenas

// write gives the records to as many writers as asked, each in a goroutine.
func write(t testingT, recs []rec, writers int, memory int64) *extsort.Sorter {
	s := extsort.New(extsort.Config{CompareGroups: byGroup, Compare: bytes.Compare, Head: head, Memory: memory, Loads: 2, Arenas: &arenas})
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
	c := s.Cursor(context.Background(), 1)
	defer c.Close()
	for c.Next() {
		recs = append(recs, rec{c.Group(), c.Key(), string(c.Record())})
	}
	if c.Next() || c.Err() != nil {
		t.Fatalf("load: %v", c.Err())
	}
	return recs
}

func check(t testingT, recs []rec, writers int, memory int64) {
	s := write(t, recs, writers, memory)
	defer s.Close()
	checkSorter(t, s, slices.SortedFunc(slices.Values(recs), compareRecs))
}

// checkSorter checks a sorter that was given these records, which are sorted here.
func checkSorter(t testingT, s *extsort.Sorter, want []rec) {
	if got := read(t, s); !slices.Equal(got, want) || s.Len() != int64(len(want)) {
		t.Fatalf("%d records are not in order (%d came back)", len(want), len(got))
	}
	checkBuckets(t, s)
	for i := 0; i < len(want); i += 1 + len(want)/8 {
		if !found(t, s, want[i]) {
			t.Fatalf("record %v is not where Locate and Search look", want[i])
		}
	}
}

// checkBuckets checks the length of each bucket, its heads, and that a group and key
// continues only in a bucket that is joined.
func checkBuckets(t testingT, s *extsort.Sorter) {
	last, known := rec{}, false
	for i := range s.Buckets() {
		b, err := s.Load(i)
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		n := b.Len()
		if n != s.Count(i) {
			t.Fatalf("bucket %d has %d records, not %d", i, n, s.Count(i))
		}
		if n > 0 {
			if known && b.Group(0) == last.group && b.Key(0) == last.key && !s.Joined(i) {
				t.Fatalf("bucket %d of %d begins with key %d of the one before and is not joined", i, s.Buckets(), last.key)
			}
			last, known = rec{group: b.Group(n - 1), key: b.Key(n - 1)}, true
		}
		if s.Spilled() > 0 {
			checkHeads(t, s, i, b)
		}
		b.Release()
	}
}

// checkHeads compares the heads of a bucket with its records.
func checkHeads(t testingT, s *extsort.Sorter, i int, b *extsort.Bucket) {
	h, err := s.LoadHeads(i)
	if err != nil {
		t.Fatalf("load heads: %v", err)
	}
	defer h.Release()
	heads := func(b *extsort.Bucket) []rec {
		all := make([]rec, b.Len())
		for j := range all {
			all[j] = rec{b.Group(j), b.Key(j), string(b.Record(j)[:min(head, len(b.Record(j)))])}
		}
		return all
	}
	want, got := heads(b), heads(h)
	inOrder := slices.IsSortedFunc(got, func(a, b rec) int { return cmp.Or(byGroup(a.group, b.group), cmp.Compare(a.key, b.key)) })
	slices.SortFunc(want, compareRecs)
	slices.SortFunc(got, compareRecs)
	if !inOrder || !slices.Equal(got, want) {
		t.Fatalf("bucket %d: the heads of %d records are not those of its %d", i, h.Len(), b.Len())
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
	for seed := range uint64(5) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		recs := make([]rec, 500)
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
			want := slices.SortedFunc(slices.Values(recs), compareRecs)
			for _, w := range writers {
				for _, memory := range memories {
					s := write(t, recs, w, memory)
					if memory == 0 && s.Spilled() > 0 {
						t.Fatalf("%d bytes were spilled, without a bound", s.Spilled())
					}
					checkSorter(t, s, want)
					s.Close()
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

// A sorter takes the memory of those before it, with a bound and without.
func TestArenas(t *testing.T) {
	recs := make([]rec, 300_000)
	for i := range recs {
		recs[i] = rec{0, rand.Uint64(), strings.Repeat("x", 100)}
	}
	for _, memory := range []int64{0, 64 << 20} {
		var shared extsort.Arenas
		allocated := func() uint64 {
			s := extsort.New(extsort.Config{CompareGroups: byGroup, Compare: bytes.Compare, Memory: memory, Arenas: &shared})
			defer s.Close()
			w := s.NewWriter()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for _, r := range recs {
				copy(w.Reserve(r.group, r.key, len(r.content)), r.content)
			}
			runtime.ReadMemStats(&after)
			if err := s.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			return after.TotalAlloc - before.TotalAlloc
		}
		if first, next := allocated(), allocated(); next > first-min(first, 16<<20) {
			t.Errorf("memory %d: the first sorter allocates %d bytes, the next one %d", memory, first, next)
		}
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

// A range that got far more than its share is split: where the sample missed a group,
// or where many records have the same key, however many of them are equal.
func TestLargeRangeIsSplit(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const n = 85_000
	number := func(i int) string { return fmt.Sprint(i * 7919 % n) }
	for name, shape := range map[string]func(i int) rec{
		"late group, spread keys": func(i int) rec { return rec{uint32(min(i/17_000, 1)), rnd.Uint64(), number(i)} },
		"late group, few keys":    func(i int) rec { return rec{uint32(min(i/17_000, 1)), uint64(rnd.IntN(40)), number(i)} },
		"zero":                    func(i int) rec { return rec{0, 0, number(i)} },
		"three keys":              func(i int) rec { return rec{0, uint64(i % 3), number(i)} },
		"one key and others":      func(i int) rec { return rec{0, uint64(max(0, i-70_000)), number(i)} },
		"three groups":            func(i int) rec { return rec{uint32(i % 3), 7, number(i)} },
		"few contents":            func(i int) rec { return rec{0, 7, fmt.Sprint(i % 100)} },
		"one common content":      func(i int) rec { return rec{0, 7, fmt.Sprint(max(0, i-75_000))} },
		"equal contents":          func(int) rec { return rec{} },
	} {
		if testing.Short() && name != "zero" && name != "late group, few keys" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			recs := make([]rec, n)
			for i := range recs {
				recs[i] = shape(i)
			}
			want := slices.SortedFunc(slices.Values(recs), compareRecs)
			for i, c := range []struct {
				writers int
				memory  int64
			}{{3, 0}, {1, 0}, {2, 1 << 20}} {
				if testing.Short() && i > 0 {
					break
				}
				s := write(t, recs, c.writers, c.memory)
				checkSorter(t, s, want)
				checkSizes(t, s, c.memory)
				s.Close()
			}
		})
	}
}

// checkSizes checks that no bucket is too large, unless its records are equal but for few.
func checkSizes(t *testing.T, s *extsort.Sorter, memory int64) {
	size := int64(0)
	for i := range s.Buckets() {
		b, err := s.Load(i)
		if err != nil {
			t.Fatal(err)
		}
		size += b.Size()
		if memory == 0 && b.Len() > 1<<16 {
			t.Errorf("a bucket in memory has %d records", b.Len())
		}
		if most := memory * 4 / 5 / 2; memory > 0 && b.Size() > most && !bytes.Equal(b.Record(b.Len()/10), b.Record(b.Len()*9/10)) {
			t.Errorf("a bucket on disk has %d of %d bytes", b.Size(), most)
		}
		b.Release()
	}
	if memory == 0 && (size < s.Size()*9/10 || size > s.Size()) {
		t.Errorf("all buckets have %d of %d bytes", size, s.Size())
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

// A cursor ends with the cause of the context, in the bucket where it is.
func TestCursorEnds(t *testing.T) {
	s := write(t, slices.Repeat([]rec{{content: "x"}, {key: 1 << 63}}, 20_000), 1, 1<<20)
	defer s.Close()
	for _, ahead := range []int{0, 3} {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		c := s.Cursor(ctx, ahead)
		defer c.Close()
		if c.Last() {
			t.Error("there is a last record before the first")
		}
		n := 0
		for c.Next() {
			if n++; n == 100 {
				cancel(enough)
			}
			if n >= 100 && c.Last() {
				break
			}
		}
		if n >= 40_000 || c.Next() || c.Next() || c.Last() || c.Err() != enough {
			t.Errorf("%d ahead: %v after %d records", ahead, c.Err(), n)
		}
		cancel(nil)
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

// Records that have chunks of their own, alone or among others, come back in order,
// and are held within the memory, but for what each writer needs: one of them, an arena
// and a chunk of each range.
func TestLongRecords(t *testing.T) {
	const memory, writers, longest = 32 << 20, 2, 200_000
	const needs = longest + 8<<20 + 512*32<<10
	shares := []int{1, 40}
	if testing.Short() {
		shares = []int{40}
	}
	for _, longOf := range shares {
		var recs []rec
		rnd := rand.New(rand.NewPCG(uint64(longOf), 0))
		for total := 0; total < 3*memory; {
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

// A few long records do not make one large bucket, also where memory is not bounded and
// all have the same key.
func TestLongRecordsApart(t *testing.T) {
	recs := make([]rec, 800)
	for _, shift := range []int{54, 64} {
		for i := range recs {
			recs[i] = rec{key: uint64(i*331%800) << shift, content: strings.Repeat("x", 100_000)}
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
}
