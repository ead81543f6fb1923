package extsort

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sort"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// A Bucket is a stretch of the order. It belongs to its sorter. Between Load and
// Release it may be read by any number of goroutines.
type Bucket struct {
	s       *Sorter
	stretch         // in chunks or in extents, all of it
	entries []entry // one for each record; in order once sorted
	sorted  bool
	room    *room // that it was loaded into
}

// A room is memory that buckets are loaded into and sorted in, one after the other.
type room struct {
	buf     []byte
	chunks  [][]byte
	entries []entry
	out     []entry // of sortByKey
	ends    []int32
}

// An entry stands for a record: 16 bytes that are sorted in its place.
type entry struct {
	key   uint64
	group uint32
	ref   uint32 // chunk number << offsetBits | offset / align
}

// Len returns the number of records.
func (b *Bucket) Len() int { return len(b.entries) }

// Size returns about how many bytes the records take.
func (b *Bucket) Size() int64 { return b.size }

// Group returns the group of record i in order.
func (b *Bucket) Group(i int) uint32 { return b.entries[i].group }

// Key returns the key of record i in order.
func (b *Bucket) Key(i int) uint64 { return b.entries[i].key }

// Record returns the content of record i in order. The sorter owns it.
func (b *Bucket) Record(i int) []byte { return b.content(b.entries[i]) }

// Touch reads a little of each of the records [from, to) in order: the processor
// then has them at hand. Records lie all over the bucket's memory, and misses that
// do not wait for each other cost less.
func (b *Bucket) Touch(from, to int) {
	var sum byte
	for _, e := range b.entries[min(from, len(b.entries)):min(to, len(b.entries))] {
		at := b.chunks[e.ref>>offsetBits][e.ref&(1<<offsetBits-1)*align:]
		sum += at[0] + at[min(64, len(at)-1)] + at[min(128, len(at)-1)]
	}
	runtime.KeepAlive(sum) // so that the reads are not left out
}

// Search returns the index of the first record that is not before this group
// and key.
func (b *Bucket) Search(group uint32, key uint64) int {
	return sort.Search(len(b.entries), func(i int) bool {
		return b.s.compareBounds(b.entries[i].bound(), bound{group: group, key: key}) >= 0
	})
}

func (e entry) bound() bound { return bound{group: e.group, key: e.key} }

func (b *Bucket) content(e entry) []byte {
	chunk := b.chunks[e.ref>>offsetBits]
	_, content := record(chunk[e.ref&(1<<offsetBits-1)*align:])
	return content
}

// Load returns bucket i with its records in order. Different buckets may be loaded at
// once, but the same one only by one goroutine at a time. The caller must release it.
// The error is that of the spill file.
func (s *Sorter) Load(i int) (*Bucket, error) {
	b := &s.buckets[i]
	if b.sorted {
		return b, nil
	}
	if b.extents == nil {
		r := s.rooms.Get().(*room)
		b.enterAll()
		b.sort(r)
		b.sortEqual()
		b.sorted = true
		s.giveBack(r)
		return b, nil
	}
	loaded, err := b.read(b.extents)
	if err == nil {
		loaded.sortEqual()
	}
	return loaded, err
}

// LoadHeads loads a bucket of which only the first Config.Head bytes of each record are
// needed. If the heads are on disk, it reads only them, which is much less. The records
// are in order by group and key; those of the same key come in any order.
func (s *Sorter) LoadHeads(i int) (*Bucket, error) {
	b := &s.buckets[i]
	if b.heads == nil {
		return s.Load(i)
	}
	return b.read(b.heads)
}

// read loads these extents of the bucket, in order by group and key.
func (b *Bucket) read(extents []extent) (*Bucket, error) {
	size := 0
	for _, e := range extents {
		size += e.size
	}
	r := b.s.rooms.Get().(*room)
	buf := r.bytes(size)
	loaded := &Bucket{s: b.s, stretch: stretch{chunks: r.chunks[:0], count: b.count, size: int64(size)}, entries: slices.Grow(r.entries[:0], b.count), room: r}
	for at := 0; at < size; at += chunkSize {
		loaded.chunks = append(loaded.chunks, buf[at:]) // so references are offsets in buf
	}
	for at, i := 0, 0; i < len(extents); i++ {
		records, err := b.s.spill.read(extents[i], buf[at:])
		if err != nil {
			b.s.giveBack(r)
			return nil, err
		}
		loaded.enter((at+extentHeader)/align, records)
		at += extents[i].size
	}
	r.chunks, r.entries = loaded.chunks, loaded.entries
	loaded.sort(r)
	return loaded, nil
}

