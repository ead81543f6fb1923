package audit

import "encoding/binary"

// appendCell appends a cell with its length, a uvarint, before it.
func appendCell[T string | []byte](dst []byte, cell T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(cell))), cell...)
}

// cutCell splits off what appendCell has written.
func cutCell(rec []byte) (cell, rest []byte) {
	n, size := binary.Uvarint(rec)
	end := size + int(n)
	return rec[size:end:end], rec[end:]
}

// appendNullable appends a cell with its length + 1 before it; 0: null.
func appendNullable(dst, cell []byte) []byte {
	if cell == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(cell))+1), cell...)
}

// cutNullable splits off what appendNullable has written.
func cutNullable(rec []byte) (cell, rest []byte) {
	n, size := binary.Uvarint(rec)
	if n == 0 {
		return nil, rec[size:]
	}
	end := size + int(n) - 1
	return rec[size:end:end], rec[end:]
}
