package source

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// How values that are not text are written in a cell: integers in decimal; floating point
// numbers with the fewest digits that are read back as the same number, and with an exponent
// from 1e21 on and below 1e-4; Booleans as true and false; dates as YYYY-MM-DD; times of day as
// hh:mm:ss with as many decimals as needed; timestamps as RFC 3339 in UTC, or without the Z if
// they have no zone; decimals with all their decimals; UUIDs in the canonical form of RFC 9562. NaN,
// with which data frames leave a cell blank, is a blank cell.

func appendFloat(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) {
		return dst
	}
	format := byte('g')
	if a := math.Abs(v); a >= 1e6 && a < 1e21 { // often an integer; g would write an exponent
		format = 'f'
	}
	return strconv.AppendFloat(dst, v, format, -1, bits)
}

// half decodes a floating point number of 16 bits. (The library gets the smallest ones wrong.)
func half(bits uint16) float64 {
	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)
	v := math.Ldexp(fraction, -24)
	switch {
	case exponent == 0x1f && fraction != 0:
		v = math.NaN()
	case exponent == 0x1f:
		v = math.Inf(1)
	case exponent > 0:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if bits>>15 == 1 {
		v = -v
	}
	return v
}

func appendTimestamp(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, time.RFC3339Nano)
}

// appendLocal writes a timestamp without a zone.
func appendLocal(dst []byte, t time.Time) []byte {
	dst = appendTimestamp(dst, t)
	return dst[:len(dst)-len("Z")]
}

// appendDate writes a day, counted from 1970-01-01.
func appendDate(dst []byte, days int64) []byte {
	return time.Unix(days*86400, 0).UTC().AppendFormat(dst, time.DateOnly)
}

// appendTime writes a time of day, which is n units after midnight. The next midnight is 24:00:00,
// as in databases.
func appendTime(dst []byte, n int64, unit time.Duration) []byte {
	if time.Duration(n)*unit == 24*time.Hour {
		return append(dst, "24:00:00"...)
	}
	return time.Unix(0, 0).UTC().Add(time.Duration(n)*unit).AppendFormat(dst, "15:04:05.999999999")
}

// sinceEpoch returns the time n units after the start of 1970, without overflow on the way.
func sinceEpoch(n int64, unit time.Duration) time.Time {
	per := int64(time.Second / unit)
	return time.Unix(n/per, n%per*int64(unit))
}

func appendInt96(dst []byte, nanos uint64, julianDay uint32) []byte {
	const epoch = 2440588 // the Julian day that starts 1970
	return appendTimestamp(dst, time.Unix((int64(julianDay)-epoch)*86400, int64(nanos)))
}

// appendDecimal writes unscaled / 10^scale. It panics on a scale or a number that only damage can
// make: writing a number of many megabytes would take hours.
func appendDecimal(dst []byte, unscaled *big.Int, scale int) []byte {
	if scale < -1000 || scale > 1000 {
		panic(fmt.Sprintf("a decimal of scale %d", scale))
	}
	const most = 3322 // of 1000 digits
	if n := unscaled.BitLen(); n > most {
		panic(fmt.Sprintf("a decimal of %d bits", n))
	}
	digits := new(big.Int).Abs(unscaled).String()
	if unscaled.Sign() < 0 {
		dst = append(dst, '-')
	}
	if scale <= 0 {
		dst = append(dst, digits...)
		if unscaled.Sign() != 0 {
			dst = append(dst, strings.Repeat("0", -scale)...)
		}
		return dst
	}
	digits = strings.Repeat("0", max(scale+1-len(digits), 0)) + digits
	point := len(digits) - scale
	return append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
}

// twosComplement reads a big-endian signed integer.
func twosComplement(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

func appendUUID(dst, b []byte) []byte {
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:16]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}
