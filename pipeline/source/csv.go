package source

import (
	"bytes"
	"fmt"
)

// lines reads CSV and plain text: the records of a splitter.
type lines struct {
	*splitter
	start int64 // offset of the first record, after the byte order mark and the header
	ncols int   // fields that a record must have
	w     *window
}

// read reads all records into b.
func (l *lines) read(b *batcher) (err error) {
	for {
		if b.full() {
			if err = b.flush(); err != nil {
				return err
			}
		}
		if b.limited() {
			b.in.cut, err = l.begin()
			return err
		}
		l.fast(b)
		if b.full() {
			continue
		}
		switch found, err := l.begin(); {
		case err != nil:
			return err
		case !found:
			return b.flush()
		}
		if err := l.slow(b); err != nil {
			return err
		}
	}
}

// begin moves to the start of the next record, past empty lines, and says
// whether there is one.
func (l *lines) begin() (bool, error) {
	w := l.w
	for {
		left := w.buf[w.pos:]
		switch {
		case len(left) == 0 && w.eof:
			return false, nil
		case len(left) == 0 || len(left) == 1 && left[0] == '\r' && !w.eof:
			if err := l.fill(); err != nil {
				return false, err
			}
		case left[0] == '\n':
			w.pos++
		case len(left) > 1 && left[0] == '\r' && left[1] == '\n':
			w.pos += 2
		default:
			return true, nil
		}
	}
}

func (l *lines) fill() error {
	l.moved()
	return l.w.fill()
}

// fast reads the records ahead that are one line without quotes and NUL, too
// short to hold a field that is too long, until it meets another, the window
// ends or the batch is full. Such a record needs no state: its cells go from
// the window into the columns.
func (l *lines) fast(b *batcher) {
	buf, p, base := l.w.buf, l.w.pos, l.w.base
	for p < len(buf) && !b.full() {
		n := bytes.IndexByte(buf[p:], '\n')
		lf := p + n
		if n < 0 || n > l.maxField || l.quote.from(buf, p) < lf || l.nul.from(buf, p) < lf {
			break
		}
		end := lf
		if end > p && buf[end-1] == '\r' {
			end--
		}
		if end > p {
			if !l.cut(b.cols, buf[p:end]) {
				b.undo()
				break
			}
			b.row(base+int64(p), end-p)
		}
		p = lf + 1
	}
	l.w.pos = p
}

// cut appends the fields of a line without quotes to cols, unless there are
// more or fewer than columns.
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
	if !l.plain && bytes.IndexByte(line, l.delim) >= 0 {
		return false
	}
	cols[last].append(line)
	return true
}

// slow reads the one record that starts in the window, whatever it is.
func (l *lines) slow(b *batcher) error {
	next, f, err := l.split()
	switch {
	case err != nil:
		return err
	case f != nil:
		return l.reject(b, f)
	}
	b.append(l.w.offset(), l.fields)
	l.w.pos = next
	return nil
}

// split splits the record that starts in the window into l.fields, which moves
// the window on if it has to but not past the record, and returns the position
// that follows it.
func (l *lines) split() (int, *fault, error) {
	for {
		next, f := l.record(l.w.buf, l.w.pos, l.w.eof)
		switch {
		case f != nil:
			return 0, f, nil
		case next == more:
			if err := l.fill(); err != nil {
				return 0, nil, err
			}
		case l.count != l.ncols:
			return 0, l.ragged(l.ncols), nil
		default:
			return next, nil, nil
		}
	}
}

// ragged is the fault of a record with a number of fields other than want.
func (s *splitter) ragged(want int) *fault {
	if s.count == 1 {
		return malformed("1 field where there should be %d", want)
	}
	return malformed("%d fields where there should be %d", s.count, want)
}

// reject makes the physical line at the window's start a row error.
func (l *lines) reject(b *batcher, f *fault) error {
	offset := l.w.offset()
	raw, length, err := l.line()
	if err != nil {
		return err
	}
	if length > int64(len(raw)) {
		f = &fault{FieldTooLong, fmt.Sprintf("%s; raw has the first %d of the line's %d bytes", f.detail, len(raw), length)}
	}
	b.bad(offset, f, raw)
	return nil
}

// line takes the physical line at the window's start out of it: a copy of its
// first maxField bytes, and its length without the line ending.
func (l *lines) line() ([]byte, int64, error) {
	w := l.w
	lf := l.lf.from(w.buf, w.pos)
	for lf == len(w.buf) && lf-w.pos <= l.maxField && !w.eof {
		if err := l.fill(); err != nil {
			return nil, 0, err
		}
		lf = l.lf.from(w.buf, w.pos)
	}
	start := w.offset()
	raw := bytes.Clone(w.buf[w.pos:min(lf, w.pos+l.maxField+1)])
	cr := false // the byte before lf
	for {
		if lf > w.pos {
			cr = w.buf[lf-1] == '\r'
		}
		w.pos = lf
		if lf < len(w.buf) || w.eof {
			break
		}
		if err := l.fill(); err != nil {
			return nil, 0, err
		}
		lf = l.lf.from(w.buf, w.pos)
	}
	length := w.offset() - start
	if w.pos < len(w.buf) {
		w.pos++
		if cr {
			length--
		}
	}
	return raw[:min(int64(len(raw)), length, int64(l.maxField))], length, nil
}
