package estimate

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
)

// near fails unless got is within a relative tolerance of want.
func near(t *testing.T, name string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: got %g, want %g", name, got, want)
	}
}

// The facts of codegen/README.md.
func TestExpectFacts(t *testing.T) {
	for _, tt := range []struct {
		links  int64
		chance float64
		digits float64 // half a unit of the last digit that the page gives, relative
	}{{1e6, 2.1e-6, 0.03}, {1e7, 2.1e-4, 0.03}, {1e8, 0.021, 0.03}, {1e9, 0.88, 0.006}} {
		e, err := Collisions(Load{Links: tt.links, CodeLength: 10, MaxRetries: 10})
		if err != nil {
			t.Fatal(err)
		}
		near(t, fmt.Sprintf("chance at %d links", tt.links), e.AnyCollision, tt.chance, tt.digits)
		near(t, "effective codes", e.EffectiveCodes, 2.34e17, 0.003)
		near(t, "share of effective codes", e.EffectiveCodes/e.Codes, 0.54, 0.01)
		n := float64(tt.links)
		near(t, "expected collisions", e.Colliding, n*(n-1)/2/e.EffectiveCodes, 1e-6)
	}
}

func TestExpectBounds(t *testing.T) {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		codes, err := codeClasses(length)
		if err != nil {
			t.Fatal(err)
		}
		sum, count := 0.0, 0.0
		for _, c := range codes {
			sum, count = sum+c.count*c.p, count+c.count
		}
		near(t, fmt.Sprintf("sum of chances at length %d", length), sum, 1, 1e-12)
		last := Figures{}
		for _, links := range []int64{0, 1, 2, 57, 1e3, 1e6, 1e9, 1e12, 1e15, math.MaxInt64} {
			e, err := Collisions(Load{Links: links, CodeLength: length, MaxRetries: 10})
			if err != nil {
				t.Fatal(err)
			}
			if links < 2 && e.Colliding != 0 {
				t.Errorf("length %d: %d links collide %g times", length, links, e.Colliding)
			}
			for _, p := range [][2]float64{{last.AnyCollision, e.AnyCollision}, {e.AnyCollision, 1}, {last.Colliding, e.Colliding},
				{e.Colliding, float64(links)}, {last.Exhausted, e.Exhausted}, {e.Exhausted, e.Colliding}, {e.AnyExhausted, e.AnyCollision}, {last.AnyExhausted, e.AnyExhausted}} {
				if !(p[0] <= p[1]*(1+1e-9)) {
					t.Errorf("length %d, %d links: %g > %g in %+v", length, links, p[0], p[1], e)
				}
			}
			last = e
		}
		if length <= 4 {
			near(t, "placed once all codes are taken", 1e9-mustExpect(t, Load{Links: 1e9, CodeLength: length, MaxRetries: 10}).Exhausted,
				codes.occupied(0x1p70), 1e-3+1/codes.effective())
		}
	}
}

