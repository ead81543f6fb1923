package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// Some encodings of Parquet write a value once for many (Encodings.md of the format): a few
// bytes can make a decoder take any memory.

// plainDictionary is what old writers call the encoding of a dictionary, and of
// indexes into one.
const plainDictionary format.Encoding = 2

// A leaf is what a column's pages hold.
type leaf struct {
	kind     parquet.Kind
	width    int  // bytes of a value, or of the length of a string; without meaning for a Boolean
	repeated bool // a row may have several of its values
	defined  int  // the highest definition level, which is that of values that are not null
}

// widths are those of all kinds but FixedLenByteArray, whose type has its own.
var widths = map[parquet.Kind]int{
	parquet.Int32: 4, parquet.Float: 4, parquet.ByteArray: 4, parquet.Int64: 8, parquet.Double: 8, parquet.Int96: 12,
}

// runSlack is how many values the last run of a page may have beyond the page's.
const runSlack = 504 + 8

// check checks a decompressed page and returns what the decoder shall read instead of it.
// It changes the header to match.
func (p *pages) check(h *format.PageHeader, page []byte) ([]byte, error) {
	if p.repeated {
		return nil, errors.New("its column may have several values a row, which are not read")
	}
	levels, values, err := []byte(nil), page, error(nil)
	n, encoding := 0, &h.DataPageHeader.V.Encoding
	switch v1, v2, dict := &h.DataPageHeader.V, &h.DataPageHeaderV2.V, &h.DictionaryPageHeader.V; h.Type {
	case format.DictionaryPage:
		if dict.Encoding != format.Plain && dict.Encoding != plainDictionary {
			return nil, fmt.Errorf("a dictionary encoded as %s", dict.Encoding)
		}
		return page, p.checkPlain(page, int(dict.NumValues))
	case format.DataPageV2:
		n, encoding = int(v2.NumValues), &v2.Encoding
		values = page[v2.RepetitionLevelsByteLength:]
		levels, values = values[:v2.DefinitionLevelsByteLength], values[v2.DefinitionLevelsByteLength:]
	case format.DataPage:
		if n = int(v1.NumValues); p.defined == 0 {
			break
		}
		if levels, values, err = prefixed(page); err == nil && v1.DefinitionLevelEncoding != format.RLE {
			err = fmt.Errorf("%s is not supported", v1.DefinitionLevelEncoding)
		}
	}
	there := n
	if p.defined > 0 && err == nil {
		there, err = p.notNull(levels, n)
	}
	if err != nil {
		return nil, fmt.Errorf("its definition levels: %w", err)
	}
	h.DataPageHeaderV2.V.NumNulls = int32(n - there) // other decoders count the levels, this one believes the header
	plain, err := p.checkValues(*encoding, values, there)
	if err != nil {
		return nil, fmt.Errorf("its values: %w", err)
	}
	if plain != nil {
		*encoding, page = format.Plain, slices.Concat(page[:len(page)-len(values)], plain)
	}
	return page, nil
}

// notNull returns how many of n definition levels are those of values that are not null.
func (p *pages) notNull(levels []byte, n int) (int, error) {
	e := rle.Encoding{BitWidth: bits.Len(uint(p.defined))}
	if err := checkRuns(levels, e.BitWidth, n); err != nil {
		return 0, err
	}
	all, err := e.DecodeLevels(p.hold(n+runSlack), levels)
	return bytes.Count(all[:min(n, len(all))], []byte{byte(p.defined)}), err
}

// checkPlain checks that there are n values and no further bytes. (Further bytes may be the
// levels of a column that was damaged into a required one. Some writers add a byte to
// Booleans.)
func (p *pages) checkPlain(values []byte, n int) error {
	if p.kind != parquet.ByteArray {
		least, more := int64(n)*int64(p.width), int64(0)
		if p.kind == parquet.Boolean {
			least, more = int64(n+7)/8, 1
		}
		if size := int64(len(values)); size < least || size > least+more {
			return fmt.Errorf("%d values in %d bytes", n, size)
		}
		return nil
	}
	there := 0
	for ; len(values) >= 4; there++ {
		length := int64(binary.LittleEndian.Uint32(values))
		if length > int64(len(values)-4) {
			return fmt.Errorf("one of %d bytes, of which there are %d", length, len(values)-4)
		}
		values = values[4+length:]
	}
	if there != n || len(values) > 0 {
		return fmt.Errorf("%d values and %d bytes more, where there should be %d values", there, len(values), n)
	}
	return nil
}