// Release gives back the memory of a loaded bucket. Its records may not be used any
// more.
func (b *Bucket) Release() {
	if b.room != nil {
		b.s.giveBack(b.room)
		b.room = nil
	}
}

// giveBack keeps a room for the next bucket, but not the memory of a record that is
// larger than buckets are to be.
func (s *Sorter) giveBack(r *room) {
	if int64(cap(r.buf))/2 > s.loadable() {
		r.buf, r.chunks = nil, nil // which refer to it
	}
	s.rooms.Put(r)
}

// bytes returns n bytes of the room.
func (r *room) bytes(n int) []byte {
	if cap(r.buf) < n {
		r.buf = fsys.NewBlock(n + n/8) // the next bucket may be a little larger
	}
	return r.buf[:n]
}

// scan visits the records of a bucket on disk, each valid during the call. It ends with
// the context, or with the first error of the spill file, also one of writing, since the
// visits may write.
func (b *Bucket) scan(ctx context.Context, visit func(h header, content []byte)) error {
	for _, e := range b.extents {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := b.s.rooms.Get().(*room)
		records, err := b.s.spill.read(e, r.bytes(e.size))
		if err == nil {
			each(records, visit)
		}
		b.s.giveBack(r)
		if err != nil {
			return err
		}
	}
	return nil
}

// enterAll makes the entries of a bucket in memory, unless split has made them.
func (b *Bucket) enterAll() {
	if b.entries != nil {
		return
	}
	b.entries = make([]entry, 0, b.count)
	for c, chunk := range b.chunks {
		sweep(chunk)
		b.enter(c<<offsetBits, chunk)
	}
}

// sweep reads a byte of each cache line, as Touch does. Where a record begins is known
// only from the one before it, so that enter would wait for the memory of each.
func sweep(chunk []byte) {
	const line = 64
	var sum byte
	for at := 0; at < len(chunk); at += line {
		sum += chunk[at]
	}
	runtime.KeepAlive(sum)
}

// enter appends the entries of records, of which the first has this reference.
func (b *Bucket) enter(ref int, records []byte) {
	for at := 0; at < len(records); {
		h, content := record(records[at:])
		b.entries = append(b.entries, entry{h.key, h.group, uint32(ref + at/align)})
		at += recordSize(len(content))
	}
	if uint64(ref)+uint64(len(records)/align) > math.MaxUint32 {
		panic("extsort: a bucket of over 32 GiB")
	}
}

// split makes smaller buckets of a range in memory: by key, and where keys do not
// divide it well enough, by content.
func (s *Sorter) split(b *Bucket) {
	b.enterAll()
	n := b.shares()
	sample := make([]bound, 0, 64*n)
	for i := 0; i < len(b.entries); i += max(len(b.entries)/(64*n), 1) {
		sample = append(sample, b.entries[i].bound())
	}
	bounds := s.quantiles(sample, n)
	if len(bounds) < 2 { // all but a few have one key
		s.cut(b)
		return
	}
	parts := make([][]entry, len(bounds)+1)
	for _, e := range b.entries {
		i := s.rangeOf(bounds, e.bound())
		parts[i] = append(parts[i], e)
	}
	if len(parts[0]) == 0 { // the lowest bound is that of the least record
		parts, bounds = parts[1:], bounds[1:]
	}
	for i := range parts {
		if i > 0 {
			s.bounds = append(s.bounds, bounds[i-1])
		}
		if part := b.part(parts[i]); part.large() {
			s.cut(&part)
		} else {
			s.buckets = append(s.buckets, part)
		}
	}
}

// cut sorts a range in memory and makes buckets of it, each of about as many records.
func (s *Sorter) cut(b *Bucket) {
	b.sort(&room{})
	b.sortEqual()
	rows := b.count/b.shares() + 1
	for from := 0; from < b.count; from += rows {
		if from > 0 {
			at, last := b.entries[from].bound(), b.entries[from-1].bound()
			if s.compareBounds(at, last) == 0 {
				at.content = []byte{}
			}
			s.bounds = append(s.bounds, at)
		}
		part := b.part(b.entries[from:min(from+rows, b.count)])
		part.sorted = true
		s.buckets = append(s.buckets, part)
	}
}

// shares returns how many buckets a large range in memory becomes.
func (b *Bucket) shares() int { return max(b.count/smallBucket, int(b.size/smallBytes)) + 1 }

// part returns a bucket of some records of one in memory.
func (b *Bucket) part(entries []entry) Bucket {
	mean := b.size / int64(b.count)
	return Bucket{s: b.s, stretch: stretch{chunks: b.chunks, count: len(entries), size: mean * int64(len(entries))}, entries: entries}
}
