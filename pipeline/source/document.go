package source

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/profile"
)

// A document is a JSON object of which one member is the array of records. The others are skipped.

// findDocument sets profile and array if the text, as far as it was looked at, begins as the
// document of a profile.
func (in *Input) findDocument() {
	w := in.src
	text := bytes.TrimPrefix(w.buf[w.pos:], []byte(utf8BOM))
	var best *profile.Profile
	for _, p := range profile.All() {
		if p.Document == "" {
			continue
		}
		at, members, element := document(text, p.Document)
		fits := slices.ContainsFunc(p.Beside, func(name string) bool { return members[name] }) ||
			element != nil && !slices.ContainsFunc(p.Header, func(path string) bool {
				name, _, _ := strings.Cut(path, ".")
				return !element[name]
			})
		if at > 0 && fits && (best == nil || len(p.Header) > len(best.Header)) {
			in.array, best = at, p
		}
	}
	switch {
	case best == nil:
	case in.opts.MayBe(best):
		in.Known, in.beside = best, append(in.beside, text[:in.array]...)
	default:
		if in.array = 0; !in.opts.Legacy && in.opts.Profile == "" {
			in.wrapped = best
		}
	}
}

// document looks for an array of objects in a JSON object, of which text may be only the
// beginning. It returns where its elements begin (0: there is none, or something follows the
// object), and the names of the members of the object and of the first element that are in text. With
// a dot in its path the array is in an object in the object.
func document(text []byte, path string) (at int64, members, element map[string]bool) {
	outer, name, nested := strings.Cut(path, ".")
	if !nested {
		return arrayIn(text, path, true)
	}
	start := objectIn(text, outer)
	if start == 0 {
		return 0, nil, nil
	}
	if at, members, element = arrayIn(text[start:], name, false); at > 0 {
		at += int64(start)
	}
	return at, members, element
}

// arrayIn is document of a name without a dot. The object stands alone, or in another.
func arrayIn(text []byte, name string, alone bool) (at int64, members, element map[string]bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, _ := d.Token(); t != json.Delim('{') {
		return 0, nil, nil
	}
	members = map[string]bool{}
	for d.More() {
		t, _ := d.Token()
		member, ok := t.(string)
		if !ok {
			return at, members, element
		}
		members[member] = true
		value := bytes.TrimLeft(text[d.InputOffset():], ": \t\r\n")
		if member != name || !bytes.HasPrefix(value, []byte("[")) {
			if d.Decode(new(json.RawMessage)) != nil {
				return at, members, element
			}
			continue
		}
		d.Token()
		at = d.InputOffset()
		if value = bytes.TrimLeft(value[1:], " \t\r\n"); len(value) > 0 && value[0] != '{' && value[0] != ']' {
			return 0, nil, nil
		}
		for d.More() {
			var record map[string]json.RawMessage
			if d.Decode(&record) != nil {
				return at, members, element
			}
			if element == nil {
				element = map[string]bool{}
				for name := range record {
					element[name] = true
				}
			}
		}
		d.Token()
	}
	if t, err := d.Token(); alone && err == nil && t == json.Delim('}') && d.More() {
		return 0, nil, nil
	}
	return at, members, element
}

// objectIn returns where the object that is a member of a JSON object begins; 0: there is none.
func objectIn(text []byte, name string) int {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, _ := d.Token(); t != json.Delim('{') {
		return 0
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return 0
		}
		rest := text[d.InputOffset():]
		value := bytes.TrimLeft(rest, ": \t\r\n")
		if t == name && bytes.HasPrefix(value, []byte("{")) {
			return len(text) - len(value)
		}
		if d.Decode(new(json.RawMessage)) != nil {
			return 0
		}
	}
	return 0
}

// skipMembers moves past the members that follow the array of a document, and past the end of
// the object.
func (t *jsonText) skipMembers() error {
	for depth := 1 + strings.Count(t.in.Known.Document, "."); ; {
		c, err := t.peek()
		switch {
		case err == io.EOF:
			return errJSONEnds
		case err != nil:
			return err
		case c == '}' || c == ',' || c == ':':
			t.passed(1)
			if c == '}' {
				depth--
			}
			if depth == 0 {
				return nil
			}
		default:
			if err := t.skipValue(); err != nil {
				return err
			}
		}
	}
}

// Of what stands beside the array of a document so many bytes are kept, and so many of each member.
const (
	mostBeside = 1 << 20
	mostMember = 64 << 10
)

// passed moves on by n bytes, and keeps them.
func (t *jsonText) passed(n int) {
	if len(t.tail)+n > mostBeside {
		t.tooMuch = true
	} else {
		t.tail = append(t.tail, t.w.buf[t.w.pos:t.w.pos+n]...)
	}
	t.w.pos += n
}

// skipValue moves past a value. One that is large is kept as null: it says nothing of other pages.
func (t *jsonText) skipValue() error {
	start, large := len(t.tail), false
	var s jsonScan
	for state := jsonGoesOn; state == jsonGoesOn; {
		if t.w.pos == len(t.w.buf) {
			if err := t.w.fill(); err == io.EOF {
				return errJSONEnds
			} else if err != nil {
				return err
			}
		}
		var n int
		n, state = s.scan(t.w.buf[t.w.pos:])
		if t.passed(n); state == jsonBroken || n == 0 {
			return errJSONValue
		}
		if large = large || len(t.tail)-start > mostMember; large {
			t.tail = append(t.tail[:start], "null"...)
		}
	}
	return nil
}
