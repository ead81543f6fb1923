package verify

import (
	"math/bits"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/record"
)

// A rowSet is a set of row numbers from 1 to records, with a bit for each. The bits lie in
// pages, which are made for their first row. A manifest with an absurd number of records thus
// costs a pointer for each million: at most 192 MiB for the three sets of all inputs
// together. A rowSet is safe for concurrent use.
type rowSet struct {
	records int64
	pages   []atomic.Pointer[rowPage]
}

const (
	pageBits = 20
	pageRows = 1 << pageBits
	// mostRecords is the most records of all inputs: the sort of a run has no room for
	// more.
	mostRecords = record.MaxRow
)

type rowPage []atomic.Uint64

func newRowSet(records int64) *rowSet {
	return &rowSet{records, make([]atomic.Pointer[rowPage], (records+pageRows-1)/pageRows)}
}

// add adds a row from 1 to records and reports whether it is new.
func (s *rowSet) add(row int64) bool {
	i := uint64(row - 1)
	at := &s.pages[i>>pageBits]
	page := at.Load()
	if page == nil {
		made := make(rowPage, s.words(int(i>>pageBits)))
		at.CompareAndSwap(nil, &made)
		page = at.Load()
	}
	bit := uint64(1) << (i % 64)
	return (*page)[i%pageRows/64].Or(bit)&bit == 0
}

// words is the length of a page. The last one has only what the records need, since there
// may be very many inputs.
func (s *rowSet) words(page int) int {
	return int((min(s.records-int64(page)*pageRows, pageRows) + 63) / 64)
}

// has reports whether a row is there.
func (s *rowSet) has(row int64) bool {
	if row > s.records {
		return false
	}
	i := uint64(row - 1)
	page := s.pages[i>>pageBits].Load()
	return page != nil && (*page)[i%pageRows/64].Load()>>(i%64)&1 == 1
}

// missing returns how many rows are not there, and visits the first of them until
// visit returns false.
func (s *rowSet) missing(visit func(row int64) bool) (n int64) {
	n = s.records
	more := true
	for p := range s.pages {
		page := s.pages[p].Load()
		for w := 0; w < s.words(p) && (page != nil || more); w++ {
			var word uint64
			if page != nil {
				word = (*page)[w].Load()
			}
			n -= int64(bits.OnesCount64(word))
			for word = ^word; word != 0 && more; word &= word - 1 {
				row := int64(p)*pageRows + int64(w)*64 + int64(bits.TrailingZeros64(word)) + 1
				more = row <= s.records && visit(row)
			}
		}
	}
	return n
}
