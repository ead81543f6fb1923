package estimate

import "github.com/linkforge/bulk/codegen"

// Counting is what to expect of a Load whose codes are made from numbers. They collide with none
// until the numbers come to the count of the codes: from there on, codes come again.
type Counting struct {
	Codes      float64 `json:"codes"`              // 62 to the power of 7
	Numbers    float64 `json:"expected_numbers"`   // that the new links use, or skip because of a word
	Left       float64 `json:"numbers_left"`       // after that, until codes come again
	WrapsAfter float64 `json:"wraps_after"`        // so many new links have codes that no link had before
	Exhausted  float64 `json:"expected_exhausted"` // new links that find all codes taken, if no link is deleted
	Blocking
}

// Numbers estimates a load of a counter. Links that existed before the counter, with codes of their
// own, are too few to count.
func Numbers(l Load) (Counting, error) {
	spec, err := l.spec(true)
	if err != nil {
		return Counting{}, err
	}
	e := Counting{Codes: codegen.CounterSpace}
	if e.BlockedShare, err = l.blocked(spec); err != nil {
		return Counting{}, err
	}
	before, links := float64(l.Existing), float64(l.Links)
	e.Blocked = links * e.BlockedShare / (1 - e.BlockedShare)
	e.Numbers = links + e.Blocked
	e.Left = max(e.Codes-before-e.Numbers, 0)
	e.WrapsAfter = max(e.Codes-before, 0) * (1 - e.BlockedShare)
	e.Exhausted = max(links-e.WrapsAfter, 0)
	return e, nil
}
