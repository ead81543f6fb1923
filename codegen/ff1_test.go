package codegen_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
	"strconv"
	"testing"

	"github.com/linkforge/bulk/codegen"
)

func newAES(t *testing.T, key []byte) cipher.Block {
	t.Helper()
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	return block
}

// Samples that NIST gives for FF1, with keys of AES-128 and AES-256.
func TestFF1Samples(t *testing.T) {
	schemeVectors(t, "ff1-nist-sample", func(line map[string]any) {
		key, keyErr := hex.DecodeString(line["key"].(string))
		tweak, tweakErr := hex.DecodeString(line["tweak"].(string))
		if keyErr != nil || tweakErr != nil {
			t.Fatal(keyErr, tweakErr)
		}
		plain, want := line["plain"].(string), line["cipher"].(string)
		radix, u := int(line["radix"].(float64)), len(plain)/2
		number := func(numerals string) uint64 {
			n, err := strconv.ParseUint(numerals, radix, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		encrypt, decrypt := codegen.FF1(newAES(t, key), radix, len(plain), tweak)
		a, b := encrypt(number(plain[:u]), number(plain[u:]))
		if a != number(want[:u]) || b != number(want[u:]) {
			t.Errorf("%v: %d, %d", line, a, b)
		}
		if a, b := decrypt(a, b); a != number(plain[:u]) || b != number(plain[u:]) {
			t.Errorf("%v: decrypted to %d, %d", line, a, b)
		}
	})
}

// FF1 permutes all strings of 2 to 5 numerals of radix 2 to 10, each with a tweak of another
// length, from 0 to 35.
func TestFF1IsABijection(t *testing.T) {
	block := newAES(t, make([]byte, 32))
	for radix := 2; radix <= 10; radix++ {
		for n := 2; n <= 5; n++ {
			t.Run(fmt.Sprintf("radix=%d/n=%d", radix, n), func(t *testing.T) {
				encrypt, decrypt := codegen.FF1(block, radix, n, make([]byte, (radix-2)*4+n-2))
				checkBijection(t, power(radix, n/2), power(radix, n-n/2), encrypt, decrypt)
			})
		}
	}
}

// checkBijection tries all a below as and b below bs.
func checkBijection(t *testing.T, as, bs uint64, encrypt, decrypt func(a, b uint64) (uint64, uint64)) {
	seen := make([]bool, as*bs)
	for a := range as {
		for b := range bs {
			x, y := encrypt(a, b)
			if x >= as || y >= bs || seen[x*bs+y] {
				t.Fatalf("%d, %d gives %d, %d, out of range or again", a, b, x, y)
			}
			seen[x*bs+y] = true
			if x, y := decrypt(x, y); x != a || y != b {
				t.Fatalf("%d, %d comes back as %d, %d", a, b, x, y)
			}
		}
	}
}

func power(radix, n int) uint64 {
	p := uint64(1)
	for range n {
		p *= uint64(radix)
	}
	return p
}
