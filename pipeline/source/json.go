package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/columns"
)

// A JSON text is read twice: by Open for the names of all members, which become columns, and by
// Read. One worker at a time cuts records off the text. It does not look into them, which takes
// most of the time and is done by all workers.

// isJSON says whether a text begins as JSON: with an array whose first element can be parsed, or
// with objects. A line that is an object is enough, since others may be broken. (A header of a
// CSV, too, may begin with a bracket.)
func isJSON(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte(utf8BOM))
	text = text[jsonSpace(text, 0):]
	in := json.NewDecoder(bytes.NewReader(text))
	var value json.RawMessage
	switch {
	case bytes.HasPrefix(text, []byte("[")):
		in.Token()
		err := error(nil)
		if in.More() {
			err = in.Decode(&value)
		}
		if err == nil && !in.More() {
			in.Token() // the array ends, and nothing follows it
			_, err = in.Token()
		}
		return err == nil || err == io.EOF || err == io.ErrUnexpectedEOF
	case bytes.HasPrefix(text, []byte("{")):
		err := in.Decode(&value)
		if err == io.ErrUnexpectedEOF || err == nil && objectEnds(text[in.InputOffset():]) {
			return true
		}
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(line, []byte("{")) && json.Valid(line) {
				return true
			}
		}
	}
	return false
}

// objectEnds says whether an object that is a record may stand before rest: the next record
// begins on another line, or is an object too.
func objectEnds(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r")
	return len(rest) == 0 || rest[0] == '\n' || rest[0] == '{'
}

// jsonSpace returns the position of the first byte from p on that is not white space.
func jsonSpace(text []byte, p int) int {
	for p < len(text) && isJSONSpace(text[p]) {
		p++
	}
	return p
}

func isJSONSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// openJSON reads the whole text for the names of its columns. Of a stream it makes a copy, since
// Read needs the text again.
func (in *Input) openJSON() error {
	in.Format = "json"
	in.findDocument()
	names := &jsonNames{most: 16 * in.opts.MaxField}
	err := in.withJSON(func(t *jsonText) error {
		var part jsonPart
		row := jsonRow{jsonNames: names, text: t}
		for t.take(&part) {
			if row.readAll(&part); names.tooMany {
				return &columns.UsageError{Input: in.Name, Msg: fmt.Sprintf("has more than %d members of different names, or names of more than %d bytes in all", columns.MaxColumns, names.most)}
			}
		}
		in.Blank = t.records == 0
		if in.array > 0 {
			in.readPage(t)
		}
		return t.failure()
	})
	if err != nil {
		return err
	}
	in.read = func(r *reading) error {
		return in.withJSON(func(t *jsonText) error { return t.readRows(r, names) })
	}
	if header := names.columns(); len(header) > 0 {
		err := in.setColumns(header)
		if in.wrapped != nil && err != nil {
			return &columns.UsageError{Input: in.Name, Msg: fmt.Sprintf("looks like %s, which has its links in the member %s: Config.Legacy keep, both or map reads them, with their codes", in.wrapped.Product, in.wrapped.Document)}
		}
		return err
	}
	in.SetNames([]string{""}) // no record has a member: any column will do
	in.URLs = []int{0}
	return nil
}

// withJSON calls f with the text from its start: of a file src, of a stream its copy.
func (in *Input) withJSON(f func(*jsonText) error) error {
	w := in.src
	if in.info == nil {
		r, err := in.random()
		if err != nil {
			return err
		}
		w = newWindow(w.ctx, newStream(newDigest(io.NewSectionReader(r, 0, r.size), new(atomic.Int64), true), in.opts.Block, ""))
		defer w.Close()
	}
	if err := w.look(len(utf8BOM)); err != nil {
		return err
	}
	if bytes.HasPrefix(w.buf[w.pos:], []byte(utf8BOM)) {
		w.pos += len(utf8BOM)
	}
	t := &jsonText{in: in, w: w, array: in.array > 0}
	if t.array {
		if err := w.look(int(in.array)); err != nil {
			return err
		}
		w.pos = min(w.pos+int(in.array), len(w.buf)) // the file may have changed
		return f(t)
	}
	first, err := t.peek()
	if err != nil {
		return err
	}
	if t.array = first == '['; t.array {
		w.pos++
	}
	return f(t)
}

// A jsonText is an array of records, or records one after the other.
type jsonText struct {
	in      *Input
	array   bool
	tail    []byte // of a document, what follows the array
	tooMuch bool   // there is more of it

	mu      sync.Mutex
	w       *window
	records int64 // before the window
	ended   bool
	err     *ReadError // the first one in the text
}

