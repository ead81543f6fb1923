// Package extsort orders records by group, key and content, in memory or, past
// a bound, on disk. It knows nothing of what they mean.
//
// Records are distributed over range buckets while they are written: splitters
// are taken from a sample of the first records, so that afterwards each bucket
// is sorted by itself, by any goroutine, and the buckets follow each other in
// order. Past Config.Memory the chunks that hold the records move to a spill
// file, while the writing goes on; there is no merge. Neither the splitters nor
// the number of writers nor the memory show in the order.
//
// The life of a sorter: [New]; a [Writer] for each goroutine; Finish; then Load
// and Release of each bucket, as often as wanted; Close. What would lose records
// panics: Reserve after Finish, a second Finish, and InOrder before it.
package extsort

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// Config tells a Sorter the order: by group, then key, then content. Both functions
// must be there: New panics without.
type Config struct {
	// CompareGroups orders groups. It must be safe for concurrent use.
	CompareGroups func(a, b uint32) int
	// Compare orders the contents of records of one group and key. It must be
	// safe for concurrent use, and total: no two records may be equal.
	Compare func(a, b []byte) int
	// Head is how many bytes of their contents are kept apart for LoadHeads; 0: none.
	Head int

	// Memory is how many bytes of records are held before they spill, and how
	// many bytes the buckets may have that are loaded at once; 0: no bound.
	Memory int64
	// Loads is the most buckets that are loaded at once; 0: 1.
	Loads int
	// TempDir is the folder of the spill file; "": that of the system.
	TempDir string
	FS      fsys.FS // nil: that of the system
	// Room, which may be nil, is asked whether there is room for so many bytes in TempDir
	// before Finish writes them a second time, in smaller buckets; its error is that of Finish.
	Room func(need int64) error
}

const (
	// sampleSize is the number of records from which a writer takes splitters,
	// if it is the first to have as many.
	sampleSize = 1 << 14
	// sampleBytes is the same for records that are long.
	sampleBytes = 8 << 20
	// rangeBuckets is the number of ranges that records are distributed over.
	rangeBuckets = 512
	// smallBucket is the number of records below which neighbouring ranges
	// become one bucket, and the least that is worth splitting again.
	smallBucket = 1 << 12
	// smallBytes is the same for records that are long.
	smallBytes = 2 << 20
)

// A Sorter takes records from writers and gives them back in order.
type Sorter struct {
	cfg       Config
	arenaSize int
	mu        sync.Mutex // guards splitters, writers and, for them, finished
	splitters *splitters // nil: not made yet
	writers   []*Writer
	finished  bool
	spill     *spill
	held      atomic.Int64 // bytes of arenas and of chunks that are larger
	rooms     chan *room   // that no bucket is in
	size      int64        // of what was written
	buckets   []Bucket
	bounds    []bound // bounds[i] is the lowest position that belongs to buckets[i+1]
}

// New returns an empty sorter.
func New(cfg Config) *Sorter {
	if cfg.CompareGroups == nil || cfg.Compare == nil {
		panic("extsort: a sorter without CompareGroups or Compare")
	}
	arena := int64(mostArena)
	if cfg.Memory > 0 {
		arena = min(arena, max(cfg.Memory, chunkSize))
	}
	cfg.Loads = max(cfg.Loads, 1)
	return &Sorter{cfg: cfg, arenaSize: int(arena), spill: newSpill(fsys.Or(cfg.FS), cfg.TempDir), rooms: make(chan *room, cfg.Loads)}
}

