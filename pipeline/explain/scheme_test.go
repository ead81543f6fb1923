package explain

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/sink"
	"pgregory.net/rapid"
)

const secretText = "correct horse battery staple"

var secret = codegen.NewSecret([]byte(secretText))

func blocklist(t interface{ Fatal(...any) }, words ...string) *codegen.Blocklist {
	list, err := codegen.ParseBlocklist([]byte(strings.Join(words, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// keyedRules are those of keyed-base62; without the secret if it is not known.
func keyedRules(length int, known bool) *Rules {
	r := &Rules{Workspace: "w", MaxRetries: 4, Of: sink.Scheme{Name: codegen.NameKeyed, CodeLength: length, Fingerprint: secret.Fingerprint()}}
	if known {
		r.Scheme, _ = codegen.NewKeyed(secret, length)
	}
	return r
}

// base62 writes a number with these digits.
func base62(n *big.Int, digits string, length int) (code string) {
	n = new(big.Int).Set(n)
	for digit := new(big.Int); len(code) < length; {
		n.QuoRem(n, big.NewInt(62), digit)
		code = digits[digit.Int64():][:1] + code
	}
	return code
}

// With the secret, what an explanation says suffices to compute a keyed code again.
func TestExplainKeyed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(4, 16).Draw(t, "length")
		e := URL(keyedRules(length, true), []byte("http://a.example/"+rapid.StringMatching(`[a-z]{0,9}`).Draw(t, "path")), []int{0, 3})
		for i, suffix := range []string{"", "|3"} {
			c := e.Codings[i]
			mac := hmac.New(sha256.New, []byte(secretText))
			mac.Write([]byte(c.HashInput))
			sum := mac.Sum(nil)[:16]
			integer := new(big.Int).SetBytes(sum)
			want := Coding{Salt: c.Salt, HashInput: e.Canonical + "|w" + suffix, HMAC: fmt.Sprintf("%x", sum), Integer: integer.String()}
			want.Code = base62(integer, codegen.KeyedAlphabet, length)
			want.Remainder = integer.Mod(integer, new(big.Int).Exp(big.NewInt(62), big.NewInt(int64(length)), nil)).String()
			if c != want {
				t.Fatalf("got  %+v\nwant %+v", c, want)
			}
		}
		if e.Scheme != codegen.NameKeyed || e.Fingerprint != secret.Fingerprint() || e.Note != "" {
			t.Fatalf("%+v", e)
		}
	})
}

// Without the secret there is what is hashed, and the link that the store has.
func TestUnknownSecret(t *testing.T) {
	r := keyedRules(7, false)
	e := URL(r, []byte("http://a.example/"), []int{0})
	if want := (Coding{HashInput: "http://a.example/|w"}); e.Codings[0] != want || e.Note == "" {
		t.Errorf("%+v", e)
	}
	held := fakeSession{owners: map[string]string{"abc": "http://a.example/"}}
	for url, want := range map[string]string{"http://a.example/": "existing abc", "http://b.example/": "created "} {
		s, err := Ask(t.Context(), r, held, url)
		if err != nil || s.Outcome+" "+s.Code != want || s.Salt != nil || len(s.Owners) != 0 {
			t.Errorf("%s: %+v, %v", url, s, err)
		}
	}
	r.Of.Fingerprint = ""
	if _, err := Ask(t.Context(), r, held, "http://a.example/"); err == nil {
		t.Error("rules without a scheme were taken")
	}
}

// The salt after a code that is blocked follows, up to the retries. A run would take the first code
// that is free and not blocked.
func TestBlocked(t *testing.T) {
	r := keyedRules(7, true)
	codes := URL(r, []byte("http://a.example/"), []int{0, 1, 2, 3}).Codings
	r.Words = blocklist(t, codes[0].Code[:4], codes[1].Code)
	for _, tt := range []struct {
		salts, want []int
		most        int
	}{{[]int{0}, []int{0, 1, 2}, 4}, {[]int{1, 0}, []int{1, 2, 0}, 4}, {[]int{0, 1, 3}, []int{0, 1, 2, 3}, 4}, {[]int{0}, []int{0, 1}, 1}, {[]int{3}, []int{3}, 4}} {
		r.MaxRetries = tt.most
		var got []int
		for _, c := range URL(r, []byte("http://a.example/"), tt.salts).Codings {
			got = append(got, c.Salt)
			if (c.Blocked != "") != (c.Salt < 2) {
				t.Errorf("%+v", c)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%v: %v, want %v", tt.salts, got, tt.want)
		}
	}
	r.MaxRetries = 4
	s, err := Ask(t.Context(), r, fakeSession{owners: map[string]string{codes[2].Code: "http://b.example/"}}, "http://a.example/")
	if err != nil || s.Outcome != "created" || s.Code != codes[3].Code || *s.Salt != 3 || s.Owners[0].Blocked == "" || s.Owners[2].Owner != "http://b.example/" {
		t.Errorf("%+v, %v", s, err)
	}
	r.MaxRetries = 1
	if s, err := Ask(t.Context(), r, fakeSession{}, "http://a.example/"); err != nil || s.Outcome != "code_space_exhausted" {
		t.Errorf("%+v, %v", s, err)
	}
	r.MaxRetries = 4 // a link that exists keeps its code
	if s, err := Ask(t.Context(), r, fakeSession{owners: map[string]string{codes[0].Code: "http://a.example/"}}, "http://a.example/"); err != nil || s.Outcome != "existing" || *s.Salt != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// counterRules are those of a counter.
func counterRules(t interface{ Fatal(...any) }, name string, multiplier int64) *Rules {
	r := &Rules{Workspace: "w", Of: sink.Scheme{Name: name, CodeLength: codegen.CounterLength, Multiplier: multiplier, Fingerprint: secret.Fingerprint()}}
	var err error
	if r.Counter, err = codegen.NewPermuted(secret); name == codegen.NameCounter {
		r.Counter, err = codegen.NewCounter(secret, uint64(multiplier))
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The steps from a number to a code are true, and lead back from the code.
func TestNumber(t *testing.T) {
	space := big.NewInt(codegen.CounterSpace)
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint64Range(1, 1<<63-1).Draw(t, "number")
		multiplier := rapid.SampledFrom([]int64{1, 1315423911, 1<<63 - 1}).Draw(t, "multiplier")
		r := counterRules(t, codegen.NameCounter, multiplier)
		c := Number(r, number)
		product := new(big.Int).Mul(new(big.Int).SetUint64(number), big.NewInt(multiplier))
		value := new(big.Int).Add(product, new(big.Int).SetUint64(*c.Offset))
		value.Mod(value, space)
		if c.Product != product.String() || c.Value != value.Uint64() || c.Code != base62(value, codegen.CounterAlphabet, 7) || c.Remainder != nil {
			t.Fatalf("%+v", c)
		}
		if back := NumberOf(r, c.Code); back.Number != number%codegen.CounterSpace || back.Code != c.Code {
			t.Fatalf("%+v", back)
		}
		r = counterRules(t, codegen.NamePermuted, 0)
		c = Number(r, number)
		if *c.Remainder != number%codegen.CounterSpace || c.Code != base62(new(big.Int).SetUint64(c.Value), codegen.CounterAlphabet, 7) || c.Offset != nil {
			t.Fatalf("%+v", c)
		}
		if back := NumberOf(r, c.Code); back.Number != *c.Remainder {
			t.Fatalf("%+v", back)
		}
	})
	if c := NumberOf(counterRules(t, codegen.NamePermuted, 0), "short"); c != nil {
		t.Errorf("%+v", c)
	}
}

// counted is a fakeSession that has given out numbers.
type counted struct {
	fakeSession
	next int64
}

func (c counted) NextNumber(context.Context) (int64, error) { return c.next, nil }

// With a counter Ask says what number is the next whose code is free.
func TestAskCounter(t *testing.T) {
	r := counterRules(t, codegen.NameCounter, 1)
	code := func(number uint64) string { return string(r.Counter.AppendCode(nil, number)) }
	r.Words = blocklist(t, code(8))
	held := fakeSession{owners: map[string]string{code(3): "http://a.example/", code(7): "http://b.example/", "kept": "http://k.example/"}}
	for url, want := range map[string]string{
		"http://a.example/": "existing " + code(3) + " 3", "http://k.example/": "existing kept -", "http://new.example/": "created " + code(9) + " 9",
	} {
		s, err := Ask(t.Context(), r, counted{held, 7}, url)
		if err != nil {
			t.Fatal(err)
		}
		number := "-"
		if s.Number != nil {
			number = fmt.Sprint(*s.Number)
		}
		if got := s.Outcome + " " + s.Code + " " + number; got != want || len(s.Next) != 3 || s.Next[0].Owner != "http://b.example/" || s.Next[1].Blocked == "" || !s.Next[2].free() {
			t.Errorf("%s: %s, want %s: %+v", url, got, want, s.Next)
		}
	}
	if s, err := Ask(t.Context(), r, counted{held, 0}, "http://new.example/"); err != nil || *s.Number != 1 || len(s.Next) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	for number := range uint64(maxTurns) {
		held.owners[code(20+number)] = fmt.Sprintf("http://%d.example/", number)
	}
	if s, err := Ask(t.Context(), r, counted{held, 20}, "http://new.example/"); err != nil || s.Outcome != "created" || s.Code != "" || s.Number != nil || len(s.Next) != maxTurns {
		t.Errorf("%+v, %v", s, err)
	}
	r.Counter = nil // the secret is not known
	if s, err := Ask(t.Context(), r, counted{held, 7}, "http://a.example/"); err != nil || s.Code != Number(counterRules(t, codegen.NameCounter, 1), 3).Code || s.Number != nil || s.Next[0] != (Turn{Number: 7}) {
		t.Errorf("%+v, %v", s, err)
	}
	if e := URL(r, []byte("http://a.example/"), []int{0}); e.Codings != nil || e.Note == "" {
		t.Errorf("%+v", e)
	}
}
