package campaign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A file is a YAML file that is read.
type file struct {
	name string
	text []byte
}

func (f *file) at(n *yaml.Node) place { return f.line(n.Line) }

func (f *file) line(n int) place { return place(fmt.Sprintf("%s, line %d", f.name, n)) }

// keys are those of a file.
var keys = []string{"parameters", "sets", "use", "lower", "spaces", "allow"}

// spacings are the values of the key spaces.
var spacings = []string{"dash", "underscore", "keep"}

// readFile reads a file.
func (s *spec) readFile(name string, text []byte) error {
	f := &file{name, text}
	top, err := f.parse()
	if err != nil {
		return err
	}
	return f.mapping(top, "", func(key, value *yaml.Node) (err error) {
		switch key.Value {
		case "parameters":
			s.parameters, err = f.entry(value, "parameters")
		case "sets":
			s.sets, err = f.sets(value)
		case "use":
			s.use, err = f.scalar(value, "use")
		case "lower":
			var lower string
			lower, err = f.choice(value, "lower", "true", "false")
			s.lower = lower == "true"
		case "spaces":
			s.spaces, err = f.choice(value, "spaces", spacings...)
		case "allow":
			s.allow, err = f.allowed(value)
		default:
			return f.at(key).wrong("there is no key %q%s The keys are %s. A parameter stands under parameters:", key.Value, didYouMean(key.Value, keys), strings.Join(keys, ", "))
		}
		return err
	})
}

// parse returns the mapping that the file is.
func (f *file) parse() (*yaml.Node, error) {
	if len(f.text) > MaxFile {
		return nil, fmt.Errorf("%s: is larger than %d bytes", f.name, MaxFile)
	}
	if !utf8.Valid(f.text) {
		return nil, fmt.Errorf("%s: %w", f.name, errNotUTF8)
	}
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(f.text, []byte("\ufeff"))))
	err := decoder.Decode(&document)
	if err == nil {
		if err = decoder.Decode(&more); err == nil {
			return nil, f.at(&more).wrong("here begins a second document; a file has one")
		}
	} else if err == io.EOF {
		return nil, fmt.Errorf("%s: has no keys; they are %s", f.name, strings.Join(keys, ", "))
	}
	if err != io.EOF {
		return nil, f.broken(err)
	}
	return document.Content[0], f.plain(&document)
}

// usual are mistakes that make a file no YAML.
var usual = []struct {
	line *regexp.Regexp
	tell string
}{
	{regexp.MustCompile(`^ *\t`), "a tab stands before the text; write spaces"},
	{regexp.MustCompile(`(?:[:,]\s+|^\s*-\s+|[\[{])(?:\[[^\]]*\]|\{[^}]*\})[^\s,\]}]`), "a text that begins with [ or { stands in quotes, such as '[a-z]+' or '{column}-x'"},
	{regexp.MustCompile(`^\s*(?:-\s+)?([A-Za-z0-9._~-]+:)[^\s/]`), "a space is missing after "},
}

// broken tells of a file that is no YAML. The library often names the line before the one that is wrong.
func (f *file) broken(err error) error {
	lines := strings.Split(string(f.text), "\n")
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	for _, mistake := range usual {
		for i, line := range lines {
			if found := mistake.line.FindStringSubmatch(line); found != nil {
				return f.line(i+1).wrong("%s%s (%s)", mistake.tell, after(found), said)
			}
		}
	}
	return fmt.Errorf("%s: is not YAML: %s", f.name, said)
}

func after(found []string) string {
	if len(found) < 2 {
		return ""
	}
	return found[1]
}

// plain refuses anchors, aliases and tags.
func (f *file) plain(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return f.at(n).wrong("*%s is an alias; write the text out, or in quotes if it begins with *", n.Value)
	case n.Anchor != "":
		return f.at(n).wrong("&%s is an anchor; write the text in quotes if it begins with &", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		return f.at(n).wrong("%s is a tag; write the text in quotes if it begins with !", n.Tag)
	}
	for _, c := range n.Content {
		if err := f.plain(c); err != nil {
			return err
		}
	}
	return nil
}

