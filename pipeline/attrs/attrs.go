// Package attrs writes what a migrated link was elsewhere, such as its title and tags, as a JSON
// object. Equal cells give equal bytes, and the cells of an export give the object again out of
// which they were made. It knows no files and no stores.
package attrs

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/profile"
)

// A Form says how a cell becomes a value.
type Form int

const (
	Text     Form = iota // a string, as it is
	Tags                 // an array of strings (see profile.TagsOf)
	Time                 // of what profile.ParseTime reads a string of RFC 3339 in UTC, else as Text
	Count                // of 1 to 18 digits a number, else as Text
	Redirect             // of what profile.ParseRedirect reads a number; anything else is left out
	Mean                 // of what profile.ParseMean reads a number, the shortest that reads as the same, else as Text
)

// A Field is a member of the object.
type Field struct {
	Name      string
	Form      Form
	Separator string // of Tags
}

// Append appends the object of a row, whose cells are given by the index of their field. Fields
// must be in byte order of their names, without repeats; this is the order of the members. A blank
// cell is left out. Without members nothing is appended.
//
// The object has no white space, and its strings are written as encoding/json writes them without
// EscapeHTML. A byte that is not UTF-8 becomes %XX, and so does NUL, which jsonb cannot hold.
func Append(dst []byte, fields []Field, cell func(i int) []byte) []byte {
	start, next := len(dst), byte('{')
	for i, f := range fields {
		text := canon.EscapeInvalid(cell(i))
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		before := len(dst)
		dst = append(appendString(append(dst, next), canon.EscapeInvalid([]byte(f.Name))), ':')
		value := len(dst)
		if dst = f.append(dst, text); len(dst) == value {
			dst = dst[:before]
			continue
		}
		next = ','
	}
	if len(dst) > start {
		dst = append(dst, '}')
	}
	return dst
}

// append appends the value of a text that is UTF-8 and not blank; nothing: it has no tags.
func (f *Field) append(dst, text []byte) []byte {
	switch f.Form {
	case Tags:
		return appendTags(dst, text, f.Separator)
	case Time:
		if t, ok := profile.ParseTime(text); ok {
			return append(t.AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
		}
	case Count:
		if n, ok := profile.ParseCount(text); ok {
			return strconv.AppendInt(dst, n, 10)
		}
	case Mean:
		if x, ok := profile.ParseMean(text); ok {
			return strconv.AppendFloat(dst, x, 'f', -1, 64)
		}
	case Redirect:
		if n, ok := profile.ParseRedirect(text); ok {
			return strconv.AppendInt(dst, n, 10)
		}
		return dst
	}
	return appendString(dst, text)
}

func appendTags(dst, text []byte, separator string) []byte {
	tags := profile.TagsOf(text, separator)
	start := len(dst)
	dst = appendArray(dst, tags)
	if bytes.IndexByte(text, 0) >= 0 || bytes.Contains(text, []byte(`\u0000`)) { // as %00, tags may have become equal
		dst = appendArray(dst[:start], profile.TagsOf(bytes.Clone(dst[start:]), ""))
	}
	return dst
}

func appendArray(dst []byte, texts [][]byte) []byte {
	next := byte('[')
	for _, text := range texts {
		dst = appendString(append(dst, next), text)
		next = ','
	}
	if len(texts) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// escapes has what stands for a byte in a string, if not the byte itself. It is read only.
var escapes = func() (of [256]string) {
	for c := range ' ' {
		of[c] = fmt.Sprintf(`\u%04x`, c)
	}
	of[0] = "%00"
	of['\b'], of['\t'], of['\n'], of['\f'], of['\r'] = `\b`, `\t`, `\n`, `\f`, `\r`
	of['"'], of['\\'] = `\"`, `\\`
	return of
}()

// appendString appends a text, which is UTF-8, as a string in JSON.
func appendString(dst, text []byte) []byte {
	dst = append(dst, '"')
	done := 0
	for i, c := range text {
		from, escape := i, escapes[c]
		if c|1 == "\u2029"[2] && bytes.HasSuffix(text[:i], []byte("\u2029"[:2])) { // they end a line in JavaScript
			from, escape = i-2, [...]string{`\u2028`, `\u2029`}[c&1]
		}
		if escape != "" {
			dst = append(append(dst, text[done:from]...), escape...)
			done = i + 1
		}
	}
	return append(append(dst, text[done:]...), '"')
}
