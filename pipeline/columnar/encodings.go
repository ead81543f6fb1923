package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// With encodings of Parquet that write something once for many values (Encodings.md of
// the format), a few bytes can make a decoder take any memory.

// plainDictionary is what old writers call the encoding of a dictionary, and of
// indexes into one.
const plainDictionary format.Encoding = 2

// A leaf is what a column's pages hold.
type leaf struct {
	kind     parquet.Kind
	width    int // bytes of a value; of a string, those of its length; 0: less than one
	repeated int // the highest repetition level
	defined  int // the highest definition level
}

func width(t parquet.Type) int {
	switch t.Kind() {
	case parquet.Int32, parquet.Float, parquet.ByteArray:
		return 4
	case parquet.Int64, parquet.Double:
		return 8
	case parquet.Int96:
		return 12
	case parquet.FixedLenByteArray:
		return t.Length()
	}
	return 0
}

// runSlack is how many more values than a page has its last run may stand for.
const runSlack = 504 + 8

// check checks a page, which is decompressed.
func (p *pages) check(h *format.PageHeader, page []byte) error {
	switch h.Type {
	case format.DictionaryPage:
		d := &h.DictionaryPageHeader.V
		if d.Encoding != format.Plain && d.Encoding != plainDictionary {
			return fmt.Errorf("a dictionary encoded as %s", d.Encoding)
		}
		return p.checkPlain(page, int(d.NumValues))
	case format.DataPage:
		return p.checkDataPage(&h.DataPageHeader.V, page)
	case format.DataPageV2:
		return p.checkDataPageV2(&h.DataPageHeaderV2.V, page)
	}
	return nil
}

func (p *pages) checkDataPage(h *format.DataPageHeader, page []byte) error {
	n := int(h.NumValues)
	page, _, err := prefixedLevels(page, h.RepetitionLevelEncoding, p.repeated, n)
	if err != nil {
		return fmt.Errorf("its repetition levels: %w", err)
	}
	page, values, err := prefixedLevels(page, h.DefinitionLevelEncoding, p.defined, n)
	if err != nil {
		return fmt.Errorf("its definition levels: %w", err)
	}
	return p.checkValues(h.Encoding, page, values)
}

func (p *pages) checkDataPageV2(h *format.DataPageHeaderV2, page []byte) error {
	n := int(h.NumValues)
	repeated, page := page[:h.RepetitionLevelsByteLength], page[h.RepetitionLevelsByteLength:]
	defined, page := page[:h.DefinitionLevelsByteLength], page[h.DefinitionLevelsByteLength:]
	if _, err := checkLevels(repeated, p.repeated, n); err != nil {
		return fmt.Errorf("its repetition levels: %w", err)
	}
	values, err := checkLevels(defined, p.defined, n)
	if err != nil {
		return fmt.Errorf("its definition levels: %w", err)
	}
	h.NumNulls = int32(n - values) // the decoder goes by it, where others go by the levels
	return p.checkValues(h.Encoding, page, values)
}

// prefixedLevels is checkLevels of the levels that a page of version 1 begins with, after
// their length. It returns what follows them; there are none if the highest is 0.
func prefixedLevels(page []byte, encoding format.Encoding, highest, n int) (rest []byte, there int, err error) {
	if highest == 0 {
		return page, n, nil
	}
	levels, rest, err := prefixed(page)
	switch {
	case err != nil:
	case encoding != format.RLE:
		err = fmt.Errorf("%s is not supported", encoding)
	default:
		there, err = checkLevels(levels, highest, n)
	}
	return rest, there, err
}

// checkLevels checks levels of n values and returns how many have the highest: of
// definition levels, those that are not null.
func checkLevels(levels []byte, highest, n int) (int, error) {
	if highest == 0 {
		return n, nil
	}
	return checkRuns(levels, bits.Len(uint(highest)), n, uint32(highest))
}