// mapping calls take with each key of a mapping, which is called what; "": it is the file.
func (f *file) mapping(n *yaml.Node, what string, take func(key, value *yaml.Node) error) error {
	if what == "" {
		what = "the file"
	}
	switch {
	case n.Kind == yaml.ScalarNode && colon.MatchString(n.Value):
		return f.at(n).wrong("%s: a space is missing after %s", what, colon.FindString(n.Value))
	case n.Kind != yaml.MappingNode:
		return f.at(n).wrong("%s: want keys with values, such as key: value", what)
	case len(n.Content) == 0:
		return f.at(n).wrong("%s: is empty", what)
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			return f.at(key).wrong("%s: a key is a text", what)
		case seen[key.Value]:
			return f.at(key).wrong("%s: the key %q is there twice", what, key.Value)
		case value.Tag == "!!null" && value.Value == "" && colon.MatchString(key.Value):
			return f.at(key).wrong("%s: a space is missing after %s", what, colon.FindString(key.Value))
		}
		seen[key.Value] = true
		if err := take(key, value); err != nil {
			return err
		}
	}
	return nil
}

// colon is a key whose colon has no space behind it.
var colon = regexp.MustCompile(`^[A-Za-z0-9._~-]+:`)

var errValue = errors.New("want a value or a list of values; a text that begins with [ or { stands in quotes, such as '{column}'")

// scalar returns the text of a value.
func (f *file) scalar(n *yaml.Node, what string) (*text, error) {
	if n.Kind != yaml.ScalarNode {
		return nil, f.at(n).wrong("%s: want one value; a text that begins with [ or { stands in quotes, such as '[a-z]+' or '{column}'", what)
	}
	return &text{n.Value, f.at(n)}, nil
}

// choice returns one of several texts.
func (f *file) choice(n *yaml.Node, what string, of ...string) (string, error) {
	for _, text := range of {
		if n.Kind == yaml.ScalarNode && n.Value == text {
			return text, nil
		}
	}
	return "", f.at(n).wrong("%s: want %s", what, strings.Join(of, " or "))
}

// values returns the values of a parameter. Those of its vocabulary have no placeholders.
func (f *file) values(n *yaml.Node, what string, placeholders bool) (values []text, err error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return []text{{n.Value, f.at(n)}}, f.alone(n, what, placeholders)
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return nil, f.at(n).wrong("%s: the list is empty", what)
		}
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				return nil, f.at(c).wrong("%s: %w", what, errValue)
			}
			values = append(values, text{c.Value, f.at(c)})
		}
		return values, nil
	}
	return nil, f.at(n).wrong("%s: %w", what, errValue)
}

// alone refuses a value with a comma that stands alone.
func (f *file) alone(n *yaml.Node, what string, placeholders bool) error {
	list := strings.Split(n.Value, ",")
	if placeholders {
		list = splitList(n.Value)
	}
	if len(list) < 2 {
		return nil
	}
	for i, v := range list {
		if list[i] = trim(v); strings.ContainsAny(v, "{}[]:#'\"") || list[i] == "" {
			list[i] = "'" + strings.ReplaceAll(list[i], "'", "''") + "'"
		}
	}
	return f.at(n).wrong("%s: %q has a comma; write a list: [%s]", what, n.Value, strings.Join(list, ", "))
}

// entry returns an entry.
func (f *file) entry(n *yaml.Node, what string) (entry, error) {
	e := entry{}
	return e, f.mapping(n, what, func(key, value *yaml.Node) (err error) {
		e[key.Value], err = f.values(value, what+": "+key.Value, true)
		return err
	})
}

// sets returns the sets.
func (f *file) sets(n *yaml.Node) (map[string]set, error) {
	sets := map[string]set{}
	return sets, f.mapping(n, "sets", func(key, value *yaml.Node) error {
		what := "set " + key.Value
		s := set{at: f.at(key)}
		list := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			if list = value.Content; len(list) == 0 {
				return f.at(value).wrong("%s: the list is empty", what)
			}
		}
		for _, item := range list {
			e, err := f.entry(item, what)
			if err != nil {
				return err
			}
			s.entries = append(s.entries, e)
		}
		sets[key.Value] = s
		return nil
	})
}

// allowed returns the vocabulary.
func (f *file) allowed(n *yaml.Node) (map[string]allowed, error) {
	all := map[string]allowed{}
	return all, f.mapping(n, "allow", func(key, value *yaml.Node) (err error) {
		a, what := allowed{at: f.at(key)}, "allow: "+key.Value
		if value.Kind != yaml.MappingNode {
			a.values, err = f.values(value, what, false)
			all[key.Value] = a
			return err
		}
		err = f.mapping(value, what, func(key, value *yaml.Node) (err error) {
			if key.Value != "pattern" {
				return f.at(key).wrong("%s: want a value, a list of values, or pattern: and a text in quotes", what)
			}
			a.pattern, err = f.scalar(value, what+": pattern")
			return err
		})
		all[key.Value] = a
		return err
	})
}
