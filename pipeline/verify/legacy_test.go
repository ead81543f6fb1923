package verify_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
)

// legacyRun is a run with a mode: links, aliases, a conflict, rows without a code, duplicates and,
// for a second run, links that are there. Codes that are generated have one character. The
// letters of URLs are their order.
func legacyRun(t *testing.T, mode legacy.Mode, change func(*pipeline.Config)) (store sink.Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	cfg := pipeline.Config{Workspace: "demo", CodeLength: 1, MaxRetries: 20, Version: "test", Legacy: mode, Store: openStore(t, dir)}
	if mode.Keeps() {
		cfg.CodePattern = "[A-Za-z0-9.+]+"
		cfg.Codes.Pattern = must(legacy.ParsePattern(cfg.CodePattern))
	}
	if change != nil {
		change(&cfg)
	}
	job(t, cfg, map[string]string{"a.csv": "url,code,kind\nhttps://x.example/k,old,\nftp://x,,\n"})
	rows := "url,code,kind\n" +
		"https://x.example/a,aaa,\nhttps://x.example/a,abc,\nhttps://x.example/a,,\nhttps://x.example/a,aaa,\n" + // a link, an alias, two duplicates
		"https://x.example/b,aaa,\n" + // taken by a
		"https://x.example/c,ccc,alias\nhttps://x.example/c,cdd,link\n" + // the second is the link
		"https://x.example/d,,\nhttps://x.example/D,,\n" +
		"https://x.example/k,old,\nhttps://x.example/k,new,\nhttps://x.example/l,old,\n" + // of the run before
		"https://x.example/t,tWo,\nhttps://x.example/u,2.19E+26,\n" +
		"https://x.example/v,bad code,\n,ccc,\n"
	for _, c := range "efghijmnopqrs" {
		rows += "https://x.example/" + string(c) + ",,\n"
	}
	job(t, cfg, map[string]string{"a.csv": rows})
	clean(t, verify.Config{Store: cfg.Store, Inputs: []string{"a.csv"}})
	return cfg.Store, dir
}

// A tampering changes a cell of the first line of a report that has some cells, and says which
// kind of finding that is.
type tampering struct {
	file   string
	where  map[string]string // cells by column
	column string
	to     string
	want   verify.Kind
}

func (c *tampering) apply(t *testing.T) bool {
	t.Helper()
	r := csv.NewReader(strings.NewReader(strings.Join(lines(t, c.file), "")))
	all := must(r.ReadAll())
	at := func(name string) int { return slices.Index(all[0], name) }
	for _, row := range all[1:] {
		fits := true
		for column, cell := range c.where {
			fits = fits && row[at(column)] == cell
		}
		if !fits {
			continue
		}
		row[at(c.column)] = c.to
		var b strings.Builder
		w := csv.NewWriter(&b)
		w.WriteAll(all)
		put(t, c.file, []string{b.String()})
		return true
	}
	return false
}

// areFound checks that each change is found by itself, and that the run is clean without any.
func areFound(t *testing.T, run string, list []tampering) {
	t.Helper()
	areFoundWith(t, verify.Config{}, run, list)
}

func areFoundWith(t *testing.T, cfg verify.Config, run string, list []tampering) {
	t.Helper()
	for i := range list {
		c := &list[i]
		good := lines(t, c.file)
		if !c.apply(t) {
			t.Errorf("%+v: there is no such row", *c)
			continue
		}
		if v := verified(t, cfg); v.Kinds[c.want] == 0 {
			t.Errorf("%s: %+v: found %v", run, *c, v.Findings)
		}
		put(t, c.file, good)
	}
	clean(t, cfg)
}

const (
	mappingFile = "mapping.csv"
	rejectsFile = "rejects.csv"
	x           = "https://x.example/"
)