// A jsonPart is some records of a text, for one worker.
type jsonPart struct {
	before  int64 // records of the text
	text    []byte
	records []jsonRecord
}

// A jsonRecord is an element of an array, an object, or a line. In a part it begins where the one
// before ends.
type jsonRecord struct {
	offset int64
	length int64 // of which text has at most MaxField bytes
	end    int   // in text
}

// take cuts the next records off the text. It returns false if there are none.
func (t *jsonText) take(p *jsonPart) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cap(p.text) > 4*batchBytes {
		p.text = nil
	}
	p.before, p.text, p.records = t.records, p.text[:0], p.records[:0]
	for !t.ended && len(p.text) < batchBytes && len(p.records) < t.in.opts.BatchRows {
		err := t.begin()
		if t.in.Limit > 0 && t.records == t.in.Limit && err == nil {
			t.in.cut, t.ended = true, true
			break
		}
		if err == nil && t.array {
			err = t.element(p)
		} else if err == nil {
			err = t.object(p)
		}
		if err != nil {
			t.ended = true
			if err != io.EOF {
				t.fail(t.records, t.w.offset(), err)
			}
			break
		}
		t.records++
	}
	return len(p.records) > 0
}

// fail notes an error at offset, after so many records. The caller holds mu.
func (t *jsonText) fail(after, offset int64, err error) {
	t.ended = true
	if t.err == nil || after < t.err.After {
		t.err = &ReadError{Input: t.in.Name, After: after, Err: err, near: fmt.Sprintf(" (byte %d)", offset)}
	}
}

// failure returns the first error, once all workers have ended.
func (t *jsonText) failure() error {
	if t.err == nil {
		return nil
	}
	return t.err
}

// peek moves past white space and returns the byte that follows.
func (t *jsonText) peek() (byte, error) {
	w := t.w
	for {
		if w.pos = jsonSpace(w.buf, w.pos); w.pos < len(w.buf) {
			return w.buf[w.pos], nil
		}
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
}

// begin moves to the next record. If there is none it returns io.EOF.
func (t *jsonText) begin() error {
	c, err := t.peek()
	switch {
	case !t.array:
		return err
	case err == nil && c == ']':
		t.w.pos++
		if t.in.array > 0 {
			if err := t.skipMembers(); err != nil {
				return err
			}
		}
		if c, err = t.peek(); err == nil {
			err = fmt.Errorf("%q after the end of the array", c)
		}
		return err
	case err == nil && t.records > 0:
		if c != ',' {
			return fmt.Errorf("%q where there should be a comma or the end of the array", c)
		}
		t.w.pos++
		c, err = t.peek()
	}
	switch {
	case err == io.EOF:
		return errJSONEnds
	case err == nil && (c == ',' || c == ']' || c == '}'):
		return fmt.Errorf("%q where there should be an element of the array", c)
	}
	return err
}

var (
	errJSONEnds  = errors.New("the text ends within the array: it is not whole")
	errJSONValue = errors.New("the brackets of a value do not match, or a line ends within a string")
)

// element cuts off an element of an array.
func (t *jsonText) element(p *jsonPart) error {
	w, most, start := t.w, t.in.opts.MaxField, len(p.text)
	r := jsonRecord{offset: w.offset()}
	var s jsonScan
	for state := jsonGoesOn; state == jsonGoesOn; {
		if w.pos == len(w.buf) {
			err := w.fill()
			if err == io.EOF {
				t.cause(p.text[start:], r.offset)
				err = errJSONEnds
			}
			if err != nil {
				return err
			}
		}
		var n int
		n, state = s.scan(w.buf[w.pos:])
		p.text = append(p.text, w.buf[w.pos:w.pos+min(n, start+most-len(p.text))]...)
		r.length += int64(n)
		w.pos += n
		if state == jsonBroken {
			t.cause(p.text[start:], r.offset)
			w.pos--
			return errJSONValue
		}
	}
	r.end = len(p.text)
	p.records = append(p.records, r)
	return nil
}

// cause notes the first error in an element, if it is in the start of it.
func (t *jsonText) cause(start []byte, offset int64) {
	err := json.NewDecoder(bytes.NewReader(start)).Decode(new(json.RawMessage))
	if err, ok := errors.AsType[*json.SyntaxError](err); ok { // the start may only be cut
		t.fail(t.records, offset+err.Offset-1, err)
	}
}

// object cuts off an object, or else a line.
func (t *jsonText) object(p *jsonPart) error {
	n, err := t.whole()
	if err != nil {
		return err
	}
	w := t.w
	start := len(p.text)
	p.text = append(p.text, w.buf[w.pos:w.pos+n]...)
	r := jsonRecord{offset: w.offset(), length: int64(n)}
	w.pos += n
	for n == 0 {
		if w.pos == len(w.buf) {
			if err := w.fill(); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
		}
		line := w.buf[w.pos:]
		if lf := bytes.IndexByte(line, '\n'); lf >= 0 {
			line, n = line[:lf], lf+1
		}
		p.text = append(p.text, line[:min(len(line), start+t.in.opts.MaxField-len(p.text))]...)
		r.length += int64(len(line))
		w.pos += len(line)
	}
	if r.length <= int64(t.in.opts.MaxField) {
		line := bytes.TrimRight(p.text[start:], " \t\r")
		p.text, r.length = p.text[:start+len(line)], int64(len(line))
	}
	r.end = len(p.text)
	p.records = append(p.records, r)
	return nil
}

// whole returns the length of the object with which the window starts; 0: none of at most
// MaxField bytes that is a record. One of several lines must be valid: else a line without its
// last bracket would take all that follow with it.
func (t *jsonText) whole() (int, error) {
	w, most := t.w, t.in.opts.MaxField
	if w.buf[w.pos] != '{' {
		return 0, nil
	}
	var s jsonScan
	n := 0
	for state := jsonGoesOn; state != jsonDone; {
		if state == jsonBroken || n == most {
			return 0, nil
		}
		if w.pos+n == len(w.buf) {
			if err := w.fill(); err == io.EOF {
				return 0, nil
			} else if err != nil {
				return 0, err
			}
		}
		var m int
		m, state = s.scan(w.buf[w.pos+n : min(len(w.buf), w.pos+most)])
		n += m
	}
	for end := n; end <= most; end++ {
		if w.pos+end == len(w.buf) {
			if err := w.fill(); err != nil && err != io.EOF {
				return 0, err
			}
		}
		rest := w.buf[w.pos+end : min(len(w.buf), w.pos+end+1)]
		if len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r') {
			continue
		}
		text := w.buf[w.pos : w.pos+n]
		if objectEnds(rest) && (bytes.IndexByte(text, '\n') < 0 || json.Valid(text)) {
			return n, nil
		}
		break
	}
	return 0, nil
}

