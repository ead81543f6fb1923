package pipeline_test

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
	"pgregory.net/rapid"
)

// secretText is the secret of the tests. No output may have it.
const secretText = "correct horse battery staple"

// keyed is keyed-base62 with the secret of the tests.
var keyed = pipeline.Scheme{Name: codegen.NameKeyed, Secret: codegen.NewSecret([]byte(secretText))}

// base32 and keyed32 are the schemes whose codes are in lower case.
var (
	base32  = pipeline.Scheme{Name: codegen.NameBase32}
	keyed32 = pipeline.Scheme{Name: codegen.NameKeyedBase32, Secret: keyed.Secret}
)

// An identity is a URL and the parts that tell its links apart.
type identity struct{ url, parts string }

// cells are those of the row of an identity: url, max_uses and ref.
func (i identity) cells() (url, uses, ref string) {
	uses, _ = strings.CutPrefix(i.parts, "|m=")
	if ref, ok := strings.CutPrefix(i.parts, "|r="); ok {
		return i.url, "", ref
	}
	return i.url, uses, ""
}

// code returns the code of an identity in a workspace.
func (i identity) code(m codegen.Maker, workspace string, salt int) string {
	return string(m.AppendCode(nil, m.Sum(codegen.AppendIdentity(nil, []byte(i.url), []byte(workspace), []byte(i.parts), salt))))
}

// crowdSalts are the salts whose codes a crowd has in common.
const crowdSalts = 3

// crowd returns identities of the list that share codes of low salts with others, those that want
// the same ones together, the largest such groups first.
func crowd(m codegen.Maker, workspace string, list []identity, most int) (crowd []identity) {
	leader := make([]int, len(list)) // of the group; the leader's own leader is itself
	for i := range leader {
		leader[i] = i
	}
	lead := func(i int) int {
		for leader[i] != i {
			leader[i], i = leader[leader[i]], leader[i]
		}
		return i
	}
	var wants []uint64 // the rank of a code, and who wants it
	var input []byte
	for i, who := range list {
		for salt := range crowdSalts {
			input = codegen.AppendIdentity(input[:0], []byte(who.url), []byte(workspace), []byte(who.parts), salt)
			wants = append(wants, m.Rank(m.Sum(input))<<32|uint64(i))
		}
	}
	slices.Sort(wants)
	for i := 1; i < len(wants); i++ {
		if wants[i]>>32 == wants[i-1]>>32 {
			leader[lead(int(uint32(wants[i])))] = lead(int(uint32(wants[i-1])))
		}
	}
	groups := map[int][]int{}
	for i := range list {
		groups[lead(i)] = append(groups[lead(i)], i)
	}
	for _, group := range slices.SortedFunc(maps.Values(groups), func(a, b []int) int { return cmp.Or(len(b)-len(a), a[0]-b[0]) }) {
		for _, i := range group {
			if len(crowd) < most {
				crowd = append(crowd, list[i])
			}
		}
	}
	return crowd
}

// A schemeKind is a space of codes, and a crowd that contests it.
type schemeKind struct {
	scheme   pipeline.Scheme
	length   int
	identity string // "url", "params" or "row"
	crowd    func() []identity
}

// kindOf returns a kind whose crowd are some of n identities.
func kindOf(scheme pipeline.Scheme, length int, by string, n int) *schemeKind {
	k := &schemeKind{scheme: scheme, length: length, identity: by}
	k.crowd = sync.OnceValue(func() []identity {
		var list []identity
		for i := range n {
			who := identity{url: fmt.Sprintf("http://example.com/%d", i)}
			switch by {
			case "params":
				who = identity{fmt.Sprintf("http://example.com/%d", i%3), fmt.Sprintf("|m=%d", i+1)}
			case "row":
				who = identity{fmt.Sprintf("http://example.com/%d", i%3), fmt.Sprintf("|r=%d", i+1)}
			}
			list = append(list, who)
		}
		return crowd(k.maker(), "demo", list, 400)
	})
	return k
}

