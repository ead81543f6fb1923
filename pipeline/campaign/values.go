package campaign

import (
	"bytes"
	"fmt"

	"github.com/linkforge/bulk/canon"
)

// Values returns the values of a variant, whose number and URL are given: what its number does not tell, its URL
// does, at the end of its query. They are appended to values, in the order of the names; nil: the variant lacks it.
// The result is valid until buf changes, to which texts are appended.
func (p *Plan) Values(values [][]byte, buf []byte, number int64, url []byte) (_ [][]byte, _ []byte) {
	var has [maxNames]*value
	if !p.choose(&has, number) {
		for _, v := range has[:len(p.names)] {
			if v == nil {
				values = append(values, nil)
			} else {
				values = append(values, v.made.value)
			}
		}
		return values, buf
	}
	start := len(values)
	values = append(values, make([][]byte, len(p.names))...)
	url, _, _ = bytes.Cut(url, []byte("#"))
	first := bytes.IndexByte(url, '?')
	for n := len(p.names) - 1; n >= 0; n-- {
		switch v := has[n]; {
		case v == nil:
		case v.constant:
			values[start+n], url = v.made.value, url[:len(url)-len(v.made.piece)-1]
		case len(url) > first && first >= 0:
			last := first + max(bytes.LastIndexByte(url[first:], '&'), 0)
			if name, text, ok := bytes.Cut(url[last+1:], []byte("=")); ok && string(name) == p.names[n] {
				at := len(buf)
				buf = appendUnescaped(buf, text)
				values[start+n], url = buf[at:len(buf):len(buf)], url[:last]
			}
		}
	}
	return values, buf
}

// choose finds the values that a variant has, by parameter, as they are given. It reports whether some are not
// constant.
func (p *Plan) choose(has *[maxNames]*value, number int64) (cells bool) {
	b := p.blockOf(number)
	number -= b.first + 1
	for _, digits := range [2][]digit{p.common, b.own} {
		for d := len(digits) - 1; d >= 0; d-- {
			n := int64(len(digits[d].values))
			v := &p.values[digits[d].values[number%n]]
			number /= n
			has[v.param], cells = v, cells || !v.constant
		}
	}
	return cells
}

// appendUnescaped appends the bytes of which appendPiece made a value.
func appendUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
		}
		dst = append(dst, c)
	}
	return dst
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// URLOf returns the URL that a URL of the input becomes with values, in the order of the names; nil: it lacks
// it. Then Tagged is that of the URL. The result is valid until the row is used again.
func (r *Row) URLOf(url []byte, values [][]byte) []byte {
	r.cut(url)
	r.cell = append(r.cell[:0], r.head...)
	mark := r.mark
	for n, value := range values {
		if value != nil {
			r.cell = appendPiece(append(r.cell, mark), r.p.names[n], value)
			mark = '&'
		}
	}
	r.cell = append(r.cell, r.tail...)
	return r.cell
}

// CheckVariant says what is wrong with the values of a variant, as far as its number tells; "": nothing
// is. values has them in the order of the names; nil: it lacks it.
func (p *Plan) CheckVariant(number int64, values [][]byte) string {
	if number < 1 || number > p.count {
		return fmt.Sprintf("there is no variant %d; there are %d", number, p.count)
	}
	var has [maxNames]*value
	p.choose(&has, number)
	for n, v := range has[:len(p.names)] {
		switch {
		case v == nil && values[n] != nil:
			return fmt.Sprintf("%s: the variant has no such parameter", p.names[n])
		case v != nil:
			if what := p.checkValue(v, values[n]); what != "" {
				return p.names[n] + ": " + what
			}
		}
	}
	return ""
}

// IsConstant reports whether a parameter has the same value in a variant, whatever the row.
func (p *Plan) IsConstant(number int64, param int) bool {
	var has [maxNames]*value
	p.choose(&has, number)
	return has[param] != nil && has[param].constant
}

// blockOf returns the block that has a variant.
func (p *Plan) blockOf(number int64) *block {
	low, high := 0, len(p.blocks)
	for high-low > 1 {
		if mid := (low + high) / 2; p.blocks[mid].first < number {
			low = mid
		} else {
			high = mid
		}
	}
	return &p.blocks[low]
}

// checkValue says what is wrong with what a value was made.
func (p *Plan) checkValue(v *value, got []byte) string {
	allow := p.allow[v.param]
	switch {
	case v.constant && !bytes.Equal(got, v.made.value):
		return fmt.Sprintf("want %q, have %q", v.made.value, got)
	case !v.constant && got == nil && len(v.parts) > 1:
		return fmt.Sprintf("is lacking, and %q is not only a cell", v.text)
	case allow != nil && !allow.has(got):
		return fmt.Sprintf("%.100q is outside the vocabulary", got)
	case got != nil && len(canon.Trim(got)) == 0:
		return "is empty"
	}
	return ""
}
