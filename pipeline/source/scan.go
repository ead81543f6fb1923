package source

import (
	"bytes"
	"fmt"
	"math"

	"github.com/linkforge/bulk/pipeline/columns"
)

// A splitter splits records into fields: RFC 4180 with any delimiter and quote, or whole lines.
// The result depends only on the bytes of the record, not on how many of them are in the buffer.
type splitter struct {
	delim     byte
	plain     bool // no delimiter and no quotes: a line is a field
	beacon    bool // the second field is the rest of the line
	maxField  int
	maxRecord int
	keep      int // fields that are kept; further ones are only counted

	lf, quote, nul mark
	fields         [][]byte // of the last record; valid until the window moves
	count          int      // number of fields, also of those not kept
	scratch        []byte   // holds fields with doubled quotes
}

// newSplitter makes a splitter. Without nul, NUL bytes are data.
func newSplitter(delim, quote byte, maxField int, nul bool) *splitter {
	s := &splitter{
		delim: delim, maxField: maxField, maxRecord: 16 * min(maxField, mostRecord/16), keep: columns.MaxColumns,
		lf: mark{c: '\n'}, quote: mark{c: quote}, nul: mark{c: 0, off: !nul},
	}
	s.moved()
	return s
}

// newLineSplitter makes a splitter for text with one field a line.
func newLineSplitter(maxField int) *splitter {
	s := newSplitter(0, 0, maxField, true)
	s.plain, s.quote.off = true, true
	s.moved()
	return s
}

// A mark remembers where the next byte c is. So the bytes before it are not searched again for
// each record that ends before it, and a file full of broken quotes takes linear time.
type mark struct {
	c      byte
	off    bool // never found
	lo, at int  // no c in [lo, at)
	work   int  // bytes searched so far
}

// from returns the position of the first c in buf at or after p, or len(buf).
func (m *mark) from(buf []byte, p int) int {
	if m.lo <= p && p <= m.at {
		return m.at
	}
	return m.search(buf, p)
}

func (m *mark) search(buf []byte, p int) int {
	end := len(buf)
	if p < m.lo && m.lo <= m.at {
		end = m.lo // what follows is known
	} else {
		m.at = end
	}
	if i := bytes.IndexByte(buf[min(p, end):end], m.c); i >= 0 {
		m.at = p + i
	}
	m.work += m.at - p
	m.lo = p
	return m.at
}

// moved forgets the marks: they are positions in another buffer.
func (s *splitter) moved() {
	for _, m := range []*mark{&s.lf, &s.quote, &s.nul} {
		m.lo, m.at = 0, -1
		if m.off {
			m.at = math.MaxInt
		}
	}
}

// A fault is why a record cannot be split.
type fault struct {
	reason Reason
	detail string
}

func malformed(format string, args ...any) *fault {
	return &fault{MalformedRow, fmt.Sprintf(format, args...)}
}

// more is returned instead of a position if the buffer ends before the field does.
const more = -1

// record splits the record at buf[p:], which is not empty, into s.fields. It returns the position
// after the record's line ending, or more if buf ends before that is known, or 0 and a fault.
func (s *splitter) record(buf []byte, p int, eof bool) (int, *fault) {
	s.fields, s.count, s.scratch = s.fields[:0], 0, s.scratch[:0]
	start, end := p, len(buf)
	capped := end-p > s.maxRecord
	if capped {
		end, eof = p+s.maxRecord, false
	}
	for last := false; !last; {
		var cell []byte
		var f *fault
		s.count++
		if p < end && buf[p] == s.quote.c && !s.quote.off {
			cell, p, last, f = s.quoted(buf, p+1, end, eof)
		} else {
			cell, p, last, f = s.bare(buf, p, end, eof)
		}
		switch {
		case f != nil:
			if s.lf.from(buf, start) < p { // the raw line of the row error does not have the fault
				f.detail += ", on a later line"
			}
			return 0, f
		case p == more && capped:
			return 0, &fault{FieldTooLong, fmt.Sprintf("record is longer than %d bytes with its line ending", s.maxRecord)}
		case p == more:
			return more, nil
		}
		if s.count <= s.keep {
			s.fields = append(s.fields, cell)
		}
	}
	return p, nil
}

