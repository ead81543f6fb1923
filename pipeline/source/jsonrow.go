package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/profile"
)

// jsonNames are the names of all members of the records of a JSON text, also of those in objects
// that are members.
type jsonNames struct {
	root    jsonName
	all     []*jsonName // in the order in which they are met
	size    int         // bytes of their paths
	most    int         // of size
	tooMany bool
}

// A jsonName is the name of a member, or the root.
type jsonName struct {
	path    string // with those of the objects around it, joined by dots
	id      int    // in jsonNames.all
	value   bool   // some record has something else for it than null or an object with members
	column  int    // -1: none
	members map[string]*jsonName
}

// add adds the name of a member of parent.
func (s *jsonNames) add(parent *jsonName, name string) *jsonName {
	n := &jsonName{path: name, id: len(s.all)}
	if parent != &s.root {
		n.path = parent.path + "." + name
	}
	if s.size += len(n.path); s.size > s.most || len(s.all) == columns.MaxColumns {
		s.tooMany = true
		return n
	}
	if parent.members == nil {
		parent.members = make(map[string]*jsonName)
	}
	parent.members[name] = n
	s.all = append(s.all, n)
	return n
}

// columns numbers the names that are columns, and returns their paths. An object that is null in
// some records is no column.
func (s *jsonNames) columns() (header []string) {
	for _, n := range s.all {
		n.column = -1
		if n.value || n.members == nil {
			n.column = len(header)
			header = append(header, n.path)
		}
	}
	return header
}

// A jsonRow makes rows of records for one worker, or only collects their names. The cell of a
// string is its decoded bytes; of a number, of true and of false it is their text (of a number that is a
// name its value); of an array, or an object without members, JSON without white space.
type jsonRow struct {
	*jsonNames
	text  *jsonText
	b     *batcher // nil: names are collected
	seen  []int64  // for each name, the last row that has it
	row   int64    // counts from 1
	fault *fault   // of the row
	key   []byte
	cell  bytes.Buffer
	names []bool // columns whose numbers are names
	some  bool   // the row has a cell that is not blank
}

// readAll reads the records of a part. A record that is not JSON ends an array, but not a text of
// objects.
func (r *jsonRow) readAll(p *jsonPart) error {
	start := 0
	for i, rec := range p.records {
		if r.b != nil && r.b.full() {
			if err := r.b.flush(); err != nil {
				return err
			}
		}
		raw := p.text[start:rec.end]
		start = rec.end
		f, syntax := r.read(raw, rec.length)
		switch {
		case syntax != nil && r.text.array:
			r.text.mu.Lock()
			r.text.fail(p.before+int64(i), rec.offset+syntax.Offset-1, syntax)
			r.text.mu.Unlock()
			return nil
		case r.b == nil:
		case f != nil:
			r.b.bad(rec.offset, f, raw, nil)
		case !r.some:
			r.b.blank(rec.offset)
		default:
			r.b.row(rec.offset, len(raw)+8*len(r.b.cols)) // a row of nulls has a size too
		}
	}
	return nil
}

// jsonCells ends the detail of a record that is no row: rejects have its JSON as the raw line,
// which cannot be split as one.
const jsonCells = "; raw is JSON" + fillCells

// read puts the cells of a record into the columns, or says why it is no row. An error in its
// syntax is returned as well.
func (r *jsonRow) read(raw []byte, length int64) (*fault, *json.SyntaxError) {
	switch {
	case length > int64(len(raw)):
		return &fault{FieldTooLong, fmt.Sprintf("the record is longer than %d bytes; raw has the first %[1]d of its %d bytes", len(raw), length)}, nil
	case !json.Valid(raw):
		err, _ := errors.AsType[*json.SyntaxError](json.Unmarshal(raw, new(json.RawMessage)))
		return malformed("%v (byte %d of the record)%s", err, err.Offset, jsonCells), err
	case raw[0] != '{':
		return malformed("%s where there should be an object%s", jsonKind(raw[0]), jsonCells), nil
	case !utf8.Valid(raw):
		return malformed("bytes that are not UTF-8%s", jsonCells), nil
	}
	r.row++
	r.fault, r.some = nil, false
	r.object(raw, 0, &r.root)
	if r.b == nil {
		return nil, nil
	}
	if r.fault != nil {
		r.b.undo()
		return r.fault, nil
	}
	for i := range r.b.cols {
		if !r.filled(i) {
			r.b.null(i)
		}
	}
	return nil, nil
}