// NewWriter returns a writer for one goroutine. Safe for concurrent use.
func (s *Sorter) NewWriter() *Writer {
	w := &Writer{s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished {
		w.end()
	}
	s.writers = append(s.writers, w)
	s.spill.direct.Store(s.cfg.Memory >= int64(len(s.writers))*rangeBuckets*directExtent)
	return w
}

// mustBeOpen panics after Finish. The caller has the lock.
func (s *Sorter) mustBeOpen() {
	if s.finished {
		panic("extsort: Finish was called before")
	}
}

// Close gives back the spill file. It must be called on every way out. What would use
// the file afterwards is an fs.ErrClosed, for a writer that of Err.
func (s *Sorter) Close() error { return s.spill.close() }

// Spilled returns the number of bytes that were written to disk.
func (s *Sorter) Spilled() int64 { return s.spill.size.Load() }

// Size returns the number of bytes of all records, with their heads, once they are
// written.
func (s *Sorter) Size() int64 { return s.size }

// Held returns about how many bytes of memory its records take.
func (s *Sorter) Held() int64 { return s.held.Load() }

// Finish ends the writing and forms the buckets. No writer may be used any more.
// The error is that of the spill file, or the cause of the end of the context.
func (s *Sorter) Finish(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeOpen()
	s.finished = true
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
	}
	return s.form(ctx, ranges, s.splitters.bounds)
}

// collect takes the ranges out of some writers, whose memory then is nobody's but
// the ranges'. If anything was spilled, all is.
func (s *Sorter) collect(writers []*Writer, split *splitters) ([]Bucket, error) {
	for _, w := range writers {
		w.distribute(split) // may be the first to spill
	}
	spilled := s.Spilled() > 0
	ranges := make([]Bucket, len(split.bounds)+1)
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
			ranges[i].s = s
			ranges[i].join(t)
		}
		*w = Writer{s: s}
		w.end()
	}
	return ranges, s.spill.wait()
}

// form makes buckets of a convenient size: small neighbours are joined, and a
// range that got far more than its share, as when the input is itself sorted by
// group, is split again.
func (s *Sorter) form(ctx context.Context, ranges []Bucket, bounds []bound) error {
	total, divided := 0, int64(0)
	for i := range ranges {
		total += ranges[i].count
		if ranges[i].unloadable() {
			divided += ranges[i].size
		}
	}
	if divided > 0 && s.cfg.Room != nil {
		if err := s.cfg.Room(divided); err != nil {
			return err
		}
	}
	large := max(8*total/len(ranges), 16*smallBucket)
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
		case r.count > large && r.extents == nil:
			parts, inner := r.split(r.count/smallBucket + 1)
			s.buckets = append(s.buckets, parts...)
			s.bounds = append(s.bounds, inner...)
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

// Len returns the number of records.
func (s *Sorter) Len() (n int64) {
	for i := range s.buckets {
		n += int64(s.buckets[i].count)
	}
	return n
}

// Buckets returns their number, which depends on the writers and the memory.
func (s *Sorter) Buckets() int { return len(s.buckets) }

// Count returns the number of records of bucket i, which need not be loaded.
func (s *Sorter) Count(i int) int { return s.buckets[i].count }

// Joined reports whether bucket i may begin with records of the group and key
// that the bucket before it ends with: they are too many for one bucket.
func (s *Sorter) Joined(i int) bool { return i > 0 && s.bounds[i-1].content != nil }

// Locate returns the first bucket in which records of this group and key are, if
// there are any.
func (s *Sorter) Locate(group uint32, key uint64) int {
	at := bound{group: group, key: key}
	i, _ := slices.BinarySearchFunc(s.bounds, at, s.compareBounds)
	for i < len(s.bounds) && s.bounds[i].content == nil && s.compareBounds(s.bounds[i], at) == 0 {
		i++
	}
	return i
}

// A bound is a position in the order. Without content it is the lowest of its
// group and key.
type bound struct {
	group   uint32
	key     uint64
	content []byte
}

// forget drops the content, of which nobody asks any more what it is, only whether
// there is one.
func (b *bound) forget() {
	if b.content != nil {
		b.content = []byte{}
	}
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
	var bounds []bound
	for i := 1; i < n && len(sample) > 0; i++ {
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
