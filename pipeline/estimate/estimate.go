// Package estimate tells before a run how many of its links will find a code taken. See
// [Collisions].
//
// Codes of one length are not equally likely, since a hash is below 2^128 and that is no
// power of 58. The estimate counts with their true chances.
package estimate

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/linkforge/bulk/codegen"
)

// A Load is a number of links to be made in one workspace.
type Load struct {
	Links      int64 `json:"links"`    // new links, each with another canonical URL
	Existing   int64 `json:"existing"` // links that the workspace has, made by the same rules
	CodeLength int   `json:"code_length"`
	MaxRetries int   `json:"max_retries"` // highest salt; 0 is salt 0 only, unlike in pipeline.Config
}

// Figures are what to expect of a Load, if hashes are random.
type Figures struct {
	Codes          float64 `json:"codes"`               // 58 to the power of the length
	EffectiveCodes float64 `json:"effective_codes"`     // equally likely codes that would collide as often: 1/Σp²
	Colliding      float64 `json:"expected_colliding"`  // new links whose first code is taken
	AnyCollision   float64 `json:"chance_of_collision"` // that there is such a link
	Exhausted      float64 `json:"expected_exhausted"`  // new links that find every code taken
	AnyExhausted   float64 `json:"chance_of_exhausted"` // that there is such a link
	NextCollides   float64 `json:"next_collides"`       // chance that the first code of one more link has an owner
}

// Collisions estimates a load. It takes the number of codes that are taken after so many
// links, and the chance to find one of them, for their averages. So it is wrong by about one
// part in the number of codes, which shows only at lengths 1 and 2. It is an error if the
// load is not valid, or if there are more existing links than codes.
func Collisions(l Load) (Figures, error) {
	codes, err := codeClasses(l.CodeLength)
	switch {
	case err != nil:
		return Figures{}, err
	case l.Links < 0 || l.Existing < 0:
		return Figures{}, errors.New("the number of links is negative")
	case l.MaxRetries < 0 || l.MaxRetries > codegen.MostRetries:
		return Figures{}, fmt.Errorf("the highest salt is not within 0 to %d", codegen.MostRetries)
	}
	draws, err := codes.drawsFor(float64(l.Existing))
	if err != nil {
		return Figures{}, err
	}
	e := Figures{Codes: math.Pow(float64(len(codegen.Alphabet)), float64(l.CodeLength)), EffectiveCodes: codes.effective()}
	f := filling{codes: codes, attempts: float64(l.MaxRetries) + 1, draws: draws}
	total := f.fill(l.Links)
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
	figures
)

// A filling is a workspace while links are added to it. Each link hashes until it finds a
// free code, or has no attempt left. So which codes are taken depends only on the number of
// hashes.
type filling struct {
	codes    codeSpace
	attempts float64 // of a link
	draws    float64 // hashes until now; not whole, since it is an average
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

// drawsOf returns how many hashes the next link costs: 1 + m + … + m^(attempts-1).
func (f *filling) drawsOf(draws float64) float64 {
	m := f.codes.mass(draws)
	if 1-m < 1e-9 { // where the quotient loses its digits
		return min(f.attempts, 1/(1-m))
	}
	return -math.Expm1(f.attempts*math.Log(m)) / (1 - m)
}

// chances returns what the next link adds to each figure.
func (f *filling) chances(draws float64) (c [figures]float64) {
	const certain = 1e3 // instead of infinity
	m := f.codes.mass(draws)
	c[colliding], c[exhausted] = m, math.Pow(m, f.attempts)
	c[anyColliding] = min(-math.Log1p(-c[colliding]), certain)
	c[anyExhausted] = min(-math.Log1p(-c[exhausted]), certain)
	return c
}
