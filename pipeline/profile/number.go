package profile

import (
	"bytes"
	"strconv"
)

// mostDigits is how many digits a number may have that any program keeps exactly.
const mostDigits = 15

// AppendNumber appends a number that is the name of something, such as a code: its value, if it is
// whole and has at most 15 digits, so that 1001.0 and 1.001e3 are 1001; otherwise as it is written. Data
// frames make such numbers of a column in which a cell is blank.
func AppendNumber(dst, number []byte) []byte {
	digits, sign := bytes.CutPrefix(number, []byte("-"))
	exponent := 0
	if e := bytes.IndexAny(digits, "eE"); e >= 0 {
		var err error
		if exponent, err = strconv.Atoi(string(digits[e+1:])); err != nil {
			return append(dst, number...)
		}
		far := len(number) + mostDigits // no digits make up for more
		exponent = max(-far, min(exponent, far))
		digits = digits[:e]
	} else if bytes.IndexByte(digits, '.') < 0 {
		return append(dst, number...)
	}
	whole, fraction, _ := bytes.Cut(digits, []byte("."))
	digits = append(bytes.Clone(whole), fraction...)
	exponent -= len(fraction)
	if rest := bytes.TrimRight(digits, "0"); exponent < 0 {
		cut := min(len(digits)-len(rest), -exponent)
		digits, exponent = digits[:len(digits)-cut], exponent+cut
	}
	if digits = bytes.TrimLeft(digits, "0"); len(digits) == 0 {
		return append(dst, '0')
	}
	if rest := bytes.TrimLeft(digits, "0123456789"); exponent < 0 || exponent > mostDigits || len(digits)+exponent > mostDigits || len(rest) > 0 {
		return append(dst, number...)
	}
	if sign {
		dst = append(dst, '-')
	}
	return append(append(dst, digits...), bytes.Repeat([]byte{'0'}, exponent)...)
}
