package pipeline

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"

	"github.com/linkforge/bulk/codegen"
)

// A record is what the sort holds of an accepted row: everything that the
// mapping, a reject and the store need of it. Its group is the workspace and its
// key the rank of its code at salt 0; its content is
//
//	url_key 16 | canonical length uint16 | canonical
//	| flags | original length uvarint, original (unless flagSame)
//	| each carried cell: length + 1 uvarint (0: null), bytes
//	| key of its place, byte offset + 1 | 1 byte: the lengths of these two
//
// The last two numbers are little-endian and without the zero bytes at their end; their
// lengths have four bits each, that of the key the lower ones.
type record struct {
	canonical []byte
	original  []byte // the cell of the input, not trimmed
	flags     byte
	rest      []byte // from the carried cells on
	place     place
}

const (
	recordKey  = 16            // bytes of the url_key
	recordHead = recordKey + 2 // bytes before the canonical URL
)

const (
	flagSame   byte = 1 << iota // original is byte for byte the canonical URL
	flagNullWS                  // the cell of the workspace column was null and a default stood in
	flagNoWS                    // the cell of the workspace column was empty and a default stood in
)

// startRecord returns an emptied buffer to which the canonical URL is appended.
func startRecord(buf []byte) []byte {
	return append(buf[:0], make([]byte, recordHead)...)
}

// finishRecord fills in the head of a record that so far ends with the canonical
// URL, and appends the original.
func finishRecord(rec []byte, h codegen.Hash, original []byte, flags byte) []byte {
	canonical := rec[recordHead:]
	binary.BigEndian.PutUint64(rec, h.Hi)
	binary.BigEndian.PutUint64(rec[8:], h.Lo)
	binary.LittleEndian.PutUint16(rec[recordKey:], uint16(len(canonical)))
	if bytes.Equal(canonical, original) {
		return append(rec, flags|flagSame)
	}
	rec = binary.AppendUvarint(append(rec, flags), uint64(len(original)))
	return append(rec, original...)
}

// appendCell appends a carried cell; nil is null.
func appendCell(rec, cell []byte) []byte {
	if cell == nil {
		return append(rec, 0)
	}
	return append(binary.AppendUvarint(rec, uint64(len(cell))+1), cell...)
}

// appendPlace appends where the row comes from.
func appendPlace(rec []byte, p place) []byte {
	rec, key := appendShort(rec, p.key())
	rec, offset := appendShort(rec, uint64(p.offset+1))
	return append(rec, byte(key|offset<<4))
}

// appendShort appends v in as few bytes as it needs, and returns their number.
func appendShort(rec []byte, v uint64) ([]byte, int) {
	n := (bits.Len64(v) + 7) / 8
	return binary.LittleEndian.AppendUint64(rec, v)[:len(rec)+n], n
}

// placeOf returns where the row of a record comes from. Eight bytes can be read for either
// number, however short it is: there are always more of the record before it.
func placeOf(rec []byte) place {
	end := len(rec) - 1
	lengths := uint(rec[end])
	offset := binary.LittleEndian.Uint64(rec[end-8:]) >> (64 - 8*(lengths>>4))
	end -= int(lengths >> 4)
	key := binary.LittleEndian.Uint64(rec[end-8:]) >> (64 - 8*(lengths&15))
	return place{int(key >> rowBits), int64(key & (1<<rowBits - 1)), int64(offset) - 1}
}

// A place is the provenance of a row: the index of its source in the order of
// names, its record from 1, and its byte offset or -1.
type place struct {
	source      int
	row, offset int64
}

const rowBits = 43 // of a key

// key orders rows by source and row.
func (p place) key() uint64 { return uint64(p.source)<<rowBits | uint64(p.row) }

// hashOf returns the hash of a record's URL at salt 0, of which the bytes are the
// url_key.
func hashOf(rec []byte) codegen.Hash { return codegen.FromKey([recordKey]byte(rec)) }

func canonicalOf(rec []byte) []byte {
	n := int(binary.LittleEndian.Uint16(rec[recordKey:]))
	return rec[recordHead : recordHead+n : recordHead+n]
}

// decode splits a record. The result refers to rec.
func decode(rec []byte) (r record) {
	r.canonical, r.place = canonicalOf(rec), placeOf(rec)
	rec = rec[recordHead+len(r.canonical):]
	r.flags, rec = rec[0], rec[1:]
	r.original = r.canonical
	if r.flags&flagSame == 0 {
		n, size := binary.Uvarint(rec)
		r.original, rec = rec[size:size+int(n)], rec[size+int(n):]
	}
	r.rest = rec
	return r
}

// carried appends the n carried cells to cells.
func (r *record) carried(cells [][]byte, n int) [][]byte {
	rest := r.rest
	for range n {
		var cell []byte
		cell, rest = cutCell(rest)
		cells = append(cells, cell)
	}
	return cells
}

// cutCell splits off the first cell; nil is null.
func cutCell(rest []byte) (cell, after []byte) {
	n, size := binary.Uvarint(rest)
	if n == 0 {
		return nil, rest[size:]
	}
	end := size + int(n) - 1
	return rest[size:end:end], rest[end:]
}

// compareRecords orders the records of one workspace and rank: by the code at
// salt 0 where it is longer than the rank tells, then canonical, original,
// carried cells (null first), source, row. Its result is never 0.
func compareRecords(scheme codegen.Scheme, cells int) func(a, b []byte) int {
	return func(a, b []byte) int {
		if c := compareCodes(scheme, a, b); c != 0 {
			return c
		}
		x, y := decode(a), decode(b)
		if c := bytes.Compare(x.canonical, y.canonical); c != 0 {
			return c
		}
		if c := bytes.Compare(x.original, y.original); c != 0 {
			return c
		}
		for range cells {
			var cx, cy []byte
			cx, x.rest = cutCell(x.rest)
			cy, y.rest = cutCell(y.rest)
			if c := compareCells(cx, cy); c != 0 {
				return c
			}
		}
		return cmp.Compare(x.place.key(), y.place.key())
	}
}

func compareCells(a, b []byte) int {
	switch {
	case a == nil && b != nil:
		return -1
	case a != nil && b == nil:
		return 1
	}
	return bytes.Compare(a, b)
}

// compareCodes compares the codes of two records of equal rank.
func compareCodes(scheme codegen.Scheme, a, b []byte) int {
	if scheme.RankIsCode() {
		return 0
	}
	var bufA, bufB [codegen.MaxLength]byte
	return bytes.Compare(scheme.AppendCode(bufA[:0], hashOf(a)), scheme.AppendCode(bufB[:0], hashOf(b)))
}
