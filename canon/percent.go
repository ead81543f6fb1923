package canon

import (
	"fmt"
	"unicode/utf8"
)

// Sets of bytes that are allowed in a part of a URL.
const (
	unreserved    = 1 << iota // RFC 3986 §2.3
	inHost                    // RFC 3986 §3.2.2 reg-name: unreserved and sub-delims
	inUserinfo                // RFC 3986 §3.2.1 without ";", "=", ":", which browsers escape
	inPath                    // RFC 3986 §3.3, with the slash
	inQuery                   // RFC 3986 §3.4 without "'", which browsers escape
	inScheme                  // RFC 3986 §3.1, after the first letter
	endsAuthority             // RFC 3986 §3.2, with the backslash of WHATWG
	inFragment                // RFC 3986 §3.5
)

const (
	lower    = "abcdefghijklmnopqrstuvwxyz"
	upper    = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits   = "0123456789"
	hexUpper = "0123456789ABCDEF"
)

// class has the sets of each byte. It is read only.
var class = classTable(map[string]uint8{
	lower + upper + digits: unreserved | inHost | inUserinfo | inPath | inQuery | inFragment | inScheme,
	"-.":                   unreserved | inHost | inUserinfo | inPath | inQuery | inFragment | inScheme,
	"_~":                   unreserved | inHost | inUserinfo | inPath | inQuery | inFragment,
	"+":                    inHost | inUserinfo | inPath | inQuery | inFragment | inScheme,
	"!$&()*,":              inHost | inUserinfo | inPath | inQuery | inFragment,
	"'":                    inHost | inUserinfo | inPath | inFragment,
	";=":                   inHost | inPath | inQuery | inFragment,
	":@":                   inPath | inQuery | inFragment,
	"/":                    inPath | inQuery | inFragment | endsAuthority,
	"?":                    inQuery | inFragment | endsAuthority,
	"\\#":                  endsAuthority,
})

func classTable(sets map[string]uint8) (t [256]uint8) {
	for members, bits := range sets {
		for i := range len(members) {
			t[members[i]] |= bits
		}
	}
	return t
}

// appendNormal appends s percent-normalised: a byte of the set keep stays, an escape
// of an unreserved character is decoded (RFC 3986 §6.2.2.2), any other escape gets
// upper-case digits (§6.2.2.1), and every other byte is escaped.
func appendNormal(dst, s []byte, keep uint8) []byte {
	for {
		rest := s
		// Most bytes stay, so four are tested at once.
		for len(rest) >= 4 && class[rest[0]]&class[rest[1]]&class[rest[2]]&class[rest[3]]&keep != 0 {
			rest = rest[4:]
		}
		for len(rest) > 0 && class[rest[0]]&keep != 0 {
			rest = rest[1:]
		}
		dst = append(dst, s[:len(s)-len(rest)]...)
		if len(rest) == 0 {
			return dst
		}
		c, n := unescape(rest)
		if s = rest[n:]; n > 1 && class[c]&unreserved != 0 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hexUpper[c>>4], hexUpper[c&15])
		}
	}
}

// unescape returns the first byte of s and its length: 3 if s starts with an escape,
// which is decoded, otherwise 1. s must not be empty.
func unescape(s []byte) (c byte, n int) {
	if s[0] != '%' || len(s) < 3 {
		return s[0], 1
	}
	hi, lo := unhex(s[1]), unhex(s[2])
	if hi|lo > 15 {
		return '%', 1
	}
	return hi<<4 | lo, 3
}

// unhex returns the value of a hexadecimal digit, 255 for any other byte.
func unhex(c byte) byte {
	switch {
	case c-'0' <= 9:
		return c - '0'
	case c|0x20-'a' <= 5:
		return c | 0x20 - 'a' + 10
	}
	return 255
}

// EscapeInvalid replaces each byte that is not UTF-8 by %XX, for what must be text: URLs
// in a store, names of columns. It returns text itself, not a copy, if it is UTF-8.
func EscapeInvalid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			out = fmt.Appendf(out, "%%%02X", text[0])
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}
