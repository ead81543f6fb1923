package codegen

import (
	"crypto/sha256"
	"encoding"
	"math/bits"
)

// NameKeyed is the name of scheme keyed-base62.
const NameKeyed = "keyed-base62"

// Code lengths of keyed-base62 and keyed-base32.
const (
	minKeyed = 4
	maxKeyed = 16
)

// KeyedAlphabet has the 62 digits of keyed-base62 in ascending order, of value and of bytes.
const KeyedAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewKeyed returns the scheme keyed-base62 for codes of 4 to 16 characters. The secret must
// have at least MinSecret bytes.
func NewKeyed(secret Secret, length int) (Scheme, error) {
	if err := secret.check(NameKeyed); err != nil {
		return Scheme{}, err
	}
	return Scheme{digits: base62, key: newHMACKey(secret.bytes())}.WithLength(length)
}

// appendCode62 appends the last digits of the hash to dst.
func appendCode62(dst []byte, h Hash, length int) []byte {
	var code [maxKeyed]byte
	high, low := low16(h)
	for i := range length {
		if i == 8 {
			low = high
		}
		code[length-1-i] = KeyedAlphabet[low%62]
		low /= 62
	}
	return append(dst, code[:length]...)
}

// rank62 is Scheme.Rank of keyed-base62.
func rank62(h Hash, length int) uint64 {
	if length <= rankDigits {
		return bits.Rem64(h.Hi, h.Lo, powers62[length])
	}
	high, low := low16(h)
	cut := length - rankDigits
	return high%powers62[length-8]*powers62[8-cut] + low/powers62[cut]
}

// low16 returns the last 16 digits of h in base 62, as two numbers of 8 digits.
func low16(h Hash) (high, low uint64) {
	qHi, r := bits.Div64(0, h.Hi, powers62[8])
	qLo, low := bits.Div64(r, h.Lo, powers62[8])
	return bits.Rem64(qHi, qLo, powers62[8]), low
}

// powers62[i] is 62^i.
var powers62 = func() (p [rankDigits + 1]uint64) {
	p[0] = 1
	for i := range rankDigits {
		p[i+1] = p[i] * 62
	}
	return p
}()

// An hmacKey is a key of HMAC-SHA-256 (FIPS 198-1): the states of SHA-256 after the block
// that begins the inner hash, and after the one that begins the outer hash. Unlike the
// object of crypto/hmac it never changes, so any number of goroutines may use it.
type hmacKey struct{ inner, outer []byte }

func newHMACKey(key []byte) *hmacKey {
	if len(key) > sha256.BlockSize {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	return &hmacKey{stateAfter(key, 0x36), stateAfter(key, 0x5c)}
}

// stateAfter returns the state of SHA-256 after a block: the key, padded with zeros, each
// byte XORed with pad.
func stateAfter(key []byte, pad byte) []byte {
	var block [sha256.BlockSize]byte
	copy(block[:], key)
	for i := range block {
		block[i] ^= pad
	}
	h := sha256.New()
	h.Write(block[:])
	state, _ := h.(encoding.BinaryMarshaler).MarshalBinary() // never fails
	return state
}

// sum returns the first 16 bytes of the HMAC.
func (k *hmacKey) sum(input []byte) Hash {
	h := sha256.New()
	state := h.(encoding.BinaryUnmarshaler)
	var sum [sha256.Size]byte
	state.UnmarshalBinary(k.inner) // fails for no state that MarshalBinary returned
	h.Write(input)
	h.Sum(sum[:0])
	state.UnmarshalBinary(k.outer)
	h.Write(sum[:])
	h.Sum(sum[:0])
	return FromKey([16]byte(sum[:]))
}
