package extsort

import (
	"iter"
	"sort"
)

// Records are alike if they have one group, one key and the same first bytes, of which prefix is the
// number. They come together if the order of contents begins with these bytes.

// Runs yields the records that are alike, as [first, end).
func (b *Bucket) Runs(prefix int) iter.Seq2[int, int] {
	return func(yield func(first, end int) bool) {
		for first := 0; first < b.Len(); {
			end := b.EndOf(first, b.Len(), prefix)
			if !yield(first, end) {
				return
			}
			first = end
		}
	}
}

// Alike reports whether records i and j are alike.
func (b *Bucket) Alike(i, j, prefix int) bool {
	return b.Key(i) == b.Key(j) && b.Group(i) == b.Group(j) && string(b.Record(i)[:prefix]) == string(b.Record(j)[:prefix])
}

// FirstOf returns the first of the records that are like record i.
func (b *Bucket) FirstOf(i, prefix int) int {
	if i == 0 || !b.Alike(i-1, i, prefix) {
		return i
	}
	from := b.Search(b.Group(i), b.Key(i)) // others with the key may come before, and be many
	return from + sort.Search(i-from, func(n int) bool { return b.Alike(from+n, i, prefix) })
}

// EndOf returns the end of the records that are like record i, but no more than most.
func (b *Bucket) EndOf(i, most, prefix int) int {
	end := i + 1
	for end < most && b.Alike(i, end, prefix) {
		end++
	}
	return end
}
