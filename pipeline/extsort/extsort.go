// Package extsort sorts records by group, key and content, in memory or, past a
// bound, on disk. It does not know what they mean.
//
// While records are written, they are distributed over ranges of the order, which
// become the buckets. The bounds of the ranges come from a sample of the first
// records. So the buckets follow each other in order, and each can be sorted by
// itself, by any goroutine; there is no merge. Records past Config.Memory move to a
// spill file while the writing continues. The order does not depend on the bounds, the
// number of writers or the memory.
//
// A range that got far more records than others is made into several buckets when the
// writing has ended: by group and key, or by content where many records have the same
// key. Only a large record, or on disk many of equal content, make a large bucket.
//
// The life of a sorter: [New]; a [Writer] for each goroutine; one call of Finish, when
// all have written; then Load and Release of each bucket, or a [Cursor], as often as
// wanted; Close, when all have read. Calls in another order may lose records.
package extsort

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// Config tells a Sorter the order: by group, then key, then content. CompareGroups and
// Compare are required.
type Config struct {
	// CompareGroups orders groups. It must be safe for concurrent use.
	CompareGroups func(a, b uint32) int
	// Compare orders the contents of records of one group and key. It must be
	// safe for concurrent use. Records that it calls equal come in any order.
	Compare func(a, b []byte) int
	// Head is how many bytes of their contents are kept apart for LoadHeads; 0: none.
	Head int

	// Memory is how many bytes of records are held before they spill, and how
	// many bytes the buckets may have that are loaded at once; 0: no bound.
	Memory int64
	// Loads is the most buckets that are loaded at once; 0: 1.
	Loads int
	// Arenas is the memory of other sorters, which are closed; may be nil.
	Arenas *Arenas
	// TempDir is the directory of the spill file; "": that of the system.
	TempDir string
	FS      fsys.FS // nil: that of the system
	// Room is called before Finish writes records on disk a second time, in smaller
	// buckets, and returns an error if TempDir has no room for so many bytes. Finish
	// then returns this error. May be nil.
	Room func(need int64) error
}

const (
	// sampleSize is the number of records from which the first writer that has so
	// many makes the splitters.
	sampleSize = 1 << 14
	// sampleBytes is the same for records that are long.
	sampleBytes = 8 << 20
	// rangeBuckets is the number of ranges that records are distributed over.
	rangeBuckets = 512
	// smallBucket is the number of records below which neighbouring ranges become
	// one bucket, and about that of the buckets that a large range becomes.
	smallBucket = 1 << 12
	// smallBytes is the same for records that are long.
	smallBytes = 2 << 20
)

// A Sorter takes records from writers and returns them in order.
type Sorter struct {
	cfg       Config
	arenaSize int
	mu        sync.Mutex // guards splitters, writers and arenas before Finish
	splitters *splitters // nil: not made yet
	writers   []*Writer
	arenas    [][]byte // that chunks are cut from
	spill     *spill
	held      atomic.Int64 // bytes of arenas and of chunks that are larger
	rooms     sync.Pool    // of *room, that no bucket is in
	size      int64        // of all records, once Finish has been called
	count     int64        // the number of these
	buckets   []Bucket
	bounds    []bound // bounds[i] is the lowest position that belongs to buckets[i+1]
}

// NewByKey returns a sorter by key, all in group 0. Records of one key are ordered by their content.
// The order of the configuration is filled in.
func NewByKey(cfg Config) *Sorter { return NewByKeyThen(cfg, bytes.Compare) }

// NewByKeyThen is NewByKey where records of one key have an order of their own.
func NewByKeyThen(cfg Config, compare func(a, b []byte) int) *Sorter {
	cfg.CompareGroups = func(_, _ uint32) int { return 0 }
	cfg.Compare = compare
	return New(cfg)
}

// New returns an empty sorter.
func New(cfg Config) *Sorter {
	arena := int64(mostArena)
	if cfg.Memory > 0 {
		arena = min(arena, max(cfg.Memory, chunkSize))
	}
	cfg.Loads = max(cfg.Loads, 1)
	return &Sorter{
		cfg: cfg, arenaSize: int(arena), spill: newSpill(fsys.Or(cfg.FS), cfg.TempDir),
		rooms: sync.Pool{New: func() any { return new(room) }},
	}
}

