package report

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sort"

	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// pageBytes ends a page of text, after the row with which its cells reach it.
const pageBytes = 1 << 20

// pageEnds returns where the pages of a column end. It depends on the rows alone,
// not on the parts.
func (g *group) pageEnds(column int) (pages []int) {
	row, filled := 0, 0
	for _, p := range g.parts {
		ends := p.block.cells[column].ends
		for from := p.from; from < p.to; {
			limit := int(ends[from]) + pageBytes - filled
			n := sort.Search(p.to-from, func(i int) bool { return int(ends[from+i+1]) >= limit })
			if n == p.to-from {
				filled += int(ends[p.to] - ends[from])
				row += n
				break
			}
			row, from, filled = row+n+1, from+n+1, 0
			pages = append(pages, row)
		}
	}
	if len(pages) == 0 || pages[len(pages)-1] < row {
		pages = append(pages, row)
	}
	return pages
}

// An encodedPage is a page as it lies in the file.
type encodedPage struct {
	header      []byte
	content     []byte
	rawSize     int64 // of both before compression
	nulls       int
	least, most []byte // bounds, as statistics have them; nil: none
}

// encode compresses the content of a page and makes its header.
func (p *encodedPage) encode(codec *zstd.Codec, raw []byte, header format.PageHeader) (err error) {
	if p.content, err = codec.Encode(p.content, raw); err != nil {
		return err
	}
	header.UncompressedPageSize, header.CompressedPageSize = int32(len(raw)), int32(len(p.content))
	header.CRC = int32(crc32.ChecksumIEEE(p.content))
	p.header, err = thrift.Marshal(new(thrift.CompactProtocol), &header)
	p.rawSize = int64(len(p.header) + len(raw))
	return err
}

// A pageBuffer is the memory of a page that is being made, and what is known of it.
type pageBuffer struct {
	raw         []byte // the content of the page
	dictionary  []byte // and that of the page of its dictionary
	entries     int    // of the dictionary
	nulls       int
	least, most []byte

	valid, packed []byte
	int32s        []int32
	int64s        []int64
}

func (b *pageBuffer) reset() {
	b.raw, b.dictionary, b.valid = b.raw[:0], b.dictionary[:0], b.valid[:0]
	b.int32s, b.int64s = b.int32s[:0], b.int64s[:0]
	b.entries, b.nulls, b.least, b.most = 0, 0, nil, nil
}

// pack adds what an encoder made of packed, its buffer, which it wrote over from the start.
func (b *pageBuffer) pack(packed []byte, err error) error {
	b.packed = packed
	b.raw = append(b.raw, packed...)
	return err
}

// levels begins the page with its definition levels, which tell what is null.
func (b *pageBuffer) levels() error {
	b.nulls = bytes.Count(b.valid, []byte{0})
	b.raw = append(b.raw, 0, 0, 0, 0)
	err := b.pack((&rle.Encoding{BitWidth: 1}).EncodeLevels(b.packed, b.valid))
	binary.LittleEndian.PutUint32(b.raw, uint32(len(b.packed)))
	return err
}

// lengths adds the lengths of the cells that are not null, and which are.
func (b *pageBuffer) lengths(c *cells, from, to int) {
	if len(c.valid) > 0 {
		b.valid = append(b.valid, c.valid[from:to]...)
	}
	for i := from; i < to; i++ {
		if len(c.valid) == 0 || c.valid[i] > 0 {
			b.int32s = append(b.int32s, c.ends[i+1]-c.ends[i])
		}
	}
}

// text makes a page of the rows [from, to) of a column: all lengths, then all
// bytes.
func (b *pageBuffer) text(g *group, column, from, to int) error {
	g.each(from, to, func(t *table, from, to int) {
		b.lengths(&t.cells[column], from, to)
		for i := from; column == codeColumn && i < to; i++ {
			b.bound(t.cells[column].cell(i))
		}
	})
	if len(b.valid) > 0 {
		if err := b.levels(); err != nil {
			return err
		}
	}
	err := b.pack(new(delta.BinaryPackedEncoding).EncodeInt32(b.packed, b.int32s))
	g.each(from, to, func(t *table, from, to int) {
		c := &t.cells[column]
		b.raw = append(b.raw, c.data[c.ends[from]:c.ends[to]]...)
	})
	return err
}

