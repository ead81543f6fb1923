package topk_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/topk"
)

// Up to Most different texts are exact. Of more, each count is a lower bound, and none misses more than
// Missed; frequent texts are never forgotten.
func TestBounds(t *testing.T) {
	for _, different := range []int{1, 100, topk.Most, topk.Most + 1, 5 * topk.Most} {
		t.Run(fmt.Sprint(different), func(t *testing.T) {
			var c topk.Counter
			truth := map[string]int64{}
			r := rand.New(rand.NewPCG(1, uint64(different)))
			add := func(text string) {
				c.Add([]byte(text))
				truth[text]++
			}
			for i := range different {
				add(fmt.Sprint("rare ", i))
				if i%3 == 0 {
					add(fmt.Sprint("rare ", r.IntN(different)))
				}
				if i%10 == 0 {
					add(fmt.Sprint("often ", r.IntN(5)))
				}
			}
			n, exact := c.Different()
			if want := len(truth) <= topk.Most; exact != want || exact && n != len(truth) || exact != (c.Missed() == 0) {
				t.Errorf("%d different, exact %v, missed %d; there are %d", n, exact, c.Missed(), len(truth))
			}
			total := int64(0)
			for _, n := range truth {
				total += n
			}
			if c.Total() != total || c.Missed() > 2*total/topk.Most {
				t.Errorf("total %d, missed %d; want %d", c.Total(), c.Missed(), total)
			}
			found := map[string]bool{}
			for _, e := range c.Top(topk.Most) {
				if e.Count > truth[e.Text] || e.Count+c.Missed() < truth[e.Text] {
					t.Errorf("%s: %d, missed %d; it came %d times", e.Text, e.Count, c.Missed(), truth[e.Text])
				}
				found[e.Text] = true
			}
			for text, n := range truth {
				if n > c.Missed() && !found[text] {
					t.Errorf("%s came %d times and is not there", text, n)
				}
			}
		})
	}
}

// Long texts take no more room, and are told apart by their ends.
func TestLongTexts(t *testing.T) {
	var c topk.Counter
	long := strings.Repeat("x", 8000)
	for _, text := range []string{long + "a", long + "b", long + "a", "", strings.Repeat("y", 200)} {
		c.Add([]byte(text))
	}
	top := c.Top(9)
	if len(top) != 4 || top[0].Count != 2 || !top[0].Cut || len(top[0].Text) > 200 || top[2].Cut && top[3].Cut {
		t.Errorf("%+v", top)
	}
}
