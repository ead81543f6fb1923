package canon

import (
	"math/bits"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"pgregory.net/rapid"
)

// The form of a label is that of the package of the tables, which checks nothing
// here, and so is whether there is one.
func TestPunycode(t *testing.T) {
	compare := func(t rapid.TB, name string) {
		want, err := idna.Punycode.ToASCII(name)
		got, ok := appendName([]byte("before"), name)
		if ok != (err == nil) || ok && string(got) != "before"+want {
			t.Errorf("%q is %q, %t; want %q, %v", name, got, ok, want, err)
		}
	}
	for _, name := range []string{"ü", "ü.", ".ü", "a.ü.b", "ü.ü", "aü-", "-ü", "üüü", "üaüaü", "他们为什么不说中文", "\U0010fffe",
		strings.Repeat("a", 1925) + "\U0010fffe", strings.Repeat("a", 1928) + "\U0010fffe", strings.Repeat("a", 1926) + "\U0010fffe",
		strings.Repeat("a", 1927) + "\U0010fffe", strings.Repeat("a", 127) + "\U0010ff70" + strings.Repeat("a", 1800), strings.Repeat("a", 128) + "\U0010ff70" + strings.Repeat("a", 1799),
		strings.Repeat("ü", 100) + "世" + strings.Repeat("ä", 100)} {
		compare(t, name)
	}
	rapid.Check(t, func(rt *rapid.T) {
		char := rapid.OneOf(rapid.SampledFrom([]rune("a-.üäöß世界é\u0300\U0001f600\U0010fffe")), rapid.Rune())
		name := string(rapid.SliceOfN(char, 1, 200).Draw(rt, "name"))
		if strings.Contains(name, "xn--") || strings.ContainsRune(name, utf8.RuneError) {
			return
		}
		compare(rt, name)
	})
}

// A label of as many characters as may be, all different, takes no more than the
// logarithm of their number for each, however they are ordered.
func TestPunycodeWork(t *testing.T) {
	var up, down []rune
	for r := rune(0x4e00); r < 0x4e00+MaxLength; r++ {
		up, down = append(up, r), append([]rune{r}, down...)
	}
	for _, label := range [][]rune{up, down} {
		_, work, ok := appendPunycode(nil, string(label))
		if most := 2 * MaxLength * bits.Len(MaxLength); !ok || work > most {
			t.Errorf("%t, %d steps for %d characters; want at most %d", ok, work, len(label), most)
		}
	}
}
