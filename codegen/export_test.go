package codegen

import "crypto/cipher"

// NewPermutedTweak is NewPermuted with a tweak, as the worked cases have it.
var NewPermutedTweak = newPermuted

// FF1 returns the two directions of FF1.
func FF1(ciph cipher.Block, radix, n int, tweak []byte) (encrypt, decrypt func(a, b uint64) (uint64, uint64)) {
	f := newFF1(ciph, radix, n, tweak)
	return f.encrypt, f.decrypt
}
