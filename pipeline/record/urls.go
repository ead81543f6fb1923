package record

import (
	"iter"
	"sort"

	"github.com/linkforge/bulk/pipeline/extsort"
)

// URLs yields the records of each distinct URL of a bucket: [first, end).
func URLs(b *extsort.Bucket) iter.Seq2[int, int] {
	return func(yield func(first, end int) bool) {
		for first := 0; first < b.Len(); {
			end := EndOf(b, first, b.Len())
			if !yield(first, end) {
				return
			}
			first = end
		}
	}
}

// SameURL reports whether records i and j of a bucket have one URL.
func SameURL(b *extsort.Bucket, i, j int) bool {
	return b.Key(i) == b.Key(j) && b.Group(i) == b.Group(j) && Key(b.Record(i)) == Key(b.Record(j))
}

// FirstOf returns the first record of the URL that record i of a bucket belongs to.
func FirstOf(b *extsort.Bucket, i int) int {
	if i == 0 || !SameURL(b, i-1, i) {
		return i
	}
	slot := b.Search(b.Group(i), b.Key(i)) // in which other URLs may come before, with many rows
	return slot + sort.Search(i-slot, func(n int) bool { return SameURL(b, slot+n, i) })
}

// EndOf returns the end of the records of the URL that record i belongs to, but no more
// than most.
func EndOf(b *extsort.Bucket, i, most int) int {
	end := i + 1
	for end < most && SameURL(b, i, end) {
		end++
	}
	return end
}
