package pipeline_test

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
	"pgregory.net/rapid"
)

// config returns the configuration of a case on a store.
func (c *legacyCase) config(store sink.Store) pipeline.Config {
	cfg := pipeline.Config{Workspace: c.Workspace, Store: store, CodeLength: c.CodeLength, MaxRetries: c.MaxRetries,
		Legacy: legacy.Mode(c.Legacy), Scheme: c.made()}
	cfg.Scheme.Words = blocklist(c.words)
	if cfg.Legacy.Keeps() {
		cfg.OnConflict = legacy.Conflict(c.OnConflict)
	}
	cfg.Source.CodeColumn, cfg.Source.Map = "code", map[string]string{"kind": "kind"}
	if c.MaxRetries == 0 {
		cfg.MaxRetries = pipeline.NoRetries
	}
	if c.Identity != "" {
		by, _ := rules.ParseIdentity(c.Identity)
		cfg.Rules = &rules.Flags{Identity: by}
	}
	return cfg
}

// csv writes the rows as a file, with n bytes more in each.
func (c *legacyCase) csv(n int) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	head := []string{"url", "code", "kind", "more"}
	if c.Identity != "" {
		head = append(head, "expires_at", "max_uses", "ref")
	}
	w.Write(head)
	for _, r := range c.Rows {
		row := []string{urlOf(r.Canonical), r.Code, r.Kind, strings.Repeat("x", n)}
		if c.Identity != "" {
			row = append(row, cellsOfParts(r.Canonical)...)
		}
		w.Write(row)
	}
	w.Flush()
	return b.String()
}

// plantCase stores the links that are there before the run.
func (c *legacyCase) plant(t *testing.T, cfg pipeline.Config) {
	var links []sink.Link
	for _, l := range c.Store {
		links = append(links, legacyStored(c.Workspace, l))
	}
	if len(links) > 0 {
		plant(t, cfg, links)
	}
}

func legacyStored(workspace string, l legacyLink) sink.Link {
	url, parts := cutParts(l.Canonical)
	s := link(workspace, url, l.Code)
	if parts != "" {
		s.Base, s.Key = s.Key, codegen.Sum(codegen.AppendIdentity(nil, s.Canonical, s.Workspace, []byte(parts), 0)).Key()
		s.Rules = rulesOfParts(parts)
	}
	if s.Alias = l.Kind == "alias"; s.Alias {
		s.Base = cmp.Or(s.Base, s.Key)
		s.Key = codegen.Sum(codegen.AppendAlias(nil, s.Canonical, s.Workspace, []byte(parts), s.Code)).Key()
	}
	return s
}

// stored lists the links of a workspace.
func storedLinks(t *testing.T, store sink.Store, workspace string) (links []legacyLink) {
	t.Helper()
	err := store.ScanRules(context.Background(), func(l *sink.Stored) error {
		if string(l.Workspace) != workspace {
			return nil
		}
		link := legacyLink{string(l.Code), withParts(l), "link"}
		if l.Alias {
			link.Kind = "alias"
		}
		if want := legacyStored(workspace, link); want.Key != l.Key {
			t.Errorf("%s %s has key %x, not %x", link.Kind, l.Code, l.Key, want.Key)
		}
		links = append(links, link)
		return nil
	})
	if !errors.Is(err, sink.ErrMissing) {
		must(t, err)
	}
	return links
}