func mustExpect(t *testing.T, l Load) Figures {
	t.Helper()
	e, err := Collisions(l)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestExpectErrors(t *testing.T) {
	for _, l := range []Load{{CodeLength: 0}, {CodeLength: 25}, {Links: -1, CodeLength: 10}, {Existing: -1, CodeLength: 10},
		{CodeLength: 10, MaxRetries: -1}, {Scheme: "md5", CodeLength: 7}, {Scheme: codegen.NameKeyed, CodeLength: 3}, {Scheme: codegen.NameCounter, CodeLength: 7}, {CodeLength: 1, Existing: 58}, {CodeLength: 4, Existing: 58 * 58 * 58 * 58}} {
		if e, err := Collisions(l); err == nil {
			t.Errorf("%+v: %+v", l, e)
		}
	}
	if e := mustExpect(t, Load{Links: 1, CodeLength: 1, Existing: 57, MaxRetries: 3}); e.AnyExhausted < 0.99 {
		t.Errorf("no code is left: %+v", e)
	}
}

// simulate gives codes to links one at a time, of hashes that are random. It
// returns how many of the new links collided and how many were exhausted, and how many codes
// were blocked.
func simulate(l Load, rnd *rand.Rand) (colliding, exhausted, blocked int) {
	choice := codegen.Choice{Name: l.Scheme, Length: l.CodeLength}
	if l.Scheme == codegen.NameKeyed {
		choice.Secret = codegen.NewSecret(make([]byte, codegen.MinSecret))
	}
	scheme, _, _ := choice.Make()
	maker := codegen.Maker{Scheme: scheme, Words: l.Words}
	taken := map[string]bool{}
	place := func(attempts int) (placed, collided bool) {
		for range attempts {
			code := scheme.AppendCode(nil, codegen.Hash{Hi: rnd.Uint64(), Lo: rnd.Uint64()})
			switch {
			case maker.Word(code) != "":
				blocked++
			case !taken[string(code)]:
				taken[string(code)] = true
				return true, collided
			default:
				collided = true
			}
		}
		return false, collided
	}
	for range l.Existing {
		place(math.MaxInt)
	}
	blocked = 0
	for range l.Links {
		placed, collided := place(l.MaxRetries + 1)
		if !placed {
			exhausted++
		}
		if collided {
			colliding++
		}
	}
	return colliding, exhausted, blocked
}

// manyWords are the words of 3 letters that begin with an a, e or l: a code of 4 characters in
// four has one.
func manyWords(t *testing.T) *codegen.Blocklist {
	var text strings.Builder
	for _, a := range "ael" {
		for _, b := range codegen.KeyedAlphabet {
			for _, c := range codegen.KeyedAlphabet {
				fmt.Fprintf(&text, "%c%c%c\n", a, b, c)
			}
		}
	}
	list, err := codegen.ParseBlocklist([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The estimate lies within five standard deviations of the mean of many
// simulations, and its own error of one part in the number of codes.
func TestExpectSimulation(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates thousands of loads on one core")
	}
	for _, l := range []Load{
		{Links: 20, CodeLength: 1, MaxRetries: 2}, {Links: 200, CodeLength: 1, MaxRetries: 10},
		{Links: 30, CodeLength: 2, MaxRetries: 10}, {Links: 1500, CodeLength: 2, MaxRetries: 3},
		{Links: 500, Existing: 1200, CodeLength: 2, MaxRetries: 1}, {Links: 5000, CodeLength: 2, MaxRetries: 10},
		{Links: 300, CodeLength: 3, MaxRetries: 10}, {Links: 20000, Existing: 10000, CodeLength: 3, MaxRetries: 2},
		{Links: 1000, CodeLength: 4, MaxRetries: 0}, {Links: 400, Existing: 20000, CodeLength: 5, MaxRetries: 4},
		{Scheme: codegen.NameBase32, Links: 400, Existing: 300, CodeLength: 2, MaxRetries: 2},
		{Scheme: codegen.NameKeyed, Links: 10_000, CodeLength: 4, MaxRetries: 4},
		{Scheme: codegen.NameKeyed, Links: 10_000, CodeLength: 4, MaxRetries: 3, Words: manyWords(t)},
		{Scheme: codegen.NameKeyed, Links: 300, Existing: 5000, CodeLength: 4, MaxRetries: 0, Words: manyWords(t)},
	} {
		t.Run(fmt.Sprintf("%s %+v", l.Scheme, [...]int64{l.Links, l.Existing, int64(l.CodeLength), int64(l.MaxRetries)}), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(l.Links), uint64(l.CodeLength)))
			trials := int(min(2000, 600_000/(l.Links+l.Existing)))
			var got [5]moments
			for range trials {
				c, x, b := simulate(l, rnd)
				for i, v := range [...]int{c, min(c, 1), x, min(x, 1), b} {
					got[i].add(float64(v))
				}
			}
			e := mustExpect(t, l)
			bias := 1 / e.EffectiveCodes
			for i, want := range [...]float64{e.Colliding, e.AnyCollision, e.Exhausted, e.AnyExhausted, e.Blocked} {
				mean, deviation := got[i].mean()
				tolerance := 5*deviation + 2*bias*want + 3/float64(trials)
				if math.Abs(mean-want) > tolerance {
					t.Errorf("figure %d: simulated %g ± %g, estimated %g", i, mean, deviation, want)
				}
			}
		})
	}
}

// The distribution itself, code by code at length 1, against hashes.
func TestCodeClassesSimulation(t *testing.T) {
	scheme, _ := codegen.New(1)
	const n = 200_000
	counts := map[byte]float64{}
	var input [8]byte
	for i := range uint64(n) {
		binary.BigEndian.PutUint64(input[:], i)
		counts[scheme.AppendCode(nil, codegen.Sum(input[:]))[0]]++
	}
	codes, _ := codeClasses(1)
	digit := 0
	for _, c := range codes {
		for range int(c.count) {
			want := n * c.p
			if got := counts[codegen.Alphabet[digit]]; math.Abs(got-want) > 5*math.Sqrt(want)+1e-9 {
				t.Errorf("first digit %c: %g times, want %g", codegen.Alphabet[digit], got, want)
			}
			digit++
		}
	}
}

// moments add up a sample.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(v float64) { m.n, m.sum, m.squares = m.n+1, m.sum+v, m.squares+v*v }

// mean returns the mean and its standard deviation.
func (m *moments) mean() (mean, deviation float64) {
	mean = m.sum / m.n
	return mean, math.Sqrt(max(m.squares/m.n-mean*mean, 0) / m.n)
}
