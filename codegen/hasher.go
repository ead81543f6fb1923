package codegen

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"
)

// A Hasher hashes as [Sum] does, in three quarters of the time: of a short input
// most is spent on padding it and on handing blocks over one by one. So it pads
// the input itself (FIPS 180-4, 5.1.1), hands all blocks over at once, and reads
// the hash from the state that the standard library can save. It is for one
// goroutine; make it with NewHasher.
type Hasher struct {
	sha   hash.Hash
	saver encoding.BinaryAppender // sha; nil: its state is not as expected
	input []byte
	state []byte
}

// NewHasher returns a Hasher.
func NewHasher() *Hasher {
	h := &Hasher{sha: sha256.New()}
	h.saver, _ = h.sha.(encoding.BinaryAppender)
	if h.Sum(nil, nil, 0) != Sum(AppendInput(nil, nil, nil, 0)) {
		h.saver = nil // of a library that saves its state in another way
	}
	return h
}

// stateHead is what a saved state begins with; the words of the hash follow.
const stateHead = "sha\x03"

// padding is the most that goes between an input and its length.
var padding = [sha256.BlockSize]byte{0x80}

// Sum returns the hash of AppendInput(nil, canonical, workspace, salt).
func (h *Hasher) Sum(canonical, workspace []byte, salt int) (sum Hash) {
	h.input = AppendInput(h.input[:0], canonical, workspace, salt)
	if h.saver == nil {
		return Sum(h.input)
	}
	n := len(h.input)
	const room = sha256.BlockSize - 8 // of a block that ends with the length
	h.input = append(h.input, padding[:1+(room-1-n)&(sha256.BlockSize-1)]...)
	h.input = binary.BigEndian.AppendUint64(h.input, uint64(n)*8)
	h.sha.Reset()
	h.sha.Write(h.input)
	h.state, _ = h.saver.AppendBinary(h.state[:0])
	if len(h.state) >= len(stateHead)+16 {
		sum = FromKey([16]byte(h.state[len(stateHead):]))
	}
	return sum
}
