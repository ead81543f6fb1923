package campaign

import (
	"fmt"
	"math"
	"strings"

	"github.com/linkforge/bulk/canon"
)

// A Fault says why a row has no variants.
type Fault struct {
	Parameter string // the first one whose value is wrong, or "use"
	Detail    string // for people
}

// first returns the first fault: of the variants by number, in each of the parameters by name.
func (r *Row) first(at Columns, cell func(int) []byte) *Fault {
	for n := range max(r.setCount(), 1) {
		first, last := r.blocks(n)
		for b := first; b < last; b++ {
			if v := r.firstOf(&r.p.blocks[b]); v >= 0 {
				return r.tell(v, at, cell)
			}
		}
	}
	panic("campaign: a value is wrong that no block has")
}

// firstOf returns the first value of a block that is wrong; -1: none is. The variant in which a value
// stands first has the first values of all other digits.
func (r *Row) firstOf(b *block) int {
	found, least := -1, int64(math.MaxInt64)
	stride := int64(1)
	for _, digits := range [2][]digit{r.p.common, b.own} {
		for d := len(digits) - 1; d >= 0; d-- {
			for i, v := range digits[d].values {
				if r.p.values[v].constant || r.faults[v] == 0 {
					continue
				}
				at := int64(i) * stride
				if at < least || at == least && r.p.values[v].param < r.p.values[found].param {
					found, least = v, at
				}
				break
			}
			stride *= int64(len(digits[d].values))
		}
	}
	return found
}

// tell says what is wrong with a value.
func (r *Row) tell(n int, at Columns, cell func(int) []byte) *Fault {
	v := &r.p.values[n]
	name := r.p.names[v.param]
	var text []byte
	empty := ""
	for _, part := range v.parts {
		before := len(text)
		if text = appendPart(text, part, at, cell); len(text) == before && empty == "" {
			empty = r.p.columns[part.column]
		}
	}
	var detail string
	switch allow := r.p.allow[v.param]; {
	case r.faults[n] == emptyCell:
		detail = fmt.Sprintf("%s: the cell of %q is empty in %.100q", name, empty, v.text)
	case r.faults[n] == outside && len(text) == 0:
		detail = fmt.Sprintf("%s: the cell of %q is empty; %v", name, empty, allow)
	case r.faults[n] == outside:
		detail = fmt.Sprintf("%s: %.100q is outside the vocabulary; %v", name, r.made[n].value, allow)
	case r.faults[n] == control:
		detail = fmt.Sprintf("%s: %.100q %v", name, text, errControl)
	default:
		detail = fmt.Sprintf("%s: %.100q %v", name, strings.ToValidUTF8(string(canon.EscapeInvalid(text)), ""), errNotUTF8)
	}
	return &Fault{name, detail}
}