// filled says whether column i has the cell of the row.
func (r *jsonRow) filled(i int) bool { return len(r.b.cols[i].ends) > len(r.b.rows)+1 }

// jsonKind says what a value is, by its first byte.
func jsonKind(c byte) string {
	switch c {
	case '"':
		return "a string"
	case '[':
		return "an array"
	case 't', 'f', 'n':
		return "true, false or null"
	}
	return "a number"
}

// object reads the members of the object at raw[p:], which is valid, and returns where it ends. A
// fault ends it at once.
func (r *jsonRow) object(raw []byte, p int, n *jsonName) int {
	p++
	for r.fault == nil {
		switch p = jsonSpace(raw, p); raw[p] {
		case '}':
			return p + 1
		case ',':
			p++
			continue
		}
		end := jsonEnd(raw, p)
		r.key = r.unquote(r.key[:0], raw[p+1:end-1])
		p = jsonSpace(raw, jsonSpace(raw, end)+1) // past the colon
		if member := r.member(n); r.fault == nil {
			p = r.value(raw, p, member)
		}
	}
	return p
}

// member returns the name of the member r.key of an object.
func (r *jsonRow) member(parent *jsonName) *jsonName {
	n := parent.members[string(r.key)]
	switch {
	case r.fault != nil:
	case n == nil && r.b == nil:
		n = r.add(parent, string(r.key))
	case n == nil:
		r.fault = malformed("the member %.60q was not there when the file was opened%s", r.key, jsonCells)
	case r.b == nil:
	case r.seen[n.id] == r.row:
		r.fault = malformed("two members have the name %.60q%s", n.path, jsonCells)
	default:
		r.seen[n.id] = r.row
	}
	return n
}

// value reads the value at raw[p:] and returns where it ends.
func (r *jsonRow) value(raw []byte, p int, n *jsonName) int {
	if raw[p] == '{' && raw[jsonSpace(raw, p+1)] != '}' {
		return r.object(raw, p, n)
	}
	end := jsonEnd(raw, p)
	text := raw[p:end]
	switch {
	case text[0] == 'n':
		return end
	case r.b == nil:
		n.value = true
		return end
	}
	c := &r.b.cols[n.column]
	start := len(c.data)
	switch text[0] {
	case '"':
		c.data = r.unquote(c.data, text[1:len(text)-1])
		text = nil
	case '[', '{':
		r.cell.Reset()
		json.Compact(&r.cell, text)
		text = r.cell.Bytes()
	case 't', 'f':
	default:
		if r.names[n.column] {
			c.data = profile.AppendNumber(c.data, text)
			text = nil
		}
	}
	c.append(text)
	r.some = r.some || !isBlank(c.data[start:])
	return end
}

// jsonEnd returns where the value at raw[p:] ends.
func jsonEnd(raw []byte, p int) int {
	var s jsonScan
	n, _ := s.scan(raw[p:])
	return p + n
}

// unquote appends the text of a string, which is between its quotes.
func (r *jsonRow) unquote(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		c := s[i+1]
		s = s[i+2:]
		if c != 'u' {
			if k := strings.IndexByte("bfnrt", c); k >= 0 {
				c = "\b\f\n\r\t"[k]
			}
			dst = append(dst, c)
			continue
		}
		char := jsonUnit(s)
		if s = s[4:]; utf16.IsSurrogate(char) {
			low := rune(0)
			if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
				low = jsonUnit(s[2:])
			}
			if char = utf16.DecodeRune(char, low); char == utf8.RuneError {
				r.fault = malformed("a string has half of a surrogate pair%s", jsonCells)
				return dst
			}
			s = s[6:]
		}
		dst = utf8.AppendRune(dst, char)
	}
}

// jsonUnit decodes the four digits after \u.
func jsonUnit(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[:4]), 16, 16)
	return rune(n)
}
