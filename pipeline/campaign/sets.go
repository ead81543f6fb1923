package campaign

import (
	"bytes"
	"slices"

	"github.com/linkforge/bulk/canon"
)

// usedSets appends the sets that a list names, in their order. A name that is none of a set is bad;
// with "" and false the list is empty.
func (p *Plan) usedSets(sets []int, list []byte) (_ []int, bad string, ok bool) {
	for name := range bytes.SplitSeq(list, []byte(",")) {
		if name = canon.Trim(name); len(name) == 0 {
			continue
		}
		n, found := p.setOf(name)
		if !found {
			return sets, string(name), false
		}
		sets = append(sets, n)
	}
	slices.Sort(sets)
	sets = slices.Compact(sets)
	return sets, "", len(sets) > 0
}

// setOf returns the number of a set.
func (p *Plan) setOf(name []byte) (int, bool) {
	return slices.BinarySearchFunc(p.sets, name, func(s setPlan, name []byte) int { return bytes.Compare([]byte(s.name), name) })
}

// areDisjoint reports whether no combinations of two blocks can have the same values of the sets'
// parameters. It may be wrong about that only by saying no.
func (p *Plan) areDisjoint() bool {
	if len(p.blocks) < 2 {
		return true
	}
	for i := range p.blocks {
		if slices.ContainsFunc(p.blocks[i].own, func(d digit) bool { return d.cells }) {
			return false
		}
	}
	seen := make(map[uint64]bool)
	for i := range p.blocks {
		own := p.blocks[i].own
		at := make([]int, len(own))
		for more := true; more; {
			var h uint64
			for d, n := range at {
				h += mix(own[d].param, p.values[own[d].values[own[d].kept[n]]].made.id)
			}
			if seen[h] {
				return false
			}
			seen[h] = true
			more = advance(at, func(d int) int { return len(own[d].kept) })
		}
	}
	return true
}

// mix makes a number of the value of a parameter. The sum of those of a combination tells it from
// nearly all others.
func mix(param int, n id) uint64 {
	if n == lacking {
		return 0
	}
	x := uint64(param+1)<<32 | uint64(uint32(n))
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// advance counts digits up by one, of which the last varies fastest; false: it was the last number.
func advance(at []int, size func(d int) int) bool {
	for d := len(at) - 1; d >= 0; d-- {
		if at[d]++; at[d] < size(d) {
			return true
		}
		at[d] = 0
	}
	return false
}
