package campaign

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"
)

// A Tally counts links by the values of their parameters, for one goroutine. It holds a number for each constant of
// the plan and, of each parameter whose values rows make, at most [MostCounted] of these and half as many.
type Tally struct {
	p         *Plan
	constants []int64 // by id
	made      []counted
}

const (
	// MostCounted is how many different values of a parameter are counted, beside constants. If there are more, those
	// with the smallest hashes are: whoever saw which link.
	MostCounted = 10_000
	// MostTold is how many values of a parameter are told.
	MostTold = 10
	// mostCompared is how many bytes of a value are told. Values that rows make and that begin with the same ones count
	// as one.
	mostCompared = 100
)

// counted are counts of the values of a parameter that no constant has.
type counted struct {
	links map[string]*counts
	limit uint64 // the highest hash that is counted, once there were more
	more  bool
}

type counts struct {
	hash  uint64
	links int64
}

// NewTally returns a tally of nothing.
func (p *Plan) NewTally() *Tally {
	return &Tally{p: p, constants: make([]int64, p.ids), made: make([]counted, len(p.names))}
}

// Add counts the link of a variant, which has these values, in the order of the names; nil: it lacks it.
func (t *Tally) Add(number int64, values [][]byte) {
	var has [maxNames]*value
	t.p.choose(&has, number)
	for n, v := range has[:len(t.p.names)] {
		switch {
		case v == nil || values[n] == nil:
		case v.constant:
			t.constants[v.made.id]++
		default:
			t.addMade(n, values[n])
		}
	}
}

func (t *Tally) addMade(param int, value []byte) {
	if id, ok := t.p.constants[param][string(value)]; ok {
		t.constants[id]++
		return
	}
	t.made[param].add(beginning(value), 1)
}

func (c *counted) add(value []byte, links int64) {
	if n := c.links[string(value)]; n != nil {
		n.links += links
		return
	}
	hash := hashOf(value)
	if c.more && hash > c.limit {
		return
	}
	if c.links == nil {
		c.links = map[string]*counts{}
	}
	c.links[string(value)] = &counts{hash, links}
	if len(c.links) >= MostCounted+MostCounted/2 {
		c.drop()
	}
}

// hashOf returns the hash FNV-1a.
func hashOf(value []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range value {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// beginning returns the bytes of a value that are told.
func beginning(value []byte) []byte {
	most := min(len(value), mostCompared)
	for most < len(value) && !utf8.RuneStart(value[most]) {
		most--
	}
	return value[:most]
}

// drop drops values, if there are too many.
func (c *counted) drop() {
	if len(c.links) <= MostCounted {
		return
	}
	hashes := make([]uint64, 0, len(c.links))
	for _, n := range c.links {
		hashes = append(hashes, n.hash)
	}
	slices.Sort(hashes)
	c.limit, c.more = hashes[MostCounted-1], true
	for value, n := range c.links {
		if n.hash > c.limit {
			delete(c.links, value)
		}
	}
}

// Merge adds what another tally of the plan has counted.
func (t *Tally) Merge(other *Tally) {
	for id, n := range other.constants {
		t.constants[id] += n
	}
	for param := range other.made {
		c := &t.made[param]
		for value, n := range other.made[param].links {
			c.add([]byte(value), n.links)
		}
		if from := &other.made[param]; from.more {
			c.keep(from.limit)
		}
	}
}

// keep drops the values of which another tally may have dropped links.
func (c *counted) keep(limit uint64) {
	if c.more {
		limit = min(limit, c.limit)
	}
	c.limit, c.more = limit, true
	for value, n := range c.links {
		if n.hash > limit {
			delete(c.links, value)
		}
	}
}

// Values are how many links the values of a parameter have.
type Values struct {
	Name  string
	Count int64 // different values that links have
	More  bool  // there are more than Count
	Most  []ValueLinks
}

// ValueLinks is how many links have a value, of which at most the first 100 bytes are there.
type ValueLinks struct {
	Value string
	Links int64
}

// Values returns what was counted, by parameter in the order of their names; of values with equally many links
// the first in the order of their bytes come first.
func (t *Tally) Values() []Values {
	all := make([]Values, len(t.p.names))
	for param := range all {
		var list []ValueLinks
		for value, id := range t.p.constants[param] {
			if n := t.constants[id]; n > 0 {
				list = append(list, ValueLinks{string(beginning([]byte(value))), n})
			}
		}
		c := &t.made[param]
		c.drop()
		for value, n := range c.links {
			list = append(list, ValueLinks{value, n.links})
		}
		slices.SortFunc(list, func(a, b ValueLinks) int {
			return cmp.Or(cmp.Compare(b.Links, a.Links), bytes.Compare([]byte(a.Value), []byte(b.Value)))
		})
		all[param] = Values{t.p.names[param], int64(len(list)), c.more, list[:min(len(list), MostTold)]}
	}
	return all
}
