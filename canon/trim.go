package canon

import (
	"bytes"
	"encoding/binary"
	"unicode"
)

// Trim removes, at both ends of raw, the bytes 0x00–0x20 and the UTF-8 forms of
// Unicode white space, U+200B and U+FEFF. The result shares the memory of raw.
func Trim(raw []byte) []byte {
	if len(raw) > 0 && isGraphic(raw[0]) && isGraphic(raw[len(raw)-1]) {
		return raw
	}
	return bytes.TrimFunc(raw, IsTrimmed)
}

// isGraphic reports whether c is 0x21–0x7F: ASCII that is never trimmed.
func isGraphic(c byte) bool { return c-0x21 < 0x80-0x21 }

// IsTrimmed reports whether Trim removes a character at the ends of a text.
func IsTrimmed(r rune) bool {
	return r <= ' ' || unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff'
}

// hasControl reports whether s has a byte 0x00–0x1F or 0x7F. It looks at eight
// bytes at a time: if n is subtracted from a byte below n, its top bit is set.
func hasControl(s []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		x := binary.LittleEndian.Uint64(s)
		del := x ^ 0x7F*ones
		if ((x-0x20*ones)&^x|(del-ones)&^del)&tops != 0 {
			return true
		}
	}
	for _, c := range s {
		if c < 0x20 || c == 0x7F {
			return true
		}
	}
	return false
}