// NewWriter returns a writer for one goroutine. Safe for concurrent use.
func (s *Sorter) NewWriter() *Writer {
	w := &Writer{s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writers = append(s.writers, w)
	s.spill.direct.Store(s.cfg.Memory >= int64(len(s.writers))*rangeBuckets*directExtent)
	return w
}

// Close deletes the spill file, and gives the memory of records that did not spill to Config.Arenas.
// It must be called, also after an error, once nobody writes or reads any more.
func (s *Sorter) Close() error {
	for _, arena := range s.arenas {
		poison(arena)
	}
	s.cfg.Arenas.give(s.arenas)
	s.arenas = nil
	return s.spill.close()
}

// newArena returns memory for chunks.
func (s *Sorter) newArena(size int) []byte {
	arena := s.cfg.Arenas.take(size)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arenas = append(s.arenas, arena)
	return arena
}

// Spilled returns the number of bytes that were written to disk.
func (s *Sorter) Spilled() int64 { return s.spill.size.Load() }

// Size returns the number of bytes of all records, with their heads, once Finish has
// been called.
func (s *Sorter) Size() int64 { return s.size }

// Held returns about how many bytes of memory the records take now.
func (s *Sorter) Held() int64 { return s.held.Load() }

// Finish ends the writing and makes the buckets. No writer may be used any more.
// The error is that of the spill file or of Config.Room, or the cause of the end of
// the context.
func (s *Sorter) Finish(ctx context.Context) error {
	if s.splitters == nil {
		s.splitters = s.choose(s.writers)
	}
	ranges, err := s.collect(s.writers, s.splitters)
	s.writers = nil
	if err != nil {
		return err
	}
	for i := range ranges {
		s.size += ranges[i].size
		s.count += int64(ranges[i].count)
	}
	return s.form(ctx, ranges, s.splitters.bounds)
}

// collect takes the ranges out of some writers, which keep no memory. If anything was
// spilled, all is.
func (s *Sorter) collect(writers []*Writer, split *splitters) ([]Bucket, error) {
	for _, w := range writers {
		w.distribute(split) // may be the first to spill
	}
	spilled := s.Spilled() > 0
	ranges := slices.Repeat([]Bucket{{s: s}}, len(split.bounds)+1)
	for _, w := range writers {
		if spilled {
			s.held.Add(-w.arenas)
		}
		for i := range ranges {
			t := &w.parts[i]
			if spilled {
				w.spill(t, len(t.chunks))
			}
			for _, chunk := range t.chunks {
				t.size += int64(len(chunk))
			}
			ranges[i].join(t)
		}
		*w = Writer{s: s}
	}
	if spilled { // the memory is for the buckets that are loaded
		s.arenas = nil
	}
	return ranges, s.spill.wait()
}

// form makes buckets of a convenient size: small neighbours are joined, and a
// range that got far more than its share is split. That happens if the input is
// itself sorted by group, or if many records have the same key.
func (s *Sorter) form(ctx context.Context, ranges []Bucket, bounds []bound) error {
	divided := int64(0)
	for i := range ranges {
		if ranges[i].unloadable() {
			divided += ranges[i].size
		}
	}
	if divided > 0 && s.cfg.Room != nil {
		if err := s.cfg.Room(divided); err != nil {
			return err
		}
	}
	for i := range ranges {
		r := &ranges[i]
		if i > 0 {
			last := &s.buckets[len(s.buckets)-1]
			if last.entries == nil && last.count+r.count <= smallBucket && last.size+r.size <= min(s.loadable()/2, smallBytes) {
				last.join(&r.stretch)
				continue
			}
			s.bounds = append(s.bounds, bounds[i-1])
		}
		switch {
		case r.unloadable():
			if err := s.divide(ctx, r, false); err != nil {
				return err
			}
		case r.large():
			s.split(r)
		default:
			s.buckets = append(s.buckets, *r)
		}
	}
	return nil
}

// loadable is the most bytes that a bucket on disk may have: what is loaded of
// it is about a fifth larger.
func (s *Sorter) loadable() int64 {
	if s.cfg.Memory == 0 {
		return 1<<63 - 1
	}
	return max(s.cfg.Memory*4/5/int64(s.cfg.Loads), chunkSize)
}

// unloadable reports whether a range is on disk and has to be divided.
func (b *Bucket) unloadable() bool { return b.extents != nil && b.size > b.s.loadable() }

// large reports whether a range is in memory and has to be split.
func (b *Bucket) large() bool {
	return b.extents == nil && (int64(b.count) > max(8*b.s.count/rangeBuckets, 16*smallBucket) || b.size > max(8*b.s.size/rangeBuckets, 16*smallBytes))
}

// Len returns the number of records, once Finish has been called.
func (s *Sorter) Len() int64 { return s.count }

// Buckets returns the number of buckets, which depends on the writers and the memory.
func (s *Sorter) Buckets() int { return len(s.buckets) }

// Count returns the number of records of bucket i, without loading it.
func (s *Sorter) Count(i int) int { return s.buckets[i].count }

// Joined reports whether bucket i may begin with the group and key that the bucket
// before it ends with, since their records are too many for one bucket. If it is false,
// no group and key is in both.
func (s *Sorter) Joined(i int) bool { return i > 0 && s.bounds[i-1].content != nil }

// Locate returns the first bucket that may have records of this group and key. More of
// them may be in those that follow, as long as these are Joined.
func (s *Sorter) Locate(group uint32, key uint64) int {
	at := bound{group: group, key: key}
	i, _ := slices.BinarySearchFunc(s.bounds, at, s.compareBounds)
	for i < len(s.bounds) && s.bounds[i].content == nil && s.compareBounds(s.bounds[i], at) == 0 {
		i++
	}
	return i
}

// A bound is a position in the order. Without content it is the lowest one of its
// group and key. The bounds between buckets tell only whether they have content: it is
// empty, so that no record is kept in memory.
type bound struct {
	group   uint32
	key     uint64
	content []byte
}

// compareBounds compares by group and key alone.
func (s *Sorter) compareBounds(a, b bound) int {
	if a.group != b.group {
		return s.cfg.CompareGroups(a.group, b.group)
	}
	return cmp.Compare(a.key, b.key)
}

// compareAll compares by content too, which both have or neither.
func (s *Sorter) compareAll(a, b bound) int {
	if c := s.compareBounds(a, b); c != 0 || a.content == nil {
		return c
	}
	return s.cfg.Compare(a.content, b.content)
}

// rangeOf finds the range between the bounds that a position lies in. Either all have
// content or none.
func (s *Sorter) rangeOf(bounds []bound, at bound) int {
	return sort.Search(len(bounds), func(i int) bool { return s.compareAll(bounds[i], at) > 0 })
}

// splitters divide the order into ranges: range i ends where bounds[i] begins.
type splitters struct {
	bounds  []bound
	keys    []uint64 // of the bounds
	content bool     // the bounds have content
}

func newSplitters(bounds []bound) *splitters {
	p := &splitters{bounds: bounds, keys: make([]uint64, len(bounds)), content: len(bounds) > 0 && bounds[0].content != nil}
	for i, b := range bounds {
		p.keys[i] = b.key
	}
	return p
}

// choose makes splitters from the staged records of some writers.
func (s *Sorter) choose(writers []*Writer) *splitters {
	var sample []bound
	for _, w := range writers {
		for _, chunk := range w.staged.chunks {
			each(chunk, func(h header, _ []byte) { sample = append(sample, bound{group: h.group, key: h.key}) })
		}
	}
	return newSplitters(s.quantiles(sample, rangeBuckets))
}

// quantiles returns at most n-1 distinct bounds that divide the sample, which it
// sorts, into n parts of about one size.
func (s *Sorter) quantiles(sample []bound, n int) []bound {
	slices.SortFunc(sample, s.compareAll)
	n = min(n, len(sample)+1) // then each of the sample is a bound
	bounds := make([]bound, 0, n-1)
	for i := 1; i < n; i++ {
		bounds = append(bounds, sample[i*len(sample)/n])
	}
	return slices.CompactFunc(bounds, func(a, b bound) bool { return s.compareAll(a, b) == 0 })
}

// span returns the bounds of one group: those before lo belong to lesser groups,
// those from hi on to greater ones.
func (p *splitters) span(s *Sorter, group uint32) (lo, hi int) {
	lo, _ = slices.BinarySearchFunc(p.bounds, bound{group: group}, s.compareBounds)
	for hi = lo; hi < len(p.bounds) && p.bounds[hi].group == group; {
		hi++
	}
	return lo, hi
}

// count returns how many of the ascending keys are at most key.
func count(keys []uint64, key uint64) int {
	base, n := 0, len(keys)
	for n > 0 {
		half := (n + 1) / 2
		if keys[base+half-1] <= key {
			base += half
		}
		n -= half
	}
	return base
}