// check runs the case, whose expectation is known, and says what is different.
func (c *legacyCase) check(t *testing.T, cfg pipeline.Config, pad int) (wrong []string) {
	t.Helper()
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	t.Chdir(t.TempDir())
	write(t, "in.csv", c.csv(pad))
	cfg.Inputs, cfg.Out, cfg.AsOf = []string{"in.csv"}, "out", asOf
	preview, err := pipeline.Preview(context.Background(), cfg)
	must(t, err)
	result, err := pipeline.Run(context.Background(), cfg)
	refused, ok := errors.AsType[*pipeline.TooManyRejectsError](err)
	for _, wrong := range c.checkPreview(preview, result, refused, storedLinks(t, cfg.Store, c.Workspace)) {
		complain("preview: %s", wrong)
	}
	switch {
	case c.Expect.Fails:
		if !ok || refused.Conflicts == 0 || !slices.Equal(storedLinks(t, cfg.Store, c.Workspace), sortedLinks(c.Store)) {
			complain("does not fail: %v", err)
		}
		return wrong
	case ok && refused.First != "":
		return wrong
	}
	if err != nil {
		return []string{err.Error()}
	}
	got := make([]legacyResult, len(c.Rows))
	firsts := map[string]int{} // rows by identity that are no duplicates
	for _, r := range records(t, read(t, "out/mapping.csv")) {
		i, _ := strconv.Atoi(r["row"])
		kind := r["kind"]
		if c.Legacy == "map" { // there is no such column, but that of the input
			kind = "link"
		}
		got[i-1] = legacyResult{ShortCode: r["short_code"], Kind: kind}
		if r["link_code"] == "" && r["link_salt"] != "" {
			complain("row %d: salt %s of no code", i-1, r["link_salt"])
		}
		if r["outcome"] != "duplicate" {
			firsts[r["short_code"]]++
		}
	}
	for _, r := range records(t, read(t, "out/rejects.csv")) {
		i, _ := strconv.Atoi(r["row"])
		got[i-1] = legacyResult{Reason: r["reason"]}
		if _, owner, ok := strings.Cut(r["detail"], " belongs to "); ok {
			got[i-1].Owner, _, _ = strings.Cut(owner, ", with another ")
		}
	}
	before := map[string]bool{}
	for _, l := range c.Store {
		before[l.Code] = true
	}
	for i := range got {
		if want := &c.Expect.Rows[i]; got[i].Reason == "" {
			got[i].New = !before[got[i].ShortCode]
			if firsts[got[i].ShortCode] != 1 {
				complain("row %d: %d rows are the first of %s", i, firsts[got[i].ShortCode], got[i].ShortCode)
			}
			if *want != got[i] {
				complain("row %d: %+v, want %+v", i, got[i], *want)
			}
		} else if *want != got[i] {
			complain("row %d: %+v, want %+v", i, got[i], *want)
		}
	}
	var collisions []string
	for _, r := range records(t, read(t, "out/collisions.csv")) {
		collisions = append(collisions, strings.Join([]string{joinParts(r["canonical_url"], r["parts"]), r["salt"], r["code"], r["owner"]}, " "))
	}
	if slices.Sort(collisions); c.collisions != nil && !slices.Equal(collisions, c.collisions) {
		complain("collisions\n%s\nwant\n%s", strings.Join(collisions, "\n"), strings.Join(c.collisions, "\n"))
	}
	after := storedLinks(t, cfg.Store, c.Workspace)
	if !slices.Equal(after, sortedLinks(c.Expect.Store)) {
		complain("store %v, want %v", after, c.Expect.Store)
	}
	if n := int64(len(after) - len(c.Store)); result.LinksCreated != n {
		complain("%d links created, want %d", result.LinksCreated, n)
	}
	return wrong
}

// checkPreview compares a preview with the run that followed, and the links that it left.
func (c *legacyCase) checkPreview(p *pipeline.PreviewResult, run *pipeline.Result, refused *pipeline.TooManyRejectsError, stored []legacyLink) (wrong []string) {
	compare := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s %+v, the run has %+v", what, got, want))
		}
	}
	compare("counts", p.Counts, run.Counts)
	compare("links", p.LinksCreated, run.LinksCreated)
	compare("reasons", p.Reasons, run.Reasons)
	compare("fresh", p.NewWorkspaces, run.NewWorkspaces)
	compare("refused", p.Refused != nil, refused != nil)
	if refused != nil {
		compare("why", p.Refused.Why(), refused.Why())
		return wrong
	}
	compare("merged", p.MergedDiffers, run.MergedDiffers)
	compare("legacy", p.Result.Legacy, run.Legacy)
	for i, row := range p.First {
		want := c.Expect.Rows[i]
		if c.Legacy == "map" {
			want.Kind = ""
		}
		compare("row", row.Row, int64(i+1))
		compare("first row", legacyResult{ShortCode: string(row.Code), Kind: row.Kind, Reason: row.Reason, Owner: want.Owner, New: want.New}, want)
	}
	if x := p.Examples[pipeline.ExampleConflict]; x != nil {
		_, owner, _ := strings.Cut(x.Detail, " belongs to ")
		owner, _, _ = strings.Cut(owner, ", with another ")
		has := slices.ContainsFunc(stored, func(l legacyLink) bool {
			return urlOf(l.Canonical) == owner && (l.Code == string(x.LegacyCode) || c.FoldCase && strings.EqualFold(l.Code, string(x.LegacyCode)))
		})
		compare("owner of "+string(x.LegacyCode), has, true)
	}
	if run.Reasons["code_space_exhausted"] == 0 { // such rows may be the only ones that had a conflict
		compare("an example of a conflict", p.Examples[pipeline.ExampleConflict] != nil, run.Legacy.Conflicts > 0)
	}
	compare("an example of a kept code", p.Examples[pipeline.ExampleKept] != nil, p.Kept > 0)
	compare("an example of a generated code", p.Examples[pipeline.ExampleGenerated] != nil, p.Generated > 0)
	compare("an example of an alias", p.Examples[pipeline.ExampleAlias] != nil, p.Aliases > 0)
	return wrong
}

