package codegen

import (
	"bytes"
	"encoding/hex"
)

// inPath says which bytes stand in a path as they are: the characters of pchar in RFC 3986 3.3, but
// for the percent sign, and the slash.
var inPath = func() (is [256]bool) {
	const marks = "-._~!$&'()*+,;=:@/"
	for b := range is {
		is[b] = 'a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9' || b < 0x80 && bytes.IndexByte([]byte(marks), byte(b)) >= 0
	}
	return is
}()

// IsPath reports whether a code is its own path.
func IsPath(code []byte) bool {
	for _, b := range code {
		if !inPath[b] {
			return false
		}
	}
	return true
}

// AppendPath appends the path of a code's short URL, without its first slash. FromPath returns the code
// of it, so no two codes have one path.
func AppendPath(dst, code []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, b := range code {
		if inPath[b] {
			dst = append(dst, b)
		} else {
			dst = append(dst, '%', digits[b>>4], digits[b&15])
		}
	}
	return dst
}

// FromPath returns the code that a request asks for: the path after its first slash, each escape of
// which is decoded once. A percent sign that begins no escape stays. Without an escape that is the path
// itself, otherwise a copy.
func FromPath(path []byte) []byte {
	at := bytes.IndexByte(path, '%')
	if at < 0 {
		return path
	}
	code := append(make([]byte, 0, len(path)), path[:at]...)
	for i := at; i < len(path); i++ {
		if b, ok := escaped(path[i:]); ok {
			code, i = append(code, b), i+2
		} else {
			code = append(code, path[i])
		}
	}
	return code
}

// HasEscape reports whether FromPath would decode anything.
func HasEscape(path []byte) bool {
	for {
		at := bytes.IndexByte(path, '%')
		if at < 0 {
			return false
		}
		if _, ok := escaped(path[at:]); ok {
			return true
		}
		path = path[at+1:]
	}
}

// escaped returns the byte of the escape that text begins with.
func escaped(text []byte) (b byte, ok bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	var plain [1]byte
	_, err := hex.Decode(plain[:], text[1:3])
	return plain[0], err == nil
}