// What is changed in a report of a run that keeps legacy codes is found, and named, although the
// digests are made to fit.
func TestVerifyLegacyTampered(t *testing.T) {
	keep := []tampering{
		{mappingFile, map[string]string{"short_code": "abc"}, "kind", "link", verify.BadKind},
		{mappingFile, map[string]string{"short_code": "aaa", "outcome": "duplicate", "legacy_code": "aaa"}, "kind", "alias", verify.BadKind},
		{mappingFile, map[string]string{"short_code": "cdd"}, "kind", "alias", verify.BadCount},
		{mappingFile, map[string]string{"short_code": "abc"}, "outcome", "duplicate", verify.BadOutcome},
		{mappingFile, map[string]string{"short_code": "aaa", "outcome": "duplicate", "legacy_code": "aaa"}, "outcome", "created", verify.BadOutcome},
		{mappingFile, map[string]string{"short_code": "aaa", "legacy_code": ""}, "outcome", "created", verify.BadOutcome},
		{mappingFile, map[string]string{"short_code": "aaa", "legacy_code": ""}, "short_code", "zzz", verify.BadDuplicate},
		{mappingFile, map[string]string{"short_code": "aaa", "legacy_code": ""}, "salt", "3", verify.BadSalt},
		{mappingFile, map[string]string{"short_code": "abc"}, "salt", "0", verify.BadSalt},
		{mappingFile, map[string]string{"short_code": "abc"}, "legacy_code", "abd", verify.BadLegacy},
		{mappingFile, map[string]string{"short_code": "abc"}, "legacy_code", "a c", verify.BadLegacy},
		{mappingFile, map[string]string{"short_code": "tWo"}, "short_code", "ccc", verify.CodeShared},
		{mappingFile, map[string]string{"canonical_url": x + "d"}, "short_code", "zzz", verify.BadCode},
		{mappingFile, map[string]string{"short_code": "ccc"}, "in_kind", "link", verify.BadKind},
		{mappingFile, map[string]string{"short_code": "abc"}, "link_code", "zzz", verify.BadDuplicate},
		{mappingFile, map[string]string{"short_code": "abc"}, "link_salt", "19", verify.BadDuplicate},
		{mappingFile, map[string]string{"short_code": "tWo"}, "link_code", "zzz", verify.BadKind},
		{mappingFile, map[string]string{"short_code": "tWo"}, "link_salt", "0", verify.BadSalt},
		{mappingFile, map[string]string{"short_code": "2.19E+26"}, "legacy_code", "2.19E-26", verify.BadCount},
		{rejectsFile, map[string]string{"url": x + "b"}, "detail", `the code "aaa" belongs to https://x.example/c`, verify.BadDetail},
		{rejectsFile, map[string]string{"url": x + "b"}, "url", x + "0", verify.BadPrecedence},
		{rejectsFile, map[string]string{"url": x + "b"}, "url", x + "a", verify.BadReason},
		{rejectsFile, map[string]string{"url": x + "b"}, "reason", "code_reserved", verify.BadReason},
		{rejectsFile, map[string]string{"url": x + "b"}, "reason", "bad_code", verify.BadReason},
		{rejectsFile, map[string]string{"url": x + "v"}, "reason", "code_taken", verify.BadReason},
		{rejectsFile, map[string]string{"url": x + "v"}, "detail", "x", verify.BadDetail},
		{rejectsFile, map[string]string{"url": x + "v"}, "code", "", verify.BadReason},
	}
	both := append([]tampering{
		{mappingFile, map[string]string{"short_code": "abc"}, "kind", "link", verify.BadKind},
		{mappingFile, map[string]string{"short_code": "abc"}, "link_code", "zzz", verify.BadDuplicate},
		{mappingFile, map[string]string{"short_code": "abc"}, "link_salt", "19", verify.BadDuplicate},
		{mappingFile, map[string]string{"short_code": "ccc"}, "link_code", "", verify.BadDuplicate},
		{mappingFile, map[string]string{"short_code": "tWo"}, "link_code", "zzz", verify.BadCode},
		{mappingFile, map[string]string{"short_code": "tWo"}, "link_salt", "", verify.BadSalt},
		{mappingFile, map[string]string{"canonical_url": x + "d"}, "link_code", "zzz", verify.BadKind},
	}, keep[8:12]...)
	for mode, list := range map[legacy.Mode][]tampering{legacy.Keep: keep, legacy.Both: both, legacy.Map: {
		{mappingFile, map[string]string{"legacy_code": "abc"}, "legacy_code", "abd", verify.BadLegacy},
		{mappingFile, map[string]string{"legacy_code": "abc"}, "legacy_code", "", verify.BadCount},
		{mappingFile, map[string]string{"legacy_code": "abc"}, "outcome", "created", verify.BadOutcome},
	}} {
		for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
			t.Run(string(mode)+" "+string(order), func(t *testing.T) {
				legacyRun(t, mode, func(c *pipeline.Config) {
					c.ReportOrder, c.Source.CodeColumn = order, "code"
					c.Source.Map = map[string]string{"kind": "kind"}
				})
				areFound(t, string(mode), list)
			})
		}
	}
}

