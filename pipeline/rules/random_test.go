package rules_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
	"pgregory.net/rapid"
)

const firstDay = 1767225600 // 2026-01-01T00:00:00Z

// day returns a time as a cell.
func day(quarters int64) string {
	return time.Unix(firstDay+quarters*21600, 0).UTC().Format(time.RFC3339)
}

func pick[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

func someRow(t *rapid.T) row {
	return row{
		URL: pick(t, "url", "https://a.example/x", "https://a.example/x~", "https://a.example/xy", "https://a.example/x?q=1", "http://a.example/x", "https://b.example/") +
			pick(t, "fragment", "", "", "#a", "#b"),
		ExpiresAt: pick(t, "expires", "", "", "", day(2), day(4), day(6), day(9)),
		MaxUses:   pick(t, "uses", 0, 0, 0, 1, 2, 3),
		LinkType:  pick(t, "type", "", "", "PERMANENT", "TEMPORARY", "TEMPORARY"),
		OwnerID:   pick(t, "owner", "", "", "u1", "u2", "u3"),
		Ref:       pick(t, "ref", "", "r1", "a|b%", "in.csv:1"),
	}
}

func someJob(t *rapid.T, asOf int64) *job {
	j := &job{source: "in.csv", Terms: rules.Terms{AsOf: asOf, OnDrift: pick(t, "drift", rules.Keep, rules.Update, rules.Reject), Revive: pick(t, "revive", rules.ReviveEnded, rules.ReviveAll, rules.ReviveNone)}}
	j.rows = rapid.SliceOfN(rapid.Custom(someRow), 1, 12).Draw(t, "rows")
	j.number()
	j.flags = rules.Flags{
		Identity:     pick(t, "identity", rules.ByURL, rules.ByURL, rules.ByParams, rules.ByRow),
		ExpiresIn:    pick(t, "in", 0, 0, 0, 6*time.Hour, 30*time.Hour),
		TemporaryTTL: pick(t, "ttl", 0, 6*time.Hour, 24*time.Hour),
		Limit:        pick[int64](t, "limit", 0, 0, 0, 2),
		Type:         pick(t, "flag type", rules.NoType, rules.NoType, rules.NoType, rules.Permanent, rules.Temporary),
		Owner:        []byte(pick(t, "flag owner", "", "", "", "u1", "u2")),
	}
	return j
}

func (j *job) number() {
	for i := range j.rows {
		j.rows[i].number = i + 1
	}
}

// TestProperties does random operations one after the other. Before each run it tries the same in
// other ways.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{workspace: "ws", maxRetries: rapid.IntRange(0, 3).Draw(t, "retries"), links: map[string]*stored{}}
		w.scheme, _ = codegen.New(pick(t, "length", 1, 2, 10))
		quarters := int64(0)
		for range rapid.IntRange(1, 6).Draw(t, "operations") {
			quarters += rapid.Int64Range(0, 5).Draw(t, "later")
			now := firstDay + quarters*21600
			switch pick(t, "operation", "run", "run", "run", "run", "service", "sweep", "delete") {
			case "run":
				w = tryRun(t, w, someJob(t, now))
			case "service":
				for _, l := range w.inOrder() {
					l.Uses += rapid.Int64Range(0, 2).Draw(t, "uses")
					if s := pick(t, "status", rules.StatusActive, rules.StatusActive, rules.StatusExpired, rules.StatusDeleted, rules.StatusOther); s != rules.StatusActive {
						l.Status, l.Marked, l.Mark = s, false, 0
					}
				}
			case "sweep":
				trySweep(t, w, now)
			case "delete":
				tryDelete(t, w, now)
			}
		}
	})
}

// tryRun checks what must hold of every run, and returns the store after it.
func tryRun(t *rapid.T, before *world, j *job) *world {
	w := before.clone()
	w.runs++
	results := w.run(j, w.runs, nil)
	checkRun(t, before, w, j, results)

	shuffled := *j
	shuffled.rows = rapid.Permutation(j.rows).Draw(t, "shuffled")
	shuffled.number()
	if j.flags.Identity != rules.ByRow || !slices.ContainsFunc(j.rows, func(r row) bool { return r.Ref == "" }) {
		other := before.clone()
		same(t, "shuffled", other.run(&shuffled, w.runs, nil), results, other, w, shuffled.told, j.told)
	}

	cut := before.clone()
	for range rapid.IntRange(1, 3).Draw(t, "attempts") {
		cut.run(j, w.runs, func() bool { return rapid.Bool().Draw(t, "done") })
	}
	same(t, "interrupted", cut.run(j, w.runs, nil), results, cut, w, number, number)

	again := w.clone()
	repeated := slices.Clone(results)
	for i := range repeated {
		if r := &repeated[i]; r.Outcome == "created" {
			r.Outcome = "existing"
		} else if r.Change == "updated" || r.Change == "claimed" || r.Change == "revived" {
			r.Change = ""
		}
	}
	same(t, "repeated", again.run(j, w.runs+1, nil), repeated, again, w, number, number)
	return w
}

