package rules

import (
	"bytes"
	"strconv"
)

// AppendParts appends the parts of a row's identity as they stand in the hash input, between the
// workspace and the salt (codegen/README.md, "Identity parts"). ByURL nothing is appended.
func (i Identity) AppendParts(dst []byte, p *Params) []byte {
	switch i {
	case ByParams:
		if p.Expiry.When != Never {
			dst = p.Expiry.Append(append(dst, "|e="...))
		}
		if p.Limit > 0 {
			dst = strconv.AppendInt(append(dst, "|m="...), p.Limit, 10)
		}
	case ByRow:
		dst = appendEscaped(append(dst, "|r="...), p.Ref)
	}
	return dst
}

// PartsThat returns the parts that fit: those of no identity but a URL, or of a link whose expiry, use limit
// and reference are still those that it was made with. ok: there are such.
func PartsThat(p *Params, fit func(parts []byte) bool) (parts []byte, by Identity, ok bool) {
	for by = range ByRow + 1 {
		if parts = by.AppendParts(nil, p); fit(parts) {
			return parts, by, true
		}
	}
	return nil, ByURL, false
}

// AppendRef appends the reference of a row ByRow, as the store has it: the cell, or if that is
// empty the name of the source, a colon and the number of the record, from 1.
func AppendRef(dst, cell []byte, source string, row int64) []byte {
	if len(cell) > 0 {
		return append(dst, cell...)
	}
	return strconv.AppendInt(append(append(dst, source...), ':'), row, 10)
}

// appendEscaped appends a text with %, | and control bytes as %XX.
func appendEscaped(dst, text []byte) []byte {
	const hex = "0123456789ABCDEF"
	for _, b := range text {
		if b < ' ' || b == '%' || b == '|' || b == 0x7f {
			dst = append(dst, '%', hex[b>>4], hex[b&15])
		} else {
			dst = append(dst, b)
		}
	}
	return dst
}

// RefOf returns the reference, as AppendRef has it, of the parts of an identity ByRow.
func RefOf(parts []byte) []byte {
	escaped := parts[len("|r="):]
	if bytes.IndexByte(escaped, '%') < 0 {
		return escaped
	}
	ref := make([]byte, 0, len(escaped))
	for i := 0; i < len(escaped); i++ {
		b := escaped[i]
		if b == '%' {
			n, _ := strconv.ParseUint(string(escaped[i+1:i+3]), 16, 8)
			b, i = byte(n), i+2
		}
		ref = append(ref, b)
	}
	return ref
}

// AppendKey appends an identity as one text: the canonical URL, if it has no parts. Texts of
// identities are in the order in which codes are given out (rule 1), which that of the hash input is
// not: so they can stand for URLs in package assign. [CutKey] splits them.
func AppendKey(dst, canonical, parts []byte) []byte {
	dst = append(dst, canonical...)
	if len(parts) > 0 {
		dst = append(append(dst, keyEnd), parts...)
	}
	return dst
}

// CutKey returns what AppendKey was given. The results refer to the key.
func CutKey(key []byte) (canonical, parts []byte) {
	canonical, parts, _ = bytes.Cut(key, []byte{keyEnd})
	return canonical, parts
}

// keyEnd is below all bytes of a canonical URL.
const keyEnd = 0
