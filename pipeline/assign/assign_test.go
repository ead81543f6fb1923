package assign_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"pgregory.net/rapid"
)

type owner struct {
	Code      string
	Canonical string
}

type outcome struct {
	Canonical string
	Code      string
	Salt      *int
	Outcome   string
	Reason    string
}

// world is a store and a batch of URLs in one workspace.
type world struct {
	workspace  string
	scheme     codegen.Scheme
	cut        int             // codes have only so many of the last characters; 0: all
	blocked    map[string]bool // codes that no URL may have
	maxRetries int
	existing   []owner
	urls       []string
}

func (w *world) code(canonical []byte, salt int) []byte {
	input := codegen.AppendInput(nil, canonical, []byte(w.workspace), salt)
	code := w.scheme.AppendCode(nil, w.scheme.Sum(input))
	if w.cut > 0 {
		code = code[len(code)-w.cut:]
	}
	return code
}

func (w *world) propose(u *assign.URL, salt int) string {
	if code := string(w.code(u.Canonical, salt)); !w.blocked[code] {
		return code
	}
	return ""
}

// first returns the first code of a URL that is not blocked, and its salt; "": all are blocked.
func (w *world) first(url string) (code string, salt int) {
	u := assign.URL{Canonical: []byte(url)}
	for code == "" && salt <= w.maxRetries {
		if code = w.propose(&u, salt); code == "" {
			salt++
		}
	}
	return code, salt
}

// oneAtATime is the meaning of the assignment, as its definition reads.
func (w *world) oneAtATime() map[string]outcome {
	owners, links := map[string]string{}, map[string]string{}
	for _, e := range w.existing {
		owners[e.Code], links[e.Canonical] = e.Canonical, e.Code
	}
	result := map[string]outcome{}
	urls := slices.Compact(slices.Sorted(slices.Values(w.urls)))
	for _, url := range urls {
		o := outcome{Canonical: url, Outcome: "rejected", Reason: "code_space_exhausted"}
		if code, ok := links[url]; ok {
			o = outcome{Canonical: url, Code: code, Outcome: "existing"}
		}
		for salt := 0; salt <= w.maxRetries && o.Outcome == "rejected"; salt++ {
			if code := string(w.code([]byte(url), salt)); owners[code] == "" && !w.blocked[code] {
				owners[code] = url
				o = outcome{Canonical: url, Code: code, Salt: &salt, Outcome: "created"}
			}
		}
		result[url] = o
	}
	return result
}

// settle computes the same by assign.Settle. Only URLs for which contested
// returns true, that meet another or an owner at their first code, or that have
// none, are given to it; the others it must ask for.
func (w *world) settle(t testingT, contested func(url string) bool) map[string]outcome {
	owners, links := map[string]string{}, map[string]string{}
	for _, e := range w.existing {
		owners[e.Code], links[e.Canonical] = e.Canonical, e.Code
	}
	result := map[string]outcome{}
	bySlot := map[string][]string{}
	for _, url := range w.urls {
		if code, ok := links[url]; ok {
			result[url] = outcome{Canonical: url, Code: code, Outcome: "existing"}
			continue
		}
		code, _ := w.first(url)
		if !slices.Contains(bySlot[code], url) {
			bySlot[code] = append(bySlot[code], url)
		}
	}
	given := map[string]bool{}
	var urls []assign.URL
	for code, group := range bySlot {
		for _, url := range group {
			if len(group) > 1 || code == "" || owners[code] != "" || contested(url) {
				urls = append(urls, assign.URL{Canonical: []byte(url)})
				given[url] = true
			}
		}
	}
	claims, err := assign.Settle(context.Background(), urls, w.propose, w.maxRetries, holders{owners, bySlot, given, w, t})
	if err != nil {
		t.Fatalf("settle: %v", err)
	}
	for _, group := range bySlot { // what Settle never heard of has its first code
		for _, url := range group {
			code, salt := w.first(url)
			result[url] = outcome{Canonical: url, Code: code, Salt: &salt, Outcome: "created"}
		}
	}
	for _, c := range claims {
		o := outcome{Canonical: string(c.Canonical), Code: c.Code, Salt: &c.Salt, Outcome: "created"}
		if c.Exhausted {
			o = outcome{Canonical: o.Canonical, Outcome: "rejected", Reason: "code_space_exhausted"}
		}
		result[o.Canonical] = o
	}
	return result
}