// first is record for the record at start in the window, which is filled until that ends.
func (s *splitter) first(w *window, start int) (end int, f *fault, err error) {
	for {
		if end, f = s.record(w.buf[w.pos:], start, w.eof()); end != more {
			return end, f, nil
		}
		if err := w.look(2 * (len(w.buf) - w.pos)); err != nil {
			return 0, nil, err
		}
		s.moved()
	}
}

// bare splits off the unquoted field at p. It returns the field, the position after its delimiter
// or line ending (or more), whether it is the last field, and its fault. With a fault the position
// is that of the fault, or p if the whole field is at fault.
func (s *splitter) bare(buf []byte, p, end int, eof bool) (cell []byte, next int, last bool, f *fault) {
	stop := min(s.lf.from(buf, p), end)
	if !s.plain && !(s.beacon && s.count == 2) {
		if i := bytes.IndexByte(buf[p:stop], s.delim); i >= 0 {
			stop = p + i
		}
	}
	text := stop
	if stop < end && buf[stop] == '\n' && stop > p && buf[stop-1] == '\r' {
		text--
	}
	limit := min(text, p+s.maxField)
	quote, nul := s.quote.from(buf, p), s.nul.from(buf, p)
	switch {
	case nul < min(quote, limit):
		return nil, nul, false, malformed("NUL byte in field %d", s.count)
	case quote < limit:
		return nil, quote, false, malformed("quote inside unquoted field %d", s.count)
	case text > limit:
		if stop == end && !eof && text == limit+1 && buf[text-1] == '\r' {
			return nil, more, false, nil // the CR may belong to the line ending
		}
		return nil, p, false, s.long()
	case stop < end:
		return buf[p:text], stop + 1, buf[stop] == '\n', nil
	case eof:
		return buf[p:text], stop, true, nil
	}
	return nil, more, false, nil
}

// quoted is bare for a field with its opening quote before p.
func (s *splitter) quoted(buf []byte, p, end int, eof bool) (cell []byte, next int, last bool, f *fault) {
	from, size, kept := p, 0, len(s.scratch)
	for {
		q := min(s.quote.from(buf, from), end)
		if nul := s.nul.from(buf, from); nul < min(q, from+s.maxField-size) {
			return nil, nul, false, malformed("NUL byte in field %d", s.count)
		}
		if size += q - from; size > s.maxField {
			return nil, p, false, s.long()
		}
		if q >= end-1 && !eof {
			return nil, more, false, nil // the quote may be doubled
		}
		if q == end {
			return nil, p, false, malformed("the quote of field %d is never closed", s.count)
		}
		if q+1 < end && buf[q+1] == s.quote.c {
			s.scratch = append(s.scratch, buf[from:q+1]...)
			size++
			from = q + 2
			continue
		}
		cell = buf[p:q]
		if from > p {
			s.scratch = append(s.scratch, buf[from:q]...)
			cell = s.scratch[kept:]
		}
		next, last, f = s.closed(buf, q+1, end, eof)
		return cell, next, last, f
	}
}

// closed is bare for what stands at p, after a closing quote.
func (s *splitter) closed(buf []byte, p, end int, eof bool) (next int, last bool, f *fault) {
	switch {
	case p == end && eof:
		return p, true, nil
	case p == end:
		return more, false, nil
	case buf[p] == s.delim:
		return p + 1, false, nil
	case buf[p] == '\n':
		return p + 1, true, nil
	case buf[p] == '\r' && p+1 == end && !eof:
		return more, false, nil
	case buf[p] == '\r' && p+1 < end && buf[p+1] == '\n':
		return p + 2, true, nil
	}
	return p, false, malformed("text after the closing quote of field %d", s.count)
}

func (s *splitter) long() *fault {
	return &fault{FieldTooLong, fmt.Sprintf("field %d is longer than %d bytes", s.count, s.maxField)}
}
