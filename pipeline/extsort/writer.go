package extsort

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// A Writer takes records on behalf of one goroutine. It stages the first ones
// until splitters are known, then appends each to the range it belongs to.
type Writer struct {
	s      *Sorter
	split  *splitters
	staged stretch   // until split is known
	size   int       // bytes of what is staged
	parts  []stretch // one for each range
	spans  []groupSpan
	arena  []byte                     // free memory that chunks are cut from
	arenas int64                      // bytes of all arenas
	free   [chunkClasses + 1][][]byte // chunks whose content was spilled, by size
	turn   int                        // the range that is spilled next
}

// groupSpan caches splitters.span of a group, and a way to find keys in it.
type groupSpan struct {
	lo, hi int
	known  bool

	first []uint32 // of the keys of the span, by the high bits: how many are lower
	shift int
}

// Err returns the first error of writing records to disk so far, by any writer of the
// sorter. After an error records are lost.
func (w *Writer) Err() error { return w.s.spill.err() }

// Reserve adds a record, and returns n bytes for its content, less than 4 GiB, which
// the caller fills before the next call. Groups should be numbered from 0: a writer uses
// about 60 bytes for each up to the highest.
func (w *Writer) Reserve(group uint32, key uint64, n int) []byte {
	h := header{group, key}
	if w.split == nil {
		if w.staged.count < sampleSize && w.size < sampleBytes {
			w.size += recordSize(n)
			return w.staged.reserve(w, h, n)
		}
		w.distribute(w.s.share(w))
	}
	return w.parts[w.rangeOf(h)].reserve(w, h, n)
}

// add adds a record whose content is known.
func (w *Writer) add(h header, content []byte) {
	i := 0
	if w.split.content {
		i = w.s.rangeOf(w.split.bounds, bound{h.group, h.key, content})
	} else {
		i = w.rangeOf(h)
	}
	copy(w.parts[i].reserve(w, h, len(content)), content)
}

// share returns the sorter's splitters, which this writer makes if it is the first.
func (s *Sorter) share(w *Writer) *splitters {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.splitters == nil {
		s.splitters = s.choose([]*Writer{w})
	}
	return s.splitters
}

// distribute moves the staged records to their ranges.
func (w *Writer) distribute(split *splitters) {
	if w.split != nil {
		return
	}
	w.split = split
	w.parts = make([]stretch, len(split.bounds)+1)
	for _, chunk := range w.staged.chunks {
		each(chunk, w.add)
		w.reuse(chunk)
	}
	w.staged = stretch{}
}

func (w *Writer) rangeOf(h header) int {
	for int(h.group) >= len(w.spans) {
		w.spans = append(w.spans, groupSpan{})
	}
	span := &w.spans[h.group]
	if !span.known {
		lo, hi := w.split.span(w.s, h.group)
		*span = groupSpan{lo: lo, hi: hi, known: true}
		span.index(w.split.keys[lo:hi])
	}
	return span.lo + span.count(w.split.keys[span.lo:span.hi], h.key)
}

// index prepares for many keys. They are spread evenly, so that few of the cells
// between zero and the highest have more than one.
func (p *groupSpan) index(keys []uint64) {
	const least, cellsAKey = 64, 8
	if len(keys) < least {
		return
	}
	p.shift = max(bits.Len64(keys[len(keys)-1])-bits.Len(uint(cellsAKey*len(keys))), 0)
	p.first = make([]uint32, keys[len(keys)-1]>>p.shift+2)
	for cell, at := 0, 0; cell < len(p.first); cell++ {
		for at < len(keys) && keys[at]>>p.shift < uint64(cell) {
			at++
		}
		p.first[cell] = uint32(at)
	}
}

// count returns how many of the ascending keys of the span are at most key.
func (p *groupSpan) count(keys []uint64, key uint64) int {
	if p.first == nil {
		return count(keys, key)
	}
	cell := min(key>>p.shift, uint64(len(p.first)-2))
	from, to := p.first[cell], p.first[cell+1]
	return int(from) + count(keys[from:to], key)
}

// Layout of a chunk: records one after another, each at a multiple of 8 bytes,
//
//	group uint32 | content length uint32 | key uint64 | content | 0 to 7 bytes of padding
//
// in little-endian order. A record longer than a chunk has a chunk of its own.
const (
	headerSize   = 16
	align        = 8
	firstChunk   = 1 << 11
	chunkSize    = 1 << 14
	chunkClasses = 3 // chunkSize = firstChunk << chunkClasses
	firstArena   = 1 << 16
	mostArena    = 1 << 23 // but never more than Config.Memory
	offsetBits   = 11      // chunkSize / align is 1 << offsetBits
)

type header struct {
	group uint32
	key   uint64
}

// A stretch is a list of chunks, of which the earlier ones may have been spilled.
// Only the last one is being filled; each chunk's length is what is used of it.
type stretch struct {
	chunks  [][]byte
	extents []extent
	heads   []extent // of the records in extents, in their order; nil without Config.Head
	size    int64    // bytes of the extents; once nothing is added any more, of the chunks too
	count   int      // records
}

