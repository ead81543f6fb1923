package campaign

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
)

// A spec is what is asked for, as it is written. Only the form of the file and of the flags is known to
// be right.
type spec struct {
	parameters entry
	sets       map[string]set
	use        *text
	lower      bool
	spaces     string // dash, underscore or keep
	allow      map[string]allowed
}

// A text is one that a user wrote.
type text struct {
	string
	at place
}

// A place is where a text stands, for people: a line of the file, or "--expand"; "": a manifest.
type place string

// wrong makes an error about what stands in a place.
func (at place) wrong(format string, args ...any) error {
	if at != "" {
		return fmt.Errorf("%s: %w", at, fmt.Errorf(format, args...))
	}
	return fmt.Errorf(format, args...)
}

// An entry has the values of parameters.
type entry map[string][]text

// A set is a list of entries.
type set struct {
	entries []entry
	at      place
}

// An allowed is the values that a parameter may have, or a pattern.
type allowed struct {
	values  []text
	pattern *text // nil: values
	at      place
}

// Parse makes a plan of flags, such as utm_source=mail,social, and the text of a file, which has a name
// for people; "": there is no file. There may be at most so many combinations. The error says what is
// wrong with what was asked for.
func Parse(flags []string, name string, file []byte, most int64) (*Plan, error) {
	if most < 1 || most > MaxMost {
		return nil, fmt.Errorf("--max-expand %d: want 1 to %d", most, MaxMost)
	}
	s := spec{spaces: "keep"}
	if name != "" {
		if err := s.readFile(name, file); err != nil {
			return nil, err
		}
	}
	added := entry{}
	for _, flag := range flags {
		if err := added.addFlag(flag); err != nil {
			return nil, err
		}
	}
	for name, values := range added {
		if _, twice := s.parameters[name]; twice {
			return nil, values[0].at.wrong("%s is a parameter of the file, too", name)
		}
	}
	if s.parameters == nil {
		s.parameters = entry{}
	}
	maps.Copy(s.parameters, added)
	p, err := newPlan(s)
	if err != nil {
		return nil, err
	}
	if p.count > most {
		return nil, fmt.Errorf("there are %s combinations, more than the %d of --max-expand", countOf(p.count), most)
	}
	return p, nil
}

func countOf(n int64) string {
	if n >= tooMany {
		return "far more than 1000000"
	}
	return fmt.Sprint(n)
}

// addFlag adds a flag: NAME=VALUE,VALUE…
func (e entry) addFlag(flag string) error {
	const at place = "--expand"
	name, list, ok := strings.Cut(flag, "=")
	name = trim(name)
	switch {
	case !utf8.ValidString(flag):
		return at.wrong("%q is not UTF-8", flag)
	case !ok:
		return at.wrong("%q: want NAME=VALUE,VALUE…", flag)
	case e[name] != nil:
		return at.wrong("%s is given twice; write its values into one flag, such as %[1]s=a,b", name)
	}
	for _, v := range splitList(list) {
		e[name] = append(e[name], text{v, at})
	}
	return nil
}

func trim(s string) string { return string(canon.Trim([]byte(s))) }

// splitList splits a list at the commas outside of placeholders.
func splitList(list string) (values []string) {
	start, inside := 0, false
	for i := range len(list) {
		switch c := list[i]; {
		case c == '{':
			inside = strings.IndexByte(list[i:], '}') > 0
		case c == '}':
			inside = false
		case c == ',' && !inside:
			values = append(values, list[start:i])
			start = i + 1
		}
	}
	return append(values, list[start:])
}

// split cuts a text into its parts. Columns that are not known so far are added to those of the plan.
func (p *Plan) split(s string) (parts []part, ok bool) {
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			return append(parts, part{s, -1}), true
		}
		if i > 0 {
			parts = append(parts, part{s[:i], -1})
		}
		end := strings.IndexAny(s[i+1:], "{}") + i + 1
		if s[i] == '}' || end <= i+1 || s[end] == '{' {
			return nil, false
		}
		name := s[i+1 : end]
		n, known := p.columnAt[name]
		if !known {
			n = len(p.columns)
			p.columns, p.columnAt[name] = append(p.columns, name), n
		}
		parts, s = append(parts, part{column: n}), s[end+1:]
	}
	return parts, true
}

// isConstant reports whether no part stands for a cell.
func isConstant(parts []part) bool {
	return !slices.ContainsFunc(parts, func(p part) bool { return p.column >= 0 })
}

// A Columns says where an input has the columns of a plan.
type Columns []int

// Bind finds the columns that placeholders name among those of an input.
func (p *Plan) Bind(names []string) (Columns, error) {
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	found := make(Columns, len(p.columns))
	for i, name := range p.columns {
		c, ok := at[name]
		if !ok {
			return nil, fmt.Errorf("there is no column %q for the placeholder {%[1]s}; the columns are %s", name, some(names))
		}
		found[i] = c
	}
	return found, nil
}

// make makes a value of a text whose cells are put in: it applies the rules 3 to 5 and appends the
// result. The error, which is for people, says which byte is wrong.
func (h how) make(dst, s []byte) ([]byte, error) {
	if !utf8.Valid(s) {
		return dst, errNotUTF8
	}
	if bytes.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return dst, errControl
	}
	return h.spell(dst, s), nil
}

// spell applies the rules 4 and 5.
func (h how) spell(dst, s []byte) []byte {
	if !h.lower && h.space == "" {
		return append(dst, s...)
	}
	blank := false
	for len(s) > 0 {
		r, n := rune(s[0]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(s)
		}
		s = s[n:]
		if h.lower {
			r = unicode.ToLower(r)
		}
		if h.space != "" && canon.IsTrimmed(r) {
			if !blank {
				dst = append(dst, h.space...)
			}
			blank = true
			continue
		}
		blank = false
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// appendPiece appends a piece of a URL: name=value, in which each byte that is not unreserved is escaped.
func appendPiece(dst []byte, name string, value []byte) []byte {
	dst = append(append(dst, name...), '=')
	for _, c := range value {
		if isUnreserved(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hexUpper[c>>4], hexUpper[c&15])
		}
	}
	return dst
}

const hexUpper = "0123456789ABCDEF"

func isUnreserved(c byte) bool {
	return c|0x20-'a' < 26 || c-'0' < 10 || c == '-' || c == '.' || c == '_' || c == '~'
}