// maker makes the codes of the kind, none of which is blocked.
func (k *schemeKind) maker() codegen.Maker {
	m, _, err := k.scheme.Make(k.length)
	if err != nil {
		panic(err)
	}
	return m
}

// schemeKinds are spaces of one to four characters. There are 14.8 million keyed codes of the
// shortest length, so only a few of very many URLs contest one.
var schemeKinds = []*schemeKind{
	kindOf(pipeline.Scheme{}, 1, "url", 150),
	kindOf(pipeline.Scheme{}, 2, "url", 300),
	kindOf(pipeline.Scheme{}, 3, "url", 6000),
	kindOf(pipeline.Scheme{}, 3, "params", 6000),
	kindOf(keyed, 4, "url", 120_000),
	kindOf(keyed, 4, "params", 80_000),
	kindOf(keyed, 4, "row", 80_000),
	kindOf(base32, 3, "url", 3000),
	kindOf(keyed32, 4, "params", 20_000),
}

// longKinds are spaces whose codes do not fit in the key of the sort. Only the store and words make a
// contest there.
var longKinds = []*schemeKind{
	kindOf(pipeline.Scheme{}, 12, "url", 60),
	kindOf(keyed, 11, "row", 60),
	kindOf(keyed, 16, "url", 60),
	kindOf(base32, 24, "url", 60),
}

// A schemeCase is a run over a store.
type schemeCase struct {
	*schemeKind
	retries int
	words   []string // of the blocklist; nil: there is none
	store   []schemeLink
	rows    []schemeRow
}

type schemeLink struct {
	workspace, code string
	identity
}

type schemeRow struct {
	workspace string
	identity
}

// A schemeResult is what comes of a run.
type schemeResult struct {
	rows       map[schemeRow]string // outcome, code and salt, or reason
	store      []schemeLink
	collisions []string

	// How much of a contest it was: identities that lost their first code to one that comes
	// before them, that began with a salt above 0, and that got no code.
	evicted, begun, exhausted int
}

// foldedCode is how codes and words are compared.
func foldedCode(code string) string {
	return strings.NewReplacer("0", "o", "1", "l", "i", "l", "3", "e", "4", "a", "5", "s", "7", "t").Replace(strings.ToLower(code))
}

// word returns the word of the blocklist that a code contains: of several the one that ends first,
// and of these the longest.
func (c *schemeCase) word(code string) (word string) { return wordIn(c.words, code) }

func wordIn(words []string, code string) (word string) {
	code = foldedCode(code)
	for end := 1; end <= len(code) && word == ""; end++ {
		for _, w := range words {
			if w = foldedCode(w); strings.HasSuffix(code[:end], w) && len(w) > len(word) {
				word = w
			}
		}
	}
	return word
}

