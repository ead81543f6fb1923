package campaigntest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Model is a plan in YAML's flow style, expanded in the slowest way: every combination becomes a URL, and
// equal URLs are dropped.
type Model struct {
	Parameters map[string][]string
	Sets       map[string][]map[string][]string
	Use        string
	Lower      bool
}

// File returns the model as a file of --expand-file.
func (m *Model) File() string {
	text := fmt.Sprintf("lower: %v\n", m.Lower)
	if len(m.Parameters) > 0 {
		text += "parameters: " + entryText(m.Parameters) + "\n"
	}
	if len(m.Sets) == 0 {
		return text
	}
	var sets []string
	for name, entries := range m.Sets {
		var list []string
		for _, e := range entries {
			list = append(list, entryText(e))
		}
		sets = append(sets, name+": ["+strings.Join(list, ", ")+"]")
	}
	text += "sets: {" + strings.Join(sets, ", ") + "}\n"
	if m.Use != "" {
		text += fmt.Sprintf("use: %q\n", m.Use)
	}
	return text
}

func entryText(e map[string][]string) string {
	var parts []string
	for name, values := range e {
		var list []string
		for _, v := range values {
			list = append(list, fmt.Sprintf("%q", v))
		}
		parts = append(parts, name+": ["+strings.Join(list, ", ")+"]")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// combinations returns those of an entry, the last name varying fastest.
func combinations(e map[string][]string) []map[string]string {
	all := []map[string]string{{}}
	for _, name := range slices.Sorted(maps.Keys(e)) {
		var next []map[string]string
		for _, c := range all {
			for _, v := range e[name] {
				with := maps.Clone(c)
				with[name] = v
				next = append(next, with)
			}
		}
		all = next
	}
	return all
}

// names returns the parameters.
func (m *Model) names() map[string]bool {
	names := map[string]bool{}
	for _, entries := range append(slices.Collect(maps.Values(m.Sets)), []map[string][]string{m.Parameters}) {
		for _, e := range entries {
			for name := range e {
				names[name] = true
			}
		}
	}
	return names
}

// Expand returns the variants of a row, or the parameter that is wrong. Values and cells are letters and digits,
// and what a cell has besides must not change when it is trimmed.
func (m *Model) Expand(url string, cells map[string]string) (variants []Variant, bad string) {
	used := func(string) bool { return true }
	if len(m.Sets) > 0 && m.Use != "" {
		sets := strings.Split(cells[strings.Trim(m.Use, "{}")], ",")
		if slices.ContainsFunc(sets, func(name string) bool { return m.Sets[name] == nil }) {
			return nil, "use"
		}
		used = func(set string) bool { return slices.Contains(sets, set) }
	}
	seen := map[string]bool{}
	var number int64
	each := func(own map[string]string, used bool) {
		for _, common := range combinations(m.Parameters) {
			number++
			all := maps.Clone(common)
			maps.Copy(all, own)
			values, wrong := m.values(all, cells)
			made := m.put(url, values)
			if !used {
				continue
			}
			if bad = cmp.Or(bad, wrong); !seen[made] {
				seen[made] = true
				variants = append(variants, Variant{Variant: number, URL: made, Values: values})
			}
		}
	}
	if len(m.Sets) == 0 {
		each(nil, true)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Sets)) {
		for _, e := range m.Sets[name] {
			for _, own := range combinations(e) {
				each(own, used(name))
			}
		}
	}
	return variants, bad
}

// values makes the values of a combination; those that are lacking are absent.
func (m *Model) values(texts, cells map[string]string) (values map[string]string, bad string) {
	values = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text, empty := texts[name], false
		for column, cell := range cells {
			empty = empty || cell == "" && strings.Contains(text, "{"+column+"}")
			text = strings.ReplaceAll(text, "{"+column+"}", cell)
		}
		if m.Lower {
			text = strings.ToLower(text)
		}
		whole := strings.Count(texts[name], "{") == 1 && strings.HasPrefix(texts[name], "{") && strings.HasSuffix(texts[name], "}")
		switch {
		case !empty:
			values[name] = text
		case !whole && bad == "":
			bad = name
		}
	}
	return values, bad
}

// put gives a URL the values in place of those that it has.
func (m *Model) put(url string, values map[string]string) string {
	url, fragment, hasFragment := strings.Cut(url, "#")
	url, query, _ := strings.Cut(url, "?")
	var pieces []string
	for _, piece := range strings.Split(query, "&") {
		name, _, _ := strings.Cut(piece, "=")
		if own := m.names(); piece != "" && !own[strings.ToLower(name)] {
			pieces = append(pieces, piece)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		pieces = append(pieces, name+"="+values[name])
	}
	if len(pieces) > 0 {
		url += "?" + strings.Join(pieces, "&")
	}
	if hasFragment {
		url += "#" + fragment
	}
	return url
}