type testingT interface {
	Fatalf(format string, args ...any)
}

// holders answers from a map, and holds Settle to its part of the contract.
type holders struct {
	owners map[string]string
	bySlot map[string][]string
	known  map[string]bool
	w      *world
	t      testingT
}

func (h holders) Holders(_ context.Context, slots []assign.Slot, report func(int, assign.Holder)) error {
	seen := map[assign.Slot]bool{}
	for i, slot := range slots {
		if seen[slot] {
			h.t.Fatalf("slot %s is asked for twice", slot.Code)
		}
		seen[slot] = true
		code := slot.Code
		if h.owners[string(code)] != "" {
			report(i, assign.Holder{Fixed: true})
		} else if group := h.bySlot[string(code)]; len(group) > 0 && !h.known[group[0]] {
			h.known[group[0]] = true
			_, salt := h.w.first(group[0])
			report(i, assign.Holder{Canonical: []byte(group[0]), Salt: salt})
		}
	}
	return nil
}

func compareOutcomes(t testingT, got, want map[string]outcome) {
	if len(got) != len(want) {
		t.Fatalf("%d outcomes, want %d", len(got), len(want))
	}
	for url, w := range want {
		g := got[url]
		if g.Code != w.Code || g.Outcome != w.Outcome || g.Reason != w.Reason ||
			g.Salt != nil && w.Salt != nil && *g.Salt != *w.Salt {
			t.Fatalf("%s: got %+v, want %+v", url, g, w)
		}
	}
}

func TestVectors(t *testing.T) {
	file, err := os.Open("../../testdata/assign.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var v struct {
			Workspace  string
			CodeLength int `json:"code_length"`
			MaxRetries int `json:"max_retries"`
			Existing   []owner
			URLs       []string
			Expect     []outcome
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		scheme, err := codegen.New(v.CodeLength)
		if err != nil {
			t.Fatal(err)
		}
		w := world{workspace: v.Workspace, scheme: scheme, maxRetries: v.MaxRetries, existing: v.Existing, urls: v.URLs}
		want := map[string]outcome{}
		for _, o := range v.Expect {
			want[o.Canonical] = o
		}
		t.Run(fmt.Sprintf("%s/length=%d", v.Workspace, v.CodeLength), func(t *testing.T) {
			compareOutcomes(t, w.settle(t, func(string) bool { return false }), want)
			compareOutcomes(t, w.settle(t, func(string) bool { return true }), want)
			compareOutcomes(t, w.oneAtATime(), want)
		})
	}
	if lines.Err() != nil || n != 60 {
		t.Fatalf("%d cases, %v", n, lines.Err())
	}
}

