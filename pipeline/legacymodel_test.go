package pipeline_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
)

// A legacyCase is a line of testdata/legacy.jsonl. Where identities have parts, what stands for a
// canonical URL is a URL with its parts, as of rules.AppendKey: see legacyparts_test.go.
type legacyCase struct {
	Workspace  string
	Identity   string // "": url
	Legacy     string
	OnConflict string `json:"on_conflict"`
	FoldCase   bool   `json:"fold_case"`
	CodeLength int    `json:"code_length"`
	MaxRetries int    `json:"max_retries"`
	Store      []legacyLink
	Rows       []legacyRow
	Expect     struct {
		Fails bool
		Rows  []legacyResult
		Store []legacyLink
	}

	scheme pipeline.Scheme
	words  []string // of the blocklist; nil: there is none

	collisions []string // of the model; nil: it was not asked
}

// code returns the code of a URL at a salt.
func (c *legacyCase) code(url string, salt int) string { return c.codeOf(url, salt, c.CodeLength) }

func (c *legacyCase) codeOf(url string, salt, length int) string {
	k := schemeKind{scheme: c.made(), length: length}
	url, parts := cutParts(url)
	return identity{url, parts}.code(k.maker(), c.Workspace, salt)
}

// made is how codes are made.
func (c *legacyCase) made() pipeline.Scheme {
	s := c.scheme
	s.Fold = c.FoldCase
	return s
}

type legacyLink struct{ Code, Canonical, Kind string }

type legacyRow struct {
	Canonical string
	Code      string // "": none
	Kind      string
}

type legacyResult struct {
	ShortCode     string `json:"short_code"`
	Kind          string
	New           bool
	Reason, Owner string
}

func legacyCases(t *testing.T) (cases []legacyCase) {
	f, err := os.Open("../testdata/legacy.jsonl")
	must(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c legacyCase
		must(t, json.Unmarshal(lines.Bytes(), &c))
		cases = append(cases, c)
	}
	if lines.Err() != nil || len(cases) == 0 {
		t.Fatal(lines.Err(), len(cases))
	}
	return cases
}

