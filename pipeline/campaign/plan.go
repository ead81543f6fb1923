package campaign

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/linkforge/bulk/canon"
)

var (
	errNotUTF8 = errors.New("is not UTF-8")
	errControl = errors.New("has a control character")
)

// tooMany is a number of combinations that is not counted further.
const tooMany = 1 << 40

// newPlan checks all that does not depend on an input.
func newPlan(s spec) (*Plan, error) {
	p := &Plan{asked: s, how: how{lower: s.lower, space: map[string]string{"dash": "-", "underscore": "_"}[s.spaces]}, byName: map[string]int{}, columnAt: map[string]int{}}
	for name, set := range s.sets {
		if name == "" || strings.Contains(name, ",") || trim(name) != name {
			return nil, set.at.wrong("set %q: a name is not empty, and has no comma and no space at its ends", name)
		}
	}
	if err := p.findNames(); err != nil {
		return nil, err
	}
	if err := p.findAllowed(); err != nil {
		return nil, err
	}
	for range p.names {
		p.constants = append(p.constants, map[string]id{})
	}
	if err := p.findBlocks(); err != nil {
		return nil, err
	}
	if err := p.findUse(); err != nil {
		return nil, err
	}
	p.replaced, _ = canon.ParseStripParams(strings.Join(p.names, ",")) // names are good
	p.disjoint = p.count <= MaxMost && p.areDisjoint()
	return p, nil
}

