package source

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A record whose cells are all empty, null or white space is blank: it has a number, but is no row.
// Spreadsheets write such records for rows that were emptied. Here is how they are told from others
// before their cells are copied.

// isBlank reports whether a cell has nothing but white space.
func isBlank(cell []byte) bool {
	return len(cell) == 0 || isSpaced(cell[0]) && len(bytes.TrimSpace(cell)) == 0
}

// isSpaced reports whether white space may begin with c. (Most cells begin with another byte.)
func isSpaced(c byte) bool { return c <= ' ' || c >= utf8.RuneSelf }

// areBlank reports whether all cells are blank.
func areBlank(cells [][]byte) bool {
	for _, cell := range cells {
		if !isBlank(cell) {
			return false
		}
	}
	return true
}

// isBlankLine reports whether a record without quotes has nothing but white space and delimiters.
func (s *splitter) isBlankLine(line []byte) bool {
	for len(line) > 0 {
		if line[0] == s.delim {
			line = line[1:]
			continue
		}
		if !isSpaced(line[0]) {
			return false
		}
		r, n := utf8.DecodeRune(line)
		if !unicode.IsSpace(r) {
			return false
		}
		line = line[n:]
	}
	return true
}

// isBlankRecord reports whether the last record, of these bytes, is blank. It may have more or fewer
// than ncols fields; of further ones quotes count as text, since they may not have been kept.
func (s *splitter) isBlankRecord(record []byte, ncols int) bool {
	return areBlank(s.fields) && (s.count <= ncols || s.isBlankLine(record))
}
