package codegen

import (
	"crypto/aes"
	"slices"
)

// NamePermuted is the name of scheme counter-permuted.
const NamePermuted = "counter-permuted"

// A permuted is a Counter of counter-permuted.
type permuted struct{ cipher *ff1 }

// NewPermuted returns a counter of scheme counter-permuted. The secret must have at least
// MinSecret bytes.
func NewPermuted(secret Secret) (Counter, error) { return newPermuted(secret, nil) }

func newPermuted(secret Secret, tweak []byte) (Counter, error) {
	if err := secret.check(NamePermuted); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret.derive("bulk:counter-permuted")) // AES-256
	if err != nil {
		return nil, err
	}
	return permuted{newFF1(block, 62, CounterLength, tweak)}, nil
}

func (permuted) Name() string { return NamePermuted }

func (p permuted) AppendCode(dst []byte, numbers ...uint64) []byte {
	for part := range slices.Chunk(numbers, lanes) {
		var left, right [lanes]uint64
		for i, n := range part {
			left[i], right[i] = n%CounterSpace/lowHalf, n%lowHalf
		}
		p.cipher.encrypt(left[:len(part)], right[:len(part)])
		for i := range part {
			dst = appendCounter(dst, left[i]*lowHalf+right[i])
		}
	}
	return dst
}

func (p permuted) Number(code []byte) (uint64, bool) {
	value, ok := CounterValue(code)
	left, right := []uint64{value / lowHalf}, []uint64{value % lowHalf}
	p.cipher.decrypt(left, right)
	return left[0]*lowHalf + right[0], ok
}

// lowHalf is the number of values of the last 4 of 7 numerals.
const lowHalf = 62 * 62 * 62 * 62
