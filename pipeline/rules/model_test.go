package rules_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A world is a store of one workspace, in memory.
type world struct {
	workspace  string
	scheme     codegen.Scheme
	maxRetries int
	links      map[string]*stored // by code
	runs       int                // ID of the last run
}

type stored struct {
	rules.Link
	code, input, canonical, original string
	run, changedRun                  int
	change                           rules.Change
}

func (w *world) clone() *world {
	c := *w
	c.links = map[string]*stored{}
	for code, l := range w.links {
		copied := *l
		c.links[code] = &copied
	}
	return &c
}

// inOrder returns the links by code.
func (w *world) inOrder() (links []*stored) {
	for _, code := range slices.Sorted(maps.Keys(w.links)) {
		links = append(links, w.links[code])
	}
	return links
}

// A row is a row of a run. Its number in the input counts from 1.
type row struct {
	URL       string `json:"url"`
	ExpiresAt string `json:"expires_at"`
	MaxUses   int    `json:"max_uses"`
	LinkType  string `json:"link_type"`
	OwnerID   string `json:"owner_id"`
	Ref       string
	number    int
}

func (r *row) cells() (c rules.Cells) {
	c[rules.ExpiresAt], c[rules.LinkType], c[rules.OwnerID], c[rules.Ref] = []byte(r.ExpiresAt), []byte(r.LinkType), []byte(r.OwnerID), []byte(r.Ref)
	if r.MaxUses != 0 {
		c[rules.MaxUses] = []byte(strconv.Itoa(r.MaxUses))
	}
	return c
}

// A job is a run of rows.
type job struct {
	rules.Terms
	flags  rules.Flags
	source string
	rows   []row
}

// A result is what becomes of a row of a run or a delete.
type result struct {
	Outcome   string
	ShortCode string `json:"short_code"`
	Change    string
	Reason    string
	Codes     []string // that a row of a delete marked
}

func resultOf(r rules.Result) result {
	if r.Reason != rules.Accepted {
		return result{Outcome: "rejected", Reason: r.Reason.String()}
	}
	return result{Outcome: r.Outcome.String(), Change: r.Change.String()}
}

// A parsed row is one that the model decides about.
type parsed struct {
	*row
	rules.Params
	encoded []byte
	cell    []byte // of the reference
}

// identity is a URL and its parts, with its rows.
type identity struct {
	key  string
	rows []parsed
	rules.Verdict
	link *stored
	gone bool // it is new, and all links of its URL are deleted
}

// groups returns the identities of a job in their order, each with its rows in theirs.
func (j *job) groups() (list []*identity) {
	byKey := map[string]*identity{}
	for i := range j.rows {
		r := &j.rows[i]
		cells := r.cells()
		p, bad, ok := j.flags.Parse(&cells)
		if !ok {
			panic(bad.Detail(bad.String(), cells[bad]))
		}
		if j.flags.Identity == rules.ByRow {
			p.Ref = rules.AppendRef(nil, p.Ref, j.source, int64(r.number))
		}
		key := string(rules.AppendKey(nil, canonical(r.URL), j.flags.Identity.AppendParts(nil, &p)))
		if byKey[key] == nil {
			byKey[key] = &identity{key: key}
			list = append(list, byKey[key])
		}
		byKey[key].rows = append(byKey[key].rows, parsed{r, p, p.Append(nil), cells[rules.Ref]})
	}
	slices.SortFunc(list, func(a, b *identity) int { return cmp.Compare(a.key, b.key) })
	for _, id := range list {
		slices.SortFunc(id.rows, func(a, b parsed) int {
			return cmp.Or(bytes.Compare(a.encoded, b.encoded), cmp.Compare(a.URL, b.URL), bytes.Compare(a.cell, b.cell), cmp.Compare(a.number, b.number))
		})
	}
	return list
}

func canonical(url string) []byte {
	c, err := canon.Profile{}.Append(nil, []byte(url))
	if err != nil {
		panic(err)
	}
	return c
}

func (w *world) input(key []byte, salt int) []byte {
	c, parts := rules.CutKey(key)
	return codegen.AppendIdentity(nil, c, []byte(w.workspace), parts, salt)
}

// run does a job as the run with this ID. Where does is not nil, it is interrupted: only the links
// are stored, and only the changes made, for which does returns true.
func (w *world) run(j *job, id int, does func() bool) []result {
	byInput := map[string]*stored{}
	for _, l := range w.links {
		byInput[l.input] = l
	}
	groups := j.groups()
	var fresh []assign.URL
	for _, g := range groups {
		g.link = byInput[string(w.input([]byte(g.key), 0))]
		g.gone = g.link == nil && j.Revive != rules.ReviveAll && w.gone(g.key)
		if g.decide(j.Terms, id); g.link == nil && !g.gone {
			fresh = append(fresh, assign.URL{Canonical: []byte(g.key)})
		}
	}
	codes := w.assign(fresh)
	results := make([]result, len(j.rows))
	for _, g := range groups {
		code := codes[g.key]
		if g.link != nil {
			code = g.link.code
		}
		for i, r := range g.rows {
			at := slices.IndexFunc(j.rows, func(o row) bool { return o.number == r.number })
			if g.gone {
				results[at] = resultOf(rules.Result{Reason: rules.LinkDeleted})
				continue
			}
			if code == "" {
				results[at] = result{Outcome: "rejected", Reason: outcome.CodeSpaceExhausted}
				continue
			}
			if results[at] = resultOf(g.Row(j.Terms, i, &r.Params)); results[at].Reason == "" {
				results[at].ShortCode = code
			}
		}
		if code != "" && (does == nil || does()) {
			w.act(g, code, id)
		}
	}
	return results
}