// again repeats the run of check, and says what it changes.
func (c *legacyCase) again(t *testing.T, cfg pipeline.Config) (wrong []string) {
	t.Helper()
	if _, err := os.Stat("out"); err != nil { // it was refused
		return nil
	}
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	before := storedLinks(t, cfg.Store, c.Workspace)
	cfg.Inputs, cfg.Out, cfg.AsOf = []string{"in.csv"}, "again", asOf
	result, err := pipeline.Run(context.Background(), cfg)
	must(t, err)
	if result.LinksCreated != 0 || !slices.Equal(storedLinks(t, cfg.Store, c.Workspace), before) {
		complain("again: %d links created", result.LinksCreated)
	}
	for _, name := range []string{"mapping.csv", "collisions.csv", "rejects.csv"} {
		want := strings.ReplaceAll(read(t, "out/"+name), ",created,", ",existing,")
		if got := read(t, "again/"+name); got != want {
			complain("again: %s: %s, was %s", name, firstDifference(got, want), firstDifference(want, got))
		}
	}
	return wrong
}

func sortedLinks(links []legacyLink) []legacyLink {
	return slices.SortedFunc(slices.Values(links), func(a, b legacyLink) int { return cmp.Compare(a.Code, b.Code) })
}

// The vectors, through a whole run.
func TestLegacyVectors(t *testing.T) {
	for i, c := range legacyCases(t) {
		t.Run(fmt.Sprintf("%d %s %s fold %t", i, c.Legacy, c.OnConflict, c.FoldCase), func(t *testing.T) {
			cfg := c.config(openStore(t, t.TempDir()))
			c.plant(t, cfg)
			for _, wrong := range append(c.check(t, cfg, 0), c.again(t, cfg)...) {
				t.Error(wrong)
			}
		})
	}
}

// The vectors of workspaces that fold case, on both stores.
func TestFoldVectors(t *testing.T) {
	onStores(t, func(t *testing.T, s linkStore) {
		n := 0
		for i, c := range legacyCases(t) {
			if !c.FoldCase {
				continue
			}
			n++
			s.empty(t)
			cfg := c.config(s.Store)
			c.plant(t, cfg)
			for _, wrong := range append(c.check(t, cfg, 0), c.again(t, cfg)...) {
				t.Errorf("case %d: %s", i, wrong)
			}
		}
		if n != 18 {
			t.Errorf("%d cases", n)
		}
	})
}

