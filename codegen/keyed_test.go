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

func TestKeyedVectors(t *testing.T) {
	schemeVectors(t, "keyed-base62", func(line map[string]any) {
		scheme := newKeyed(t, secretOf(line), int(line["length"].(float64)))
		canonical, workspace, salt := []byte(line["canonical"].(string)), []byte(line["workspace"].(string)), int(line["salt"].(float64))
		h := scheme.Sum(codegen.AppendInput(nil, canonical, workspace, salt))
		if got := string(scheme.AppendCode([]byte("code "), h)); got != "code "+line["code"].(string) {
			t.Errorf("%v: %q", line, got)
		}
		if got := scheme.SaltOf(canonical, workspace, []byte(line["code"].(string)), 4); got != salt {
			t.Errorf("%v: salt %d", line, got)
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
	for _, s := range []codegen.Scheme{plain, newKeyed(t, secret, 16)} {
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