// gone reports whether the URL of an identity has links, and somebody deleted all of them.
func (w *world) gone(key string) bool {
	canonical, _ := rules.CutKey([]byte(key))
	deleted := 0
	for _, l := range w.links {
		if l.canonical != string(canonical) {
			continue
		}
		if deleted++; !l.Status.Deleted() {
			return false
		}
	}
	return deleted > 0
}

// decide finds the verdict on an identity.
func (g *identity) decide(t rules.Terms, run int) {
	judge := rules.Judge{Terms: t}
	if judge.Begin(nil); g.link != nil {
		found := &rules.Stored{Link: g.link.Link, Made: g.link.run == run}
		if g.link.changedRun == run {
			found.Changed = g.link.change
		}
		judge.Begin(found)
	}
	for i := 0; i < len(g.rows) && judge.See(&g.rows[i].Params); i++ {
	}
	g.Verdict = judge.Verdict()
}

// act does what a verdict says.
func (w *world) act(g *identity, code string, run int) {
	action := g.Result.Action()
	switch action {
	case rules.Nothing:
		return
	case rules.Create:
		c, _ := rules.CutKey([]byte(g.key))
		g.link = &stored{code: code, input: string(w.input([]byte(g.key), 0)), canonical: string(c), run: run}
		w.links[code] = g.link
	default:
		g.link.changedRun, g.link.change = run, g.Result.Change
	}
	if action != rules.Write {
		g.link.original = g.rows[g.Speaker].URL
	}
	g.link.Link = g.Link
}

// assign gives codes to new identities.
func (w *world) assign(fresh []assign.URL) map[string]string {
	propose := func(u *assign.URL, salt int) string {
		return string(w.scheme.AppendCode(nil, codegen.Sum(w.input(u.Canonical, salt))))
	}
	claims, err := assign.Settle(context.Background(), fresh, propose, w.maxRetries, w)
	if err != nil {
		panic(err)
	}
	codes := map[string]string{}
	for _, c := range claims {
		if !c.Exhausted {
			codes[string(c.Canonical)] = c.Code
		}
	}
	return codes
}

// Holders implements assign.Holders.
func (w *world) Holders(_ context.Context, slots []assign.Slot, report func(int, assign.Holder)) error {
	for i, slot := range slots {
		if w.links[slot.Code] != nil {
			report(i, assign.Holder{Fixed: true})
		}
	}
	return nil
}

// erase does a delete of URLs and codes.
func (w *world) erase(items []string, owner string, at int64) []result {
	isURL := func(item string) bool { return strings.Contains(item, "://") }
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	name := func(i int) string {
		if isURL(items[i]) {
			return "0" + string(canonical(items[i]))
		}
		return "1" + items[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(name(a), name(b)) })
	named, results := map[string]bool{}, make([]result, len(items))
	for _, i := range order {
		d := rules.Deletion{Owner: []byte(owner)}
		var marked []string
		for _, l := range w.inOrder() {
			if l.code != items[i] && "0"+l.canonical != name(i) {
				continue
			}
			if d.Link(&rules.Stored{Link: l.Link}, named[l.code]) {
				l.Delete(at)
				marked = append(marked, l.code)
			}
			named[l.code] = true
		}
		results[i] = resultOf(d.Result())
		results[i].Codes = marked
	}
	return results
}

// sweep returns the codes of links that were marked, and of those that were deleted.
func (w *world) sweep(at, grace int64) (marked, deleted []string) {
	for _, l := range w.inOrder() {
		if l.Expire(at) {
			marked = append(marked, l.code)
		}
		if l.Due(at, grace) {
			deleted = append(deleted, l.code)
			delete(w.links, l.code)
		}
	}
	return marked, deleted
}

func (w *world) resolve(code string, at int64) int {
	if l := w.links[code]; l != nil {
		return rules.Resolve(&l.Link, at)
	}
	return rules.Resolve(nil, at)
}

// show describes the store, as far as anybody can see it.
func (w *world) show() (lines []string) {
	for _, l := range w.inOrder() {
		mark := ""
		if l.Marked {
			mark = time.Unix(l.Mark, 0).UTC().Format(time.RFC3339)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s expires=%s limit=%d uses=%d type=%s owner=%s ref=%q status=%s mark=%s",
			l.code, l.input, l.original, l.Expiry, l.Limit, l.Uses, l.Type, l.Owner, l.Ref, l.Status, mark))
	}
	return lines
}
