// Package estimate tells before a run how many of its links will find a code taken (see
// [Collisions]), or when a counter has given out all codes ([Numbers]).
//
// Codes of one length of sha256-base58 are not equally likely, since a hash is below 2^128 and
// that is no power of 58. The estimate counts with their true chances. Only for the share of
// codes that a blocklist blocks they count as equally likely.
package estimate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/linkforge/bulk/codegen"
)

// A Load is a number of links to be made in one workspace.
type Load struct {
	Scheme     string `json:"scheme"`   // its name; "": sha256-base58
	Links      int64  `json:"links"`    // new links, each with another canonical URL
	Existing   int64  `json:"existing"` // links that the workspace has, made by the same rules; of a counter: numbers that the store has given out
	CodeLength int    `json:"code_length"`
	MaxRetries int    `json:"max_retries"` // highest salt; 0 is salt 0 only, unlike in pipeline.Config; a counter has none

	Words *codegen.Blocklist `json:"-"` // that no new code may contain; nil: none
}

// spec returns the scheme of the load, which has a counter or not. It checks the load, but for the
// retries.
func (l *Load) spec(counts bool) (codegen.Spec, error) {
	spec, err := codegen.SpecOf(cmp.Or(l.Scheme, codegen.Name))
	switch {
	case err != nil:
	case spec.Counts && !counts:
		err = fmt.Errorf("scheme %s has a counter: see Numbers", spec.Name)
	case counts && !spec.Counts:
		err = fmt.Errorf("scheme %s has no counter: see Collisions", spec.Name)
	case spec.Counts && l.CodeLength != spec.Length:
		err = fmt.Errorf("codes of scheme %s have %d characters", spec.Name, spec.Length)
	case l.CodeLength < spec.MinLength || l.CodeLength > spec.MaxLength:
		err = fmt.Errorf("code length %d is not within %d to %d", l.CodeLength, spec.MinLength, spec.MaxLength)
	case l.Links < 0 || l.Existing < 0:
		err = errors.New("the number of links is negative")
	}
	return spec, err
}

// blocked returns the share of all codes that contain a word, which must leave some.
func (l *Load) blocked(spec codegen.Spec) (share float64, err error) {
	if l.Words != nil {
		share = l.Words.Share(spec.Alphabet, l.CodeLength)
	}
	if share > 1-1e-9 { // sums of shares are not exact
		err = errors.New("every code of this length contains a word of the blocklist")
	}
	return share, err
}

// Figures are what to expect of a Load, if hashes are random.
type Figures struct {
	Codes          float64 `json:"codes"`               // 58, 62 or 32 to the power of the length
	EffectiveCodes float64 `json:"effective_codes"`     // equally likely codes that would collide as often: 1/Σp²
	Colliding      float64 `json:"expected_colliding"`  // new links whose first code that is not blocked is taken
	AnyCollision   float64 `json:"chance_of_collision"` // that there is such a link
	Exhausted      float64 `json:"expected_exhausted"`  // new links that find every code taken
	AnyExhausted   float64 `json:"chance_of_exhausted"` // that there is such a link
	NextCollides   float64 `json:"next_collides"`       // chance that the first code of one more link has an owner
	Blocking
}

// Blocking is what a blocklist does.
type Blocking struct {
	BlockedShare float64 `json:"blocked_share,omitempty"`    // of all codes, those that contain a word
	Blocked      float64 `json:"expected_blocked,omitempty"` // codes or numbers that the new links skip because of a word
}

