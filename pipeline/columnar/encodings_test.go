package columnar

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
)

// FuzzRuns compares checkRuns with the decoder, which takes the memory that it is
// there to bound: what it accepts has as many values as it says, and as many of
// the highest.
func FuzzRuns(f *testing.F) {
	for _, highest := range []byte{1, 2, 7, 255} {
		levels := bytes.Repeat([]byte{0, highest, highest, highest / 2, highest, 0, 1}, 20)
		levels = append(levels, bytes.Repeat([]byte{highest}, 1000)...)
		e := rle.Encoding{BitWidth: bits.Len8(highest)}
		runs, err := e.EncodeLevels(nil, levels)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(runs, highest, uint16(len(levels)))
		f.Add(runs, highest, uint16(len(levels)-3))
	}
	f.Fuzz(func(t *testing.T, runs []byte, highest byte, n uint16) {
		if highest == 0 {
			return
		}
		e := rle.Encoding{BitWidth: bits.Len8(highest)}
		found, err := checkRuns(runs, e.BitWidth, int(n), uint32(highest))
		if err != nil {
			return
		}
		levels, err := e.DecodeLevels(nil, runs)
		if err != nil || len(levels) < int(n) || len(levels) > int(n)+runSlack {
			t.Fatalf("%d levels for %d, %v", len(levels), n, err)
		}
		if want := bytes.Count(levels[:n], []byte{highest}); found != want {
			t.Errorf("%d of the highest, not %d", want, found)
		}
	})
}

// A run of packed bits counts its values in eights, also where their number is
// nearly that of the largest page.
func TestPackedRuns(t *testing.T) {
	for n, good := range map[int]bool{mostValues / 8: true, mostValues: false, mostValues + 1: false, mostValues + runSlack: false} {
		runs := binary.AppendUvarint(nil, uint64(n)<<1|1)
		if _, err := checkRuns(runs, 0, mostValues, 0); (err == nil) != good {
			t.Errorf("%d eights: %v", n, err)
		}
		if _, err := checkRuns(append(runs, 1), 1, mostValues, 1); err == nil {
			t.Errorf("%d eights in a byte: no error", n)
		}
	}
}

// FuzzDelta compares lengths with the decoder of strings: what it says of them is
// what the decoder finds.
func FuzzDelta(f *testing.F) {
	var e delta.LengthByteArrayEncoding
	for _, n := range []int{0, 1, 2, 129, 1000} {
		offsets := []uint32{0}
		for i := range n {
			offsets = append(offsets, offsets[i]+uint32(i*i%57))
		}
		data, err := e.EncodeByteArray(nil, make([]byte, offsets[n]), offsets)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint16(n))
	}
	f.Add([]byte("\x80\x01\x04\x02\x00"+strings.Repeat("\xff", 10)+"\x01\x00\x00\x00\x00"), uint16(2)) // a number of too many bytes
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		rest, sum, err := lengths(data, int(n))
		if err != nil || sum > int64(len(rest)) {
			return
		}
		values, offsets, err := e.DecodeByteArray(nil, data, nil)
		if err != nil || len(offsets) > int(n)+1 || int64(len(values)) != sum {
			t.Errorf("%d bytes in %d values, not %d in %d, %v", len(values), len(offsets)-1, sum, n, err)
		}
	})
}
