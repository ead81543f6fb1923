package canon

import (
	"bytes"
	"math/bits"
)

// Changes is a set of ways in which two spellings of a URL differ.
type Changes uint16

// The ways. Of these Elsewhere returns the last six only: a server may answer them
// differently.
const (
	WhiteSpace Changes = 1 << iota // at the ends
	Scheme                         // upper case, backslashes after it, or none
	User                           // empty, or with escapes
	Host
	Port
	EmptyPath   // rather than "/"
	Escapes     // and characters that must be escaped, and backslashes
	DotSegments // in the path

	Slashes       // runs of them in the path
	TrailingSlash // of the path
	EmptyParts    // of the query
	QueryOrder
	Fragment   // dropped
	Parameters // of the query, dropped (StripParams)

	changeCount = iota
)

var changeNames = [changeCount]string{"white space", "scheme", "user name", "host", "port", "empty path", "escapes", "dot segments",
	"runs of slashes", "trailing slash", "empty query parts", "query order", "fragment", "parameters"}

// ChangeCounts counts URLs by change.
type ChangeCounts [changeCount]int64

// Add counts a URL under each of its changes.
func (n *ChangeCounts) Add(c Changes) {
	for ; c != 0; c &= c - 1 {
		n[bits.TrailingZeros16(uint16(c))]++
	}
}

// Merge adds other counts.
func (n *ChangeCounts) Merge(other *ChangeCounts) {
	for i := range n {
		n[i] += other[i]
	}
}

// ByName returns the counts that are not zero, by the name of the change.
func (n *ChangeCounts) ByName() map[string]int64 {
	named := map[string]int64{}
	for i, name := range changeNames {
		if n[i] > 0 {
			named[name] = n[i]
		}
	}
	return named
}

// set adds a change if it is one.
func (c *Changes) set(change Changes, changed bool) {
	if changed {
		*c |= change
	}
}

// Elsewhere returns in which ways raw and other, which have the same canonical form, may
// lead to different pages or places in them. To ignore these is a rule of this package; all
// others follow from RFC 3986 or from what browsers do.
func (p Profile) Elsewhere(raw, other []byte) (c Changes) {
	path, query, fragment := splitRest(p.afterAuthority(raw))
	path2, query2, fragment2 := splitRest(p.afterAuthority(other))
	if !p.KeepFragment && !bytes.Equal(fragment, fragment2) && max(len(fragment), len(fragment2)) > len("#") {
		c |= Fragment
	}
	var buf, buf2 [512]byte
	if !bytes.Equal(query, query2) {
		if !p.StripParams.empty() {
			c.set(Parameters, p.StripParams.dropped(query) != p.StripParams.dropped(query2))
			query, _ = p.StripParams.strip(nil, query)
			query2, _ = p.StripParams.strip(nil, query2)
		}
		c |= queryChanges(appendNormal(buf[:0], query, inQuery), appendNormal(buf2[:0], query2, inQuery))
	}
	if bytes.Equal(path, path2) {
		return c
	}
	path = removeDotSegments(appendSegments(buf[:0], path))
	path2 = removeDotSegments(appendSegments(buf2[:0], path2))
	start, start2 := bytes.TrimRight(path, "/"), bytes.TrimRight(path2, "/")
	end, end2 := len(path)-len(start), len(path2)-len(start2)
	if len(start) > 0 && (end > 0) != (end2 > 0) {
		c |= TrailingSlash
	}
	if !bytes.Equal(start, start2) || max(end, 1) != max(end2, 1) {
		c |= Slashes
	}
	return c
}

// afterAuthority returns what follows the authority of a URL that has a canonical form.
func (p *Profile) afterAuthority(raw []byte) []byte {
	u, _ := split(Trim(raw), p.AssumeScheme)
	return u.rest
}

// queryChanges tells normalised queries apart, whose pieces are the same in some order. Each is
// empty or begins with '?'.
func queryChanges(q, other []byte) (c Changes) {
	if bytes.Equal(q, other) {
		return 0
	}
	if len(q) == len(other) && !hasEmpty(q) && !hasEmpty(other) {
		return QueryOrder
	}
	c.set(EmptyParts, len(q) != len(other))
	c.set(QueryOrder, !bytes.Equal(withoutEmpty(q), withoutEmpty(other)))
	return c
}

// hasEmpty reports whether a piece of a query is empty.
func hasEmpty(query []byte) bool {
	return len(query) < 2 || query[1] == '&' || query[len(query)-1] == '&' || bytes.Contains(query, []byte("&&"))
}

// withoutEmpty returns the pieces of a query that are not empty.
func withoutEmpty(query []byte) []byte {
	if len(query) <= len("?") {
		return nil
	}
	pieces, _ := cutPieces(nil, query[1:])
	if len(pieces) == 0 {
		return nil
	}
	return appendPieces(nil, query[1:], pieces)
}
