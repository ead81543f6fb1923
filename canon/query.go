package canon

import (
	"bytes"
	"cmp"
	"slices"
)

// A piece is what is between two '&' of a query. Its key is what is before its first
// '=', or all of it.
type piece struct {
	start, key, end int // of the piece, end of the key, end of the piece
}

// appendQuery appends the canonical form of a query, which is empty or starts
// with '?': its pieces that are not empty, in the order of their keys. Pieces are
// cut after normalising, which never makes an '&' or '='.
func appendQuery(dst, query []byte, c *Changes) []byte {
	if len(query) <= len("?") {
		c.set(EmptyParts, len(query) > 0)
		return dst
	}
	start := len(dst)
	dst = appendNormal(append(dst, '?'), query[1:], inQuery)
	q := dst[start+1:]
	c.set(Escapes, !bytes.Equal(q, query[1:]))
	var few [32]piece
	pieces, ordered := cutPieces(few[:0], q)
	if len(pieces) == 0 {
		c.set(EmptyParts, true)
		return dst[:start]
	}
	if ordered {
		return dst
	}
	c.set(EmptyParts, len(pieces) <= bytes.Count(q, []byte("&")))
	c.set(QueryOrder, sortPieces(pieces, q))
	dst = appendPieces(dst, q, pieces)
	n := copy(dst[start+1:], dst[start+1+len(q):])
	return dst[:start+1+n]
}

// cutPieces appends to pieces those of q that are not empty. It reports whether q
// is canonical: no piece is empty, and keys are in order.
func cutPieces(pieces []piece, q []byte) (_ []piece, ordered bool) {
	ordered = true
	var last []byte
	for start := 0; start <= len(q); {
		p := piece{start: start, end: len(q)}
		if i := bytes.IndexByte(q[start:], '&'); i >= 0 {
			p.end = start + i
		}
		if p.key = p.end; p.end > start {
			if i := bytes.IndexByte(q[start:p.end], '='); i >= 0 {
				p.key = start + i
			}
			pieces = append(pieces, p)
		}
		key := q[start:p.key]
		ordered = ordered && p.end > start && bytes.Compare(last, key) <= 0
		last = key
		start = p.end + 1
	}
	return pieces, ordered
}

// sortPieces sorts by key. Pieces of one key keep their order. It reports whether that
// changed the order.
func sortPieces(pieces []piece, q []byte) bool {
	slices.SortFunc(pieces, func(a, b piece) int {
		return cmp.Or(bytes.Compare(q[a.start:a.key], q[b.start:b.key]), cmp.Compare(a.start, b.start))
	})
	return !slices.IsSortedFunc(pieces, func(a, b piece) int { return cmp.Compare(a.start, b.start) })
}

// appendPieces appends pieces of q, with '&' between them. There must be one at least.
func appendPieces(dst, q []byte, pieces []piece) []byte {
	for _, p := range pieces {
		dst = append(append(dst, q[p.start:p.end]...), '&')
	}
	return dst[:len(dst)-1]
}
