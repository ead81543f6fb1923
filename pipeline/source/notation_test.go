package source

import (
	"math/big"
	"testing"
	"time"
)

func TestNotation(t *testing.T) {
	for _, tt := range []struct {
		got  []byte
		want string
	}{
		{appendInt96(nil, 3723*1e9+4, 2440588), "1970-01-01T01:02:03.000000004Z"},
		{appendInt96(nil, 0, 2440587), "1969-12-31T00:00:00Z"},
		{appendDate(nil, -719162), "0001-01-01"},
		{appendTimestamp(nil, sinceEpoch(-1, time.Nanosecond)), "1969-12-31T23:59:59.999999999Z"},
		{appendTimestamp(nil, sinceEpoch(4611686018427, time.Millisecond)), "2116-02-20T23:53:38.427Z"},
		{appendTime(nil, 86399999999, time.Microsecond), "23:59:59.999999"},
		{appendTime(nil, 86400000, time.Millisecond), "24:00:00"},
		{appendDecimal(nil, big.NewInt(-5), 0), "-5"},
		{appendDecimal(nil, big.NewInt(12), 3), "0.012"},
		{appendDecimal(nil, big.NewInt(-1200), 2), "-12.00"},
		{appendDecimal(nil, big.NewInt(12), -2), "1200"},
		{appendDecimal(nil, big.NewInt(0), -2), "0"},
		{appendDecimal(nil, twosComplement([]byte{0xff, 0x00}), 1), "-25.6"},
		{appendFloat(nil, 0.1, 32), "0.1"},
		{appendFloat(nil, 1234567, 64), "1234567"},
		{appendFloat(nil, -1e6, 64), "-1000000"},
		{appendFloat(nil, 1234567.5, 64), "1234567.5"},
		{appendFloat(nil, 16777216, 32), "16777216"},
		{appendFloat(nil, 1e20, 64), "100000000000000000000"},
		{appendFloat(nil, 1e21, 64), "1e+21"},
	} {
		if string(tt.got) != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

// A decimal may have 1000 digits, and its scale 1000 more or fewer; it is damage that
// asks for more.
func TestDecimalLimits(t *testing.T) {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(1000), nil)
	for _, tt := range []struct {
		unscaled *big.Int
		scale    int
		good     bool
	}{
		{new(big.Int).Sub(most, big.NewInt(1)), 1000, true},
		{new(big.Int).Sub(big.NewInt(1), most), -1000, true},
		{most, 1001, false},
		{most, -1001, false},
		{new(big.Int).Lsh(most, 1), 0, false},
		{new(big.Int).Lsh(new(big.Int).Neg(most), 1), 0, false},
	} {
		got := func() (p any) {
			defer func() { p = recover() }()
			appendDecimal(nil, tt.unscaled, tt.scale)
			return nil
		}()
		if (got == nil) != tt.good {
			t.Errorf("%d bits, scale %d: %v", tt.unscaled.BitLen(), tt.scale, got)
		}
	}
}