// Whatever is known at first, in whatever order, with whatever already stored
// (also a part of the final assignment, as a load that was cut off leaves it),
// and whatever codes are blocked, the result is that of one at a time. Keyed codes
// have four characters at least, so only the ends of them are taken, for few codes.
func TestOneMeaning(t *testing.T) {
	keyed, err := codegen.NewKeyed(codegen.NewSecret([]byte("sixteen bytes...")), 4)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		w := world{workspace: "ws", maxRetries: rapid.IntRange(0, 12).Draw(t, "maxRetries")}
		w.scheme, _ = codegen.New(rapid.IntRange(1, 3).Draw(t, "length"))
		if rapid.Bool().Draw(t, "keyed") {
			w.scheme, w.cut = keyed, rapid.IntRange(1, 2).Draw(t, "cut")
		}
		url := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("https://example.com/%d", rapid.IntRange(0, 400).Draw(t, "n"))
		})
		w.urls = rapid.SliceOfN(url, 0, 300).Draw(t, "urls")
		w.blocked = map[string]bool{}
		for _, u := range rapid.SliceOfN(url, 0, rapid.SampledFrom([]int{0, 40}).Draw(t, "most")).Draw(t, "blocked") {
			w.blocked[string(w.code([]byte(u), rapid.IntRange(0, 1).Draw(t, "salt")))] = true
		}
		strangers := rapid.SliceOfNDistinct(url, 0, 20, rapid.ID).Draw(t, "existing")
		for i, u := range strangers {
			w.existing = append(w.existing, owner{string(w.code([]byte{byte(i)}, 0)), u})
		}
		w.existing = slices.CompactFunc(slices.SortedFunc(slices.Values(w.existing), func(a, b owner) int {
			return bytes.Compare([]byte(a.Code), []byte(b.Code))
		}), func(a, b owner) bool { return a.Code == b.Code })

		want := w.oneAtATime()
		odd := rapid.IntRange(1, 5).Draw(t, "one in")
		got := w.settle(t, func(url string) bool { return len(url)%odd == 0 })
		compareOutcomes(t, got, want)

		stored := len(w.existing)
		for _, url := range slices.Sorted(maps.Keys(want)) {
			if o := want[url]; o.Outcome == "created" && rapid.Bool().Draw(t, "stored") {
				w.existing = append(w.existing, owner{o.Code, o.Canonical})
			}
		}
		again := w.settle(t, func(string) bool { return false })
		for _, e := range w.existing[stored:] {
			again[e.Canonical] = want[e.Canonical] // existing now, with the same code
		}
		compareOutcomes(t, again, want)
	})
}

func TestHoldersError(t *testing.T) {
	failure := errors.New("store is gone")
	w := world{workspace: "ws"}
	w.scheme, _ = codegen.New(3)
	_, err := assign.Settle(context.Background(), []assign.URL{{Canonical: []byte("a")}}, w.propose, 10, failing{failure})
	if !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
}

type failing struct{ err error }

func (f failing) Holders(context.Context, []assign.Slot, func(int, assign.Holder)) error {
	return f.err
}

// Without a salt to try nothing is settled: the contest would have no end.
func TestNegativeRetries(t *testing.T) {
	for _, most := range []int{-1, -2} {
		ctx, cancel := context.WithCancel(t.Context())
		propose := func(*assign.URL, int) (c string) { cancel(); return c }
		_, err := assign.Settle(ctx, []assign.URL{{}}, propose, most, holders{owners: map[string]string{"": "x"}, t: t})
		if cancel(); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%d: %v", most, err)
		}
	}
}

// A contest ends with its context, also where nobody else need be asked.
func TestSettleIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	enough, proposed := errors.New("enough"), 0
	propose := func(_ *assign.URL, salt int) string { // there is but one
		if proposed++; salt == 3 {
			cancel(enough)
		}
		return "x"
	}
	urls := []assign.URL{{Canonical: []byte("http://a/")}, {Canonical: []byte("http://b/")}}
	_, err := assign.Settle(ctx, urls, propose, 1000, holders{owners: map[string]string{}, t: t})
	if !errors.Is(err, enough) || proposed > 10 {
		t.Errorf("%d proposals, %v", proposed, err)
	}
}

func BenchmarkSettle(b *testing.B) {
	w := world{workspace: "ws", maxRetries: 10}
	w.scheme, _ = codegen.New(3)
	var urls []assign.URL
	for i := range 100_000 {
		urls = append(urls, assign.URL{Canonical: fmt.Appendf(nil, "https://example.com/%d", i)})
	}
	b.Run("urls=100k/length=3", func(b *testing.B) {
		for b.Loop() {
			none := holders{known: map[string]bool{}}
			if _, err := assign.Settle(context.Background(), urls, w.propose, w.maxRetries, none); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(urls))*float64(b.N)/b.Elapsed().Seconds(), "urls/s")
	})
}