// checkValues checks the n values of a data page. If the decoder would get them wrong it
// returns them in the plain encoding, else nil. These are integers of 32 bits that are
// written as if they had 64, as DuckDB does if their differences do not fit, and runs of
// Booleans: the decoder takes each bit of a run for a byte.
func (p *pages) checkValues(encoding format.Encoding, values []byte, n int) (plain []byte, err error) {
	isBytes, fixed := p.kind == parquet.ByteArray, p.kind == parquet.FixedLenByteArray
	switch integer := p.kind == parquet.Int32 || p.kind == parquet.Int64; {
	case p.kind < 0: // Null; the decoder's own writer counts each as a value if they may not be null
		if n > 0 && len(values) > 0 {
			err = fmt.Errorf("there are %d in a column of nulls alone", n)
		}
		return nil, err
	case encoding == format.Plain, encoding == format.ByteStreamSplit && !isBytes && p.kind != parquet.Boolean:
		return nil, p.checkPlain(values, n)
	case encoding == plainDictionary, encoding == format.RLEDictionary:
		if !p.dict {
			return nil, errors.New("there is no dictionary before them")
		}
		width := 0 // if there are nulls alone
		if len(values) > 0 {
			width, values = int(values[0]), values[1:]
		}
		return nil, checkRuns(values, width, n)
	case encoding == format.RLE && p.kind == parquet.Boolean:
		return plainBooleans(values, n)
	case encoding == format.DeltaBinaryPacked && integer:
		_, wide, err := skipDelta(values, n)
		if err != nil || !wide || p.kind == parquet.Int64 {
			return nil, err
		}
		list, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, values)
		for _, v := range list {
			plain = binary.LittleEndian.AppendUint32(plain, uint32(v))
		}
		return plain, err
	case encoding == format.DeltaLengthByteArray && isBytes:
		rest, size, err := lengths(values, n)
		if err == nil && size > int64(len(rest)) {
			err = fmt.Errorf("%d bytes, of which there are %d", size, len(rest))
		}
		return nil, err
	case encoding == format.DeltaByteArray && (isBytes || fixed):
		rest, prefixes, err := lengths(values, n)
		if err != nil {
			return nil, err
		}
		_, suffixes, err := lengths(rest, n)
		switch size := prefixes + suffixes; {
		case err != nil:
		case size > mostPage:
			err = fmt.Errorf("%d bytes, more than %d", size, mostPage)
		case fixed && size != int64(n)*int64(p.width):
			err = fmt.Errorf("%d values in %d bytes", n, size)
		}
		return nil, err
	}
	return nil, fmt.Errorf("%s as %s is not supported", p.kind, encoding)
}

// plainBooleans returns n Booleans, which are written as runs, in 1 bit each.
func plainBooleans(values []byte, n int) ([]byte, error) {
	runs, _, err := prefixed(values)
	if err == nil {
		err = checkRuns(runs, 1, n)
	}
	if err != nil {
		return nil, err
	}
	list, err := (&rle.Encoding{BitWidth: 1}).DecodeLevels(nil, runs)
	plain := make([]byte, (n+7)/8)
	for i, v := range list[:min(n, len(list))] {
		plain[i/8] |= (v & 1) << (i % 8)
	}
	return plain, err
}

// prefixed cuts what has its length before it, in 4 bytes.
func prefixed(b []byte) (part, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; n > int64(len(b)) {
		return nil, nil, fmt.Errorf("%d bytes, of which there are %d", n, len(b))
	}
	return b[:n], b[n:], nil
}

// checkRuns checks that runs, in the hybrid of run lengths and packed bits, have n values of
// width bits; the last run may have a few more, and no run may follow it. (If one does, the
// first may be the levels of a column that was damaged into a required one.)
func checkRuns(runs []byte, width, n int) error {
	if width > 32 {
		return fmt.Errorf("values of %d bits", width)
	}
	left := n
	for len(runs) > 0 {
		head, size := binary.Uvarint(runs)
		if size <= 0 {
			return io.ErrUnexpectedEOF
		}
		runs = runs[size:]
		values, length, most := head>>1, uint64(width+7)/8, uint64(left+runSlack)
		if values == 0 {
			continue
		}
		if head&1 == 1 && values <= most { // packed, in eights
			values, length = 8*values, values*uint64(width)
		}
		if left <= 0 || values > most {
			return fmt.Errorf("a run of %d values, where there should be %d", values, max(left, 0))
		}
		if length > uint64(len(runs)) {
			return io.ErrUnexpectedEOF
		}
		left -= int(values)
		runs = runs[length:]
	}
	if left > 0 {
		return fmt.Errorf("%d, where there should be %d", n-left, n)
	}
	return nil
}

// lengths returns the sum of n delta encoded lengths, and what follows them.
func lengths(b []byte, n int) (rest []byte, sum int64, err error) {
	if rest, _, err = skipDelta(b, n); err != nil {
		return nil, 0, err
	}
	list, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, b[:len(b)-len(rest)])
	for _, length := range list {
		if length < 0 && err == nil {
			err = fmt.Errorf("a length of %d", length)
		}
		sum += int64(length)
	}
	return rest, sum, err
}

// skipDelta moves past n delta encoded integers. They begin with the number of values in a
// block, of small blocks in a block, of values in all, and with the first value. Blocks
// follow: the least delta, the width of each small block, the small blocks. The integers are
// wide if any takes more than 32 bits.
func skipDelta(b []byte, n int) (rest []byte, wide bool, err error) {
	var head [4]uint64
	for i := range head {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return nil, false, io.ErrUnexpectedEOF
		}
		head[i], b = v, b[size:]
	}
	block, small, left := head[0], head[1], head[2]
	if left != uint64(n) {
		return nil, false, fmt.Errorf("%d integers in a page of %d values", left, n)
	}
	if small == 0 || block > 1<<16 || small > block {
		return nil, false, fmt.Errorf("blocks of %d integers in %d parts", block, small)
	}
	each, wide := block/small, head[3] > math.MaxUint32 // it is zigzag
	for left -= min(left, 1); left > 0; {
		_, size := binary.Uvarint(b)
		if size <= 0 || uint64(len(b)-size) < small {
			return nil, false, io.ErrUnexpectedEOF
		}
		widths := b[size : size+int(small)]
		b = b[size+int(small):]
		for _, width := range widths {
			if width > 64 {
				return nil, false, fmt.Errorf("integers of %d bits", width)
			}
			wide = wide || width > 32
			if (min(left, each)*uint64(width)+7)/8 > uint64(len(b)) { // the rest may be missing
				return nil, false, io.ErrUnexpectedEOF
			}
			b = b[min(uint64(len(b)), each*uint64(width)/8):]
			if left -= min(left, each); left == 0 {
				break
			}
		}
	}
	return b, wide, nil
}
