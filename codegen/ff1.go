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
// block of AES. Each round waits for the one before, so several texts go through the rounds
// together, three times as fast. Only one goroutine may use an ff1 at a time.
type ff1 struct {
	ciph    cipher.Block               // CIPH_K
	modulus [2]uint64                  // radix^m, in even rounds (m = u) and in odd ones (m = v)
	b, d    int                        // bytes of NUM(B) in Q, and of S
	last    Hash                       // what CIPH_K takes last in a round, but with zeros for [i] and NUM(B)
	r       [lanes][aes.BlockSize]byte // that block of each text, then R; a field, because it would escape from the stack
}

// lanes is the most texts that are encrypted together.
const lanes = 16

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
	r := f.r[0][:]
	for ; len(input) > aes.BlockSize; input = input[aes.BlockSize:] {
		subtle.XORBytes(r, r, input[:aes.BlockSize])
		ciph.Encrypt(r, r)
	}
	subtle.XORBytes(r, r, input)
	f.last = FromKey(f.r[0])
	return f
}

// encrypt is Algorithm 7 for at most lanes texts: a[j] and b[j] are the first u and the last v
// numerals of one, and of its ciphertext afterwards.
func (f *ff1) encrypt(a, b []uint64) {
	var y [lanes]uint64
	for i := range 10 { // 6
		f.round(i, b, &y)
		for j := range a {
			c := a[j] + y[j] // 6.vi
			if m := f.modulus[i%2]; c >= m {
				c -= m
			}
			a[j], b[j] = b[j], c // 6.viii, 6.ix
		}
	}
}

// decrypt is Algorithm 8, the inverse of encrypt.
func (f *ff1) decrypt(a, b []uint64) {
	var y [lanes]uint64
	for i := 9; i >= 0; i-- {
		f.round(i, a, &y)
		for j := range a {
			c, borrow := bits.Sub64(b[j], y[j], 0)
			if borrow > 0 {
				c += f.modulus[i%2]
			}
			a[j], b[j] = c, a[j]
		}
	}
}

// round computes y of round i, modulo radix^m, of each text. nums are the numbers of the halves that
// Q has.
func (f *ff1) round(i int, nums []uint64, y *[lanes]uint64) {
	at := 8 * f.b // [i] stands before NUM(B)
	hi, lo := f.last.Hi^uint64(i)>>(64-at), f.last.Lo^uint64(i)<<at
	for j, num := range nums {
		binary.BigEndian.PutUint64(f.r[j][:], hi)
		binary.BigEndian.PutUint64(f.r[j][8:], lo^num)
	}
	for j := range nums {
		f.ciph.Encrypt(f.r[j][:], f.r[j][:]) // 6.ii
	}
	drop, m := 8*(aes.BlockSize-f.d), f.modulus[i%2] // 6.iii: S is the first d bytes of R, as d is 8 or 12
	for j := range nums {
		r := FromKey(f.r[j])
		if hi, lo := r.Hi>>drop, r.Hi<<(64-drop)|r.Lo>>drop; hi == 0 { // always, if d is 8
			y[j] = lo % m
		} else {
			y[j] = bits.Rem64(hi, lo, m)
		}
	}
}

func pow(radix, n int) uint64 {
	p := uint64(1)
	for range n {
		p *= uint64(radix)
	}
	return p
}
