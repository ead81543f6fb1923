package codegen

import "crypto/cipher"

// NewPermutedTweak is NewPermuted with a tweak, as the worked cases have it.
var NewPermutedTweak = newPermuted

// FF1 returns the two directions of FF1, for one text.
func FF1(ciph cipher.Block, radix, n int, tweak []byte) (encrypt, decrypt func(a, b uint64) (uint64, uint64)) {
	f := newFF1(ciph, radix, n, tweak)
	one := func(do func(a, b []uint64)) func(a, b uint64) (uint64, uint64) {
		return func(a, b uint64) (uint64, uint64) {
			as, bs := []uint64{a}, []uint64{b}
			do(as, bs)
			return as[0], bs[0]
		}
	}
	return one(f.encrypt), one(f.decrypt)
}