// The example of codegen/README.md, through a whole run.
func TestKeptPage(t *testing.T) {
	page := read(t, "../codegen/README.md")
	c := legacyCase{Workspace: "demo", Legacy: "keep", CodeLength: 10, MaxRetries: 10,
		Store: []legacyLink{{"sale", "https://example.com/old", "link"}}}
	_, table, _ := strings.Cut(page, "| canonical URL | old code | gets | kind | because |\n|---|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for i := range 5 {
			cells[i] = strings.Trim(cells[i], " `")
		}
		c.Rows = append(c.Rows, legacyRow{Canonical: cells[1], Code: cells[2]})
		want := legacyResult{ShortCode: cells[3], Kind: cells[4], New: true}
		if want.Kind == "" {
			want = legacyResult{Reason: cells[3]}
			want.Owner = "https://example.com/" + strings.Split(cells[5], "`")[1]
		}
		c.Expect.Rows = append(c.Expect.Rows, want)
	}
	_, c.Expect.Store = c.model()
	if len(c.Rows) != 8 {
		t.Fatalf("%d rows", len(c.Rows))
	}
	cfg := c.config(openStore(t, t.TempDir()))
	c.plant(t, cfg)
	for _, wrong := range c.check(t, cfg, 0) {
		t.Error(wrong)
	}
}

// Whatever the rows, the store, the order of the rows, the workers and the memory, a run does
// what handling the rows one at a time does, and the same run again changes nothing.
func TestLegacyLikeOneAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawLegacy(rt)
		c.Expect.Rows, c.Expect.Store = c.model()
		c.Expect.Fails = c.Expect.Rows == nil
		cfg := c.config(openStore(t, t.TempDir()))
		cfg.Workers = rapid.IntRange(1, 3).Draw(rt, "workers")
		cfg.ReportOrder = rapid.SampledFrom([]report.Order{report.SortOrder, report.InputOrder}).Draw(rt, "order")
		if rapid.Bool().Draw(rt, "spill") {
			cfg.SpillAt(1)
		}
		c.plant(t, cfg)
		pad := rapid.SampledFrom([]int{0, 0, 3000}).Draw(rt, "pad")
		if wrong := append(c.check(t, cfg, pad), c.again(t, cfg)...); wrong != nil {
			rt.Fatalf("%+v\n%s", c, strings.Join(wrong, "\n"))
		}
	})
}

// So it is in PostgreSQL.
func TestLegacyInPostgres(t *testing.T) {
	store, empty := inPostgres(t)
	cases := legacyCases(t)
	for seed := range 20 {
		c := rapid.Custom(drawLegacy).Example(seed)
		c.Expect.Rows, c.Expect.Store = c.model()
		c.Expect.Fails = c.Expect.Rows == nil
		cases = append(cases, c)
	}
	for i, c := range cases {
		if testing.Short() && i%4 > 0 {
			continue
		}
		empty()
		cfg := c.config(store)
		c.plant(t, cfg)
		for _, wrong := range c.check(t, cfg, 0) {
			t.Errorf("case %d: %s", i, wrong)
		}
	}
}

// So it is with keyed codes and with words that no generated code contains. Codes that are kept may
// contain them.
func TestLegacySchemeLikeOneAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawLegacyScheme(rt)
		c.Expect.Rows, c.Expect.Store = c.model()
		c.Expect.Fails = c.Expect.Rows == nil
		cfg := c.config(openStore(t, t.TempDir()))
		cfg.Workers = rapid.IntRange(1, 3).Draw(rt, "workers")
		cfg.ReportOrder = rapid.SampledFrom([]report.Order{report.SortOrder, report.InputOrder}).Draw(rt, "order")
		if rapid.Bool().Draw(rt, "spill") {
			cfg.SpillAt(1)
		}
		c.plant(t, cfg)
		pad := rapid.SampledFrom([]int{0, 0, 3000}).Draw(rt, "pad")
		if wrong := append(c.check(t, cfg, pad), c.again(t, cfg)...); wrong != nil {
			rt.Fatalf("%+v\n%s", c, strings.Join(wrong, "\n"))
		}
	})
}