// model takes one identity at a time, in the order of workspace, URL and parts.
func (c *schemeCase) model() (r schemeResult) {
	r.rows = map[schemeRow]string{}
	type slot struct{ workspace, code string }
	owners, codes, salts := map[slot]identity{}, map[schemeRow]string{}, map[schemeRow]int{}
	for _, l := range c.store {
		owners[slot{l.workspace, l.code}], codes[schemeRow{l.workspace, l.identity}] = l.identity, l.code
	}
	r.store = slices.Clone(c.store)
	order := slices.Compact(slices.SortedFunc(slices.Values(c.rows), func(a, b schemeRow) int {
		return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.url, b.url), cmp.Compare(a.parts, b.parts))
	}))
	m := c.maker()
	firsts := map[schemeRow]int{} // the lowest salt that is not blocked
	for _, row := range order {
		outcome := "rejected code_space_exhausted"
		if code, ok := codes[row]; ok {
			outcome = "existing " + code
			salts[row] = m.SaltOf([]byte(row.url), []byte(row.workspace+row.parts), []byte(code), max(c.retries, 10))
		}
		for salt := 0; salt <= c.retries && codes[row] == ""; salt++ {
			code := row.code(m, row.workspace, salt)
			if c.word(code) != "" {
				continue
			}
			if _, ok := firsts[row]; !ok {
				firsts[row] = salt
			}
			owner, taken := owners[slot{row.workspace, code}]
			if taken {
				if by := (schemeRow{row.workspace, owner}); salt == firsts[row] && salts[by] > firsts[by] {
					r.evicted++
				}
				continue
			}
			outcome, salts[row], codes[row] = "created "+code, salt, code
			owners[slot{row.workspace, code}] = row.identity
			r.store = append(r.store, schemeLink{row.workspace, code, row.identity})
		}
		if r.rows[row] = outcome; codes[row] == "" {
			r.exhausted++
		} else if salts[row] >= 0 {
			r.rows[row] += " " + strconv.Itoa(salts[row])
		}
		if firsts[row] > 0 {
			r.begun++
		}
	}
	for _, row := range order {
		lengthed := m
		if salts[row] > 0 { // the store may have codes of other lengths
			lengthed.Scheme, _ = m.WithLength(len(codes[row]))
		}
		for salt := range salts[row] {
			code := row.code(lengthed, row.workspace, salt)
			owner := owners[slot{row.workspace, code}].url
			if word := c.word(code); word != "" {
				owner = "blocklist:" + word
			}
			r.collisions = append(r.collisions, strings.Join([]string{row.workspace, row.url, strconv.Itoa(salt), code, owner}, " "))
		}
	}
	slices.Sort(r.collisions)
	slices.SortFunc(r.store, compareLinks)
	return r
}

func compareLinks(a, b schemeLink) int {
	return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.code, b.code))
}

// blocklist returns the words of a blocklist.
func blocklist(words []string) *codegen.Blocklist {
	if words == nil {
		return nil
	}
	list, err := codegen.ParseBlocklist([]byte(strings.Join(words, "\n")))
	if err != nil {
		panic(err)
	}
	return list
}

// config returns the configuration of the case on a store.
func (c *schemeCase) config(store sink.Store) pipeline.Config {
	cfg := pipeline.Config{Workspace: "demo", Scheme: c.scheme, CodeLength: c.length, MaxRetries: c.retries, Store: store}
	cfg.Scheme.Words, cfg.Source.WorkspaceColumn = blocklist(c.words), "team"
	if c.retries == 0 {
		cfg.MaxRetries = pipeline.NoRetries
	}
	if c.identity != "url" {
		id, err := rules.ParseIdentity(c.identity)
		if err != nil {
			panic(err)
		}
		cfg.Rules = &rules.Flags{Identity: id}
	}
	return cfg
}

// plant stores the links that are there before the run.
func (c *schemeCase) plant(t *testing.T, cfg pipeline.Config) {
	var links []sink.Link
	for _, l := range c.store {
		links = append(links, link(l.workspace, l.url, l.code))
	}
	if len(links) > 0 {
		plant(t, cfg, links)
	}
}

// csv writes the rows as a file: some with a URL that is written in another way, and with n bytes more
// in each.
func (c *schemeCase) csv(n int) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write([]string{"url", "team", "max_uses", "ref", "more"})
	for i, r := range c.rows {
		url, uses, ref := r.cells()
		w.Write([]string{url + []string{"", "#x"}[i%2], r.workspace, uses, ref, strings.Repeat("x", n)})
	}
	w.Flush()
	return b.String()
}

