package canon

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// UnicodeVersion is the version of the tables by which internationalized names
// become ASCII. TestTables compares them with those of Unicode 15.0: newer ones may
// accept more code points, and give none that was accepted another form.
const UnicodeVersion = idna.UnicodeVersion

// uts46 maps and checks as ToASCII of UTS #46 does, as WHATWG uses it: non-transitional,
// with the checks of joiners and of bidirectional text, without the limits of STD3, of
// hyphens and of length. It is never written again. The last step is appendName's.
var uts46 = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.CheckJoiners(true),
	idna.BidiRule(),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.VerifyDNSLength(false),
)

// appendHost appends the canonical form of a host: the host parser of WHATWG,
// narrowed to what RFC 3986 §3.2.2 allows in a name.
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

// appendDecoded appends host with its escapes decoded, once, and its ASCII
// letters in lower case, and reports whether that is ASCII.
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

// mapFirst maps, before uts46 does, U+1E9E, the one character whose form depends
// on the tables (before Unicode 15.1 they make it "ss", then "ß"), and the symbols
// that are Hebrew letters only when mapped: uts46 looks for such before it maps.
var mapFirst = strings.NewReplacer("\u1e9e", "ß",
	"\u2135", "\u05d0", "\u2136", "\u05d1", "\u2137", "\u05d2", "\u2138", "\u05d3")

// mapName returns an internationalized name as its tables map it, checked, before it
// becomes ASCII.
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

// checkLongName finds the fault of a name, as mapped, whose ASCII form must exceed
// the limit, having a byte at least for every character.
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

// hasBadACE reports whether a label of name, once mapped, is "xn--" and nothing, or
// something that is not ASCII. uts46 would make another name of it.
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

// badByte returns the place of the first ASCII byte that a name may not hold,
// or -1.
func badByte(name []byte) int {
	for i, c := range name {
		if c < utf8.RuneSelf && class[c]&inHost == 0 {
			return i
		}
	}
	return -1
}

// hasEmptyLabel reports whether a label of name is empty; one dot may stand at
// the end.
func hasEmptyLabel(name []byte) bool {
	return len(name) == 0 || name[0] == '.' || bytes.Contains(name, []byte(".."))
}
