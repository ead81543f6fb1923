// Package packed writes the contents of records: texts one after the other, as bytes that can be split again.
package packed

import (
	"bytes"
	"encoding/binary"
)

// TextKey returns the key of a text in a sort, where keys are to be in the order of the texts as far as their
// first eight bytes tell.
func TextKey(text []byte) uint64 {
	var key [8]byte
	copy(key[:], text)
	return binary.BigEndian.Uint64(key[:])
}

// AppendCell appends a text to the content of a record: its length as a uvarint, and its
// bytes. Nil is an empty text. CutCell splits it off again.
func AppendCell[T string | []byte](dst []byte, cell T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(cell))), cell...)
}

// CutCell splits off what AppendCell wrote. The results refer to rec.
func CutCell(rec []byte) (cell, rest []byte) {
	n, size := binary.Uvarint(rec)
	end := size + int(n)
	return rec[size:end:end], rec[end:]
}

// CompareFirst orders contents by the text with which they begin, as of AppendCell.
func CompareFirst(a, b []byte) int {
	x, _ := CutCell(a)
	y, _ := CutCell(b)
	return bytes.Compare(x, y)
}

// AppendNullable appends a text that may be null, which is nil: its length + 1 as a
// uvarint, or 0 for null, and its bytes. CutNullable splits it off again.
func AppendNullable(dst, cell []byte) []byte {
	if cell == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(cell))+1), cell...)
}

// CutNullable splits off what AppendNullable wrote; nil is null. The results refer to rec.
func CutNullable(rec []byte) (cell, rest []byte) {
	n, size := binary.Uvarint(rec)
	if n == 0 {
		return nil, rec[size:]
	}
	end := size + int(n) - 1
	return rec[size:end:end], rec[end:]
}
