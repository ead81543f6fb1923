// Package codegen computes a short code from a canonical URL, its workspace and a
// salt. The salt is the number of the try: 0 for the first code of a URL, 1 for the
// next one if that is taken, and so on.
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
// [CheckWorkspace]. README.md beside this package has the rules in full, and which URL
// gets a code that two want; with it and README.md of package canon, codes can be
// computed without this program. testdata/codes.jsonl and testdata/derive.jsonl have
// worked cases.
//
// # Use
//
// [AppendInput] writes the input, [Sum] hashes it (a [Hasher] does both, for many), and a
// [Scheme] makes the code of its length from the [Hash]:
//
//	input := codegen.AppendInput(nil, canonical, workspace, 0)
//	code := scheme.AppendCode(nil, codegen.Sum(input))
//
// The scheme never changes what it computes: other rules would be a scheme with
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

// Name of the scheme, as manifests record it.
const Name = "sha256-base58"

// Code lengths in characters.
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

// MaxDigits is the most digits that a Hash can have.
const MaxDigits = 22

// Alphabet has the 58 digits in ascending order, of value and of bytes. Codes of
// one length therefore sort as the numbers that they stand for.
const Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

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

// AppendAlias appends the input of the hash of a URL's alias to dst:
// "canonical|workspace|c=code". Its key is the url_key of the alias in the store.
func AppendAlias(dst, canonical, workspace, code []byte) []byte {
	return append(append(AppendInput(dst, canonical, workspace, 0), "|c="...), code...)
}

// A Hash is the first 16 bytes of a SHA-256, as an unsigned big-endian integer.
type Hash struct{ Hi, Lo uint64 }

// Sum hashes an input made by AppendInput.
func Sum(input []byte) Hash {
	sum := sha256.Sum256(input)
	return FromKey([16]byte(sum[:16]))
}

// FromKey is the inverse of Hash.Key.
func FromKey(k [16]byte) Hash {
	return Hash{binary.BigEndian.Uint64(k[:8]), binary.BigEndian.Uint64(k[8:])}
}

// Key returns the 16 bytes of the hash. With salt 0 they are the url_key of the store.
func (h Hash) Key() (k [16]byte) {
	binary.BigEndian.PutUint64(k[:8], h.Hi)
	binary.BigEndian.PutUint64(k[8:], h.Lo)
	return k
}

// A Scheme makes codes of one length. New returns one; the zero value is not usable.
type Scheme struct{ length int }

// New returns the scheme for codes of 1 to 24 characters.
func New(length int) (Scheme, error) {
	if length < MinLength || length > MaxLength {
		return Scheme{}, fmt.Errorf("code length %d is not within %d to %d", length, MinLength, MaxLength)
	}
	return Scheme{length}, nil
}

// Length is the number of characters of each code.
func (s Scheme) Length() int { return s.length }

const (
	// rankDigits is the most digits of a code that Rank holds; 58^10 < 2^59.
	rankDigits = 10
	pow10      = 430804206899405824 // 58^10
	odd12      = 353814783205469041 // 29^12; 58^12 = 2^12 · 29^12
)

// AppendCode appends the code of the hash to dst.
func (s Scheme) AppendCode(dst []byte, h Hash) []byte {
	if s.RankIsCode() {
		return s.appendRank(dst, s.Rank(h))
	}
	digits := h.digits()
	used := h.numDigits()
	for range s.length - used {
		dst = append(dst, Alphabet[0])
	}
	for _, d := range digits[MaxDigits-used:][:min(used, s.length)] {
		dst = append(dst, Alphabet[d])
	}
	return dst
}

// Rank returns the first ten characters of the code, or all if it has fewer, as a
// number. Ranks are ordered as those characters are.
func (s Scheme) Rank(h Hash) uint64 {
	n := h.numDigits()
	if n == MaxDigits && s.length <= MaxDigits {
		q, _ := bits.Div64(h.Hi>>12, h.Hi<<52|h.Lo>>12, odd12)
		if s.length >= rankDigits {
			return q
		}
		return q / powers[rankDigits-s.length].Lo
	}
	return s.rankSlow(h, n)
}

// RankOf returns the rank of a code that the scheme made. The rank of any other text
// means nothing.
func (s Scheme) RankOf(code []byte) (rank uint64) {
	for _, c := range code[:min(len(code), rankDigits)] {
		rank = rank*58 + uint64(strings.IndexByte(Alphabet, c))
	}
	return rank
}

// rankSlow is Rank for a hash of any number of digits.
func (s Scheme) rankSlow(h Hash, n int) (rank uint64) {
	digits := h.digits()
	pad := max(s.length-n, 0)
	for i := range min(s.length, rankDigits) {
		rank *= 58
		if i >= pad {
			rank += uint64(digits[MaxDigits-n+i-pad])
		}
	}
	return rank
}

// RankIsCode reports whether equal ranks mean equal codes, which is so up to length 10.
func (s Scheme) RankIsCode() bool { return s.length <= rankDigits }

// appendRank appends the code of a rank. RankIsCode must be true.
func (s Scheme) appendRank(dst []byte, rank uint64) []byte {
	var code [rankDigits]byte
	i := s.length
	for ; i >= 2; i -= 2 {
		*(*[2]byte)(code[i-2:]) = pairs[rank%(58*58)]
		rank /= 58 * 58
	}
	if i == 1 {
		code[0] = Alphabet[rank%58]
	}
	return append(dst, code[:s.length]...)
}

// SaltOf returns the lowest salt, from 0 to most, with which a URL has the code, or -1
// if there is none. If the identity has parts, they follow the workspace.
func SaltOf(canonical, workspace, code []byte, most int) int {
	scheme, err := New(len(code))
	if err != nil {
		return -1
	}
	var input [256]byte // longer ones are allocated
	var made [MaxLength]byte
	for salt := range most + 1 {
		h := Sum(AppendInput(input[:0], canonical, workspace, salt))
		if bytes.Equal(scheme.AppendCode(made[:0], h), code) {
			return salt
		}
	}
	return -1
}

// digits returns all 22 digits of h, most significant first.
func (h Hash) digits() (d [MaxDigits]byte) {
	qHi, r := bits.Div64(0, h.Hi, pow10)
	qLo, low := bits.Div64(r, h.Lo, pow10)
	top, mid := bits.Div64(qHi, qLo, pow10)
	for i := MaxDigits - 1; i >= 12; i-- {
		d[i] = byte(low % 58)
		low /= 58
	}
	for i := 11; i >= 2; i-- {
		d[i] = byte(mid % 58)
		mid /= 58
	}
	d[0], d[1] = byte(top/58), byte(top%58)
	return d
}

// numDigits returns the number of digits of h without leading zeros. 96.8 % of all
// hashes have 22; zero has none.
func (h Hash) numDigits() int {
	n := MaxDigits
	for n > 0 && h.less(powers[n-1]) {
		n--
	}
	return n
}

func (h Hash) less(o Hash) bool {
	return h.Hi < o.Hi || h.Hi == o.Hi && h.Lo < o.Lo
}

// pairs[n] is n as two digits.
var pairs = func() (p [58 * 58][2]byte) {
	for n := range p {
		p[n] = [2]byte{Alphabet[n/58], Alphabet[n%58]}
	}
	return p
}()

// powers[i] is 58^i.
var powers = func() (p [MaxDigits]Hash) {
	p[0] = Hash{0, 1}
	for i := 1; i < MaxDigits; i++ {
		hi, lo := bits.Mul64(p[i-1].Lo, 58)
		p[i] = Hash{p[i-1].Hi*58 + hi, lo}
	}
	return p
}()
