package codegen

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"math/bits"
)

// An ff1 is FF1, a mode of NIST SP 800-38G ("Methods for Format-Preserving Encryption"), for
// one key, radix, length and tweak. Names are those of the standard, and the numbers in
// comments are steps of its Algorithm 7. A string of numerals is given as its number, NUM(A)
// for A; that of a half must be below 2^63.
//
// Of the input of PRF, P ‖ Q, only the last block depends on the round: Q ends with [i] and
// NUM(B), which have at most 9 bytes. What precedes them is computed once, so a round costs one
// block of AES. Only one goroutine may use an ff1 at a time.
type ff1 struct {
	ciph    cipher.Block        // CIPH_K
	modulus [2]uint64           // radix^m, in even rounds (m = u) and in odd ones (m = v)
	b, d    int                 // bytes of NUM(B) in Q, and of S
	last    Hash                // what CIPH_K takes last in a round, but with zeros for [i] and NUM(B)
	r       [aes.BlockSize]byte // that block, then R; a field, because it would escape from the stack
}

// newFF1 prepares FF1 for n numerals.
func newFF1(ciph cipher.Block, radix, n int, tweak []byte) *ff1 {
	f := &ff1{ciph: ciph}
	u := n / 2 // 1
	v := n - u
	f.modulus = [2]uint64{pow(radix, u), pow(radix, v)}
	f.b = (bits.Len64(f.modulus[1]-1) + 7) / 8 // 3
	f.d = 4*((f.b+3)/4) + 4                    // 4
	t := len(tweak)
	p := []byte{1, 2, 1, byte(radix >> 16), byte(radix >> 8), byte(radix), 10, byte(u)} // 5
	p = binary.BigEndian.AppendUint32(p, uint32(n))
	p = binary.BigEndian.AppendUint32(p, uint32(t))
	input := append(append(p, tweak...), make([]byte, -(t+f.b+1)&15+1+f.b)...) // 6.i
	for ; len(input) > aes.BlockSize; input = input[aes.BlockSize:] {
		subtle.XORBytes(f.r[:], f.r[:], input[:aes.BlockSize])
		ciph.Encrypt(f.r[:], f.r[:])
	}
	subtle.XORBytes(f.r[:], f.r[:], input)
	f.last = FromKey(f.r)
	return f
}

// encrypt is Algorithm 7. a and b are the first u and the last v numerals, of the plaintext and
// of the result.
func (f *ff1) encrypt(a, b uint64) (uint64, uint64) {
	for i := range 10 { // 6
		c := a + f.y(i, b) // 6.vi
		if m := f.modulus[i%2]; c >= m {
			c -= m
		}
		a, b = b, c // 6.viii, 6.ix
	}
	return a, b // 7
}

// decrypt is Algorithm 8, the inverse of encrypt.
func (f *ff1) decrypt(a, b uint64) (uint64, uint64) {
	for i := 9; i >= 0; i-- {
		c, borrow := bits.Sub64(b, f.y(i, a), 0)
		if borrow > 0 {
			c += f.modulus[i%2]
		}
		a, b = c, a
	}
	return a, b
}

// y returns y of round i, modulo radix^m. num is the number of the half that Q has.
func (f *ff1) y(i int, num uint64) uint64 {
	at := 8 * f.b // [i] stands before NUM(B)
	f.r = Hash{f.last.Hi ^ uint64(i)>>(64-at), f.last.Lo ^ uint64(i)<<at ^ num}.Key()
	f.ciph.Encrypt(f.r[:], f.r[:]) // 6.ii
	r := FromKey(f.r)
	drop := 8 * (aes.BlockSize - f.d) // 6.iii: S is the first d bytes of R, as d is 8 or 12
	hi, lo := r.Hi>>drop, r.Hi<<(64-drop)|r.Lo>>drop
	if hi == 0 { // always, if d is 8
		return lo % f.modulus[i%2]
	}
	return bits.Rem64(hi, lo, f.modulus[i%2])
}

func pow(radix, n int) uint64 {
	p := uint64(1)
	for range n {
		p *= uint64(radix)
	}
	return p
}