// The mapping also tells the link of a URL whose rows are all aliases of it, which the store had.
func TestVerifyLinkOfAliases(t *testing.T) {
	for _, order := range []report.Order{report.SortOrder, report.InputOrder} {
		dir := t.TempDir()
		cfg := pipeline.Config{Workspace: "demo", CodeLength: 1, MaxRetries: 20, Version: "test", Legacy: legacy.Keep, Store: openStore(t, dir), ReportOrder: order}
		first, second := "url,code\nftp://x,\n", "url,code\nftp://x,\n"
		for _, c := range "abcdefghijklmno" {
			url := x + string(c)
			first, second = first+url+",\n", second+url+",old"+string(c)+"\n"
		}
		job(t, cfg, map[string]string{"a.csv": first})
		job(t, cfg, map[string]string{"a.csv": second})
		stored := verify.Config{Store: cfg.Store, Inputs: []string{"a.csv"}}
		clean(t, stored)
		for change, want := range map[string]verify.Kind{
			"DELETE FROM links WHERE length(short_code) = 1 AND canonical_url = '" + x + "a'":           verify.StoreMissing,
			"UPDATE links SET run_id = 2 WHERE length(short_code) = 1 AND canonical_url = '" + x + "a'": verify.StoreDiffers,
		} {
			restore := alter(t, dir, change)
			if v := verified(t, stored); v.Kinds[want] == 0 {
				t.Errorf("%s: %s: found %v", order, change, v.Findings)
			}
			restore()
		}
		of := map[string]string{"short_code": "olda", "kind": "alias"}
		areFound(t, string(order), []tampering{
			{mappingFile, of, "link_code", "zzz", verify.BadCode},
			{mappingFile, of, "link_salt", "", verify.BadSalt},
			{mappingFile, of, "kind", "link", verify.BadKind},
			{"collisions.csv", nil, "canonical_url", x + "z", verify.BadCollision},
			{"collisions.csv", nil, "salt", "19", verify.Uncollided},
		})
	}
}

// So is what the manifest says of legacy codes.
func TestVerifyLegacyManifest(t *testing.T) {
	legacyRun(t, legacy.Keep, nil)
	links := int64(99)
	for field, change := range map[string]func(m *manifest.Manifest){
		"legacy.aliases":         func(m *manifest.Manifest) { m.Legacy.Aliases++ },
		"legacy.conflicts":       func(m *manifest.Manifest) { m.Legacy.Conflicts++ },
		"legacy.without_code":    func(m *manifest.Manifest) { m.Legacy.WithoutCode++ },
		"legacy.damaged":         func(m *manifest.Manifest) { m.Legacy.Damaged = nil },
		"legacy.damaged.example": func(m *manifest.Manifest) { m.Legacy.Damaged.Example.Row++ },
		"legacy.case_twins":      func(m *manifest.Manifest) { m.Legacy.CaseTwins = &manifest.CaseTwins{Groups: 1} },
		"legacy":                 func(m *manifest.Manifest) { m.Legacy = nil },
		"links_created":          func(m *manifest.Manifest) { m.LinksCreated = &links },
		"options.legacy":         func(m *manifest.Manifest) { m.Options["legacy"] = "kept" },
		"options.on_conflict":    func(m *manifest.Manifest) { m.Options["on_conflict"] = "win" },
		"options.code_pattern":   func(m *manifest.Manifest) { m.Options["code_pattern"] = "(" },
		"inputs[0].code_column":  func(m *manifest.Manifest) { m.Inputs[0].CodeColumn = nil },
	} {
		good, m := readManifest(t), readManifest(t)
		change(m)
		writeManifest(t, m)
		v := verified(t, verify.Config{})
		if !slices.ContainsFunc(v.Findings, func(f verify.Finding) bool { return string(f.Column) == field }) {
			t.Errorf("%s: found %v", field, v.Findings)
		}
		writeManifest(t, good)
	}
	clean(t, verify.Config{})
}

