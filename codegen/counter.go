package codegen

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// NameCounter is the name of scheme counter-base62.
const NameCounter = "counter-base62"

// CounterLength is the number of characters of the codes of counters, and CounterSpace the
// number of these codes.
const (
	CounterLength = 7
	CounterSpace  = 62 * 62 * 62 * 62 * 62 * 62 * 62
)

// CounterAlphabet has the 62 digits of counters in ascending order of value. That is not the
// order of their bytes.
const CounterAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// A Counter makes codes of 7 characters from numbers. [NewCounter] returns one of
// counter-base62, [NewPermuted] one of counter-permuted. The numbers 0 to CounterSpace-1 have
// different codes; from CounterSpace on the codes come again. Only one goroutine may use a
// Counter at a time.
type Counter interface {
	// Name is the name of the scheme.
	Name() string
	// AppendCode appends the codes of the numbers to dst. Many at once cost less.
	AppendCode(dst []byte, numbers ...uint64) []byte
	// Number returns the number below CounterSpace that has the code, and whether there is one.
	Number(code []byte) (number uint64, ok bool)
}

// A counter62 is a Counter of counter-base62.
type counter62 struct{ multiplier, inverse, offset uint64 }

// NewCounter returns a counter of scheme counter-base62. Any secret will do, also none. The
// multiplier must not be divisible by 2 or 31, or numbers would share codes.
func NewCounter(secret Secret, multiplier uint64) (Counter, error) {
	if multiplier%2 == 0 || multiplier%31 == 0 {
		return nil, fmt.Errorf("the multiplier of counter-base62, %d, must not be divisible by 2 or 31", multiplier)
	}
	return counter62{multiplier, inverse(multiplier), xxhash.Sum64(secret.bytes()) % CounterSpace}, nil
}

func (counter62) Name() string { return NameCounter }

func (c counter62) AppendCode(dst []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		dst = appendCounter(dst, (multiply(n, c.multiplier)+c.offset)%CounterSpace)
	}
	return dst
}

func (c counter62) Number(code []byte) (uint64, bool) {
	value, ok := CounterValue(code)
	return multiply(value+CounterSpace-c.offset, c.inverse), ok
}

// multiply returns a · b modulo CounterSpace.
func multiply(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, CounterSpace)
}

// inverse returns what multiplied by m is 1 modulo CounterSpace. By Euler's theorem that is m to
// the power of φ - 1. φ, the count of the numbers below 62^7 that 2 and 31 do not divide, is
// 62^6 · 30.
func inverse(m uint64) uint64 {
	result := uint64(1)
	for n := uint64(CounterSpace/62*30 - 1); n > 0; n /= 2 {
		if n%2 == 1 {
			result = multiply(result, m)
		}
		m = multiply(m, m)
	}
	return result
}

// appendCounter appends the 7 digits of a value below CounterSpace to dst.
func appendCounter(dst []byte, value uint64) []byte {
	var code [CounterLength]byte
	for i := CounterLength - 1; i >= 0; i-- {
		code[i] = CounterAlphabet[value%62]
		value /= 62
	}
	return append(dst, code[:]...)
}

// CounterValue returns the value of the 7 digits of a counter's code, and whether it consists of these.
func CounterValue(code []byte) (value uint64, ok bool) {
	if len(code) != CounterLength {
		return 0, false
	}
	for _, c := range code {
		digit := strings.IndexByte(CounterAlphabet, c)
		if digit < 0 {
			return 0, false
		}
		value = value*62 + uint64(digit)
	}
	return value, true
}
