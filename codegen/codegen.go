// Package codegen computes short codes. A [Scheme] computes the code from a canonical URL, its
// workspace and a salt. The salt is the number of the try: 0 for the first code of a URL, 1 for
// the next one if that is taken, and so on. A [Counter] computes the code from a number. A
// [Blocklist] finds words that codes should not contain.
//
// # Scheme sha256-base58
//
//	step    rule                                         example
//	------  -------------------------------------------  ----------------------
//	input   canonical URL "|" workspace, and for a salt  http://a.example/|demo
//	        of 1 or more "|" salt in decimal
//	hash    SHA-256; its first 16 bytes are a number,    5709194c1ed158b7e0e...
//	        most significant byte first
//	digits  the number in Base58 (digits 1-9, A-Z, a-z   BkMf5wiGFZc9RDcJqaoWSK
//	        without I, O, l), without leading zeros
//	code    the first n digits (n is 10 by default);     BkMf5wiGFZ
//	        "1" before them if there are fewer than n
//
// A workspace is 1 to 64 characters of UTF-8, without "|" and control characters; see
// [CheckWorkspace]. README.md beside this package has the rules in full, also of the other
// schemes, and which URL gets a code that two want; with it and README.md of package canon,
// codes can be computed without this program. testdata/codes.jsonl and testdata/derive.jsonl
// have worked cases.
//
// # Other schemes
//
// [Specs] lists all schemes. Those of keys and counters take a [Secret]:
//
//	scheme            constructor     code                                          worked cases
//	----------------  --------------  --------------------------------------------  -------------
//	keyed-base62      NewKeyed        last digits of the HMAC-SHA-256 of the input  schemes.jsonl
//	sha256-base32     NewBase32       first bits of the SHA-256, five a character   schemes.jsonl
//	keyed-base32      NewKeyedBase32  first bits of the HMAC-SHA-256                schemes.jsonl
//	counter-base62    NewCounter      number times multiplier plus XXH64 of secret  counter.jsonl
//	counter-permuted  NewPermuted     number encrypted with FF1                     schemes.jsonl
//
// # Use
//
// [AppendInput] writes the input, [Scheme.Sum] hashes it (a [Hasher] does both, for many codes of
// sha256-base58), and the Scheme makes the code of its length from the [Hash]:
//
//	input := codegen.AppendInput(nil, canonical, workspace, 0)
//	code := scheme.AppendCode(nil, scheme.Sum(input))
//
// A scheme never changes what it computes: other rules would be a scheme with
// another name. The package knows no files, stores or goroutines.
package codegen

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Name is the name of scheme sha256-base58.
const Name = "sha256-base58"

// Code lengths of sha256-base58, in characters. MaxLength is the most of all schemes.
const (
	MinLength     = 1
	MaxLength     = 24
	DefaultLength = 10
)

// Highest salt to try when the codes of lower salts are taken: by default, and at
// most. There is a limit so that a check of a run can try all salts.
const (
	DefaultRetries = 10
	MostRetries    = 1 << 20
)

// AppendInput appends the input of the hash to dst: "canonical|workspace", and "|salt"
// for a salt of 1 or more. A salt below 0 counts as 0. The workspace must pass
// CheckWorkspace; otherwise another workspace and salt may have the same input.
func AppendInput(dst, canonical, workspace []byte, salt int) []byte {
	return AppendIdentity(dst, canonical, workspace, nil, salt)
}

// AppendIdentity is AppendInput for an identity that has parts beside its URL: they stand between
// the workspace and the salt. README.md says how parts are written ("Identity parts").
func AppendIdentity(dst, canonical, workspace, parts []byte, salt int) []byte {
	dst = append(append(append(append(dst, canonical...), '|'), workspace...), parts...)
	if salt > 0 {
		dst = strconv.AppendInt(append(dst, '|'), int64(salt), 10)
	}
	return dst
}

// AppendAlias appends the input of the hash of an alias to dst: "canonical|workspace|c=code", with the
// parts of its identity before "|c=". Its key is the url_key of the alias in the store.
func AppendAlias(dst, canonical, workspace, parts, code []byte) []byte {
	return append(append(AppendIdentity(dst, canonical, workspace, parts, 0), "|c="...), code...)
}

// A Hash is the first 16 bytes of a SHA-256 or of an HMAC, as an unsigned big-endian integer.
type Hash struct{ Hi, Lo uint64 }

// Sum hashes an input made by AppendInput. With salt 0 that is the key of the URL in the store,
// whatever the scheme of its code.
func Sum(input []byte) Hash {
	sum := sha256.Sum256(input)
	return FromKey([16]byte(sum[:16]))
}

