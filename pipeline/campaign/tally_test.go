package campaign_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/campaign"
)

// A tally counts up to 10,000 values of a parameter exactly, and of more always the same, whoever counts which link and
// in whatever order. Constants are counted besides.
func TestTally(t *testing.T) {
	p, err := campaign.Parse([]string{"a={x},1,v7", "b=x,y,X", "c={x}"}, "c.yaml", []byte("lower: true\n"), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 3, campaign.MostCounted, campaign.MostCounted + 1, 2 * campaign.MostCounted} {
		all := campaignLinks(size)
		want := tallied(p, all, 1)
		rnd := rand.New(rand.NewPCG(1, uint64(size)))
		for _, parts := range []int{1, 3} {
			rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if got := tallied(p, all, parts); !reflect.DeepEqual(got, want) {
				t.Errorf("%d values, %d parts: %+v, want %+v", size, parts, got, want)
			}
		}
		links := map[string]int64{}
		for _, l := range all {
			links[l]++
		}
		for i, name := range []string{"a", "b", "c"} {
			if want[i].Name != name || len(want[i].Most) > campaign.MostTold {
				t.Fatalf("%+v", want[i])
			}
		}
		c := want[2]
		if c.More != (size > campaign.MostCounted) || c.Count != int64(min(size, campaign.MostCounted)) {
			t.Errorf("%d values: %d, more: %t", size, c.Count, c.More)
		}
		for _, v := range c.Most {
			if v.Links != 9*links[v.Value] {
				t.Errorf("%d values: %+v, want %d", size, v, 9*links[v.Value])
			}
		}
		if best := slices.MaxFunc(all, func(a, b string) int { return int(links[a] - links[b]) }); !c.More && c.Most[0].Links != 9*links[best] {
			t.Errorf("%d values: %+v comes first, and %s has %d", size, c.Most[0], best, links[best])
		}
		if b := want[1].Most; len(b) != 2 || b[0] != (campaign.ValueLinks{Value: "x", Links: 6 * int64(len(all))}) || b[1] != (campaign.ValueLinks{Value: "y", Links: 3 * int64(len(all))}) {
			t.Errorf("%+v", b)
		}
	}
}

// campaignLinks returns the values of links, of which some have two.
func campaignLinks(size int) (all []string) {
	for i := range size {
		value := fmt.Sprint("v", i)
		for range 1 + i%7/5 {
			all = append(all, value)
		}
	}
	return all
}

// tallied counts links of a plan in parts.
func tallied(p *campaign.Plan, links []string, parts int) []campaign.Values {
	tallies := make([]*campaign.Tally, parts)
	for i := range tallies {
		tallies[i] = p.NewTally()
	}
	for n, value := range links {
		for number := range p.Combinations() {
			a, b := [3]string{value, "1", "v7"}[number/3], [3]string{"x", "y", "x"}[number%3]
			tallies[n%parts].Add(number+1, [][]byte{[]byte(a), []byte(b), []byte(value)})
		}
	}
	for _, other := range tallies[1:] {
		tallies[0].Merge(other)
	}
	return tallies[0].Values()
}

// A value that rows make counts as the constant that it equals, and values that are long count by their beginning.
func TestTallyOfEqualValues(t *testing.T) {
	p, err := campaign.Parse([]string{"a={x},one"}, "", nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	tally := p.NewTally()
	long := strings.Repeat("é", 51)
	for _, value := range []string{"one", long + "1", long + "2", ""} {
		values := [][]byte{[]byte(value)}
		if value == "" {
			values[0] = nil
		}
		tally.Add(1, values)
		tally.Add(2, [][]byte{[]byte("one")})
	}
	want := []campaign.Values{{Name: "a", Count: 2, Most: []campaign.ValueLinks{{Value: "one", Links: 5}, {Value: long[:100], Links: 2}}}}
	if got := tally.Values(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
