package codegen

import "math/bits"

// MaxDigits is the most digits that a Hash can have.
const MaxDigits = 22

// Alphabet has the 58 digits in ascending order, of value and of bytes. Codes of
// one length therefore sort as the numbers that they stand for.
const Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

const (
	pow10 = 430804206899405824 // 58^10
	odd12 = 353814783205469041 // 29^12; 58^12 = 2^12 · 29^12
)

// AppendCode appends the code of the hash to dst. Here and in Rank, sha256-base58 is computed on
// the spot, because a further call takes a quarter of the time of Rank.
func (s Scheme) AppendCode(dst []byte, h Hash) []byte {
	if s.digits != base58 {
		return s.appendOther(dst, h)
	}
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
	if s.digits != base58 {
		return s.rankOther(h)
	}
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

// rankSlow is Rank of sha256-base58 for a hash of any number of digits.
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

// appendRank appends the code of a rank of sha256-base58. RankIsCode must be true.
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
