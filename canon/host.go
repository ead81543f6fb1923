package canon

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// UnicodeVersion is the version of the tables that make internationalized names
// ASCII. TestTables compares them with those of Unicode 15.0: newer tables may accept
// more code points, but must not change the form of any that 15.0 accepts.
const UnicodeVersion = idna.UnicodeVersion

// uts46 maps and checks as ToASCII of UTS #46 does, with the parameters of WHATWG URL
// §3.3: non-transitional, with the checks of joiners and of bidirectional text, without
// those of STD3, of hyphens and of length. It is read only. appendName does the last
// step of ToASCII.
var uts46 = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.CheckJoiners(true),
	idna.BidiRule(),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.VerifyDNSLength(false),
)

// appendHost appends the canonical form of a host. It works as the host parser of
// WHATWG URL §3.5, but allows only the characters of RFC 3986 §3.2.2 in a name.
func appendHost(dst, host []byte) ([]byte, error) {
	if len(host) == 0 {
		return dst, EmptyHost
	}
	if host[0] == '[' {
		return appendIPv6(dst, host)
	}
	start := len(dst)
	dst, ascii := appendDecoded(dst, host)
	if !ascii {
		name, err := mapName(dst[start:])
		if err != nil {
			return dst, err
		}
		var ok bool
		if dst, ok = appendName(dst[:start], name); !ok {
			return dst, BadHost
		}
	}
	name := dst[start:]
	if badByte(name) >= 0 || hasEmptyLabel(name) {
		return dst, BadHost
	}
	if !endsInNumber(name) {
		return dst, nil
	}
	ip, ok := parseIPv4(name)
	if !ok {
		return dst, BadHost
	}
	return appendIPv4(dst[:start], ip), nil
}

// appendDecoded appends host with its escapes decoded once and its ASCII letters
// in lower case. It reports whether the result is ASCII.
func appendDecoded(dst, host []byte) (_ []byte, ascii bool) {
	n := len(dst)
	dst = append(dst, host...)
	var all byte
	for i := 0; i < len(host); n++ {
		c, size := host[i], 1
		if c == '%' {
			c, size = unescape(host[i:])
		}
		i += size
		if c-'A' <= 'Z'-'A' {
			c |= 0x20
		}
		all |= c
		dst[n] = c
	}
	return dst[:n], all < utf8.RuneSelf
}

// mapFirst maps a few characters before uts46 does. The form of U+1E9E depends on the
// tables: "ss" before Unicode 15.1, then "ß". U+2135 to U+2138 become Hebrew letters;
// uts46 looks for right-to-left characters before it maps, and would miss them.
var mapFirst = strings.NewReplacer("\u1e9e", "ß",
	"\u2135", "\u05d0", "\u2136", "\u05d1", "\u2137", "\u05d2", "\u2138", "\u05d3")

// mapName maps and checks an internationalized name. The result is not yet ASCII.
func mapName(name []byte) (string, error) {
	if !utf8.Valid(name) {
		return "", BadHost
	}
	s := mapFirst.Replace(string(name))
	if hasBadACE(s) {
		return "", BadHost
	}
	mapped, err := uts46.ToUnicode(s)
	if err != nil || !nonJoinersPart(mapped) {
		return "", BadHost
	}
	return mapped, checkLongName(mapped)
}

// checkLongName returns the fault of a mapped name of more than MaxLength characters,
// of which one at least is not ASCII. Its ASCII form has a byte or more for each
// character, so it is too long if it has no other fault.
func checkLongName(mapped string) error {
	if n := utf8.RuneCountInString(mapped); n <= MaxLength || n == len(mapped) {
		return nil
	}
	if m := []byte(mapped); badByte(m) >= 0 || hasEmptyLabel(m) || endsInNumber(m) {
		return BadHost
	}
	return TooLong
}

// hyphens are the characters that are mapped to '-'.
const hyphens = "-\ufe63\uff0d"

// hasBadACE reports whether mapping makes a label "xn--" alone, or "xn--" and
// something that is not ASCII. uts46 accepts such a label and makes another name of it.
func hasBadACE(name string) bool {
	if i := strings.IndexAny(name, hyphens); i < 0 || i == strings.LastIndexAny(name, hyphens) {
		return false // the usual case
	}
	var mapped strings.Builder
	for _, r := range name {
		if r < utf8.RuneSelf { // in lower case already
			mapped.WriteByte(byte(r))
			continue
		}
		form, _ := uts46.ToUnicode(string(r)) // it may be wrong alone, and is mapped all the same
		mapped.WriteString(form)
	}
	for label := range strings.SplitSeq(mapped.String(), ".") {
		if code, ace := strings.CutPrefix(label, "xn--"); ace && (code == "" || utf8.RuneCountInString(code) < len(code)) {
			return true
		}
	}
	return false
}

// badByte returns the index of the first ASCII byte that is not allowed in a name,
// or -1.
func badByte(name []byte) int {
	for i, c := range name {
		if c < utf8.RuneSelf && class[c]&inHost == 0 {
			return i
		}
	}
	return -1
}

// hasEmptyLabel reports whether a label of name is empty. One dot may be at the end.
func hasEmptyLabel(name []byte) bool {
	return len(name) == 0 || name[0] == '.' || bytes.Contains(name, []byte(".."))
}
