// Package charset reads texts that are not UTF-8: those of Windows, of ISO 8859, and UTF-16 without a
// byte order mark. It knows bytes, and no files.
package charset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"
)

// The encodings with two bytes a character.
const (
	UTF16LE = "utf-16le"
	UTF16BE = "utf-16be"
)

// tables has the encodings with one byte a character. The ASCII bytes of all of them are ASCII.
var tables = map[string]*charmap.Charmap{
	"windows-1250": charmap.Windows1250, "windows-1251": charmap.Windows1251, "windows-1252": charmap.Windows1252, "windows-1253": charmap.Windows1253,
	"windows-1254": charmap.Windows1254, "windows-1255": charmap.Windows1255, "windows-1256": charmap.Windows1256, "windows-1257": charmap.Windows1257,
	"windows-1258": charmap.Windows1258,
	"iso-8859-1":   charmap.ISO8859_1, "iso-8859-2": charmap.ISO8859_2, "iso-8859-3": charmap.ISO8859_3, "iso-8859-4": charmap.ISO8859_4, "iso-8859-5": charmap.ISO8859_5,
	"iso-8859-6": charmap.ISO8859_6, "iso-8859-7": charmap.ISO8859_7, "iso-8859-8": charmap.ISO8859_8, "iso-8859-9": charmap.ISO8859_9, "iso-8859-10": charmap.ISO8859_10,
	"iso-8859-11": charmap.Windows874, // from A0 on they are alike
	"iso-8859-13": charmap.ISO8859_13, "iso-8859-14": charmap.ISO8859_14, "iso-8859-15": charmap.ISO8859_15, "iso-8859-16": charmap.ISO8859_16,
}

// Names returns the names of the encodings, in their order.
func Names() (names []string) {
	for n := 1250; n <= 1258; n++ {
		names = append(names, "windows-"+strconv.Itoa(n))
	}
	for n := 1; n <= 16; n++ {
		if name := "iso-8859-" + strconv.Itoa(n); tables[name] != nil {
			names = append(names, name)
		}
	}
	return append(names, UTF16LE, UTF16BE)
}

// Parse returns the name of an encoding, which may be written in any case; "": none.
func Parse(text string) (string, error) {
	name := strings.ToLower(text)
	switch {
	case name == "" || slices.Contains(Names(), name):
		return name, nil
	case name == "iso-8859-12":
		return "", fmt.Errorf("there is no %s: it was never published", name)
	case name == "utf-8" || name == "utf8":
		return "", fmt.Errorf("%q is what inputs are taken for without it", text)
	}
	return "", fmt.Errorf("%q is not windows-1250 to windows-1258, iso-8859-1 to iso-8859-16, utf-16le or utf-16be", text)
}

// IsWide reports whether an encoding has two bytes a character.
func IsWide(name string) bool { return name == UTF16LE || name == UTF16BE }

// NewReader returns what decodes a text to UTF-8, of an encoding of Names. What the encoding lacks
// becomes bytes that are not UTF-8: a byte itself, half of a surrogate pair as three bytes, half of
// a character at the end as FF.
func NewReader(name string) transform.Transformer {
	if IsWide(name) {
		return wide{high: btoi(name == UTF16LE)}
	}
	n := new(narrow)
	for c := range n {
		n[c] = appendByte(nil, name, byte(c))
	}
	return n
}

// appendByte appends what a byte of an encoding is in UTF-8.
func appendByte(dst []byte, name string, c byte) []byte {
	const control = 0xa0 // a byte from 80 on and before it is a control character, or is in the tables of Windows
	r := tables[name].DecodeByte(c)
	switch {
	case strings.HasPrefix(name, "iso-") && 0x80 <= c && c < control:
		r = rune(c)
	case r == rune(c) && 0x80 <= c && c < control, r == '\ufffd': // what x/text makes of a byte that Windows does not have
		return append(dst, c)
	}
	return append(dst, string(r)...)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// narrow has the UTF-8 of each byte.
type narrow [256][]byte

func (*narrow) Reset() {}

func (n *narrow) Transform(dst, src []byte, _ bool) (written, read int, err error) {
	for _, c := range src {
		if written+len(n[c]) > len(dst) {
			return written, read, transform.ErrShortDst
		}
		written += copy(dst[written:], n[c])
		read++
	}
	return written, read, nil
}

// wide has the index of the higher byte of two.
type wide struct{ high int }

func (wide) Reset() {}

// unit returns the number that two bytes are.
func (w wide) unit(b []byte) rune { return rune(b[w.high])<<8 | rune(b[1-w.high]) }

// next returns the UTF-8 of the first character, and how many bytes it has; 0: there are too few.
func (w wide) next(buf, src []byte, end bool) (text []byte, n int) {
	const first, low, last = 0xd800, 0xdc00, 0xdfff // surrogates
	switch {
	case len(src) == 1 && end:
		return append(buf, 0xff), 1
	case len(src) < 2:
		return nil, 0
	}
	r := w.unit(src)
	switch {
	case r < first || r > last:
		return append(buf, string(r)...), 2
	case r < low && len(src) < 4 && !end:
		return nil, 0
	case r < low && len(src) >= 4:
		if next := w.unit(src[2:]); low <= next && next <= last {
			return append(buf, string(0x10000+(r-first)<<10+next-low)...), 4
		}
	}
	return append(buf, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f), 2
}

func (w wide) Transform(dst, src []byte, atEOF bool) (written, read int, err error) {
	var buf [4]byte
	for read < len(src) {
		text, n := w.next(buf[:0], src[read:], atEOF)
		switch {
		case n == 0:
			return written, read, transform.ErrShortSrc
		case written+len(text) > len(dst):
			return written, read, transform.ErrShortDst
		}
		written += copy(dst[written:], text)
		read += n
	}
	return written, read, nil
}
