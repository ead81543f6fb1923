package campaign

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// Text returns the plan as a manifest has it: JSON in one text, by which plans are told apart.
func (p *Plan) Text() string {
	s := &p.asked
	var out []byte
	key := func(name string) {
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(appendJSON(out, name), ':')
	}
	if len(s.allow) > 0 {
		key("allow")
		out = appendObject(out, s.allow, appendAllowed)
	}
	key("lower")
	out = append(out, map[bool]string{true: "true", false: "false"}[s.lower]...)
	if len(s.parameters) > 0 {
		key("parameters")
		out = appendEntry(out, s.parameters)
	}
	if len(s.sets) > 0 {
		key("sets")
		out = appendObject(out, s.sets, func(out []byte, s set) []byte { return appendList(out, s.entries, appendEntry) })
	}
	key("spaces")
	out = appendJSON(out, s.spaces)
	if s.use != nil {
		key("use")
		out = appendJSON(out, trim(s.use.string))
	}
	return "{" + string(out) + "}"
}

func appendEntry(out []byte, e entry) []byte {
	return appendObject(out, e, func(out []byte, values []text) []byte { return appendList(out, values, appendTrimmed) })
}

func appendTrimmed(out []byte, t text) []byte { return appendJSON(out, trim(t.string)) }

func appendAllowed(out []byte, a allowed) []byte {
	if a.pattern == nil {
		return appendList(out, a.values, appendTrimmed)
	}
	return append(appendJSON(append(out, `{"pattern":`...), a.pattern.string), '}')
}

func appendObject[V any](out []byte, m map[string]V, value func([]byte, V) []byte) []byte {
	separator := byte('{')
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = value(append(appendJSON(append(out, separator), name), ':'), m[name])
		separator = ','
	}
	return append(out, '}')
}

func appendList[V any](out []byte, list []V, value func([]byte, V) []byte) []byte {
	separator := byte('[')
	for _, v := range list {
		out = value(append(out, separator), v)
		separator = ','
	}
	return append(out, ']')
}

// appendJSON appends a text in quotes.
func appendJSON(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			const hex = "0123456789abcdef"
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

var errText = errors.New("is not a plan")

// ParseText returns the plan whose Text this is.
func ParseText(s string) (*Plan, error) {
	var read struct {
		Allow      map[string]json.RawMessage
		Lower      bool
		Parameters map[string][]string
		Sets       map[string][]map[string][]string
		Spaces     string
		Use        *string
	}
	if err := json.Unmarshal([]byte(s), &read); err != nil {
		return nil, errText
	}
	asked := spec{parameters: entryOf(read.Parameters), sets: map[string]set{}, lower: read.Lower, spaces: read.Spaces, allow: map[string]allowed{}}
	for name, entries := range read.Sets {
		var one set
		for _, e := range entries {
			one.entries = append(one.entries, entryOf(e))
		}
		asked.sets[name] = one
	}
	if read.Use != nil {
		asked.use = &text{string: *read.Use}
	}
	for name, raw := range read.Allow {
		var pattern struct{ Pattern string }
		var values []string
		if json.Unmarshal(raw, &values) == nil {
			asked.allow[name] = allowed{values: textsOf(values)}
		} else if json.Unmarshal(raw, &pattern) == nil {
			asked.allow[name] = allowed{pattern: &text{string: pattern.Pattern}}
		}
	}
	for _, one := range asked.sets {
		if !one.isGood() {
			return nil, errText
		}
	}
	if !asked.parameters.isGood() && len(asked.parameters) > 0 || !slices.Contains(spacings, asked.spaces) {
		return nil, errText
	}
	p, err := newPlan(asked)
	if err == nil && (p.Text() != s || p.count > MaxMost) {
		err = errText
	}
	return p, err
}

func entryOf(values map[string][]string) entry {
	e := entry{}
	for name, list := range values {
		e[name] = textsOf(list)
	}
	return e
}

func textsOf(list []string) (texts []text) {
	for _, s := range list {
		texts = append(texts, text{string: s})
	}
	return texts
}

// isGood reports whether something is in all lists of a set.
func (s *set) isGood() bool {
	return len(s.entries) > 0 && !slices.ContainsFunc(s.entries, func(e entry) bool { return !e.isGood() })
}

func (e entry) isGood() bool {
	for _, values := range e {
		if len(values) == 0 {
			return false
		}
	}
	return len(e) > 0
}
