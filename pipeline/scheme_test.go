package pipeline_test

import (
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/report"
	"pgregory.net/rapid"
)

// Whatever the scheme, the words, the store, the order of the rows, the workers and the memory, a run
// does what handling the identities one at a time does. The same run again finds all of it, and so does
// one with other words.
func TestSchemeLikeOneAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, store := rapid.Permutation(schemeKinds).Draw(rt, "kind")[0].draw(rt), openStore(t, t.TempDir())
		c.plant(t, c.config(store))
		pad := rapid.SampledFrom([]int{0, 0, 3000}).Draw(rt, "pad")
		for _, words := range [][]string{c.words, c.words, c.words[:len(c.words)/2], nil} {
			c.words = words
			cfg := c.config(store)
			cfg.Workers = rapid.IntRange(1, 3).Draw(rt, "workers")
			cfg.ReportOrder = rapid.SampledFrom([]report.Order{report.SortOrder, report.InputOrder}).Draw(rt, "order")
			if rapid.Bool().Draw(rt, "spill") {
				cfg.SpillAt(1)
			}
			want, wrong := c.check(t, cfg, pad)
			if wrong != nil {
				rt.Fatalf("%s, length %d by %s, retries %d, words %q, store %v, rows %v:\n%s", c.scheme.Name, c.length, c.schemeKind.identity,
					c.retries, c.words, c.store, c.rows, strings.Join(wrong, "\n"))
			}
			c.store = want.store
		}
	})
}

// The cases that are drawn are contests: in each space of codes identities lose their first code to others
// before them, begin with a later salt, and get none.
func TestSchemeCasesAreContests(t *testing.T) {
	for _, k := range schemeKinds {
		var sum schemeResult
		for seed := range 40 {
			c := rapid.Custom(k.draw).Example(seed)
			r := c.model()
			sum.evicted, sum.begun, sum.exhausted = sum.evicted+r.evicted, sum.begun+r.begun, sum.exhausted+r.exhausted
		}
		if sum.evicted < 10 || sum.begun < 10 && k.length >= 3 || sum.exhausted < 10 {
			t.Errorf("%q, length %d by %s: %d evicted, %d begin later, %d exhausted", k.scheme.Name, k.length, k.identity, sum.evicted, sum.begun, sum.exhausted)
		}
	}
}
