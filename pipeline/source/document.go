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
		if p.Document == "" || !in.opts.MayBe(p) {
			continue
		}
		at, members, element := document(text, p.Document)
		fits := slices.ContainsFunc(p.Beside, func(name string) bool { return members[name] }) ||
			element != nil && !slices.ContainsFunc(p.Header, func(path string) bool {
				name, _, _ := strings.Cut(path, ".")
				return !element[name]
			})
		if at > 0 && fits && (best == nil || len(p.Header) > len(best.Header)) {
			in.Known, in.array, best = p, at, p
		}
	}
}

// document looks for an array of objects in a JSON object, of which text may be only the
// beginning. It returns where its elements begin (0: there is none, or something follows the
// object), and the names of the members of the object and of the first element that are in text.
func document(text []byte, name string) (at int64, members, element map[string]bool) {
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
	if t, err := d.Token(); err == nil && t == json.Delim('}') && d.More() {
		return 0, nil, nil
	}
	return at, members, element
}

// skipMembers moves past the members that follow the array of a document, and past the end of
// the object.
func (t *jsonText) skipMembers() error {
	for {
		c, err := t.peek()
		switch {
		case err == io.EOF:
			return errJSONEnds
		case err != nil:
			return err
		case c == '}':
			t.w.pos++
			return nil
		case c == ',' || c == ':':
			t.w.pos++
		default:
			if err := t.skipValue(); err != nil {
				return err
			}
		}
	}
}

func (t *jsonText) skipValue() error {
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
		if t.w.pos += n; state == jsonBroken || n == 0 {
			return errJSONValue
		}
	}
	return nil
}