// A jsonScan finds the end of a value, which may come in parts. It does not check the value.
type jsonScan struct {
	open            []byte // brackets
	quoted, escaped bool
}

const (
	jsonGoesOn = iota // the value does not end in the part
	jsonDone
	jsonBroken // it cannot be one
)

// jsonDepth is how deep a value may be nested for the decoder.
const jsonDepth = 10_000

// scan returns how many bytes of part belong to the value.
func (s *jsonScan) scan(part []byte) (n, state int) {
	for i := 0; i < len(part); i++ {
		c := part[i]
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			switch c {
			case '"':
				if s.quoted = false; len(s.open) == 0 {
					return i + 1, jsonDone
				}
			case '\\':
				s.escaped = true
			case '\n':
				return i + 1, jsonBroken
			}
		case c == '"':
			s.quoted = true
			text := part[i+1:]
			if q := bytes.IndexByte(text, '"'); q >= 0 && bytes.IndexByte(text[:q], '\\') < 0 && bytes.IndexByte(text[:q], '\n') < 0 {
				i += q // most strings are quick to pass
			}
		case c == '{' || c == '[':
			if s.open = append(s.open, c); len(s.open) > jsonDepth {
				return i + 1, jsonBroken
			}
		case c == '}' || c == ']':
			last := len(s.open) - 1
			if last < 0 {
				return i, jsonDone // it is a number or a word
			}
			if s.open[last] != c-2 { // as it is in ASCII
				return i + 1, jsonBroken
			}
			if s.open = s.open[:last]; last == 0 {
				return i + 1, jsonDone
			}
		case len(s.open) == 0 && (c == ',' || isJSONSpace(c)):
			return i, jsonDone
		}
	}
	return len(part), jsonGoesOn
}

// readRows has the workers make rows of the records.
func (t *jsonText) readRows(r *reading, names *jsonNames) error {
	err := r.share(func(b *batcher) error {
		var part jsonPart
		row := jsonRow{jsonNames: names, text: t, b: b, seen: make([]int64, len(names.all)), names: t.in.numbersAreNames()}
		for t.take(&part) {
			b.base = part.before
			if err := row.readAll(&part); err != nil {
				return err
			}
			if err := b.flush(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.failure()
}
