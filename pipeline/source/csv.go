package source

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// lines reads CSV and plain text for one worker.
type lines struct {
	*splitter
	ncols   int // fields that a record must have
	w       *window
	restore restorer // restores the input of a rejects file; nil: the text is not one
	whole   bool     // the line of the last record must end, too
	escapes bool     // fields have those of mysql --batch
}

// read reads records into b until b is full, or else all that end in the window. The
// window is left at the start of the next record.
func (l *lines) read(b *batcher) (full bool) {
	for !b.full() {
		if l.restore == nil && !l.escapes && l.w.line.fault == nil {
			l.fast(b)
		}
		if !b.full() && !l.one(b) {
			return false
		}
	}
	return true
}

// one reads a record, if it ends in the window.
func (l *lines) one(b *batcher) bool {
	if l.w.line.fault != nil {
		return l.leave(b)
	}
	return l.begin() && l.slow(b)
}

// begin moves to the start of the next record, past empty lines. It returns false if that is not
// in the window.
func (l *lines) begin() bool {
	w := l.w
	for {
		left := w.buf[w.pos:]
		switch {
		case len(left) == 0 || len(left) == 1 && left[0] == '\r' && !w.eof():
			return false
		case left[0] == '\n':
			w.pos++
		case len(left) > 1 && left[0] == '\r' && left[1] == '\n':
			w.pos += 2
		default:
			return true
		}
	}
}

// fast reads records that are one line without quotes and NULs, and too short for a field that is
// too long. Their cells go straight from the window into the columns. It stops at another record,
// at the end of the window, or when the batch is full.
func (l *lines) fast(b *batcher) {
	buf, p, base, decoded := l.w.buf, l.w.pos, l.w.base, b.in.decoded
	for p < len(buf) && !b.full() {
		if buf[p] == '\n' {
			p++
			continue
		}
		n := bytes.IndexByte(buf[p:], '\n')
		lf := p + n
		if n < 0 || n > l.maxField || l.quote.from(buf, p) < lf || l.nul.from(buf, p) < lf || decoded && !utf8.Valid(buf[p:lf]) {
			break
		}
		end := lf
		if end > p && buf[end-1] == '\r' {
			end--
		}
		switch {
		case end == p:
		case (buf[p] == l.delim || isSpaced(buf[p])) && !l.whole && l.isBlankLine(buf[p:end]):
			b.blank(base + int64(p))
		default:
			if !l.cut(b.cols, buf[p:end]) {
				b.undo()
				l.w.pos = p
				return
			}
			b.row(base+int64(p), end-p)
		}
		p = lf + 1
	}
	l.w.pos = p
}

// cut appends the fields of a line without quotes to cols. It returns false if there are more or
// fewer than columns.
func (l *lines) cut(cols []column, line []byte) bool {
	last := len(cols) - 1
	for i := range cols[:last] {
		j := bytes.IndexByte(line, l.delim)
		if j < 0 {
			return false
		}
		cols[i].append(line[:j])
		line = line[j+1:]
	}
	if !l.plain && !l.beacon && bytes.IndexByte(line, l.delim) >= 0 {
		return false
	}
	cols[last].append(line)
	return true
}

// slow reads any record at the start of the window. It returns false if it does not end there.
func (l *lines) slow(b *batcher) bool {
	w := l.w
	next, f := l.record(w.buf, w.pos, w.eof())
	var cells [][]byte
	var lacking *fault
	if f == nil && next != more {
		lacking = l.lacking(b.in, w.buf[w.pos:next])
	}
	switch {
	case next == more:
		return false
	case lacking != nil: // the record can be split: all of its lines are at fault
		l.drop(b, lacking, next)
		return true
	case f == nil && !l.whole && l.isBlankRecord(w.buf[w.pos:next], l.ncols):
		b.blank(w.offset())
		w.pos = next
		return true
	case f == nil && l.restore != nil && l.count > rejectsLead && l.count < l.ncols && w.buf[next-1] == '\n':
		// Spreadsheets leave out the last delimiters of a row if nothing stands between them.
		l.fields = append(l.fields, make([][]byte, l.ncols-l.count)...)
	case f == nil && l.count < l.ncols && !l.whole && l.restore == nil && l.lf.from(w.buf, w.pos)+1 >= next: // on one line
		if cells, f = l.fields, short(b.in, l.count); b.in.opts.PadRows && l.count >= b.in.least {
			l.fields, f = append(l.fields, make([][]byte, l.ncols-l.count)...), nil
		}
	case f == nil && l.count != l.ncols:
		f = l.ragged(l.ncols)
	case f == nil && l.whole && w.buf[next-1] != '\n':
		f = malformed("the file ends within it")
	}
	switch {
	case f != nil:
		return l.reject(b, f, cells)
	case l.restore != nil:
		if err := l.restore.append(b, w.offset(), l.fields); err != nil {
			w.err = err
			return false
		}
	default:
		if l.escapes {
			l.unescape()
		}
		b.append(w.offset(), l.fields)
	}
	w.pos = next
	return true
}

