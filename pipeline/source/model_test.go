package source

import (
	"bytes"
	"fmt"
)

// model reads CSV with commas by the rules of the package documentation, one byte
// after the other and with all of the input in sight.
func model(data []byte, ncols, maxField int) (recs []rec) {
	for p, n := 0, int64(0); ; {
		for p < len(data) && (data[p] == '\n' || bytes.HasPrefix(data[p:], []byte("\r\n"))) {
			if data[p] == '\r' {
				p++
			}
			p++
		}
		if p == len(data) {
			return recs
		}
		m := &modelRecord{data: data, start: p, at: p, maxField: maxField}
		fault := m.record()
		n++
		r := rec{row: n, offset: int64(p)}
		if fault == nil && len(bytes.TrimSpace(bytes.Join(m.fields, nil))) == 0 && (len(m.fields) <= ncols || bytes.IndexByte(data[p:m.at], '"') < 0) {
			p = m.at
			continue
		}
		if fault == nil && len(m.fields) != ncols {
			fault = (&splitter{count: len(m.fields)}).ragged(ncols)
			if len(m.fields) < ncols && bytes.IndexByte(bytes.TrimSuffix(data[p:m.at], []byte("\n")), '\n') < 0 {
				fault.detail += padRows
			}
		}
		if fault == nil {
			r.cells = string(bytes.Join(m.fields, []byte("|")))
			p = m.at
		} else {
			line, _, ended := bytes.Cut(data[p:], []byte("\n"))
			p += len(line)
			if ended {
				p++
				line = bytes.TrimSuffix(line, []byte("\r"))
			}
			r.reason, r.detail, r.raw = string(fault.reason), fault.detail, string(line)
			if len(line) > maxField {
				r.reason, r.raw = string(FieldTooLong), string(line[:maxField])
				r.detail += fmt.Sprintf("; raw has the first %d of the line's %d bytes", maxField, len(line))
			}
		}
		recs = append(recs, r)
	}
}

type modelRecord struct {
	data      []byte
	start, at int
	field     int // where the field begins
	maxField  int
	fields    [][]byte
}

const eof = -1

// peek is the byte i ahead; a record has at most 16 times maxField of them.
func (m *modelRecord) peek(i int) int {
	switch {
	case m.at+i == len(m.data):
		return eof
	case m.at+i-m.start >= 16*m.maxField:
		panic(&fault{FieldTooLong, fmt.Sprintf("record is longer than %d bytes with its line ending", 16*m.maxField)})
	}
	return int(m.data[m.at+i])
}

func (m *modelRecord) record() (f *fault) {
	defer func() {
		if p := recover(); p != nil {
			f = p.(*fault)
		}
	}()
	for {
		m.field = m.at
		if m.peek(0) == '"' {
			m.quoted()
		} else {
			m.bare()
		}
		c := m.peek(0)
		m.at++
		if c == eof {
			m.at--
			return nil
		}
		if c == '\n' {
			return nil
		}
	}
}

// malformed is a fault at the next byte.
func (m *modelRecord) malformed(format string) *fault {
	return m.found(m.at, malformed(format, len(m.fields)+1))
}

// found is a fault at a byte of the record.
func (m *modelRecord) found(at int, f *fault) *fault {
	if bytes.IndexByte(m.data[m.start:at], '\n') >= 0 {
		f.detail += ", on a later line"
	}
	return f
}

func (m *modelRecord) put(cell []byte, c int) []byte {
	if len(cell) == m.maxField {
		panic(m.found(m.field, &fault{FieldTooLong, fmt.Sprintf("field %d is longer than %d bytes", len(m.fields)+1, m.maxField)}))
	}
	if c == 0 {
		panic(m.malformed("NUL byte in field %d"))
	}
	m.at++
	return append(cell, byte(c))
}

func (m *modelRecord) bare() {
	cell := []byte{}
	for {
		c := m.peek(0)
		switch {
		case c == eof || c == '\n' || c == ',':
			m.fields = append(m.fields, cell)
			return
		case c == '\r' && m.peek(1) == '\n':
			m.at++
			m.fields = append(m.fields, cell)
			return
		case c == '"' && len(cell) < m.maxField:
			panic(m.malformed("quote inside unquoted field %d"))
		}
		cell = m.put(cell, c)
	}
}

func (m *modelRecord) quoted() {
	cell := []byte{}
	m.at++
	for {
		c := m.peek(0)
		if c == eof {
			panic(m.found(m.field, malformed("the quote of field %d is never closed", len(m.fields)+1)))
		}
		if c == '"' {
			if m.peek(1) != '"' {
				break
			}
			m.at++
		}
		cell = m.put(cell, c)
	}
	m.at++
	switch c := m.peek(0); {
	case c == '\r' && m.peek(1) == '\n':
		m.at++
	case c != eof && c != '\n' && c != ',':
		panic(m.malformed("text after the closing quote of field %d"))
	}
	m.fields = append(m.fields, cell)
}