// By hand: a code that is kept contains a word, the first code of a URL contains it, too, and its second is
// one that another URL has brought along.
func TestLegacySchemeCollisions(t *testing.T) {
	const url, other = "http://example.com/b", "http://example.com/c"
	k := kindOf(keyed, 7, "url", 0)
	code := func(salt int) string { return identity{url: url}.code(k.maker(), "demo", salt) }
	word := code(0)[1:6]
	for _, mode := range []legacy.Mode{legacy.Keep, legacy.Both} {
		cfg := pipeline.Config{Workspace: "demo", Scheme: keyed, Legacy: mode, Store: openStore(t, t.TempDir())}
		cfg.Scheme.Words = blocklist([]string{word})
		files, _ := job(t, cfg, map[string]string{"a.csv": "url,code\n" + url + ",\n" + other + "," + code(1) + "\nhttp://example.com/a," + word + "\n"})
		got := map[string]string{}
		for _, r := range records(t, files["mapping.csv"]) {
			got[r["canonical_url"]] = r["short_code"]
		}
		if got[url] != code(2) || got[other] != code(1) || got["http://example.com/a"] != word {
			t.Errorf("%s: codes %v", mode, got)
		}
		want := "workspace_id,canonical_url,salt,code,owner\ndemo," + url + ",0," + code(0) + ",blocklist:" + foldedCode(word) +
			"\ndemo," + url + ",1," + code(1) + "," + other + "\n"
		if files["collisions.csv"] != want {
			t.Errorf("%s: %s, want %s", mode, files["collisions.csv"], want)
		}
	}
}

// drawLegacy draws a case in a small world, so that codes meet.
func drawLegacy(t *rapid.T) (c legacyCase) {
	c.CodeLength = rapid.IntRange(1, 2).Draw(t, "length")
	c.draw(t, rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("https://example.com/%d", rapid.IntRange(0, rapid.SampledFrom([]int{3, 40}).Draw(t, "spread")).Draw(t, "url"))
	}))
	return c
}

// drawLegacyScheme draws a case among a crowd that contests its codes, with words in these.
func drawLegacyScheme(t *rapid.T) (c legacyCase) {
	k := rapid.SampledFrom([]*schemeKind{schemeKinds[4], schemeKinds[2]}).Draw(t, "kind")
	c.scheme, c.CodeLength = k.scheme, k.length
	from := rapid.IntRange(0, len(k.crowd())-12).Draw(t, "from")
	some := rapid.Permutation(k.crowd()[from:from+12]).Draw(t, "some")
	c.words = drawWords(t, some, func(who identity) string { return who.code(k.maker(), "demo", rapid.IntRange(0, 1).Draw(t, "salt")) })
	c.draw(t, rapid.Custom(func(t *rapid.T) string { return rapid.Permutation(some).Draw(t, "who")[0].url }))
	return c
}

// draw draws everything but the length of codes, with these URLs.
func (c *legacyCase) draw(t *rapid.T, url *rapid.Generator[string]) {
	c.Workspace = "demo" // that of the crowds
	c.Legacy = rapid.SampledFrom([]string{"keep", "keep", "both", "both", "map"}).Draw(t, "mode")
	c.OnConflict = rapid.SampledFrom([]string{"reject", "generate", "fail"}).Draw(t, "conflict")
	c.FoldCase = c.scheme.Name == "" && rapid.IntRange(0, 2).Draw(t, "fold") == 0
	c.MaxRetries = rapid.IntRange(0, 3).Draw(t, "retries")
	code := rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 3).Draw(t, "generated") == 0 { // one that a URL may get
			return c.code(url.Draw(t, "of"), rapid.IntRange(0, 2).Draw(t, "salt"))
		}
		return rapid.StringMatching("[a-bA-B1]{1,2}").Draw(t, "code")
	})
	linked, taken := map[string]bool{}, map[string]bool{}
	for range rapid.IntRange(0, 8).Draw(t, "stored") {
		l := legacyLink{code.Draw(t, "code"), url.Draw(t, "url"), rapid.SampledFrom([]string{"link", "alias"}).Draw(t, "kind")}
		if c.FoldCase {
			l.Code = strings.ToLower(l.Code)
		}
		if !taken[l.Code] && !(l.Kind == "link" && linked[l.Canonical]) {
			taken[l.Code], linked[l.Canonical] = true, linked[l.Canonical] || l.Kind == "link"
			c.Store = append(c.Store, l)
		}
	}
	for range rapid.IntRange(1, 40).Draw(t, "rows") {
		r := legacyRow{Canonical: url.Draw(t, "url"), Kind: rapid.SampledFrom([]string{"", "", "link", "alias"}).Draw(t, "kind")}
		if rapid.IntRange(0, 3).Draw(t, "has code") > 0 {
			r.Code = code.Draw(t, "code")
		}
		c.Rows = append(c.Rows, r)
	}
}
