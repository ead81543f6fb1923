package extsort

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
)

// sort puts the entries in order by group and key, without a look at the records. It
// and sortEqual are stable: if millions of records have the same key, sortEqual gets
// them as they were written, which often is in a few ascending runs.
func (b *Bucket) sort(r *room) {
	if !slices.ContainsFunc(b.entries, func(e entry) bool { return e.group != b.entries[0].group }) {
		sortByKey(b.entries, r)
	} else {
		mergeRuns(b.entries, func(x, y *entry) int { return b.s.compareBounds(x.bound(), y.bound()) })
	}
}

// sortEqual sorts stretches of one group and key by content.
func (b *Bucket) sortEqual() {
	byContent := func(x, y *entry) int { return b.s.cfg.Compare(b.content(*x), b.content(*y)) }
	for i := 0; i < len(b.entries); {
		end := i + 1
		for end < len(b.entries) && b.entries[end].key == b.entries[i].key && b.entries[end].group == b.entries[i].group {
			end++
		}
		if end > i+1 {
			mergeRuns(b.entries[i:end], byContent)
		}
		i = end
	}
}

// sortByKey sorts by key alone: one counting pass puts each entry about where it
// belongs, as the keys of a bucket are spread evenly, then each cell is sorted.
func sortByKey(entries []entry, r *room) {
	n := len(entries)
	if n < 2 {
		return
	}
	lo, hi := entries[0].key, entries[0].key
	for i := range entries {
		lo, hi = min(lo, entries[i].key), max(hi, entries[i].key)
	}
	if lo == hi {
		return
	}
	shift := max(bits.Len64(hi-lo)-bits.Len(uint(n)), 0) // at most 2n cells
	cells := int((hi-lo)>>shift) + 1
	ends := slices.Grow(r.ends[:0], cells+1)[:cells+1]
	clear(ends)
	for i := range entries {
		ends[(entries[i].key-lo)>>shift+1]++
	}
	for i := range ends[1:] {
		ends[i+1] += ends[i]
	}
	out := slices.Grow(r.out[:0], n)[:n]
	r.out, r.ends = out, ends
	for i := range entries {
		c := (entries[i].key - lo) >> shift
		out[ends[c]] = entries[i]
		ends[c]++
	}
	copy(entries, out)
	start := int32(0)
	for _, end := range ends[:len(ends)-1] {
		if cell := entries[start:end]; len(cell) > shortRun {
			mergeRuns(cell, func(x, y *entry) int { return cmp.Compare(x.key, y.key) })
		} else {
			for i := 1; i < len(cell); i++ {
				for j := i; j > 0 && cell[j].key < cell[j-1].key; j-- {
					cell[j], cell[j-1] = cell[j-1], cell[j]
				}
			}
		}
		start = end
	}
}

const (
	// shortRun is the length below which an ascending run is made longer by insertion.
	shortRun = 16
	// longSort is the length above which the halves are sorted by two goroutines.
	longSort = 1 << 15
)

// mergeRuns is a natural merge sort, stable: with k ascending runs it makes about
// n · log k comparisons.
func mergeRuns(entries []entry, compare func(x, y *entry) int) {
	if n := len(entries); n > longSort {
		a, b := entries[:n/2], entries[n/2:]
		var first sync.WaitGroup
		first.Go(func() { mergeRuns(a, compare) })
		mergeRuns(b, compare)
		first.Wait()
		if compare(&a[len(a)-1], &b[0]) > 0 {
			merge(entries, slices.Clone(a), b, compare)
		}
		return
	}
	var few [8]int
	ends := few[:0] // of the runs
	for start := 0; start < len(entries); start = ends[len(ends)-1] {
		end := start + 1
		for end < len(entries) && compare(&entries[end-1], &entries[end]) <= 0 {
			end++
		}
		for ; end < len(entries) && end-start < shortRun; end++ {
			for j := end; j > start && compare(&entries[j], &entries[j-1]) < 0; j-- {
				entries[j], entries[j-1] = entries[j-1], entries[j]
			}
		}
		ends = append(ends, end)
	}
	if len(ends) < 2 {
		return
	}
	for from, to := entries, make([]entry, len(entries)); ; from, to = to, from {
		start, merged := 0, ends[:0]
		for i := 0; i < len(ends); i += 2 {
			middle, end := ends[i], ends[min(i+1, len(ends)-1)]
			merge(to[start:end], from[start:middle], from[middle:end], compare)
			start, merged = end, append(merged, end)
		}
		if ends = merged; len(ends) == 1 {
			if &to[0] != &entries[0] {
				copy(entries, to)
			}
			return
		}
	}
}

// merge merges a and b; of equal entries those of a come first. b may be the end of out.
func merge(out, a, b []entry, compare func(x, y *entry) int) {
	for len(a) > 0 && len(b) > 0 {
		if compare(&b[0], &a[0]) < 0 {
			out[0], b = b[0], b[1:]
		} else {
			out[0], a = a[0], a[1:]
		}
		out = out[1:]
	}
	copy(out[copy(out, a):], b)
}
