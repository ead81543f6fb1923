package canon

import (
	"bytes"
	"encoding/binary"
)

// A stage says how much of a URL is known to be canonical.
type stage uint8

const (
	atScheme stage = iota // nothing is known
	atPath                // scheme and authority
	atQuery               // the path too, and '?' follows
	atEnd                 // everything, apart from an end that is cut off
)

// Sets for scan: bytes that need no closer look.
const (
	cleanLabel  = 1 << iota // in a label of a host
	cleanPath               // in a path, with the slash
	cleanQuery              // in a key or value of a query
	afterSlash              // makes the slash before it suspect: "//" or "/."
	isSlash                 // one bit above afterSlash
	escapeDigit             // a hexadecimal digit of a canonical escape
)

// clean has the sets of each byte. It is read only.
var clean = classTable(map[string]uint8{
	lower + digits + "-_~": cleanLabel | cleanPath | cleanQuery,
	upper:                  cleanPath | cleanQuery,
	"!$()*+,;:@":           cleanPath | cleanQuery,
	".":                    cleanPath | cleanQuery | afterSlash,
	"/":                    cleanPath | cleanQuery | afterSlash | isSlash,
	"?":                    cleanQuery,
	"=":                    cleanPath,
	"&'":                   cleanPath,
	hexUpper:               escapeDigit,
})

// scan is the fast path for URLs that are canonical, or nearly so. s[:n] is the
// canonical form of the parts of s before the stage; at atEnd it is the canonical
// form of s, if it is not too long. scan gives up at anything that is not ordinary,
// and refuses nothing.
func scan(s []byte) (n int, at stage) {
	path := scanHost(s, scanScheme(s))
	if path == 0 {
		return 0, atScheme
	}
	if path == len(s) || s[path] != '/' {
		return path, atPath
	}
	end := scanPath(s, path)
	if end < 0 {
		return path, atPath
	}
	n = end
	if s[n-1] == '/' && n-1 > path {
		n--
	}
	if end < len(s) && s[end] == '?' {
		if n < end {
			return path, atPath
		}
		if end = scanQuery(s, end); end < 0 {
			return n, atQuery
		}
		n = end
	}
	if end < len(s) && (s[end] != '#' || hasControl(s[end:])) {
		return path, atPath
	}
	return n, atEnd
}

// scanScheme returns the length of "http://" or "https://" before s, or 0.
func scanScheme(s []byte) int {
	if len(s) <= 8 {
		return 0
	}
	const http, https = 0x2f2f3a70747468, 0x2f2f3a7370747468 // least byte first
	switch x := binary.LittleEndian.Uint64(s); {
	case x == https:
		return 8
	case x<<8 == http<<8:
		return 7
	}
	return 0
}

// scanHost returns the end of the host that starts at s[i], or 0 if it is not
// a plain lower-case name at the end of the authority. It returns 0 also if the last
// label starts with a digit, because the host may then be an IPv4 address.
func scanHost(s []byte, i int) int {
	if i == 0 {
		return 0
	}
	label := i
	for ; i < len(s); i++ {
		if clean[s[i]]&cleanLabel != 0 {
			continue
		}
		if s[i] != '.' {
			break
		}
		if i == label {
			return 0
		}
		label = i + 1
	}
	if i == label || s[label]-'0' <= 9 || i < len(s) && class[s[i]]&endsAuthority == 0 {
		return 0
	}
	return i
}

// scanPath returns the end of the path that starts at s[i], or -1 if the path is not
// canonical. One slash too many at its end is allowed.
func scanPath(s []byte, i int) int {
	var before, suspect uint8
	for {
		for ; uint(i) < uint(len(s)); i++ {
			c := clean[s[i]]
			if c&cleanPath == 0 {
				break
			}
			suspect |= before >> 1 & c
			before = c
		}
		if suspect&afterSlash != 0 {
			return -1
		}
		if i == len(s) || s[i] == '?' || s[i] == '#' {
			return i
		}
		if !isEscape(s[i:]) {
			return -1
		}
		i, before = i+3, 0
	}
}

// scanQuery returns the end of the query that starts with the '?' at s[i], or -1 if
// the query is not canonical: escapes, no empty piece, keys in order.
func scanQuery(s []byte, i int) int {
	var last []byte
	start, equals := i+1, 0 // of the piece; 0: none so far
	for i = start; ; i++ {
		if uint(i) < uint(len(s)) {
			c := s[i]
			if clean[c]&cleanQuery != 0 {
				continue
			}
			if c == '=' {
				if equals == 0 {
					equals = i
				}
				continue
			}
			if c == '%' && isEscape(s[i:]) {
				i += 2
				continue
			}
		}
		if equals == 0 {
			equals = i
		}
		key := s[start:equals]
		if i == start || bytes.Compare(last, key) > 0 {
			return -1
		}
		if i == len(s) || s[i] == '#' {
			return i
		}
		if s[i] != '&' {
			return -1
		}
		last, start, equals = key, i+1, 0
	}
}

// isEscape reports whether s starts with an escape that stays as it is.
func isEscape(s []byte) bool {
	if len(s) < 3 || s[0] != '%' || clean[s[1]]&clean[s[2]]&escapeDigit == 0 {
		return false
	}
	return class[unhex(s[1])<<4|unhex(s[2])]&unreserved == 0
}
