package report

import (
	"encoding/binary"
	"io"
	"io/fs"
	"strconv"
)

// The CSV of a report is RFC 4180 with lone line feeds: a cell is quoted if, and
// only if, it has a comma, a quote, a carriage return or a line feed. Its bytes
// are otherwise as they are, whatever they are; null and empty are both empty.

// csvCells appends cells.
type csvCells struct {
	// excelSafe puts an apostrophe before each cell whose first byte would have
	// a spreadsheet run it as a formula: one of = + - @, tab, carriage return.
	// It also does so where such a byte comes after apostrophes of the cell's own,
	// so that taking one away gives every cell back.
	excelSafe bool
}

func (c csvCells) append(dst, cell []byte) []byte {
	if c.bare(cell) {
		return append(dst, cell...)
	}
	return c.quote(dst, cell)
}

// bare reports whether the cell is written as it is.
func (c csvCells) bare(cell []byte) bool {
	return !needsQuotes(cell) && !(c.excelSafe && formula(cell))
}

// quote appends a cell that is not bare.
func (c csvCells) quote(dst, cell []byte) []byte {
	quoted := needsQuotes(cell)
	if quoted {
		dst = append(dst, '"')
	}
	if c.excelSafe && formula(cell) {
		dst = append(dst, '\'')
	}
	for _, b := range cell {
		if b == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, b)
	}
	if quoted {
		dst = append(dst, '"')
	}
	return dst
}

// formula reports whether a cell begins with a formula, or with apostrophes and
// then a formula.
func formula(cell []byte) bool {
	for _, b := range cell {
		switch b {
		case '=', '+', '-', '@', '\t', '\r':
			return true
		case '\'':
		default:
			return false
		}
	}
	return false
}

// Defuse returns a cell as CSV holds it with MappingOptions.ExcelSafe.
func Defuse(cell []byte) []byte {
	if formula(cell) {
		return append([]byte{'\''}, cell...)
	}
	return cell
}

// IsFormula reports whether a spreadsheet would run a cell, which Defuse never leaves.
func IsFormula(cell []byte) bool { return formula(cell[:min(1, len(cell))]) }

// Undefuse returns the cell that Defuse made another of.
func Undefuse(cell []byte) []byte {
	if len(cell) > 1 && cell[0] == '\'' && formula(cell[1:]) {
		return cell[1:]
	}
	return cell
}

// needsQuotes reports whether a cell has a comma, a quote, CR or LF. It looks
// closer only where eight bytes at a time may have one.
func needsQuotes(cell []byte) bool {
	last := len(cell) - 8
	if last < 0 {
		return special(cell)
	}
	for i := 0; i < last; i += 8 {
		if maybeSpecial(binary.LittleEndian.Uint64(cell[i:])) {
			return special(cell[i:])
		}
	}
	return maybeSpecial(binary.LittleEndian.Uint64(cell[last:])) && special(cell[last:])
}

// maybeSpecial reports whether one of eight bytes is a comma, a quote or a
// control character: x - n of a byte below n borrows into its high bit, and
// comparing with a comma or a quote leaves the high bits as they are.
func maybeSpecial(w uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	comma, quote := w^','*ones, w^'"'*ones
	return ((w-' '*ones)|(comma-ones)|(quote-ones))&^w&highs != 0
}

func special(cell []byte) bool {
	for _, b := range cell {
		if b == ',' || b == '"' || b == '\n' || b == '\r' {
			return true
		}
	}
	return false
}

// appendHeader appends a line of column names.
func (c csvCells) appendHeader(dst []byte, columns []string) []byte {
	for i, name := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = c.append(dst, []byte(name))
	}
	return append(dst, '\n')
}

// csvStep is how many bytes of lines are gathered before they are written.
const csvStep = 64 << 10

// csvWriter gathers the lines of a file that one goroutine writes.
type csvWriter struct {
	csvCells
	w      io.Writer
	buf    []byte
	err    error
	closed bool
}

// newCSVWriter returns a writer that has gathered the header.
func newCSVWriter(w io.Writer, excelSafe bool, columns []string) csvWriter {
	cells := csvCells{excelSafe}
	return csvWriter{csvCells: cells, w: w, buf: cells.appendHeader(nil, columns)}
}

func (c *csvWriter) cell(cell []byte) {
	c.buf = append(c.csvCells.append(c.buf, cell), ',')
}

func (c *csvWriter) number(n int64) {
	c.buf = append(strconv.AppendInt(c.buf, n, 10), ',')
}

// endLine ends the line in place of its last comma.
func (c *csvWriter) endLine() error {
	if c.closed {
		c.buf = c.buf[:0]
		return fs.ErrClosed
	}
	c.buf[len(c.buf)-1] = '\n'
	if len(c.buf) >= csvStep {
		c.flush()
	}
	return c.err
}

func (c *csvWriter) flush() {
	if c.err == nil {
		_, c.err = c.w.Write(c.buf)
	}
	c.buf = c.buf[:0]
}

// Close writes what is left, the header too. It does not close the underlying
// writer. Further calls return what the first did; the error of Append is then
// fs.ErrClosed.
func (c *csvWriter) Close() error {
	if !c.closed {
		c.closed = true
		c.flush()
	}
	return c.err
}