func number(i int) string { return fmt.Sprint(i) }

// told is what a run knows of row i, without its number.
func (j *job) told(i int) string {
	r := &j.rows[i]
	cells := r.cells()
	p, _, _ := j.flags.Parse(&cells)
	return fmt.Sprint(r.URL, r.Ref, p)
}

// same compares the results of two runs, and the stores after them. Rows that have the same name
// may have each other's results.
func same(t *rapid.T, how string, got, want []result, a, b *world, nameGot, nameWant func(int) string) {
	sorted := func(results []result, name func(int) string) (list []string) {
		for i, r := range results {
			list = append(list, fmt.Sprintf("%s: %+v", name(i), r))
		}
		slices.Sort(list)
		return list
	}
	if x, y := sorted(got, nameGot), sorted(want, nameWant); !slices.Equal(x, y) {
		t.Fatalf("%s:\n%q\nwant\n%q", how, x, y)
	}
	if x, y := a.show(), b.show(); !slices.Equal(x, y) {
		t.Fatalf("%s: the store has\n%q\nwant\n%q", how, x, y)
	}
}

// checkRun checks what a run may do to links, and what its rows are promised.
func checkRun(t *rapid.T, before, after *world, j *job, results []result) {
	firsts := map[string]int{}
	for i, r := range results {
		cells := j.rows[i].cells()
		p, _, _ := j.flags.Parse(&cells)
		if r.Reason != "" {
			if r.Outcome != "rejected" || r.ShortCode != "" || r.Change != "" {
				t.Fatalf("row %d: %+v", i, r)
			}
			continue
		}
		if !p.Over(j.AsOf) && after.resolve(r.ShortCode, j.AsOf) != rules.Found {
			t.Fatalf("row %d is accepted and not over, but %s is not answered", i, r.ShortCode)
		}
		if l := after.links[r.ShortCode]; l.canonical != string(canonical(j.rows[i].URL)) {
			t.Fatalf("row %d has the code of %s", i, l.canonical)
		}
		if r.Outcome != outcome.Duplicate.String() {
			firsts[r.ShortCode]++
		} else if firsts[r.ShortCode] == 0 {
			firsts[r.ShortCode] = 0
		}
	}
	for code, n := range firsts {
		if n != 1 {
			t.Fatalf("%d rows of %s are no duplicates", n, code)
		}
	}
	for code, l := range before.links {
		now := after.links[code]
		if now != nil && j.Revive != rules.ReviveAll && l.Status.Deleted() != now.Status.Deleted() {
			t.Fatalf("%s was deleted, and lives: %+v", code, now)
		}
		if now == nil || len(l.Owner) > 0 && string(now.Owner) != string(l.Owner) {
			t.Fatalf("%s has lost its owner: %+v", code, now)
		}
		changed := fmt.Sprint(now.Link) != fmt.Sprint(l.Link)
		if changed && len(l.Owner) > 0 && l.Live(j.AsOf) && string(j.flags.Owner) != string(l.Owner) &&
			!slices.ContainsFunc(j.rows, func(r row) bool { return r.OwnerID == string(l.Owner) }) {
			t.Fatalf("%s was changed, but not by its owner: %+v", code, now)
		}
	}
}

func trySweep(t *rapid.T, w *world, at int64) {
	grace := pick[int64](t, "grace", 0, 21600, 86400)
	before := w.clone()
	_, deleted := w.sweep(at, grace)
	for code, l := range before.links {
		if now := w.links[code]; l.Live(at) && (now == nil || now.Link.Status != rules.StatusActive) {
			t.Fatalf("%s is live, and was swept", code)
		}
	}
	for code, l := range w.links {
		if l.Status == rules.StatusActive && !l.Live(at) || l.Due(at, grace) || grace == 0 && (l.Status == rules.StatusExpired || l.Status == rules.StatusDeleted) {
			t.Fatalf("%s is due, and was not swept: %+v", code, l.Link)
		}
	}
	if marked, more := w.sweep(at, grace); len(marked)+len(more) > 0 {
		t.Fatalf("swept again: %q and %q, after %q", marked, more, deleted)
	}
}

func tryDelete(t *rapid.T, w *world, at int64) {
	items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		if r := someRow(t); rapid.Bool().Draw(t, "is URL") || len(w.links) == 0 {
			return r.URL
		}
		return pick(t, "link", w.inOrder()...).code
	}), 1, 5).Draw(t, "items")
	owner := pick(t, "owner", "", "", "u1", "u2")
	before := w.clone()
	w.erase(items, owner, at)
	for code, l := range before.links {
		if now := w.links[code]; fmt.Sprint(now.Link) != fmt.Sprint(l.Link) && owner != "" && string(l.Owner) != owner {
			t.Fatalf("%s is not of %s", code, owner)
		}
	}
	after := w.show()
	for i, r := range w.erase(items, owner, at+1) {
		if r.Change != "" {
			t.Fatalf("%s is deleted again", items[i])
		}
	}
	if !slices.Equal(w.show(), after) {
		t.Fatal("links were deleted again")
	}
}
