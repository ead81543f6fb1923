package columnar

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// FuzzRuns compares checkRuns with the decoder, whose memory it bounds: runs that it
// accepts have as many values as it was told.
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
		if checkRuns(runs, e.BitWidth, int(n)) != nil {
			return
		}
		levels, err := e.DecodeLevels(nil, runs)
		if err != nil || len(levels) < int(n) || len(levels) > int(n)+runSlack {
			t.Fatalf("%d levels for %d, %v", len(levels), n, err)
		}
	})
}

// A run of packed bits counts its values in eights, also where their number is
// nearly that of the largest page.
func TestPackedRuns(t *testing.T) {
	for n, good := range map[int]bool{mostValues / 8: true, mostValues: false, mostValues + 1: false, mostValues + runSlack: false} {
		runs := binary.AppendUvarint(nil, uint64(n)<<1|1)
		if err := checkRuns(runs, 0, mostValues); (err == nil) != good {
			t.Errorf("%d eights: %v", n, err)
		}
		if err := checkRuns(append(runs, 1), 1, mostValues); err == nil {
			t.Errorf("%d eights in a byte: no error", n)
		}
	}
}

// Booleans that are written as runs are handed to the decoder as bits: it takes a run of
// so many bits for one of whole bytes.
func TestBooleanRuns(t *testing.T) {
	const (
		levels = "\x02\x00\x2c\x01"                 // a null, 22 values
		runs   = "\x06\x01\x04\x00\x03\xa5\x12\xff" // 3 that are true, 2 that are not, 8 bits, 9 true
		bits   = "\xa7\xf4\x3f"
	)
	for _, tt := range []struct {
		name         string
		header       format.PageHeader
		before, runs string
		good         bool
	}{
		{"version 1", format.PageHeader{Type: format.DataPage}, "\x04\x00\x00\x00" + levels, runs, true},
		{"version 2", format.PageHeader{Type: format.DataPageV2}, levels, runs, true},
		{"too few", format.PageHeader{Type: format.DataPageV2}, levels, runs[:len(runs)-2] + "\x10\xff", false},
	} {
		h := &tt.header
		v1, v2 := &h.DataPageHeader.V, &h.DataPageHeaderV2.V
		v1.NumValues, v1.Encoding, v1.DefinitionLevelEncoding = 23, format.RLE, format.RLE
		v2.NumValues, v2.Encoding, v2.DefinitionLevelsByteLength = 23, format.RLE, int32(len(levels))
		p := &pages{leaf: &leaf{kind: parquet.Boolean, defined: 1}, inflaters: &inflaters{}}
		body := tt.before + "\x08\x00\x00\x00" + tt.runs
		h.UncompressedPageSize = int32(len(body))
		page, err := p.decompress(h, []byte(body))
		if !tt.good {
			if err == nil || err.Error() != "its values: 21, where there should be 22" {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil || string(page) != tt.before+bits || h.Type == format.DataPage && v1.Encoding != format.Plain || h.Type == format.DataPageV2 && v2.Encoding != format.Plain {
			t.Errorf("%s: %x, %v", tt.name, page, err)
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

// A page that has fewer values than it says is an error: the decoder would read on into what
// lay in memory before, or take the rest for the first value of the dictionary.
func TestFewerValues(t *testing.T) {
	ints, _ := new(delta.BinaryPackedEncoding).EncodeInt32(nil, []int32{5, 7, 1000})
	ids, _ := new(delta.ByteArrayEncoding).EncodeFixedLenByteArray(nil, []byte("aabb"), 2)
	for _, tt := range []struct {
		name     string
		leaf     leaf
		encoding format.Encoding
		values   []byte
		n        int
		good     bool
	}{
		{"integers", leaf{kind: parquet.Int32, width: 4}, format.DeltaBinaryPacked, ints, 3, true},
		{"fewer integers", leaf{kind: parquet.Int32, width: 4}, format.DeltaBinaryPacked, ints, 4, false},
		{"cut integers", leaf{kind: parquet.Int32, width: 4}, format.DeltaBinaryPacked, ints[:10], 3, false},
		{"fixed", leaf{kind: parquet.FixedLenByteArray, width: 2}, format.DeltaByteArray, ids, 2, true},
		{"shorter fixed", leaf{kind: parquet.FixedLenByteArray, width: 3}, format.DeltaByteArray, ids, 2, false},
		{"only nulls", leaf{kind: parquet.ByteArray, width: 4}, format.RLEDictionary, nil, 0, true},
		{"no indexes", leaf{kind: parquet.ByteArray, width: 4}, format.RLEDictionary, nil, 2, false},
		{"no indexes but their width", leaf{kind: parquet.ByteArray, width: 4}, format.RLEDictionary, []byte{1}, 2, false},
	} {
		p := &pages{leaf: &tt.leaf, dict: true}
		if _, err := p.checkValues(tt.encoding, tt.values, tt.n); (err == nil) != tt.good {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
