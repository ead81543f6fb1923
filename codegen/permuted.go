package codegen

import "crypto/aes"

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

func (p permuted) AppendCode(dst []byte, number uint64) []byte {
	number %= CounterSpace
	left, right := p.cipher.encrypt(number/lowHalf, number%lowHalf)
	return appendCounter(dst, left*lowHalf+right)
}

func (p permuted) Number(code []byte) (uint64, bool) {
	value, ok := CounterValue(code)
	left, right := p.cipher.decrypt(value/lowHalf, value%lowHalf)
	return left*lowHalf + right, ok
}

// lowHalf is the number of values of the last 4 of 7 numerals.
const lowHalf = 62 * 62 * 62 * 62