// bound widens the bounds, which then refer to the value.
func (b *pageBuffer) bound(value []byte) {
	if b.most == nil || bytes.Compare(value, b.most) > 0 {
		b.most = value
	}
	if b.least == nil || bytes.Compare(value, b.least) < 0 {
		b.least = value
	}
}

// repeating makes a page of indexes into a dictionary, whose entries are in the order in
// which they first occur.
func (b *pageBuffer) repeating(g *group, column int) error {
	numbers := map[string]int32{}
	var last []byte
	number := int32(-1)
	g.each(0, g.rows, func(t *table, from, to int) {
		for i := from; i < to; i++ {
			cell := t.cells[column].cell(i)
			if number < 0 || !bytes.Equal(cell, last) {
				var known bool
				if number, known = numbers[string(cell)]; !known {
					number = int32(len(numbers))
					numbers[string(cell)] = number
					b.entry(cell)
				}
				last = cell
			}
			b.int32s = append(b.int32s, number)
		}
	})
	return b.pack(new(rle.DictionaryEncoding).EncodeInt32(b.packed, b.int32s))
}

// entry adds a value to the dictionary.
func (b *pageBuffer) entry(value []byte) {
	b.bound(value)
	b.dictionary = binary.LittleEndian.AppendUint32(b.dictionary, uint32(len(value)))
	b.dictionary = append(b.dictionary, value...)
	b.entries++
}

// outcomes makes a page of the column outcome, whose dictionary has them all.
func (b *pageBuffer) outcomes(g *group) error {
	for o := outcome.Created; o <= outcome.Duplicate; o++ {
		b.entry([]byte(o.String()))
	}
	g.each(0, g.rows, func(t *table, from, to int) {
		for _, o := range t.outcome[from:to] {
			b.int32s = append(b.int32s, int32(o))
		}
	})
	return b.pack(new(rle.DictionaryEncoding).EncodeInt32(b.packed, b.int32s))
}

// salts makes a page of a column of salts.
func (b *pageBuffer) salts(g *group, column int) error {
	g.each(0, g.rows, func(t *table, from, to int) {
		for _, salt := range t.cells[column].salts[from:to] {
			valid := validSalt(salt)
			b.valid = append(b.valid, valid)
			if valid > 0 {
				b.int32s = append(b.int32s, salt)
			}
		}
	})
	if err := b.levels(); err != nil {
		return err
	}
	return b.pack(new(delta.BinaryPackedEncoding).EncodeInt32(b.packed, b.int32s))
}

// numbers makes a page of a column of numbers.
func (b *pageBuffer) numbers(g *group, column int, nullable bool) error {
	g.each(0, g.rows, func(t *table, from, to int) {
		numbers := t.cells[column].numbers[from:to]
		if !nullable {
			b.int64s = append(b.int64s, numbers...)
			return
		}
		for _, number := range numbers {
			valid := validNumber(number)
			b.valid = append(b.valid, valid)
			if valid > 0 {
				b.int64s = append(b.int64s, number)
			}
		}
	})
	if len(b.int64s) > 0 {
		b.boundNumbers()
	}
	if nullable {
		if err := b.levels(); err != nil {
			return err
		}
	}
	return b.pack(new(delta.BinaryPackedEncoding).EncodeInt64(b.packed, b.int64s))
}

// boundNumbers sets the bounds, of at least one number.
func (b *pageBuffer) boundNumbers() {
	b.least = binary.LittleEndian.AppendUint64(nil, uint64(slices.Min(b.int64s)))
	b.most = binary.LittleEndian.AppendUint64(nil, uint64(slices.Max(b.int64s)))
}
