package codegen_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
)

// A Spec says what the constructors accept, and the digits that codes have.
func TestSpecs(t *testing.T) {
	for _, s := range codegen.Specs() {
		if got, err := codegen.SpecOf(s.Name); got != s || err != nil {
			t.Errorf("%s is %v, %v", s.Name, got, err)
		}
		for length := range codegen.MaxLength + 2 {
			code, name := codeOf(s, length)
			if fits := s.MinLength <= length && length <= s.MaxLength; (code != "") != fits {
				t.Errorf("%s: length %d gives code %q", s.Name, length, code)
			}
			if code != "" && (len(code) != length || strings.Trim(code, s.Alphabet) != "" || name != s.Name) {
				t.Errorf("%s: length %d gives code %q of %s", s.Name, length, code, name)
			}
		}
	}
	if _, err := codegen.SpecOf("md5"); err == nil || !strings.HasSuffix(err.Error(), "keyed-base62, sha256-base32, keyed-base32, counter-base62, counter-permuted") {
		t.Error(err)
	}
	if codegen.CounterSpace != math.Pow(62, codegen.CounterLength) {
		t.Error(codegen.CounterSpace)
	}
}

// codeOf returns a code of a length, if there is one, and the name of what made it.
func codeOf(s codegen.Spec, length int) (code, name string) {
	var scheme codegen.Scheme
	var counter codegen.Counter
	var err error
	switch s.Name {
	case codegen.Name:
		scheme, err = codegen.New(length)
	case codegen.NameKeyed:
		scheme, err = codegen.NewKeyed(secret, length)
	case codegen.NameBase32:
		scheme, err = codegen.NewBase32(length)
	case codegen.NameKeyedBase32:
		scheme, err = codegen.NewKeyedBase32(secret, length)
	case codegen.NameCounter:
		counter, err = codegen.NewCounter(secret, 1)
	case codegen.NamePermuted:
		counter, err = codegen.NewPermuted(secret)
	}
	switch {
	case err != nil:
		return "", ""
	case !s.Counts:
		return string(scheme.AppendCode(nil, scheme.Sum(nil))), scheme.Name()
	case length != codegen.CounterLength:
		return "", ""
	}
	return string(counter.AppendCode(nil, 1)), counter.Name()
}

// The schemes that need a secret refuse one of fewer than 16 bytes, and do not show it.
func TestShortSecrets(t *testing.T) {
	for _, text := range []string{"", "fifteen bytes.."} {
		short := codegen.NewSecret([]byte(text))
		_, keyed := codegen.NewKeyed(short, 7)
		_, permuted := codegen.NewPermuted(short)
		_, keyed32 := codegen.NewKeyedBase32(short, 8)
		for _, err := range []error{keyed, permuted, keyed32} {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("not %d;", len(text))) || text != "" && strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v", text, err)
			}
		}
		if _, err := codegen.NewCounter(short, 1); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkCode(b *testing.B) {
	const url = "https://www.example.com/news/2024/05/some-article-title-here?id=123456&ref=home"
	input := codegen.AppendInput(nil, []byte(url), []byte("ws_abc123"), 0)
	var code []byte
	plain, _ := codegen.New(7)
	keyed, _ := codegen.NewKeyed(secret, 7)
	base32, _ := codegen.NewBase32(10)
	for _, s := range []codegen.Scheme{plain, keyed, base32} {
		b.Run("scheme="+s.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				code = s.AppendCode(code[:0], s.Sum(input))
			}
		})
	}
	counter, _ := codegen.NewCounter(secret, 1315423911)
	permuted, _ := codegen.NewPermuted(secret)
	for _, c := range []codegen.Counter{counter, permuted} {
		b.Run("scheme="+c.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				code = c.AppendCode(code[:0], n)
			}
		})
	}
}

// A Choice makes what the constructors make, and names the field that is wrong.
func TestChoice(t *testing.T) {
	secret := codegen.NewSecret([]byte("0123456789abcdef"))
	for _, s := range codegen.Specs() {
		c := codegen.Choice{Name: s.Name}
		if s.Secret {
			c.Secret = secret
		}
		scheme, counter, err := c.Make()
		if err != nil || (counter != nil) != s.Counts || !s.Counts && scheme.Length() != s.Length {
			t.Errorf("%s: %v, %v, %v", s.Name, scheme, counter, err)
		}
		c.Length = s.MaxLength + 1
		if _, _, err := c.Make(); err == nil || !strings.HasPrefix(err.Error(), "Length: ") {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	for field, c := range map[string]codegen.Choice{
		"Name": {Name: "md5"}, "Secret": {Name: codegen.NamePermuted}, "Multiplier": {Name: codegen.NameCounter, Multiplier: 62},
	} {
		if _, _, err := c.Make(); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