// Collisions estimates a load. It takes the number of codes that are taken after so many
// links, and the chance to find one of them, for their averages. So it is wrong by about one
// part in the number of codes, which shows only at lengths 1 and 2. It is an error if the
// load is not valid, or if there are more existing links than codes.
//
// A code that contains a word counts as if it did not exist, and costs an attempt.
func Collisions(l Load) (Figures, error) {
	spec, err := l.spec(false)
	if err != nil {
		return Figures{}, err
	}
	if l.MaxRetries < 0 || l.MaxRetries > codegen.MostRetries {
		return Figures{}, fmt.Errorf("the highest salt is not within 0 to %d", codegen.MostRetries)
	}
	blocked, err := l.blocked(spec)
	if err != nil {
		return Figures{}, err
	}
	codes := codeSpace{equal(math.Pow(float64(len(spec.Alphabet)), float64(l.CodeLength)))}
	if spec.Name == codegen.Name {
		if codes, err = codeClasses(l.CodeLength); err != nil {
			return Figures{}, err
		}
	}
	codes = codes.without(blocked)
	draws, err := codes.drawsFor(float64(l.Existing))
	if err != nil {
		return Figures{}, err
	}
	e := Figures{Codes: math.Pow(float64(len(spec.Alphabet)), float64(l.CodeLength)), EffectiveCodes: codes.effective()}
	f := filling{codes: codes, attempts: float64(l.MaxRetries) + 1, draws: draws, blocked: blocked}
	total := f.fill(l.Links)
	e.BlockedShare, e.Blocked = blocked, total[blockedCodes]
	e.Colliding, e.AnyCollision = total[colliding], -math.Expm1(-total[anyColliding])
	e.Exhausted, e.AnyExhausted = total[exhausted], -math.Expm1(-total[anyExhausted])
	e.NextCollides = codes.mass(f.draws)
	return e, nil
}

// A codeClass is a number of codes that are equally likely.
type codeClass struct {
	count float64
	p     float64
	rate  float64 // -log(1-p): the chance that n hashes all miss a code is exp(-rate·n)
}

// A codeSpace is all codes of a length. Its probabilities add up to 1.
type codeSpace []codeClass

// equal describes so many equally likely codes.
func equal(count float64) codeClass { return codeClass{count, 1 / count, -math.Log1p(-1 / count)} }

// without returns the space without a share of the codes of each class.
func (s codeSpace) without(share float64) codeSpace {
	for i := range s {
		c := &s[i]
		c.count, c.p = c.count*(1-share), c.p/(1-share)
		c.rate = -math.Log1p(-c.p)
	}
	return s
}

// codeClasses derives the distribution of the codes of one length. Of a hash,
// uniform below 2^128, the code is the number itself, padded, if it has no more
// digits than that, and otherwise its first digits. So a code that begins with
// the digit 0 has one hash; another, of value v, has those that begin with v:
// one of as many digits, 58 of one digit more, 58² of two more, and of the most
// digits that there are, those below 2^128.
func codeClasses(length int) (codeSpace, error) {
	if _, err := codegen.New(length); err != nil {
		return nil, err
	}
	hashes := new(big.Int).Lsh(big.NewInt(1), 128)
	if length > codegen.MaxDigits {
		return codeSpace{newClass(hashes, big.NewInt(1))}, nil
	}
	shorter := new(big.Int) // hashes of less than 22 digits that begin with one v
	for n := length; n < codegen.MaxDigits; n++ {
		shorter.Add(shorter, power(n-length))
	}
	unit := power(codegen.MaxDigits - length) // hashes of 22 digits that begin with one v
	last, rest := new(big.Int).QuoRem(hashes, unit, new(big.Int))
	low, all := power(length-1), power(length)
	above := new(big.Int).Sub(all, last)
	above.Sub(above, big.NewInt(1))
	return slices.DeleteFunc(codeSpace{
		newClass(low, big.NewInt(1)),
		newClass(new(big.Int).Sub(last, low), new(big.Int).Add(shorter, unit)),
		newClass(big.NewInt(1), new(big.Int).Add(shorter, rest)),
		newClass(above, shorter),
	}, func(c codeClass) bool { return c.p == 0 }), nil
}

// power returns 58^n.
func power(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(int64(len(codegen.Alphabet))), big.NewInt(int64(n)), nil)
}

// newClass describes count codes of so many hashes each.
func newClass(count, hashes *big.Int) codeClass {
	c, _ := new(big.Float).SetInt(count).Float64()
	h, _ := new(big.Float).SetInt(hashes).Float64()
	p := math.Ldexp(h, -128)
	return codeClass{c, p, -math.Log1p(-p)}
}