// drop makes a bad record of all lines up to next.
func (l *lines) drop(b *batcher, f *fault, next int) {
	w := l.w
	raw := bytes.TrimSuffix(w.buf[w.pos:next], []byte("\n"))
	if len(raw) < next-w.pos {
		raw = bytes.TrimSuffix(raw, []byte("\r"))
	}
	if size := len(raw); size > l.maxField {
		raw = b.in.characters(raw[:l.maxField])
		f = &fault{FieldTooLong, fmt.Sprintf("%s; raw has the first %d of the record's %d bytes", f.detail, len(raw), size)}
	}
	f, raw = b.in.mark(f, raw)
	b.bad(w.offset(), f, raw, nil)
	w.pos = next
}

// ragged is the fault of a record that does not have want fields.
func (s *splitter) ragged(want int) *fault {
	if s.count == 1 {
		return malformed("1 field where there should be %d", want)
	}
	return malformed("%d fields where there should be %d", s.count, want)
}

// padRows ends the detail of a record that Options.PadRows makes a row.
const padRows = "; with --pad-rows the missing ones are blank"

// short is the fault of a record that has only so many fields.
func short(in *Input, count int) *fault {
	f := (&splitter{count: count}).ragged(len(in.Columns))
	if count >= in.least {
		f.detail += padRows
	}
	return f
}

// A badLine is the line on which a record starts that cannot be split. If it is longer than a
// field may be, the window moves on before the end of the line is in it.
type badLine struct {
	*fault
	offset int64
	raw    []byte   // all of it, or its first maxField bytes
	length int64    // bytes of it before the window's pos
	cr     bool     // the last of them is a CR
	cells  [][]byte // of a record with too few, which is in the window; nil: it is none
}

// reject makes the line at the start of the window a bad line. It returns false if the window has
// neither the end of the line nor more of it than is kept.
func (l *lines) reject(b *batcher, f *fault, cells [][]byte) bool {
	w := l.w
	lf := l.lf.from(w.buf, w.pos)
	whole := lf < len(w.buf) || w.eof()
	if !whole && lf-w.pos <= l.maxField {
		return false
	}
	raw := w.buf[w.pos:min(lf, w.pos+l.maxField)]
	if !whole {
		raw = bytes.Clone(raw)
	}
	w.line = badLine{fault: f, offset: w.offset(), raw: raw, cells: cells}
	return l.leave(b)
}

// leave moves behind the bad line and makes it a row error. If it does not end in the window leave
// moves to the end of the window and returns false.
func (l *lines) leave(b *batcher) bool {
	w, line := l.w, &l.w.line
	lf := l.lf.from(w.buf, w.pos)
	if lf > w.pos {
		line.cr = w.buf[lf-1] == '\r'
	}
	line.length += int64(lf - w.pos)
	w.pos = lf
	switch {
	case lf == len(w.buf) && !w.eof():
		return false
	case lf < len(w.buf):
		w.pos++
		if line.cr {
			line.length--
		}
	}
	f, raw := line.fault, line.raw[:min(int64(len(line.raw)), line.length)]
	if line.length > int64(len(raw)) {
		raw = b.in.characters(raw)
		f = &fault{FieldTooLong, fmt.Sprintf("%s; raw has the first %d of the line's %d bytes", f.detail, len(raw), line.length)}
		line.cells = nil
	}
	f, raw = b.in.mark(f, raw)
	b.bad(line.offset, f, raw, line.cells)
	*line = badLine{}
	return true
}