// entries calls f for each entry, in the order of the combinations, until it returns an error: first
// for that of the key parameters, whose set is "".
func (s *spec) entries(f func(set string, e entry) error) error {
	if err := f("", s.parameters); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.sets)) {
		for _, e := range s.sets[name].entries {
			if err := f(name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// size returns how many values are given.
func (s *spec) size() (n int) {
	_ = s.entries(func(_ string, e entry) error { // which returns none
		for _, values := range e {
			n += len(values)
		}
		return nil
	})
	return n
}

// findNames finds the parameters.
func (p *Plan) findNames() error {
	folded := map[string]string{}
	err := p.asked.entries(func(set string, e entry) error {
		for _, name := range slices.Sorted(maps.Keys(e)) {
			at := e[name][0].at
			if !isName(name) {
				return at.wrong("%q is not the name of a parameter: want 1 to %d of letters, digits and - . _ ~", name, maxName)
			}
			if other, ok := folded[strings.ToLower(name)]; ok && other != name {
				return at.wrong("the parameters %s and %s differ only in case", other, name)
			}
			folded[strings.ToLower(name)] = name
			if _, twice := p.asked.parameters[name]; twice && set != "" {
				return at.wrong("%s is a parameter of set %s, and it is given for all sets", name, set)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.names = slices.Sorted(maps.Values(folded))
	switch n := len(p.names); {
	case n == 0:
		return errors.New("there is no parameter: give one with --expand, or under parameters: or sets: of the file")
	case n > maxNames:
		return fmt.Errorf("there are %d parameters, more than %d", n, maxNames)
	}
	for i, name := range p.names {
		p.byName[name] = i
	}
	return nil
}

func isName(name string) bool {
	for i := range len(name) {
		if !isUnreserved(name[i]) {
			return false
		}
	}
	return 1 <= len(name) && len(name) <= maxName
}

// findAllowed finds the vocabulary.
func (p *Plan) findAllowed() error {
	p.allow = make([]*vocabulary, len(p.names))
	for _, name := range slices.Sorted(maps.Keys(p.asked.allow)) {
		a := p.asked.allow[name]
		n, ok := p.byName[name]
		if !ok {
			return a.at.wrong("%q in allow is no parameter%s The parameters are %s", name, didYouMean(name, p.names), some(p.names))
		}
		v, err := p.how.vocabulary(&a)
		if err != nil {
			return err
		}
		if p.allow[n] = v; !v.has(nil) && !p.isAlways(name) {
			return a.at.wrong("%s may not be empty, and an entry of a set lacks it; give it in all of them, or allow \"\"", name)
		}
	}
	return nil
}

// isAlways reports whether all combinations have a parameter.
func (p *Plan) isAlways(name string) bool {
	always := len(p.asked.sets) > 0
	for _, s := range p.asked.sets {
		always = always && !slices.ContainsFunc(s.entries, func(e entry) bool { return e[name] == nil })
	}
	return always || p.asked.parameters[name] != nil
}

// vocabulary makes the values that are allowed, or the pattern.
func (h how) vocabulary(a *allowed) (*vocabulary, error) {
	v := &vocabulary{values: map[string]bool{}}
	if a.pattern != nil {
		v.text = a.pattern.string
		_, err := regexp.Compile(v.text) // or a)|(b would be well formed
		if err == nil {
			v.pattern, err = regexp.Compile(`\A(?:` + v.text + `)\z`)
		}
		if err != nil {
			return nil, a.pattern.at.wrong("%q is not a pattern: %w", v.text, err)
		}
		return v, nil
	}
	for _, t := range a.values {
		s := trim(t.string)
		v.values[string(h.spell(nil, []byte(s)))] = true
		v.listed = append(v.listed, cmp.Or(s, `""`))
	}
	return v, nil
}

// findBlocks finds all values and combinations.
func (p *Plan) findBlocks() error {
	n := p.asked.size()
	known := make(map[string]int, n) // values, by parameter and text
	p.values = make([]value, 0, n)
	err := p.asked.entries(func(set string, e entry) error {
		digits, err := p.digits(set, e, known)
		if err != nil || set == "" {
			p.common = digits
			return err
		}
		if n := len(p.sets); n == 0 || p.sets[n-1].name != set {
			p.sets = append(p.sets, setPlan{name: set, first: len(p.blocks)})
		}
		s := &p.sets[len(p.sets)-1]
		p.blocks = append(p.blocks, block{own: digits})
		s.last = len(p.blocks)
		for _, d := range digits {
			s.cells = append(s.cells, p.cellsOf(d)...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(p.sets) == 0 {
		p.blocks = []block{{}}
	}
	for i := range p.sets {
		slices.Sort(p.sets[i].cells)
		p.sets[i].cells = slices.Compact(p.sets[i].cells)
	}
	common := product(p.common)
	for i := range p.blocks {
		b := &p.blocks[i]
		b.first, b.count, b.order = p.count, product(b.own), p.orderOf(b)
		p.count = min(p.count+b.count*min(common, tooMany/b.count+1), tooMany)
	}
	return nil
}

// product returns how many combinations digits have, at most tooMany.
func product(digits []digit) int64 {
	n := int64(1)
	for _, d := range digits {
		n = min(n*int64(len(d.values)), tooMany)
	}
	return n
}

// cellsOf returns the values of a digit that are not constant.
func (p *Plan) cellsOf(d digit) (cells []int) {
	for _, v := range d.values {
		if !p.values[v].constant {
			cells = append(cells, v)
		}
	}
	return cells
}

// orderOf returns the digits of a block in the order of their names.
func (p *Plan) orderOf(b *block) (order []int8) {
	i, j := 0, 0
	for i < len(b.own) || j < len(p.common) {
		if j == len(p.common) || i < len(b.own) && b.own[i].param < p.common[j].param {
			order = append(order, int8(i))
			i++
		} else {
			order = append(order, int8(len(b.own)+j))
			j++
		}
	}
	return order
}

// digits makes the digits of an entry.
func (p *Plan) digits(set string, e entry, known map[string]int) (digits []digit, err error) {
	for _, name := range slices.Sorted(maps.Keys(e)) {
		d := digit{param: p.byName[name], values: make([]int, 0, len(e[name]))}
		seen := map[id]bool{}
		for i, t := range e[name] {
			key := name + "=" + trim(t.string)
			n, ok := known[key]
			if !ok {
				v, err := p.newValue(set, name, t)
				if err != nil {
					return nil, err
				}
				n = len(p.values)
				p.values, known[key] = append(p.values, v), n
			}
			v := &p.values[n]
			d.values, d.cells = append(d.values, n), d.cells || !v.constant
			if v.constant && !seen[v.made.id] {
				d.kept, seen[v.made.id] = append(d.kept, i), true
			}
		}
		digits = append(digits, d)
	}
	return digits, nil
}

// newValue makes a value, and checks it if it is constant.
func (p *Plan) newValue(set, name string, t text) (v value, err error) {
	v = value{param: p.byName[name], text: trim(t.string)}
	of := name
	if set != "" {
		of += " of set " + set
	}
	parts, ok := p.split(v.text)
	switch {
	case v.text == "":
		return v, t.at.wrong("%s has an empty value", of)
	case !ok:
		return v, t.at.wrong("%s: %q has a brace that belongs to no placeholder; {column} stands for the cell of a column", of, v.text)
	}
	if v.parts, v.constant = parts, isConstant(parts); !v.constant {
		return v, nil
	}
	if other, _, _ := strings.Cut(v.text, "="); strings.Contains(v.text, "&") || len(other) < len(v.text) && other != "" && strings.Trim(other, letters) == "" {
		return v, t.at.wrong("%s: the value %q looks like another parameter; give one --expand for each parameter, or one line of the file", of, v.text)
	}
	made, err := p.how.make(nil, []byte(v.text))
	if err != nil {
		return v, t.at.wrong("%s: %q %w", of, v.text, err)
	}
	if allow := p.allow[v.param]; allow != nil && !allow.has(made) {
		return v, t.at.wrong("%s: %q is outside the vocabulary; %v", of, made, allow)
	}
	v.made = p.constant(v.param, made)
	return v, nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

// constant returns a value that a constant has.
func (p *Plan) constant(param int, value []byte) made {
	n, ok := p.constants[param][string(value)]
	if !ok {
		n = p.ids
		p.constants[param][string(value)] = n
		p.ids++
	}
	return made{value: value, piece: appendPiece(nil, p.names[param], value), id: n}
}

// findUse finds out which sets a row gets.
func (p *Plan) findUse() error {
	use := p.asked.use
	if use == nil {
		return nil
	}
	if len(p.sets) == 0 {
		return use.at.wrong("use: there are no sets")
	}
	var ok bool
	if p.use, ok = p.split(trim(use.string)); !ok {
		return use.at.wrong("use: %q has a brace that belongs to no placeholder; {column} stands for the cell of a column", use.string)
	}
	if !isConstant(p.use) {
		return nil
	}
	if _, bad, ok := p.usedSets(nil, []byte(use.string)); !ok {
		hint := ""
		if bad != "" {
			hint = fmt.Sprintf(". If it is a column, did you mean '{%s}'?", bad)
			if near(bad, p.setNames()) != "" {
				hint = didYouMean(bad, p.setNames())
			}
		}
		return use.at.wrong("use: %s%s", p.noSet(bad), hint)
	}
	return nil
}

// noSet says that a name is none of a set.
func (p *Plan) noSet(name string) string {
	if name == "" {
		return "no set is named; the sets are " + some(p.setNames())
	}
	return fmt.Sprintf("%.60q is no set; the sets are %s", name, some(p.setNames()))
}

func (p *Plan) setNames() (names []string) {
	for i := range p.sets {
		names = append(names, p.sets[i].name)
	}
	return names
}