// effective returns 1/Σp².
func (s codeSpace) effective() float64 {
	sum := 0.0
	for _, c := range s {
		sum += c.count * c.p * c.p
	}
	return 1 / sum
}

// mass returns the chance that one more hash gives a code that one of so many
// hashes before it gave.
func (s codeSpace) mass(hashes float64) (sum float64) {
	for _, c := range s {
		sum -= c.count * c.p * math.Expm1(-c.rate*hashes)
	}
	return min(sum, 1)
}

// occupied returns how many codes so many hashes give: Σ 1-(1-p)^n.
func (s codeSpace) occupied(hashes float64) (sum float64) {
	for _, c := range s {
		sum -= c.count * math.Expm1(-c.rate*hashes)
	}
	return sum
}

// drawsFor returns how many hashes give n codes, by Newton's method: occupied is
// concave and starts below n, so each step stays below the solution.
func (s codeSpace) drawsFor(n float64) (float64, error) {
	const forever = 0x1p70 // hashes: codes that only one hash gives are not met until then
	if met := s.occupied(forever); n > met+0.5 {
		return 0, fmt.Errorf("a hash gives only %.0f codes of this length, and there are more existing links", met)
	}
	draws := n
	for range 1000 {
		slope := 0.0
		for _, c := range s {
			slope += c.count * c.rate * math.Exp(-c.rate*draws)
		}
		step := (n - s.occupied(draws)) / slope
		if slope == 0 || step <= draws*1e-15 {
			break
		}
		draws = min(draws+step, forever)
	}
	return draws, nil
}

// What fill adds up. The chance that nothing of a kind happens to any link is
// the exponential of minus the sum of -log(1-chance).
const (
	colliding = iota
	anyColliding
	exhausted
	anyExhausted
	blockedCodes
	figures
)

// A filling is a workspace while links are added to it. Each link hashes until it finds a
// free code, or has no attempt left. So which codes are taken depends only on the number of
// hashes.
type filling struct {
	codes    codeSpace
	attempts float64 // of a link
	draws    float64 // hashes until now whose code is not blocked; not whole, since it is an average
	blocked  float64 // the chance that a code is blocked, which costs an attempt but is no draw
}

// fill adds links and returns what is expected of them. After the first few it takes strides,
// and counts every link of a stride as the one in its middle (the midpoint rule).
func (f *filling) fill(links int64) (total [figures]float64) {
	for done := int64(0); done < links; {
		stride := min(max(done/1024, 1), links-done)
		done += stride
		h := float64(stride)
		middle := f.draws + (h-1)/2*f.drawsOf(f.draws+(h-1)/4*f.drawsOf(f.draws))
		for i, chance := range f.chances(middle) {
			total[i] += h * chance
		}
		f.draws += h * f.drawsOf(middle)
	}
	return total
}

// drawsOf returns how many draws the next link costs.
func (f *filling) drawsOf(draws float64) float64 {
	return f.tries(f.codes.mass(draws)) * (1 - f.blocked)
}

// tries returns how many codes a link tries that finds a code that is not blocked taken with chance
// m: 1 + x + … + x^(attempts-1), where x is the chance that it goes on.
func (f *filling) tries(m float64) float64 {
	x := f.goesOn(m)
	if 1-x < 1e-9 { // where the quotient loses its digits
		return min(f.attempts, 1/(1-x))
	}
	return -math.Expm1(f.attempts*math.Log(x)) / (1 - x)
}

// goesOn is the chance that a code is blocked or taken.
func (f *filling) goesOn(m float64) float64 { return f.blocked + (1-f.blocked)*m }

// chances returns what the next link adds to each figure.
func (f *filling) chances(draws float64) (c [figures]float64) {
	const certain = 1e3 // instead of infinity
	m := f.codes.mass(draws)
	c[colliding], c[exhausted] = m*(1-math.Pow(f.blocked, f.attempts)), math.Pow(f.goesOn(m), f.attempts)
	c[blockedCodes] = f.blocked * f.tries(m)
	c[anyColliding] = min(-math.Log1p(-c[colliding]), certain)
	c[anyExhausted] = min(-math.Log1p(-c[exhausted]), certain)
	return c
}