// checkPlain checks that there are n values and no more bytes, such as the levels of a
// column that is said to need none. (Some writers add one to Booleans.)
func (p *pages) checkPlain(values []byte, n int) error {
	if p.kind != parquet.ByteArray {
		if p.width > 0 && int64(n)*int64(p.width) != int64(len(values)) || p.width == 0 && (n > 8*len(values) || len(values) > (n+7)/8+1) {
			return fmt.Errorf("%d values in %d bytes", n, len(values))
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

// checkValues checks the values of a data page, of which there are n.
func (p *pages) checkValues(encoding format.Encoding, values []byte, n int) error {
	err := p.checkEncoding(encoding, values, n)
	if err == nil && !dictionary(encoding) && int64(n)*int64(p.width) > 4*mostPage {
		err = fmt.Errorf("%d values of %d bytes each, more than %d in all", n, p.width, int64(4*mostPage))
	}
	if err != nil {
		return fmt.Errorf("its values: %w", err)
	}
	return nil
}

func dictionary(e format.Encoding) bool {
	return e == plainDictionary || e == format.RLEDictionary
}

func (p *pages) checkEncoding(encoding format.Encoding, values []byte, n int) error {
	bytes := p.kind == parquet.ByteArray
	integer := p.kind == parquet.Int32 || p.kind == parquet.Int64
	fixed := p.kind == parquet.FixedLenByteArray
	switch {
	case p.kind < 0: // Null; the decoder's own writer counts each as a value if they may not be null
		if n > 0 && len(values) > 0 {
			return fmt.Errorf("there are %d in a column of nulls alone", n)
		}
		return nil
	case encoding == format.Plain, encoding == format.ByteStreamSplit && !bytes && p.width > 0:
		return p.checkPlain(values, n)
	case dictionary(encoding) && !p.dict:
		return errors.New("there is no dictionary before them")
	case dictionary(encoding) && len(values) == 0: // of nulls alone
		return nil
	case dictionary(encoding):
		_, err := checkRuns(values[1:], int(values[0]), n, 0)
		return err
	case encoding == format.RLE && p.kind == parquet.Boolean:
		runs, _, err := prefixed(values)
		if err == nil {
			_, err = checkRuns(runs, 1, n, 0)
		}
		p.misread = values
		return err
	case encoding == format.DeltaBinaryPacked && integer:
		_, wide, err := skipDelta(values, n)
		if wide && p.kind == parquet.Int32 {
			p.misread = values
		}
		return err
	case encoding == format.DeltaLengthByteArray && bytes:
		rest, size, err := lengths(values, n)
		if err == nil && size > int64(len(rest)) {
			err = fmt.Errorf("%d bytes, of which there are %d", size, len(rest))
		}
		return err
	case encoding == format.DeltaByteArray && (bytes || fixed):
		rest, prefixes, err := lengths(values, n)
		if err != nil {
			return err
		}
		_, suffixes, err := lengths(rest, n)
		if err == nil && prefixes+suffixes > mostPage {
			err = fmt.Errorf("%d bytes, more than %d", prefixes+suffixes, mostPage)
		}
		return err
	}
	return fmt.Errorf("%s as %s is not supported", p.kind, encoding)
}

// plain returns the page with its values plain if the decoder would get them wrong:
// integers of 32 bits that are written as if they had 64, as DuckDB does where their
// differences do not fit, and runs of Booleans, which it takes for as many bytes as they
// have bits.
func (p *pages) plain(h *format.PageHeader, page []byte) ([]byte, error) {
	if p.misread == nil {
		return page, nil
	}
	levels, values := page[:len(page)-len(p.misread)], p.misread
	p.misread = nil
	h.DataPageHeader.V.Encoding, h.DataPageHeaderV2.V.Encoding = format.Plain, format.Plain
	if p.kind == parquet.Boolean {
		runs, _, _ := prefixed(values) // they were checked
		bools, err := (&rle.Encoding{BitWidth: 1}).DecodeLevels(nil, runs)
		page = append(p.hold(len(levels) + (len(bools)+7)/8)[:0], levels...)
		for i, v := range bools {
			if i%8 == 0 {
				page = append(page, 0)
			}
			page[len(page)-1] |= (v & 1) << (i % 8)
		}
		return page, err
	}
	integers, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, values)
	page = append(p.hold(len(levels) + 4*len(integers))[:0], levels...)
	for _, v := range integers {
		page = binary.LittleEndian.AppendUint32(page, uint32(v))
	}
	return page, err
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

// checkRuns checks that runs, in the hybrid of run lengths and packed bits, stand for
// n values of so many bits, the last perhaps for a few more. (Behind levels of a column
// that is said to need none, more runs would follow.) It returns how many of the n are
// wanted; with wanted 0 it does not look.
func checkRuns(runs []byte, width, n int, wanted uint32) (found int, err error) {
	if width > 32 {
		return 0, fmt.Errorf("values of %d bits", width)
	}
	seen := 0
	for left := uint64(n) + runSlack; len(runs) > 0; {
		head, size := binary.Uvarint(runs)
		if size <= 0 {
			return 0, io.ErrUnexpectedEOF
		}
		runs = runs[size:]
		values, length, packed := head>>1, uint64(width+7)/8, head&1 == 1
		if values == 0 {
			continue
		}
		if packed && values <= left {
			values, length = 8*values, values*uint64(width)
		}
		if values > left || seen == n {
			return 0, fmt.Errorf("a run of %d values, where there should be %d", values, n-seen)
		}
		if length > uint64(len(runs)) {
			return 0, io.ErrUnexpectedEOF
		}
		left -= values
		here := min(int(values), n-seen)
		switch {
		case wanted == 0:
		case packed:
			found += countPacked(runs[:length], width, here, wanted)
		case width <= 8 && uint32(runs[0]) == wanted:
			found += here
		}
		seen += here
		runs = runs[length:]
	}
	if seen < n {
		return 0, fmt.Errorf("%d, where there should be %d", seen, n)
	}
	return found, nil
}

// countPacked counts the wanted among n values of width bits, at most 8.
func countPacked(b []byte, width, n int, wanted uint32) (found int) {
	if width == 1 {
		for ; n >= 8; n -= 8 {
			found += bits.OnesCount8(b[0])
			b = b[1:]
		}
	}
	for i := range n {
		at := i * width
		v := uint32(b[at/8]) >> (at % 8)
		if at%8+width > 8 {
			v |= uint32(b[at/8+1]) << (8 - at%8)
		}
		if v&(1<<width-1) == wanted {
			found++
		}
	}
	return found
}

// lengths returns the sum of lengths that are delta encoded, and what follows
// them.
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

// skipDelta moves past at most n integers that are delta encoded: the size of a
// block in values, its number of small blocks, the number of values, the first;
// then blocks, each of the least delta, the widths of its small blocks, and those.
// Some of them are wide if they take more than 32 bits.
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
	if left > uint64(n) {
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
