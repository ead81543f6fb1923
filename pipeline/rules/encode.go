package rules

import (
	"bytes"
	"cmp"
	"math/bits"
)

// Parameters in a record of a sort are bytes in the order of [Compare]. No encoding is the
// beginning of another.
//
//	owner   FF: none; otherwise its bytes and 00
//	expiry  00: none; 01 and a time; 02 and seconds: 5 bytes
//	limit   absent: none; otherwise 18 less its length in bytes, 1 to 8, and the number
//	type    00 PERMANENT, 01 none, 02 TEMPORARY
//
// Numbers are big-endian and inverted, so the highest comes first. A time counts from the year
// 1. A row without parameters has three bytes.
const (
	noOwner   = 0xff // in no UTF-8
	ownerEnd  = 0
	wideTime  = 5
	limitBase = 0x18

	year1     = -62135596800 // Unix time of 0001-01-01T00:00:00Z
	year10000 = 253402300800
)

// typeRank is the position of each type in the order of rows.
var typeRank = [...]byte{NoType: 1, Permanent: 0, Temporary: 2}

// typeAt is the inverse of typeRank.
var typeAt = [...]Type{Permanent, NoType, Temporary}

// Append appends the parameters without Ref, whose cell is one of the carried cells of a record.
// [Params.Cut] reads them. The bytes are ordered as Compare orders parameters.
func (p *Params) Append(dst []byte) []byte {
	if len(p.Owner) == 0 {
		dst = append(dst, noOwner)
	} else {
		dst = append(append(dst, p.Owner...), ownerEnd)
	}
	dst = append(dst, byte(p.Expiry.When))
	switch p.Expiry.When {
	case At:
		dst = appendInverted(dst, uint64(p.Expiry.Seconds-year1), wideTime)
	case Reckoned:
		dst = appendInverted(dst, uint64(p.Expiry.Seconds), wideTime)
	}
	if p.Limit > 0 {
		n := (bits.Len64(uint64(p.Limit)) + 7) / 8
		dst = appendInverted(append(dst, byte(limitBase-n)), uint64(p.Limit), n)
	}
	return append(dst, typeRank[p.Type])
}

// AppendRow appends what the row that made the link had appended, as the link is now. Without ok no
// row can have done it.
func (l *Link) AppendRow(dst []byte) (row []byte, ok bool) {
	p := l.params()
	return p.Append(dst), l.Expiry.When == Never || l.Expiry.Seconds >= year1 && l.Expiry.Seconds < year10000
}

func appendInverted(dst []byte, v uint64, n int) []byte {
	for n--; n >= 0; n-- {
		dst = append(dst, ^byte(v>>(8*n)))
	}
	return dst
}

func cutInverted(rec []byte, n int) (v int64, rest []byte) {
	for _, b := range rec[:n] {
		v = v<<8 | int64(^b)
	}
	return v, rec[n:]
}

// Cut splits off what Append wrote, and makes p what it was. The results refer to rec.
func (p *Params) Cut(rec []byte) (rest []byte) {
	*p = Params{}
	if rec[0] == noOwner {
		rec = rec[1:]
	} else {
		n := bytes.IndexByte(rec, ownerEnd)
		p.Owner, rec = rec[:n:n], rec[n+1:]
	}
	if p.Expiry.When, rec = When(rec[0]), rec[1:]; p.Expiry.When != Never {
		p.Expiry.Seconds, rec = cutInverted(rec, wideTime)
	}
	if p.Expiry.When == At {
		p.Expiry.Seconds += year1
	}
	if n := limitBase - int(rec[0]); n <= 8 {
		p.Limit, rec = cutInverted(rec[1:], n)
	}
	p.Type = typeAt[rec[0]]
	return rec[1:]
}

// Split splits off what Append wrote, as it is.
func Split(rec []byte) (encoded, rest []byte) {
	var p Params
	rest = p.Cut(rec)
	n := len(rec) - len(rest)
	return rec[:n:n], rest
}

// Compare orders the rows of an identity by their parameters, without Ref (rule 2).
func Compare(a, b *Params) int {
	return cmp.Or(
		lastIf(len(a.Owner) == 0, len(b.Owner) == 0),
		bytes.Compare(a.Owner, b.Owner),
		cmp.Compare(a.Expiry.When, b.Expiry.When),
		cmp.Compare(b.Expiry.Seconds, a.Expiry.Seconds),
		lastIf(a.Limit != 0, b.Limit != 0),
		cmp.Compare(b.Limit, a.Limit),
		cmp.Compare(typeRank[a.Type], typeRank[b.Type]),
	)
}

// lastIf orders what is not so before what is.
func lastIf(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
