// Package topk counts how often each of many texts comes, in bounded memory. Up to Most different texts
// are counted exactly. If there are more, the counts of the most frequent ones are lower bounds: each
// text comes at least so often, and at most Missed times more.
//
// It is the algorithm of Misra and Gries (Finding repeated elements, 1982): when there is no room for
// another text, all counts lose the median, and the texts without a count are forgotten. Of n texts, each
// one that comes more than 2n/Most times is there at the end. The result depends on the texts and their
// order alone.
package topk

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"
)

// Most is how many different texts are counted exactly.
const Most = 10_000

// The bytes of a longer text that are kept for people, and how long a text may be to be kept whole.
const (
	mostBytes = 200
	kept      = 160
)

// A Counter counts texts. The zero value has none. It is for one goroutine.
type Counter struct {
	counts map[string]*int64
	total  int64
	missed int64 // of each text at most
	forgot bool  // there were more than Most different texts

	last  *int64 // of the text before
	text  []byte // the text before
	long  []byte // room for the key of a long text
	spare []int64
}

// An Entry is a text and how often it came.
type Entry struct {
	Text  string // of a very long text the beginning
	Cut   bool   // it is one
	Count int64
}

// Add counts a text once.
func (c *Counter) Add(text []byte) {
	c.total++
	if c.last != nil && string(text) == string(c.text) {
		*c.last++
		return
	}
	c.text = append(c.text[:0], text...)
	key := c.key(text)
	n := c.counts[string(key)]
	if n == nil {
		n = c.enter(string(key))
	}
	*n++
	c.last = n
}

// key is what a text is counted under: itself, or of a long text the beginning and a digest.
func (c *Counter) key(text []byte) []byte {
	if len(text) <= mostBytes {
		return text
	}
	sum := sha256.Sum256(text)
	c.long = append(append(c.long[:0], text[:kept]...), sum[:]...)
	return append(c.long, make([]byte, mostBytes+1-kept-len(sum))...)
}

// enter makes room for a text that is not there.
func (c *Counter) enter(key string) *int64 {
	if c.counts == nil {
		c.counts = map[string]*int64{}
	}
	if len(c.counts) == Most {
		c.forget()
	}
	n := new(int64)
	c.counts[key] = n
	return n
}

// forget takes the median off all counts.
func (c *Counter) forget() {
	c.spare = c.spare[:0]
	for _, n := range c.counts {
		c.spare = append(c.spare, *n)
	}
	slices.Sort(c.spare)
	median := c.spare[len(c.spare)/2]
	for text, n := range c.counts {
		if *n -= median; *n <= 0 {
			delete(c.counts, text)
		}
	}
	c.missed += median
	c.forgot = true
}

// Total returns how many texts were counted, equal ones too.
func (c *Counter) Total() int64 { return c.total }

// Different returns how many different texts there are, and whether that is exact; if not, there are more.
func (c *Counter) Different() (n int, exact bool) {
	if c.forgot {
		return Most, false
	}
	return len(c.counts), true
}

// Missed returns how often, at most, each text came beyond its count; 0: counts are exact.
func (c *Counter) Missed() int64 { return c.missed }

// Top returns the most frequent texts, at most so many; equally frequent ones in byte order.
func (c *Counter) Top(most int) []Entry {
	list := make([]Entry, 0, len(c.counts))
	for text, n := range c.counts {
		e := Entry{Text: text, Count: *n}
		if e.Cut = len(text) > mostBytes; e.Cut {
			e.Text = text[:kept]
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text))
	})
	return list[:min(most, len(list))]
}