// Aliases and kept links of the store are compared, too.
func TestVerifyLegacyStore(t *testing.T) {
	for _, mode := range []legacy.Mode{legacy.Keep, legacy.Both} {
		store, dir := legacyRun(t, mode, nil)
		for change, want := range map[string]verify.Kind{
			"UPDATE links SET url_key = randomblob(16) WHERE short_code = 'abc'":             verify.StoreKey,
			"UPDATE links SET base_key = randomblob(16) WHERE short_code = 'abc'":            verify.StoreKey,
			"UPDATE links SET base_key = NULL WHERE short_code = 'abc'":                      verify.StoreKey,
			"UPDATE links SET canonical_url = canonical_url || 'x' WHERE short_code = 'abc'": verify.StoreDiffers,
			"UPDATE links SET short_code = 'abd' WHERE short_code = 'abc'":                   verify.StoreMissing,
			"DELETE FROM links WHERE short_code = 'abc'":                                     verify.StoreMissing,
			"DELETE FROM links WHERE base_key IS NULL AND canonical_url = '" + x + "a'":      verify.StoreAlias,
			"UPDATE links SET run_id = 1 WHERE short_code = 'abc'":                           verify.StoreDiffers,
		} {
			restore := alter(t, dir, change)
			if v := verified(t, verify.Config{Store: store}); v.Kinds[want] == 0 {
				t.Errorf("%s: %s: found %v", mode, change, v.Findings)
			} else if strings.HasPrefix(change, "DELETE") && v.Kinds[verify.StoreExtra] > 0 { // the other links are the run's, also those that no row has
				t.Errorf("%s: %s: found %v", mode, change, v.Findings)
			}
			restore()
		}
		clean(t, verify.Config{Store: store})
		// A run without a mode over the same store finds its aliases and kept codes in order.
		cfg := base(1)
		cfg.Source.WorkspaceColumn, cfg.Store, cfg.MaxRetries = "", store, 20
		job(t, cfg, map[string]string{"a.csv": "url\n" + x + "a\n" + x + "k\n" + x + "z\nftp://x\n"})
		clean(t, verify.Config{Store: store, Inputs: []string{"a.csv"}})
	}
}

// Of a workspace that folds case all codes are in lower case, whatever the rows say.
func TestVerifyFold(t *testing.T) {
	fold := func(c *pipeline.Config) { c.Scheme.Fold = true }
	store, _ := legacyRun(t, legacy.Keep, fold)
	areFound(t, "keep", []tampering{
		{mappingFile, map[string]string{"legacy_code": "tWo"}, "legacy_code", "tWx", verify.BadLegacy},
		{mappingFile, map[string]string{"legacy_code": "tWo"}, "short_code", "tWo", verify.BadCode},
		{mappingFile, map[string]string{"legacy_code": "tWo"}, "link_code", "tWo", verify.BadKind},
	})
	job(t, pipeline.Config{Workspace: "demo", CodeLength: 1, MaxRetries: 20, Version: "test", Store: store},
		map[string]string{"a.csv": "url\nhttps://x.example/t\nftp://x\n"})
	areFound(t, "plain", []tampering{{mappingFile, map[string]string{"canonical_url": x + "t"}, "short_code", "tWo", verify.BadCode}})
}
