package codegen_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"pgregory.net/rapid"
)

func parseBlocklist(t interface{ Fatal(...any) }, text string) *codegen.Blocklist {
	list, err := codegen.ParseBlocklist([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestBlocklistVectors(t *testing.T) {
	schemeVectors(t, "blocklist", func(line map[string]any) {
		list := parseBlocklist(t, line["word"].(string))
		if got := list.Match([]byte(line["code"].(string))); (got != "") != line["blocked"].(bool) {
			t.Errorf("%v: %q", line, got)
		}
	})
}

func TestParseBlocklist(t *testing.T) {
	list := parseBlocklist(t, "\ufeff# words\r\n\r\n  HELL0\t\r\nhello\n # more\ncat\nb i g\n#")
	if got, want := list.SHA256(), fmt.Sprintf("%x", sha256.Sum256([]byte("b l g\ncat\nhello\n"))); got != want {
		t.Errorf("SHA-256 %s, want %s", got, want)
	}
	none := parseBlocklist(t, "# none\n")
	if got, want := none.SHA256(), fmt.Sprintf("%x", sha256.Sum256(nil)); got != want || none.Match([]byte("anything")) != "" {
		t.Errorf("SHA-256 %s of no word, want %s", got, want)
	}
	for text, want := range map[string]string{
		"word\nab\n":     `line 2: "ab" has fewer than 3 characters`,
		"# ü\n\n  süß  ": `line 3: "süß" has a character that is not ASCII`,
		"abc\xff":        `line 1: "abc\xff" has`,
	} {
		if _, err := codegen.ParseBlocklist([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Of several words it is the one that ends first, then the longest.
func TestMatch(t *testing.T) {
	list := parseBlocklist(t, "abcdef\nbcd\nzabcd\nxyz\nlll\n")
	for code, want := range map[string]string{
		"abcdef": "bcd", "zabcdef": "zabcd", "xyzbcd": "xyz", "xyabc": "", "xxyyz": "", "I1i": "lll", "ab": "", "": "",
	} {
		if got := list.Match([]byte(code)); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

var folding = strings.NewReplacer("0", "o", "1", "l", "i", "l", "3", "e", "4", "a", "5", "s", "7", "t")

// matchReference looks for each word at each place.
func matchReference(words []string, code string) (found string) {
	code = folding.Replace(strings.ToLower(code))
	for end := range len(code) + 1 {
		for _, word := range words {
			if word = folding.Replace(strings.ToLower(word)); strings.HasSuffix(code[:end], word) && len(word) > len(found) {
				found = word
			}
		}
		if found != "" {
			break
		}
	}
	return found
}

func TestMatchesLikeOneAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[aAb1iL0o]{3,7}`)).Draw(t, "words")
		list := parseBlocklist(t, strings.Join(words, "\n"))
		code := rapid.StringMatching(`[aAbB4lIi10oOx]{0,24}`).Draw(t, "code")
		if got, want := list.Match([]byte(code)), matchReference(words, code); got != want {
			t.Fatalf("%s: %q, want %q", code, got, want)
		}
	})
}

// Share is the share of the codes that Match finds something in, if all of them are tried.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[aA4bB8]{3,4}`)).Draw(t, "words")
		list := parseBlocklist(t, strings.Join(words, "\n"))
		digits := rapid.SampledFrom([]string{"aAb4x", "bBx", "ab", "x"}).Draw(t, "digits")
		length := rapid.IntRange(0, 6).Draw(t, "length")
		codes, blocked := [][]byte{nil}, 0
		for range length {
			var longer [][]byte
			for _, code := range codes {
				for _, d := range []byte(digits) {
					longer = append(longer, append(slices.Clone(code), d))
				}
			}
			codes = longer
		}
		for _, code := range codes {
			if list.Match(code) != "" {
				blocked++
			}
		}
		if got, want := list.Share(digits, length), float64(blocked)/float64(len(codes)); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%g, want %g", got, want)
		}
	})
	// Five digits fold to l.
	if got, want := parseBlocklist(t, "lll").Share(codegen.KeyedAlphabet, 3), math.Pow(5./62, 3); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("%g, want %g", got, want)
	}
}

// A list that can be read finds what its lines say.
func FuzzBlocklist(f *testing.F) {
	f.Add("# words\n\nHELL0\r\n  cat\n", "xC47x")
	f.Add("abcdef\nbcd\nzabcd", "zabcdef")
	f.Fuzz(func(t *testing.T, text, code string) {
		list, err := codegen.ParseBlocklist([]byte(text))
		if err != nil {
			return
		}
		var words []string
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			if word := strings.TrimSpace(line); word != "" && word[0] != '#' {
				words = append(words, word)
			}
		}
		if got, want := list.Match([]byte(code)), matchReference(words, code); got != want {
			t.Errorf("%q has %q, want %q", code, got, want)
		}
	})
}

// The list that is shipped can be read, and has some words.
func TestShippedBlocklist(t *testing.T) {
	text, err := os.ReadFile("../testdata/blocklist.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := parseBlocklist(t, string(text)).Match([]byte("x5cAmx")); got != "scam" {
		t.Errorf("%q", got)
	}
}

func BenchmarkBlocklist(b *testing.B) {
	var words []string
	for i := range 100 {
		words = append(words, fmt.Sprintf("%s%c%c", []string{"bad", "ugly", "rude", "nasty"}[i%4], 'a'+i%26, 'a'+i/26))
	}
	list := parseBlocklist(b, strings.Join(words, "\n"))
	scheme, _ := codegen.New(codegen.DefaultLength)
	var codes [1024][]byte
	for i := range codes {
		codes[i] = scheme.AppendCode(nil, codegen.Sum([]byte{byte(i), byte(i >> 8)}))
	}
	b.Run("words=100", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			list.Match(codes[i%len(codes)])
		}
	})
}
