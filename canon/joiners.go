package canon

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	zwnj   = "\u200c" // zero width non-joiner
	virama = 9        // Canonical_Combining_Class
)

// nonJoinersPart reports whether each ZERO WIDTH NON-JOINER of a name that uts46 accepted
// is right behind a virama, or before a character that would join to what is before it
// (RFC 5892, appendix A.1). uts46 has checked what is before the non-joiner, but accepts
// anything after it, such as a digit.
func nonJoinersPart(name string) bool {
	for {
		before, after, found := strings.Cut(name, zwnj)
		if !found {
			return true
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(after, isTransparent))
		if norm.NFC.PropertiesString(string(last)).CCC() != virama && !unicode.Is(joinsBefore, next) {
			return false
		}
		name = after
	}
}

// isTransparent reports whether a character of a mapped name has Joining_Type T.
func isTransparent(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me) || r == '\U0001E94B' }

// joinsBefore has the characters of Joining_Type R or D, which join to what is before
// them (ArabicShaping.txt of Unicode 15.0).
var joinsBefore = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0620, 0x0620, 1}, {0x0622, 0x063f, 1}, {0x0641, 0x064a, 1}, {0x066e, 0x066f, 1},
		{0x0671, 0x0673, 1}, {0x0679, 0x06d3, 1}, {0x06d5, 0x06d5, 1}, {0x06ee, 0x06ef, 1},
		{0x06fa, 0x06fc, 1}, {0x06ff, 0x06ff, 1}, {0x0710, 0x0710, 1}, {0x0712, 0x072f, 1},
		{0x074d, 0x077f, 1}, {0x07ca, 0x07ea, 1}, {0x0840, 0x0858, 1}, {0x0860, 0x0860, 1},
		{0x0862, 0x0865, 1}, {0x0867, 0x086a, 1}, {0x0870, 0x0882, 1}, {0x0886, 0x0886, 1},
		{0x0889, 0x088e, 1}, {0x08a0, 0x08ac, 1}, {0x08ae, 0x08c8, 1}, {0x1807, 0x1807, 1},
		{0x1820, 0x1878, 1}, {0x1887, 0x18a8, 1}, {0x18aa, 0x18aa, 1}, {0xa840, 0xa871, 1},
	},
	R32: []unicode.Range32{
		{0x10ac0, 0x10ac5, 1}, {0x10ac7, 0x10ac7, 1}, {0x10ac9, 0x10aca, 1},
		{0x10ace, 0x10ad6, 1}, {0x10ad8, 0x10ae1, 1}, {0x10ae4, 0x10ae4, 1},
		{0x10aeb, 0x10aef, 1}, {0x10b80, 0x10b91, 1}, {0x10ba9, 0x10bae, 1},
		{0x10d01, 0x10d23, 1}, {0x10f30, 0x10f44, 1}, {0x10f51, 0x10f54, 1},
		{0x10f70, 0x10f81, 1}, {0x10fb0, 0x10fb0, 1}, {0x10fb2, 0x10fb6, 1},
		{0x10fb8, 0x10fbf, 1}, {0x10fc1, 0x10fc4, 1}, {0x10fc9, 0x10fca, 1},
		{0x1e922, 0x1e943, 1},
	},
}