// model is the one-at-a-time meaning of a run with legacy codes ("Kept codes, one at a time"
// in codegen/README.md). It returns what becomes of each row, and the store afterwards; nil:
// the run fails.
func (c *legacyCase) model() (rows []legacyResult, after []legacyLink) {
	given := c.Rows
	if c.FoldCase {
		given = slices.Clone(given)
		for i := range given {
			given[i].Code = strings.ToLower(given[i].Code)
		}
	}
	type holder struct {
		legacyLink
		stored bool
	}
	codes, links := map[string]*holder{}, map[string]*holder{} // by code; of URLs
	for _, l := range c.Store {
		codes[l.Code] = &holder{l, true}
		if l.Kind == "link" {
			links[l.Canonical] = codes[l.Code]
		}
	}
	claims := map[string]*holder{}         // by code: the best
	marked := map[string]map[string]bool{} // codes of a URL whose row says that it is the link
	for _, r := range given {
		if r.Code == "" || c.Legacy == "map" {
			continue
		}
		if b := claims[r.Code]; b == nil || cmp.Or(cmp.Compare(r.Canonical, b.Canonical), cmp.Compare(r.Code, b.Code)) < 0 {
			claims[r.Code] = &holder{legacyLink: legacyLink{r.Code, r.Canonical, "alias"}}
		}
		if r.Kind == "link" {
			if marked[r.Canonical] == nil {
				marked[r.Canonical] = map[string]bool{}
			}
			marked[r.Canonical][r.Code] = true
		}
	}
	for code, b := range claims {
		if codes[code] == nil {
			codes[code] = b
		}
	}
	won := func(r legacyRow) *holder {
		if r.Code == "" || c.Legacy == "map" {
			return nil
		}
		if h := codes[r.Code]; h.Canonical == r.Canonical {
			return h
		}
		return nil
	}
	wins, urls := map[string][]*holder{}, map[string]bool{} // by URL; the URLs with an accepted row
	rows = make([]legacyResult, len(given))
	for i, r := range given {
		if h := won(r); h != nil {
			wins[r.Canonical] = append(wins[r.Canonical], h)
		} else if r.Code != "" && c.Legacy != "map" && c.OnConflict != "generate" {
			if c.OnConflict == "fail" {
				return nil, nil
			}
			rows[i] = legacyResult{Reason: "code_taken", Owner: urlOf(codes[r.Code].Canonical)}
			continue
		}
		urls[r.Canonical] = true
	}
	for _, u := range slices.Sorted(maps.Keys(urls)) {
		own := wins[u]
		slices.SortFunc(own, func(a, b *holder) int {
			return cmp.Or(-compareBool(marked[u][a.Code], marked[u][b.Code]), cmp.Compare(a.Code, b.Code))
		})
		own = slices.DeleteFunc(own, func(h *holder) bool { return h.stored }) // those stay what they are
		wins[u] = own
		if links[u] == nil && c.Legacy == "keep" && len(own) > 0 {
			links[u], own[0].Kind = own[0], "link"
		}
	}
	salts := map[string]int{}
	for _, u := range slices.Sorted(maps.Keys(urls)) {
		if links[u] != nil && links[u].stored {
			k := schemeKind{scheme: c.made(), length: c.CodeLength}
			url, parts := cutParts(u)
			salts[u] = k.maker().SaltOf([]byte(url), []byte(c.Workspace+parts), []byte(links[u].Code), max(c.MaxRetries, 10))
		}
		for salt := 0; links[u] == nil && salt <= c.MaxRetries; salt++ {
			if code := c.code(u, salt); codes[code] == nil && wordIn(c.words, code) == "" {
				links[u] = &holder{legacyLink: legacyLink{code, u, "link"}}
				codes[code], salts[u] = links[u], salt
			}
		}
		if own := wins[u]; links[u] == nil && len(own) > 0 {
			least := slices.MinFunc(own, func(a, b *holder) int { return cmp.Compare(a.Code, b.Code) })
			links[u], least.Kind = least, "link"
		}
	}
	for _, r := range given { // of a code that a row has it does not count what salt gives it
		if h := won(r); h != nil && h == links[r.Canonical] {
			salts[r.Canonical] = 0
		}
	}
	c.collisions = []string{}
	for u, above := range salts {
		for salt := range above {
			code, owner := c.codeOf(u, salt, len(links[u].Code)), ""
			if h := codes[code]; h != nil {
				owner = urlOf(h.Canonical)
			}
			if word := wordIn(c.words, code); word != "" {
				owner = "blocklist:" + word
			}
			c.collisions = append(c.collisions, strings.Join([]string{u, strconv.Itoa(salt), code, owner}, " "))
		}
	}
	slices.Sort(c.collisions)
	for i, r := range given {
		h := cmp.Or(won(r), links[r.Canonical])
		switch {
		case rows[i].Reason != "":
		case h == nil:
			rows[i] = legacyResult{Reason: "code_space_exhausted"}
		default:
			rows[i] = legacyResult{ShortCode: h.Code, Kind: h.Kind, New: !h.stored}
		}
	}
	for _, h := range codes {
		after = append(after, h.legacyLink)
	}
	slices.SortFunc(after, func(a, b legacyLink) int { return cmp.Compare(a.Code, b.Code) })
	return rows, after
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// The model agrees with the vectors, which somebody else computed.
func TestLegacyModel(t *testing.T) {
	for i, c := range legacyCases(t) {
		checkModel(t, i, &c)
	}
}

// checkModel checks the model by what is expected of a case.
func checkModel(t *testing.T, i int, c *legacyCase) {
	t.Helper()
	rows, after := c.model()
	if c.Expect.Fails {
		if rows != nil {
			t.Errorf("case %d does not fail", i)
		}
		return
	}
	if !slices.Equal(rows, c.Expect.Rows) || !slices.Equal(after, c.Expect.Store) {
		t.Errorf("case %d (%s, %s, fold %t)", i, c.Legacy, c.OnConflict, c.FoldCase)
		for j := range rows {
			if j < len(c.Expect.Rows) && rows[j] != c.Expect.Rows[j] {
				t.Logf("row %d %s %v: %+v, want %+v", j, c.Rows[j].Canonical, c.Rows[j].Code, rows[j], c.Expect.Rows[j])
			}
		}
	}
}