// check runs the case, and says what is different from the model, whose result it returns.
func (c *schemeCase) check(t *testing.T, cfg pipeline.Config, pad int) (want schemeResult, wrong []string) {
	t.Helper()
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	want = c.model()
	cfg.AsOf = asOf
	t.Chdir(t.TempDir())
	write(t, "in.csv", c.csv(pad))
	looked := cfg
	looked.Inputs = []string{"in.csv"}
	preview, err := pipeline.Preview(t.Context(), looked)
	must(t, err)
	for _, row := range preview.First {
		fields := strings.Fields(want.rows[c.rows[row.Row-1]])
		if got := cmp.Or(row.Reason, string(row.Code)); got != fields[1] {
			complain("preview of row %d: %s, want %s", row.Row, got, fields[1])
		}
	}
	files, result := job(t, cfg, map[string]string{"in.csv": c.csv(pad)})
	if preview.Counts != result.Counts || preview.LinksCreated != result.LinksCreated || !maps.Equal(preview.Reasons, result.Reasons) {
		complain("preview %+v %v, the run has %+v %v", preview.Counts, preview.Reasons, result.Counts, result.Reasons)
	}
	firsts := map[schemeRow]int{}
	see := func(r map[string]string, became string) {
		n, _ := strconv.Atoi(r["row"])
		row := c.rows[n-1]
		if word, rest, _ := strings.Cut(became, " "); word == "duplicate" {
			became = "created " + rest
			if strings.HasPrefix(want.rows[row], "existing") {
				became = "existing " + rest
			}
		} else {
			firsts[row]++
		}
		if became = strings.TrimSpace(became); became != want.rows[row] {
			complain("row %d, %v: %s, want %s", n, row, became, want.rows[row])
		}
	}
	mapping, rejects := records(t, files["mapping.csv"]), records(t, files["rejects.csv"])
	for _, r := range mapping {
		see(r, strings.Join([]string{r["outcome"], r["short_code"], r["salt"]}, " "))
	}
	for _, r := range rejects {
		see(r, "rejected "+r["reason"])
		detail := fmt.Sprintf("all %d codes of this URL have other owners", c.retries+1)
		if c.words != nil {
			detail += " or contain a word of --blocklist"
		}
		if r["detail"] != detail {
			complain("detail %q, want %q", r["detail"], detail)
		}
	}
	if len(mapping)+len(rejects) != len(c.rows) {
		complain("%d and %d rows of %d", len(mapping), len(rejects), len(c.rows))
	}
	for row, n := range firsts {
		if n != 1 && !strings.HasPrefix(want.rows[row], "rejected") {
			complain("%d rows are the first of %v", n, row)
		}
	}
	var collisions []string
	for _, r := range records(t, files["collisions.csv"]) {
		collisions = append(collisions, strings.Join([]string{r["workspace_id"], r["canonical_url"], r["salt"], r["code"], r["owner"]}, " "))
	}
	if slices.Sort(collisions); files["mapping.csv"] != "" && !slices.Equal(collisions, want.collisions) {
		complain("collisions\n%s\nwant\n%s", strings.Join(collisions, "\n"), strings.Join(want.collisions, "\n"))
	}
	if got := schemeLinks(t, cfg.Store, want.store); !slices.Equal(got, want.store) {
		complain("store %v, want %v", got, want.store)
	}
	if n := int64(len(want.store) - len(c.store)); result.LinksCreated != n || result.Counts.Created != n {
		complain("%d links created, %+v, want %d", result.LinksCreated, result.Counts, n)
	}
	return want, wrong
}

// schemeLinks returns the links of a store. The keys of those that are wanted are those of their
// identities, whatever the scheme.
func schemeLinks(t *testing.T, store sink.Store, want []schemeLink) (links []schemeLink) {
	t.Helper()
	of := map[sink.Key]identity{}
	for _, l := range want {
		of[codegen.Sum(codegen.AppendIdentity(nil, []byte(l.url), []byte(l.workspace), []byte(l.parts), 0)).Key()] = l.identity
	}
	if err := store.Scan(t.Context(), func(l *sink.Stored) error {
		who, ok := of[l.Key]
		if !ok {
			who = identity{string(l.Canonical), "?"}
		}
		links = append(links, schemeLink{string(l.Workspace), string(l.Code), who})
		return nil
	}); !errors.Is(err, sink.ErrMissing) {
		must(t, err)
	}
	slices.SortFunc(links, compareLinks)
	return links
}

