package canon

import (
	"math"
	"slices"
	"unicode/utf8"
)

// The parameters of Punycode, RFC 3492 §5.
const (
	punyBase, punyMin, punyMax = 36, 1, 26
	punySkew, punyDamp         = 38, 700
	punyBias, punyFirst        = 72, utf8.RuneSelf
)

const punyDigits = "abcdefghijklmnopqrstuvwxyz0123456789"

// appendName appends a name with each label that is not ASCII in Punycode. ok is false
// if a label has none. The package of the tables does the same in time quadratic in the
// length of a label, which may be a second for one URL.
func appendName(dst []byte, name string) (_ []byte, ok bool) {
	label, ascii := 0, true
	for i := range len(name) + 1 {
		switch {
		case i < len(name) && name[i] != '.':
			ascii = ascii && name[i] < utf8.RuneSelf
			continue
		case ascii:
			dst = append(dst, name[label:i]...)
		default:
			if dst, _, ok = appendPunycode(dst, name[label:i]); !ok {
				return dst, false
			}
		}
		if i < len(name) {
			dst = append(dst, '.')
		}
		label, ascii = i+1, true
	}
	return dst, true
}

// appendPunycode appends "xn--" and the Punycode of a label, RFC 3492 §6.3. The RFC goes
// through the whole label for each of its characters, from the lowest one on; this looks
// up how many characters already coded are before a place. work counts the steps of the
// lookups. ok is false if a delta overflows 31 bits (§6.4).
func appendPunycode(dst []byte, label string) (_ []byte, work int, ok bool) {
	n := utf8.RuneCountInString(label)
	var fewSums [65]int32
	coded := places{sums: append(fewSums[:0], make([]int32, n+1)...)}
	var few [64]uint64
	todo := few[:0] // character and place of each, in the order of coding
	at := 0
	dst = append(dst, "xn--"...)
	for _, r := range label {
		if r < utf8.RuneSelf {
			dst = append(dst, byte(r))
			coded.add(at)
		} else {
			todo = append(todo, uint64(r)<<32|uint64(at))
		}
		at++
	}
	slices.Sort(todo)
	basic := n - len(todo)
	if basic > 0 {
		dst = append(dst, '-')
	}
	next, delta, bias := rune(punyFirst), int64(0), int64(punyBias)
	for h := basic; len(todo) > 0; {
		r := rune(todo[0] >> 32)
		delta += int64(r-next) * int64(h+1)
		before, same := 0, 0
		for ; same < len(todo) && rune(todo[same]>>32) == r; same++ {
			now := coded.before(int(uint32(todo[same])))
			delta += int64(now - before)
			if delta > math.MaxInt32 {
				return dst, coded.work, false
			}
			dst = appendDelta(dst, delta, bias)
			h++
			bias = adapt(delta, int64(h), h == basic+1)
			before, delta = now, 0
		}
		delta = int64(h-same-before) + 1
		next = r + 1
		for _, c := range todo[:same] {
			coded.add(int(uint32(c)))
		}
		todo = todo[same:]
	}
	return dst, coded.work, true
}

// appendDelta appends a number as a variable-length integer, RFC 3492 §3.3.
func appendDelta(dst []byte, delta, bias int64) []byte {
	for k := int64(punyBase); ; k += punyBase {
		t := min(max(k-bias, punyMin), punyMax)
		if delta < t {
			return append(dst, punyDigits[delta])
		}
		dst = append(dst, punyDigits[t+(delta-t)%(punyBase-t)])
		delta = (delta - t) / (punyBase - t)
	}
}

// adapt returns the next bias, RFC 3492 §6.1.
func adapt(delta, h int64, first bool) int64 {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / h
	k := int64(0)
	for ; delta > (punyBase-punyMin)*punyMax/2; k += punyBase {
		delta /= punyBase - punyMin
	}
	return k + (punyBase-punyMin+1)*delta/(delta+punySkew)
}

// places is a set of numbers from 0 on. It is a Fenwick tree, so it can tell how many
// of its numbers are below another: sums[i] counts those in the last i&-i numbers
// before i.
type places struct {
	sums []int32
	work int
}

func (p *places) add(at int) {
	for i := at + 1; i < len(p.sums); i += i & -i {
		p.sums[i]++
		p.work++
	}
}

func (p *places) before(at int) int {
	n := int32(0)
	for i := at; i > 0; i &= i - 1 {
		n += p.sums[i]
		p.work++
	}
	return int(n)
}
