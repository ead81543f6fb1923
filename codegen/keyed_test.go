package codegen_test

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"math/big"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"pgregory.net/rapid"
)

func newKeyed(t interface{ Fatal(...any) }, secret codegen.Secret, length int) codegen.Scheme {
	scheme, err := codegen.NewKeyed(secret, length)
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// makeScheme makes the scheme of a name.
func makeScheme(t interface{ Fatal(...any) }, c codegen.Choice) codegen.Scheme {
	scheme, _, err := c.Make()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

func TestKeyedVectors(t *testing.T) {
	for _, name := range []string{"keyed-base62", "keyed-base32"} {
		testVectorsOf(t, name, 4)
	}
}

func TestBase32Vectors(t *testing.T) { testVectorsOf(t, "sha256-base32", 10) }

// testVectorsOf computes the cases of a scheme, whose highest salt this is.
func testVectorsOf(t *testing.T, name string, most int) {
	t.Helper()
	schemeVectors(t, name, func(line map[string]any) {
		c := codegen.Choice{Name: name, Length: int(line["length"].(float64))}
		if line["secret"] != nil {
			c.Secret = secretOf(line)
		}
		scheme := makeScheme(t, c)
		canonical, workspace, salt := []byte(line["canonical"].(string)), []byte(line["workspace"].(string)), int(line["salt"].(float64))
		h := scheme.Sum(codegen.AppendInput(nil, canonical, workspace, salt))
		if got := string(scheme.AppendCode([]byte("code "), h)); got != "code "+line["code"].(string) {
			t.Errorf("%v: %q", line, got)
		}
		if got := scheme.SaltOf(canonical, workspace, []byte(line["code"].(string)), most); got < 0 || got > salt {
			t.Errorf("%v: salt %d", line, got)
		}
	})
}

// base32Reference takes the bits of a hash one at a time.
func base32Reference(hash []byte, length int) string {
	code := make([]byte, length)
	for i := range code {
		value := 0
		for bit := 5 * i; bit < 5*i+5; bit++ {
			value = value<<1 | int(hash[bit/8]>>(7-bit%8)&1)
		}
		code[i] = "23456789abcdefghijkmnpqrstuvwxyz"[value]
	}
	return string(code)
}

// The codes of base 32 are those of the definition, and ranks and positions order hashes as codes do.
func TestBase32MatchesDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 16, 150).Draw(t, "secret")
		plain := rapid.Bool().Draw(t, "plain")
		c := codegen.Choice{Name: codegen.NameBase32, Length: rapid.IntRange(1, 24).Draw(t, "length")}
		if !plain {
			c = codegen.Choice{Name: codegen.NameKeyedBase32, Length: rapid.IntRange(4, 16).Draw(t, "length"), Secret: codegen.NewSecret(text)}
		}
		scheme := makeScheme(t, c)
		var codes [2]string
		var hashes [2]codegen.Hash
		for i := range codes {
			input := rapid.SliceOf(rapid.Byte()).Draw(t, "input")
			sum := sha256.New()
			if !plain {
				sum = hmac.New(sha256.New, text)
			}
			sum.Write(input)
			hashes[i] = scheme.Sum(input)
			codes[i] = string(scheme.AppendCode(nil, hashes[i]))
			if want := base32Reference(sum.Sum(nil), c.Length); codes[i] != want {
				t.Fatalf("code %s, want %s", codes[i], want)
			}
			if got, want := scheme.RankOf([]byte(codes[i])), scheme.Rank(hashes[i]); got != want {
				t.Fatalf("code %s has rank %d, not %d", codes[i], got, want)
			}
		}
		n := min(10, c.Length)
		if got, want := cmp.Compare(scheme.Rank(hashes[0]), scheme.Rank(hashes[1])), strings.Compare(codes[0][:n], codes[1][:n]); got != want {
			t.Fatalf("codes %s compare as %d, ranks as %d", codes, want, got)
		}
		if c := cmp.Compare(scheme.Position(hashes[0]), scheme.Position(hashes[1])); c != strings.Compare(codes[0], codes[1]) && codes[0][:n] != codes[1][:n] {
			t.Fatalf("codes %s, positions compare as %d", codes, c)
		}
	})
}

// keyedReference is the scheme as its definition reads.
func keyedReference(secret, input []byte, length int) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(input)
	n := new(big.Int).SetBytes(mac.Sum(nil)[:16])
	code := make([]byte, length)
	for i, r := length-1, new(big.Int); i >= 0; i-- {
		n.DivMod(n, big.NewInt(62), r)
		code[i] = codegen.KeyedAlphabet[r.Int64()]
	}
	return string(code)
}

// The codes are those of the definition, and ranks order hashes as codes do.
func TestKeyedMatchesDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 16, 150).Draw(t, "secret")
		scheme := newKeyed(t, codegen.NewSecret(text), rapid.IntRange(4, 16).Draw(t, "length"))
		n := min(10, scheme.Length())
		var codes [2]string
		var ranks [2]uint64
		for i := range codes {
			input := rapid.SliceOf(rapid.Byte()).Draw(t, "input")
			h := scheme.Sum(input)
			codes[i], ranks[i] = string(scheme.AppendCode(nil, h)), scheme.Rank(h)
			if want := keyedReference(text, input, scheme.Length()); codes[i] != want {
				t.Fatalf("code %s, want %s", codes[i], want)
			}
			if got := scheme.RankOf([]byte(codes[i])); got != ranks[i] {
				t.Fatalf("code %s has rank %d, not %d", codes[i], ranks[i], got)
			}
		}
		if got, want := cmp.Compare(ranks[0], ranks[1]), strings.Compare(codes[0][:n], codes[1][:n]); got != want {
			t.Fatalf("codes %s compare as %d, ranks %d as %d", codes, want, ranks, got)
		}
	})
}

// Neither a code nor what is asked of one allocates: buffers stay on the stack.
func TestSchemesDoNotAllocate(t *testing.T) {
	plain, _ := codegen.New(24)
	keyed32 := makeScheme(t, codegen.Choice{Name: codegen.NameKeyedBase32, Length: 16, Secret: secret})
	for _, s := range []codegen.Scheme{plain, newKeyed(t, secret, 16), makeScheme(t, codegen.Choice{Name: codegen.NameBase32}), keyed32} {
		canonical, workspace := []byte("https://example.com/shop"), []byte("demo")
		input := codegen.AppendInput(nil, canonical, workspace, 0)
		code := s.AppendCode(nil, s.Sum(input))
		if n := testing.AllocsPerRun(100, func() {
			var buf [codegen.MaxLength]byte
			s.AppendCode(buf[:0], s.Sum(input))
			s.SaltOf(canonical, workspace, code, 4)
		}); n > 0 {
			t.Errorf("%s: %v allocations", s.Name(), n)
		}
	}
}

// Positions ascend as codes do.
func TestPosition(t *testing.T) {
	for _, length := range []int{4, 7, 10, 16} {
		s := newKeyed(t, codegen.NewSecret(make([]byte, codegen.MinSecret)), length)
		rapid.Check(t, func(t *rapid.T) {
			a, b := codegen.Hash{Hi: rapid.Uint64().Draw(t, "a"), Lo: 1}, codegen.Hash{Hi: rapid.Uint64().Draw(t, "b"), Lo: 2}
			codes := strings.Compare(string(s.AppendCode(nil, a)), string(s.AppendCode(nil, b)))
			if c := cmp.Compare(s.Position(a), s.Position(b)); c != codes && c != 0 {
				t.Errorf("%v and %v: %d, codes %d", a, b, c, codes)
			}
		})
	}
}