// join appends the records of another stretch.
func (t *stretch) join(next *stretch) {
	t.chunks = append(t.chunks, next.chunks...)
	t.extents = append(t.extents, next.extents...)
	t.heads = append(t.heads, next.heads...)
	t.size += next.size
	t.count += next.count
}

func (t *stretch) reserve(w *Writer, h header, n int) []byte {
	size := recordSize(n)
	last := len(t.chunks) - 1
	if last < 0 || len(t.chunks[last])+size > cap(t.chunks[last]) {
		chunk := w.newChunk(last+1+len(t.extents)*chunkClasses, size) // may spill chunks of this very stretch
		t.chunks = append(t.chunks, chunk)
		last = len(t.chunks) - 1
	}
	chunk := t.chunks[last]
	at := len(chunk)
	chunk = chunk[:at+size]
	t.chunks[last] = chunk
	t.count++
	return putRecord(chunk[at:], h, n)
}

// newChunk returns an empty chunk for at least size bytes, number i of its
// stretch. They double from firstChunk to chunkSize, and the memory that they are cut
// from from firstArena to mostArena, so that a small input does not pay for many ranges.
func (w *Writer) newChunk(i, size int) []byte {
	class := min(max(i, bits.Len(uint(size-1)/firstChunk)), chunkClasses)
	capacity := firstChunk << class
	if size > capacity {
		if w.s.full(size) {
			w.makeRoom(func() bool { return !w.s.full(size) })
		}
		w.s.held.Add(int64(size))
		return make([]byte, 0, size)
	}
	arena := min(max(int(w.arenas), firstArena), w.s.arenaSize) // as much again
	if len(w.free[class]) == 0 && len(w.arena) < capacity && w.s.full(arena) {
		w.makeRoom(func() bool { return len(w.free[class]) > 0 || !w.s.full(arena) })
	}
	if last := len(w.free[class]) - 1; last >= 0 {
		chunk := w.free[class][last]
		w.free[class] = w.free[class][:last]
		return chunk
	}
	if len(w.arena) < capacity {
		w.arena = w.s.newArena(arena)
		w.arenas += int64(arena)
		w.s.held.Add(int64(arena))
	}
	chunk := w.arena[:0:capacity]
	w.arena = w.arena[capacity:]
	return chunk
}

// full reports whether so many bytes more would exceed the memory.
func (s *Sorter) full(more int) bool {
	return s.cfg.Memory > 0 && s.held.Load()+int64(more) > s.cfg.Memory
}

// makeRoom spills the full chunks of ranges in turn, until there is enough room. So
// a range is spilled when it has twice the mean, and the disk writes all the while.
func (w *Writer) makeRoom(enough func() bool) {
	for range w.parts {
		t := &w.parts[w.turn]
		w.turn = (w.turn + 1) % len(w.parts)
		if w.spill(t, t.filled()); enough() {
			return
		}
	}
}

// filled returns how many chunks of the stretch take no more records: all but the last,
// if that is not a record's own.
func (t *stretch) filled() int {
	n := len(t.chunks)
	if n > 0 && cap(t.chunks[n-1]) <= chunkSize {
		n--
	}
	return n
}

// spill writes the first n chunks of a stretch. After an error they are lost, rather
// than held.
func (w *Writer) spill(t *stretch, n int) {
	for n > 0 {
		size, now := 0, 0
		for now < n && (now == 0 || size+len(t.chunks[now]) <= extentMax) {
			size += len(t.chunks[now])
			now++
		}
		records, heads := w.s.spill.write(t.chunks[:now], w.s.cfg.Head)
		t.extents = append(t.extents, records)
		t.size += int64(records.size)
		if w.s.cfg.Head > 0 {
			t.heads = append(t.heads, heads)
		}
		for _, chunk := range t.chunks[:now] {
			w.reuse(chunk)
		}
		t.chunks = slices.Delete(t.chunks, 0, now) // which forgets them, too
		n -= now
	}
}

// reuse keeps a chunk whose records are on disk.
func (w *Writer) reuse(chunk []byte) {
	if cap(chunk) > chunkSize {
		w.s.held.Add(-int64(cap(chunk)))
		return
	}
	class := bits.Len(uint(cap(chunk)/firstChunk)) - 1
	w.free[class] = append(w.free[class], chunk[:0])
}

// each calls f with every record of a chunk, in the order they were added.
func each(chunk []byte, f func(h header, content []byte)) {
	for at := 0; at < len(chunk); {
		h, content := record(chunk[at:])
		f(h, content)
		at += recordSize(len(content))
	}
}

// recordSize is what a record of n bytes takes in a chunk.
func recordSize(n int) int { return (headerSize + n + align - 1) &^ (align - 1) }

// putRecord begins b with a record of n bytes, and returns the place of its content.
func putRecord(b []byte, h header, n int) (content []byte) {
	binary.LittleEndian.PutUint32(b, h.group)
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	binary.LittleEndian.PutUint64(b[8:], h.key)
	return b[headerSize : headerSize+n : headerSize+n]
}

// record decodes the record that b begins with.
func record(b []byte) (header, []byte) {
	n := binary.LittleEndian.Uint32(b[4:])
	h := header{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[8:])}
	return h, b[headerSize : headerSize+int(n) : headerSize+int(n)]
}
