package campaign

import (
	"bytes"
	"fmt"

	"github.com/linkforge/bulk/canon"
)

// Values reads the values of the parameters out of the URL of a variant. They are appended to values, in
// the order of the names; nil: the variant lacks it. The result is valid until buf changes, to which
// their texts are appended.
func (p *Plan) Values(values [][]byte, buf, url []byte) (_ [][]byte, _ []byte) {
	start := len(values)
	for range p.names {
		values = append(values, nil)
	}
	url, _, _ = bytes.Cut(url, []byte("#"))
	_, query, _ := bytes.Cut(url, []byte("?"))
	for len(query) > 0 {
		var piece []byte
		piece, query, _ = bytes.Cut(query, []byte("&"))
		name, value, ok := bytes.Cut(piece, []byte("="))
		n, known := p.byName[string(name)]
		if !ok || !known {
			continue
		}
		at := len(buf)
		buf = appendUnescaped(buf, value)
		values[start+n] = buf[at:len(buf):len(buf)]
	}
	return values, buf
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
	b := p.blockOf(number)
	number -= b.first + 1
	has := make([]bool, len(p.names))
	for _, digits := range [2][]digit{p.common, b.own} {
		for d := len(digits) - 1; d >= 0; d-- {
			n := int64(len(digits[d].values))
			v := &p.values[digits[d].values[number%n]]
			number /= n
			has[v.param] = true
			if what := p.checkValue(v, values[v.param]); what != "" {
				return p.names[v.param] + ": " + what
			}
		}
	}
	for n, value := range values {
		if value != nil && !has[n] {
			return fmt.Sprintf("%s: the variant has no such parameter", p.names[n])
		}
	}
	return ""
}

// IsConstant reports whether a parameter has the same value in a variant, whatever the row.
func (p *Plan) IsConstant(number int64, param int) bool {
	b := p.blockOf(number)
	number -= b.first + 1
	for _, digits := range [2][]digit{p.common, b.own} {
		for d := len(digits) - 1; d >= 0; d-- {
			n := int64(len(digits[d].values))
			if digits[d].param == param {
				return p.values[digits[d].values[number%n]].constant
			}
			number /= n
		}
	}
	return false
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
