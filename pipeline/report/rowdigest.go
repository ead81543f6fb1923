package report

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
	"github.com/zeebo/xxh3"
)

// A RowDigest is a digest of the rows of a mapping that does not depend on their
// order, on the format of the file, on the order in which digests are merged, or
// on what is shown only (short_url, the apostrophes of MappingOptions.ExcelSafe).
// The zero value is that of no rows, without legacy codes. It is for one goroutine, allocates only to
// grow its buffer and where a row has another source than the one before, and must
// not be copied while in use.
//
// It is the sum, modulo 2^128, of the XXH3-128 (seed 0) of each row's encoding:
//
//	source | row uvarint | workspace_id | original_url | canonical_url | short_code
//	| outcome, 1 byte (created 0, existing 1, duplicate 2) | salt + 1 uvarint (none: 0)
//	| number uvarint (none: 0)
//	| kind, 1 byte (link 0, alias 1) | legacy_code | link_code | link_salt + 1 uvarint (none: 0)
//	| parts | expires_at | max_uses | link_type | owner_id | ref | change
//	| variant uvarint | input_url | the value of each parameter of a campaign
//	| each carried cell
//
// The third to sixth line have only the cells of which the mapping has a column.
// Each cell is its length as a uvarint and its bytes, null is empty, as in
// CSV, and a source that is not UTF-8 has those bytes as %XX, as in Parquet. A
// sum, unlike XOR, also counts rows that come twice. Rows that differ by accident
// have the same digest with a chance of 2^-128; somebody who wants to can find
// rows that do. Against that there are the SHA-256 of the files.
type RowDigest struct {
	Columns // of the mapping; set before the first row

	begun  bool      // there was a row
	added  []*Column // of Columns, once it has begun
	sum    xxh3.Uint128
	source string // of the row before
	text   string // the same as UTF-8
	buf    []byte
}

// Add counts a row in.
func (d *RowDigest) Add(r *Row) {
	if !d.begun {
		d.begun, d.added = true, d.Added()
	}
	if r.Source != d.source {
		d.source = strings.Clone(r.Source) // the string may lie in a buffer
		d.text = validUTF8(d.source)
	}
	b := appendDigested(d.buf[:0], bytesOf(d.text))
	b = binary.AppendUvarint(b, uint64(r.Row))
	b = appendDigested(b, r.Workspace)
	b = appendDigested(b, r.Original)
	b = appendDigested(b, r.Canonical)
	b = appendDigested(b, r.Code)
	b = append(b, byte(r.Outcome))
	b = binary.AppendUvarint(b, uint64(r.Salt+1))
	for _, c := range d.added {
		b = c.Append(b, r)
	}
	for _, cell := range r.Carried {
		b = appendDigested(b, cell)
	}
	d.buf = b
	d.add(xxh3.Hash128(b))
}

func appendDigested(dst, cell []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(cell))), cell...)
}

func (d *RowDigest) add(n xxh3.Uint128) {
	var carry uint64
	d.sum.Lo, carry = bits.Add64(d.sum.Lo, n.Lo, 0)
	d.sum.Hi, _ = bits.Add64(d.sum.Hi, n.Hi, carry)
}

// Merge counts in the rows of another digest.
func (d *RowDigest) Merge(o *RowDigest) { d.add(o.sum) }

// Sum returns the digest in hexadecimal, 32 digits.
func (d *RowDigest) Sum() string { return fmt.Sprintf("%016x%016x", d.sum.Hi, d.sum.Lo) }

// validUTF8 is canon.EscapeInvalid for a string.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string(canon.EscapeInvalid([]byte(s)))
}

// SumDigests returns the digest of the rows of several mappings together, of which these are the
// digests.
func SumDigests(sums []string) (string, error) {
	var all RowDigest
	for _, sum := range sums {
		b, err := hex.DecodeString(sum)
		if err != nil || len(b) != 16 {
			return "", fmt.Errorf("%q is no row digest", sum)
		}
		all.add(xxh3.Uint128{Hi: binary.BigEndian.Uint64(b), Lo: binary.BigEndian.Uint64(b[8:])})
	}
	return all.Sum(), nil
}
