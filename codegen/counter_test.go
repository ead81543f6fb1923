package codegen_test

import (
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/linkforge/bulk/codegen"
	"pgregory.net/rapid"
)

func newCounter(t interface{ Fatal(...any) }, secret codegen.Secret, multiplier uint64) codegen.Counter {
	counter, err := codegen.NewCounter(secret, multiplier)
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

func newPermuted(t interface{ Fatal(...any) }, secret codegen.Secret, tweak string) codegen.Counter {
	counter, err := codegen.NewPermutedTweak(secret, []byte(tweak))
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

// checkCounter compares the code of a vector's number, and the number of its code.
func checkCounter(t *testing.T, line map[string]any, counter codegen.Counter) {
	t.Helper()
	number, err := strconv.ParseUint(line["counter"].(string), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	want := line["code"].(string)
	if got := string(counter.AppendCode([]byte("code "), number)); got != "code "+want {
		t.Errorf("%v: %q", line, got)
	}
	if got, ok := counter.Number([]byte(want)); got != number%codegen.CounterSpace || !ok {
		t.Errorf("%v: number %d, %v", line, got, ok)
	}
}

func TestCounterVectors(t *testing.T) {
	vectors(t, "counter.jsonl", func(line map[string]any) {
		checkCounter(t, line, newCounter(t, secretOf(line), uint64(line["multiplier"].(float64))))
	})
	schemeVectors(t, "counter-permuted", func(line map[string]any) {
		counter := newPermuted(t, secretOf(line), line["tweak"].(string))
		checkCounter(t, line, counter)
	})
}

// counterReference is counter-base62 as its definition reads, with math/big.
func counterReference(secret []byte, multiplier, number uint64) string {
	big := func(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
	value := big(number)
	value.Mul(value, big(multiplier)).Add(value, big(xxhash.Sum64(secret)))
	return counterDigits(value.Mod(value, big(codegen.CounterSpace)).Uint64())
}

// counterDigits returns the 7 digits of a value.
func counterDigits(value uint64) string {
	code := make([]byte, codegen.CounterLength)
	for i := codegen.CounterLength - 1; i >= 0; i-- {
		code[i] = codegen.CounterAlphabet[value%62]
		value /= 62
	}
	return string(code)
}

// The arithmetic is exact for all numbers and multipliers, and back.
func TestCounterIsExact(t *testing.T) {
	edge := rapid.SampledFrom([]uint64{0, 1, codegen.CounterSpace - 1, codegen.CounterSpace, math.MaxUint64 - 1, math.MaxUint64})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "secret")
		multiplier := rapid.OneOf(edge, rapid.Uint64()).Filter(func(m uint64) bool { return m%2 != 0 && m%31 != 0 }).Draw(t, "multiplier")
		number := rapid.OneOf(edge, rapid.Uint64()).Draw(t, "number")
		want := counterReference(text, multiplier, number)
		counter := newCounter(t, codegen.NewSecret(text), multiplier)
		if got := string(counter.AppendCode(nil, number)); got != want {
			t.Fatalf("code %s, want %s", got, want)
		}
		if got, ok := counter.Number([]byte(want)); got != number%codegen.CounterSpace || !ok {
			t.Fatalf("number %d of %s, %v; want %d", got, want, ok, number)
		}
	})
}

func TestMultiplier(t *testing.T) {
	for _, m := range []uint64{0, 2, 31, 62, 1 << 63, math.MaxUint64 - math.MaxUint64%31} {
		if _, err := codegen.NewCounter(codegen.Secret{}, m); err == nil {
			t.Errorf("multiplier %d was accepted", m)
		}
	}
}

// Texts that no counter makes have no number.
func TestNumberOfNoCode(t *testing.T) {
	for _, c := range []codegen.Counter{newCounter(t, secret, 1), newPermuted(t, secret, "")} {
		for _, code := range []string{"", "abcdef", "abcdefgh", "abc-efg", "abcdef\xff"} {
			if n, ok := c.Number([]byte(code)); ok {
				t.Errorf("%s: %q has number %d", c.Name(), code, n)
			}
		}
	}
}

// With another secret a code has another number.
func TestNumberOfAnotherSecret(t *testing.T) {
	other := codegen.NewSecret([]byte("0123456789abcdeF"))
	for _, pair := range [][2]codegen.Counter{
		{newCounter(t, secret, 1), newCounter(t, other, 1)},
		{newPermuted(t, secret, ""), newPermuted(t, other, "")},
	} {
		code := pair[0].AppendCode(nil, 42)
		if n, ok := pair[1].Number(code); n == 42 || !ok {
			t.Errorf("%s: %s has number %d, %v", pair[0].Name(), code, n, ok)
		}
	}
}

// Many numbers at once have the codes that each has by itself.
func TestManyNumbers(t *testing.T) {
	for _, c := range []codegen.Counter{newCounter(t, secret, 1315423911), newPermuted(t, secret, "")} {
		for n := range 50 {
			numbers, want := make([]uint64, n), []byte("codes ")
			for i := range numbers {
				numbers[i] = math.MaxUint64 / uint64(i+1)
				want = c.AppendCode(want, numbers[i])
			}
			if got := c.AppendCode([]byte("codes "), numbers...); string(got) != string(want) {
				t.Errorf("%s: %d numbers: %s, want %s", c.Name(), n, got, want)
			}
		}
	}
}

func TestCountersDoNotAllocate(t *testing.T) {
	code, numbers := make([]byte, 0, codegen.CounterLength), []uint64{42}
	for _, c := range []codegen.Counter{newCounter(t, secret, 1315423911), newPermuted(t, secret, "a workspace of over sixteen bytes")} {
		if n := testing.AllocsPerRun(100, func() { c.Number(c.AppendCode(code, numbers...)) }); n > 0 {
			t.Errorf("%s: %v allocations", c.Name(), n)
		}
	}
}

// The differences between the codes of neighbours, as numbers, are spread evenly over the whole
// space, and so are their last digits.
func TestPermutedNeighbours(t *testing.T) {
	const samples, cells = 1_000_000, 1024
	counter := newPermuted(t, secret, "")
	value := func(number uint64) (v uint64) {
		for _, c := range counter.AppendCode(nil, number) {
			v = v*62 + uint64(indexOf[c])
		}
		return v
	}
	var top, last [cells]float64
	before := value(0)
	for n := range uint64(samples) {
		v := value(n + 1)
		d := (v + codegen.CounterSpace - before) % codegen.CounterSpace
		top[d*cells/codegen.CounterSpace]++
		last[d%cells]++
		before = v
	}
	for name, counts := range map[string][cells]float64{"place in the space": top, "remainder": last} {
		chi2 := 0.0
		for _, n := range counts {
			chi2 += (n - samples/float64(cells)) * (n - samples/float64(cells)) / (samples / float64(cells))
		}
		// Of mean cells-1 and variance 2·(cells-1). The secret is always the same, so is the result.
		if deviation := (chi2 - (cells - 1)) / math.Sqrt(2*(cells-1)); math.Abs(deviation) > 4 {
			t.Errorf("%s: chi-square %.0f, %.1f deviations from the mean", name, chi2, deviation)
		}
	}
}

// indexOf has the value of each digit of a counter's code.
var indexOf = func() (is [256]int) {
	for i, c := range []byte(codegen.CounterAlphabet) {
		is[c] = i
	}
	return is
}()