// draw draws a run among the crowd, over a store that has some of the codes that it wants. Rapid
// prefers small numbers, but not in permutations, which are what makes for a crowd.
func (k *schemeKind) draw(t *rapid.T) schemeCase {
	c := schemeCase{schemeKind: k}
	c.retries = rapid.SampledFrom([]int{1, 2, 0, 3}).Draw(t, "retries")
	all, m := c.crowd(), c.maker()
	size := min(len(all), rapid.SampledFrom([]int{60, 20, 3}).Draw(t, "size"))
	from := rapid.IntRange(0, len(all)-size).Draw(t, "from")
	some := rapid.Permutation(all[from:from+size]).Draw(t, "some")
	salt := rapid.SampledFrom([]int{0, 1, 2})
	used, linked := map[string]bool{}, map[identity]bool{}
	var taken []string // codes that the store has
	for _, code := range pushing(m, some) {
		if rapid.IntRange(0, 4).Draw(t, "pushes") > 0 {
			taken = append(taken, code)
		}
	}
	for i := range rapid.SampledFrom([]int{size / 8, 0, size / 3}).Draw(t, "stored") {
		taken = append(taken, some[i].code(m, "demo", salt.Draw(t, "salt")))
	}
	for i, code := range taken {
		who := identity{url: fmt.Sprintf("http://example.com/old/%d", i)}
		if c.identity == "url" && rapid.Bool().Draw(t, "known") {
			who = some[size-1-i%size]
		}
		switch rapid.IntRange(0, 9).Draw(t, "code") {
		case 8: // of no salt
			code = fmt.Sprint("old-", i)
		case 9: // of another length, which a workspace of keyed codes cannot have
			if longer, err := m.WithLength(5); err == nil && c.scheme.Name == "" {
				code = who.code(codegen.Maker{Scheme: longer}, "demo", salt.Draw(t, "salt"))
			}
		}
		if !used[code] && !linked[who] {
			used[code], linked[who] = true, true
			c.store = append(c.store, schemeLink{"demo", code, who})
		}
	}
	c.words = drawWords(t, some, func(who identity) string { return who.code(m, "demo", salt.Draw(t, "salt")) })
	for _, who := range some {
		for range 1 + rapid.IntRange(0, 9).Draw(t, "duplicates")/9 {
			c.rows = append(c.rows, schemeRow{[]string{"demo", "red"}[rapid.IntRange(0, 9).Draw(t, "workspace")/9], who})
		}
	}
	return c
}

// pushing returns codes that make one of the crowd take the first code of another, which comes after it,
// if somebody has them.
func pushing(m codegen.Maker, some []identity) (codes []string) {
	first := map[string]identity{}
	for _, who := range some {
		first[who.code(m, "demo", 0)] = who
	}
	for _, who := range some {
		var lower []string
		for salt := range crowdSalts {
			code := who.code(m, "demo", salt)
			if after, ok := first[code]; salt > 0 && ok && cmp.Or(cmp.Compare(who.url, after.url), cmp.Compare(who.parts, after.parts)) < 0 {
				codes = append(codes, lower...)
			}
			lower = append(lower, code)
		}
	}
	return codes
}

// drawWords draws a blocklist, which may be none, of words in codes of some of these.
func drawWords(t *rapid.T, of []identity, code func(identity) string) (words []string) {
	for i := range rapid.SampledFrom([]int{len(of) / 2, 0, min(2, len(of))}).Draw(t, "words") {
		text := code(of[i])
		if len(text) < 3 { // no word is as short
			text = "sex"
		}
		from := rapid.IntRange(0, len(text)-3).Draw(t, "from")
		words = append(words, text[from:rapid.IntRange(from+3, len(text)).Draw(t, "to")])
	}
	return words
}