// FromKey is the inverse of Hash.Key.
func FromKey(k [16]byte) Hash {
	return Hash{binary.BigEndian.Uint64(k[:8]), binary.BigEndian.Uint64(k[8:])}
}

// Key returns the 16 bytes of the hash.
func (h Hash) Key() (k [16]byte) {
	binary.BigEndian.PutUint64(k[:8], h.Hi)
	binary.BigEndian.PutUint64(k[8:], h.Lo)
	return k
}

// A Scheme makes codes of one length from hashes. [New] returns one of sha256-base58,
// [NewBase32], [NewKeyed] and [NewKeyedBase32] those of others; the zero value is not usable. Any number of goroutines may
// use it. It is a struct, not an interface, so that buffers for codes stay on the stack.
type Scheme struct {
	length int
	digits digits
	key    *hmacKey // nil: anybody can make the codes
}

// The digits that codes have.
type digits uint8

const (
	base58 digits = iota
	base62        // of a scheme with a key
	base32
)

// appendOther is AppendCode of a scheme other than sha256-base58.
func (s Scheme) appendOther(dst []byte, h Hash) []byte {
	if s.digits == base32 {
		return appendCode32(dst, h, s.length)
	}
	return appendCode62(dst, h, s.length)
}

// rankOther is Rank of a scheme other than sha256-base58.
func (s Scheme) rankOther(h Hash) uint64 {
	if s.digits == base32 {
		return rank32(h, s.length)
	}
	return rank62(h, s.length)
}

// alphabet returns the digits, in ascending order.
func (s Scheme) alphabet() string {
	return [...]string{base58: Alphabet, base62: KeyedAlphabet, base32: Base32Alphabet}[s.digits]
}

// New returns the scheme sha256-base58 for codes of 1 to 24 characters.
func New(length int) (Scheme, error) { return Scheme{}.WithLength(length) }

// WithLength returns the scheme for codes of another length.
func (s Scheme) WithLength(length int) (Scheme, error) {
	least, most := MinLength, MaxLength
	if s.key != nil {
		least, most = minKeyed, maxKeyed
	}
	if length < least || length > most {
		return Scheme{}, fmt.Errorf("code length %d is not within %d to %d", length, least, most)
	}
	s.length = length
	return s, nil
}

// Name is the name of the scheme, as manifests record it.
func (s Scheme) Name() string {
	switch {
	case s.digits == base58:
		return Name
	case s.digits == base62:
		return NameKeyed
	case s.key != nil:
		return NameKeyedBase32
	}
	return NameBase32
}

// Keyed reports whether only who has a secret can make the codes. Otherwise Sum is the key of the URL
// in the store.
func (s Scheme) Keyed() bool { return s.key != nil }

// Length is the number of characters of each code.
func (s Scheme) Length() int { return s.length }

// Sum hashes an input made by AppendInput or AppendIdentity. AppendCode makes the code from
// the result.
func (s Scheme) Sum(input []byte) Hash {
	if s.key != nil {
		return s.key.sum(input)
	}
	return Sum(input)
}

// rankDigits is the most characters of a code that Rank holds; 62^10 < 2^60.
const rankDigits = 10

// RankIsCode reports whether equal ranks mean equal codes, which is so up to length 10.
func (s Scheme) RankIsCode() bool { return s.length <= rankDigits }

// Position says where the code of a hash is among all codes: the part of them that is below it, of
// 2^64. It ascends as codes do.
func (s Scheme) Position(h Hash) uint64 {
	if s.digits != base62 { // in base58, but a hash with fewer digits than most is below its code
		return h.Hi
	}
	position, _ := bits.Div64(rank62(h, s.length), 0, powers62[min(s.length, rankDigits)])
	return position
}

// RankOf returns the rank of a code that the scheme made. The rank of any other text
// means nothing.
func (s Scheme) RankOf(code []byte) (rank uint64) {
	alphabet := s.alphabet()
	for _, c := range code[:min(len(code), rankDigits)] {
		rank = rank*uint64(len(alphabet)) + uint64(strings.IndexByte(alphabet, c))
	}
	return rank
}

// SaltOf returns the lowest salt, from 0 to most, with which a URL has the code, or -1
// if there is none. The code may have another length than those of s. If the identity has
// parts, they follow the workspace.
func (s Scheme) SaltOf(canonical, workspace, code []byte, most int) int {
	s, err := s.WithLength(len(code))
	if err != nil {
		return -1
	}
	var input [256]byte // longer ones are allocated
	var made [MaxLength]byte
	for salt := range most + 1 {
		h := s.Sum(AppendInput(input[:0], canonical, workspace, salt))
		if bytes.Equal(s.AppendCode(made[:0], h), code) {
			return salt
		}
	}
	return -1
}
