package sinktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/sink"
)

var rulesTests = []test{
	{"rules/new", func(t *testing.T, db *database) { testRules(t, db, nil, sink.Run{Rules: true}) }},
	{"rules/new_parts", func(t *testing.T, db *database) { testRules(t, db, nil, sink.Run{Rules: true, Parts: true}) }},
	{"rules/new_all", func(t *testing.T, db *database) {
		testRules(t, db, nil, sink.Run{Rules: true, Parts: true, Aliases: true, Attrs: true, KeepCreated: true})
	}},
	{"rules/existing", func(t *testing.T, db *database) {
		testRules(t, db, links("w", 50_000, 50_010), sink.Run{Rules: true})
	}},
	{"rules/existing_all", func(t *testing.T, db *database) {
		testRules(t, db, links("w", 50_000, 50_010), sink.Run{Rules: true, Parts: true, Aliases: true, Attrs: true, KeepCreated: true})
	}},
	{"rules/unannounced", testRulesUnannounced},
	{"rules/workspaces", testRulesOfWorkspaces},
	{"rules/lookup", testRulesLookup},
	{"rules/gone", testRulesGone},
	{"rules/read", testRulesRead},
	{"rules/resolve", testResolve},
	{"rules/resolve_redirect", testResolveRedirect},
	{"rules/resolve_many", testResolveMany},
	{"rules/summary", testSummary},
}

// rulesOf are rules as a Row has them.
func rulesOf(r *sink.Rules) Rules {
	if r == nil {
		return Rules{}
	}
	return Rules{Expires: r.Expires, MaxUses: r.MaxUses, Uses: r.Uses, Type: string(r.Type), Owner: string(r.Owner), Ref: string(r.Ref),
		Status: r.Status, Marked: r.Marked, ChangedRun: r.ChangedRun, Change: r.Change}
}

// ruled gives links some rules, as far as the run may have them.
func ruled(run sink.Run, ls []sink.Link) []sink.Link {
	for i := range ls {
		l := &ls[i]
		if run.Parts && !l.Alias && i%3 == 0 {
			l.Base, l.Key = l.Key, part(*l, fmt.Sprint("m=", i)).Key
		}
		if !run.Rules || i%7 == 0 {
			continue
		}
		l.Rules = new(sink.Rules)
		if i%2 > 0 {
			l.Rules.Expires = time.Date(2000+i%60, 2, 28, 23, 59, 59, i%2*1000, time.UTC)
		}
		if i%3 > 0 {
			l.Rules.MaxUses = int64(i) << 20
		}
		if i%5 > 0 {
			l.Rules.Type = []byte([]string{"TEMPORARY", "PERMANENT", "é'\\"}[i%3])
			l.Rules.Owner = fmt.Appendf(nil, "user %d", i%11)
		}
		if i%4 == 0 {
			l.Rules.Ref = fmt.Appendf(nil, "in|%%.csv:%d", i)
		}
	}
	return ls
}

// part is a link whose identity has a part.
func part(l sink.Link, text string) sink.Link {
	l.Base, l.Key = l.Key, codegen.Sum(codegen.AppendInput(nil, l.Canonical, []byte(string(l.Workspace)+"|"+text), 0)).Key()
	return l
}

// Links with and without rules and parts come back as they are. All links of such a run are
// Active. Other runs' links have no rules.
func testRules(t *testing.T, db *database, before []sink.Link, flags sink.Run) {
	old := db.loadBefore(before)
	ls := links("w", 0, 3_000)
	if flags.Aliases {
		ls = mixed("w", 1_000)
	}
	ls = ruled(flags, own(flags, ls))
	var run sink.Run
	db.with(func(s sink.Session) {
		run = startOwn(t, s, flags)
		noError(t, s.Load(context.Background(), run, chunks(ls, 700)))
		complete(t, s, run)
	}, "w")
	want := rows(ls, run.ID)
	for i := range want {
		want[i].Status = sink.Active
	}
	db.expect(old, want)
	all := db.Dump(t)
	var got []Row
	store := db.Open(t)
	defer closed(t, store)
	noError(t, store.ScanRules(context.Background(), func(l *sink.Stored) error { got = append(got, stored(l)); return nil }))
	equal(t, got, all...)
	got = nil
	noError(t, store.Scan(context.Background(), func(l *sink.Stored) error {
		if l.Rules != nil {
			t.Errorf("Scan gave the rules of %s", l.Code)
		}
		got = append(got, stored(l))
		return nil
	}))
	for i := range all {
		all[i].Rules = Rules{}
	}
	equal(t, got, all...)
	lines := db.exportCells("w")
	at := slices.Index(lines[0], "access_count")
	for _, cells := range lines[1:] {
		if ours := !slices.ContainsFunc(old, func(r Row) bool { return r.Code == cells[1] }); ours != (cells[at] == "0") {
			t.Fatalf("access_count of %s is %s", cells[1], cells[at])
		}
	}
}

func testRulesUnannounced(t *testing.T, db *database) {
	const url = "https://a.example/"
	withRules := coded("w", url, "a")
	withRules.Rules = new(sink.Rules)
	db.with(func(s sink.Session) {
		for _, c := range []struct {
			flags sink.Run
			link  sink.Link
		}{
			{sink.Run{}, withRules}, {sink.Run{Parts: true}, withRules}, {sink.Run{Aliases: true, Attrs: true}, withRules},
			{sink.Run{}, part(coded("w", url, "a"), "m=1")}, {sink.Run{Rules: true, Aliases: true}, part(coded("w", url, "a"), "m=1")},
			{sink.Run{Rules: true, Parts: true}, alias("w", url, "a")},
		} {
			wantFatal(t, s.Load(context.Background(), startOwn(t, s, c.flags), chunks([]sink.Link{c.link}, 1)))
		}
	}, "w")
	db.expect()
}

// Which workspaces have rules is stored beside their profiles.
func testRulesOfWorkspaces(t *testing.T, db *database) {
	ctx := context.Background()
	expect := func(s sink.Session, want string, workspaces ...string) {
		t.Helper()
		got, err := s.Rules(ctx, workspaces)
		noError(t, err)
		if names := fmt.Sprint(slices.Sorted(maps.Keys(got))); names != want {
			t.Errorf("with rules, of %q: %s, want %s", workspaces, names, want)
		}
	}
	db.with(func(s sink.Session) {
		expect(s, "[]")
		expect(s, "[]", "a", "b")
		noError(t, s.SetProfile(ctx, []string{"a", "b"}, "linkforge-1+fragment"))
		expect(s, "[]", "a", "b")
		noError(t, s.SetRules(ctx, []string{"b", "ü"}))
		noError(t, s.SetRules(ctx, []string{"b"}))
		expect(s, "[b]", "a", "b")
		noError(t, s.SetProfile(ctx, []string{"ü"}, "linkforge-1+fragment"))
	}, "a", "b", "ü")
	db.peek(func(s sink.Session) {
		expect(s, "[b ü]")
		expect(s, "[]", "a", "B")
		got, err := s.Profiles(ctx, nil)
		noError(t, err)
		if len(got) != 3 {
			t.Errorf("profiles: %q", got)
		}
	})
}

// A probe finds the link of exactly its own identity, with its rules.
func testRulesLookup(t *testing.T, db *database) {
	const url = "https://a.example/"
	plain, limited, expiring := coded("w", url, "AA"), part(coded("w", url, "BB"), "m=5"), part(coded("w", url, "CC"), "e=2030-01-01T00:00:00Z")
	limited.Rules, expiring.Rules = &sink.Rules{MaxUses: 5, Owner: []byte("u1")}, &sink.Rules{Expires: asOf, Type: []byte("TEMPORARY"), Ref: []byte("r")}
	flags := sink.Run{Rules: true, Parts: true, Aliases: true}
	db.with(func(s sink.Session) {
		run := startOwn(t, s, flags)
		noError(t, s.Load(context.Background(), run, chunks([]sink.Link{plain, limited, expiring, alias("w", url, "DD")}, 2)))
		complete(t, s, run)
	}, "w")
	db.Execute(t, "UPDATE links SET access_count = 3, status = 'EXPIRED', marked_at = expires_at, changed_run = 7, change = 'updated' WHERE short_code = 'CC'")
	active := Rules{Status: sink.Active}
	ofLimited, ofExpiring := Rules{MaxUses: 5, Owner: "u1", Status: sink.Active}, Rules{Expires: asOf, Uses: 3, Type: "TEMPORARY", Ref: "r", Status: sink.Expired, Marked: asOf, ChangedRun: 7, Change: "updated"}
	at := func(l sink.Link, code string) sink.Probe {
		l.Code = []byte(code)
		p := probe(l)
		p.WantRules, p.Parts = true, l.Base != sink.Key{}
		return p
	}
	type answer struct {
		found
		Rules
	}
	keys := map[string]sink.Key{"AA": plain.Key, "BB": limited.Key, "CC": expiring.Key, "DD": alias("w", url, "DD").Key}
	db.peek(func(s sink.Session) {
		for _, c := range []struct {
			probe sink.Probe
			want  []answer
		}{
			{sink.Probe{Workspace: []byte("w"), Code: []byte("DD"), WantRules: true, WantRun: true, Parts: true}, []answer{{found{0, false, "DD", url, 1, true}, active}}},
			{at(plain, "AA"), []answer{{found{0, true, "AA", "", 1, false}, active}}},
			{at(plain, "BB"), []answer{{found{0, true, "AA", "", 1, false}, active}, {found{0, false, "BB", url, 1, false}, ofLimited}}},
			{at(limited, "AA"), []answer{{found{0, true, "BB", "", 1, false}, ofLimited}, {found{0, false, "AA", url, 1, false}, active}}},
			{at(expiring, "CC"), []answer{{found{0, true, "CC", "", 1, false}, ofExpiring}}},
			{at(expiring, "DD"), []answer{{found{0, true, "CC", "", 1, false}, ofExpiring}, {found{0, false, "DD", url, 1, true}, active}}},
			{at(part(coded("w", url, ""), "m=6"), "CC"), []answer{{found{0, false, "CC", url, 1, false}, ofExpiring}}},
			{sink.Probe{Workspace: []byte("w"), Code: []byte("CC"), WantRules: true, WantRun: true}, []answer{{found{0, false, "CC", url, 1, false}, ofExpiring}}},
		} {
			var got []answer
			noError(t, s.Lookup(context.Background(), []sink.Probe{c.probe}, func(f sink.Found) error {
				a := answer{found{f.Probe, f.Same, string(f.Code), string(f.Canonical), f.Run, f.Alias}, rulesOf(f.Rules)}
				if f.Same {
					a.Canonical = ""
				}
				if c.probe.Parts && f.Key != keys[string(f.Code)] {
					t.Errorf("%s has the key %x, not %x", f.Code, f.Key, keys[string(f.Code)])
				}
				got = append(got, a)
				return nil
			}))
			slices.SortFunc(got, func(a, b answer) int {
				if a.Same {
					return -1
				}
				return 1
			})
			equal(t, got, c.want...)
		}
		noError(t, s.Lookup(context.Background(), []sink.Probe{probe(plain)}, func(f sink.Found) error {
			if f.Rules != nil {
				t.Error("rules that nobody wants")
			}
			return nil
		}))
	})
}

// A URL is gone if it has links or aliases, and all of them are deleted, also by other words.
func testRulesGone(t *testing.T, db *database) {
	const a, b, none = "https://a.example/", "https://b.example/", "https://none.example/"
	db.with(func(s sink.Session) {
		run := startOwn(t, s, sink.Run{Aliases: true, Parts: true})
		noError(t, s.Load(context.Background(), run, chunks([]sink.Link{coded("w", a, "a"), alias("w", a, "b"), part(coded("w", b, "c"), "m=5")}, 10)))
		complete(t, s, run)
	}, "w")
	urls := []sink.Key{coded("w", a, "").Key, coded("w", none, "").Key, coded("w", b, "").Key, coded("x", a, "").Key, coded("w", a, "").Key}
	for _, c := range []struct {
		set  string
		a, b bool
	}{
		{"status = NULL", false, false},
		{"status = 'DELETED' WHERE short_code = 'a'", false, false},
		{"status = 'EXPIRED' WHERE short_code = 'b'", false, false},
		{"status = 'PAUSED' WHERE short_code = 'b'", true, false},
		{"status = 'DELETED' WHERE short_code = 'c'", true, true},
		{"status = '' WHERE short_code = 'a'", false, true},
	} {
		db.Execute(t, "UPDATE links SET "+c.set)
		db.with(func(s sink.Session) {
			gone, err := s.Gone(context.Background(), urls)
			noError(t, err)
			equal(t, gone, c.a, false, c.b, false, c.a)
			gone, err = s.Gone(context.Background(), nil)
			noError(t, err)
			equal(t, gone)
		}, "w")
	}
}

// What another program writes is read as the law says, also by Find and OfURL.
func testRulesRead(t *testing.T, db *database) {
	const url = "https://a.example/"
	db.with(func(s sink.Session) {
		run := startAliases(t, s)
		noError(t, s.Load(context.Background(), run, chunks([]sink.Link{coded("w", url, "a"), alias("w", url, "b")}, 10)))
		complete(t, s, run)
	}, "w")
	db.Insert(t, rows([]sink.Link{part(coded("w", url, "c"), "m=5")}, 0)[0])
	store := db.Open(t)
	defer closed(t, store)
	want := Rules{}
	for _, c := range []struct {
		set  string
		want func()
	}{
		{"max_uses = NULL", func() {}},
		{"max_uses = 0, access_count = 7", func() { want.MaxUses, want.Uses = -1, 7 }},
		{"max_uses = NULL, status = ''", func() { want.MaxUses = 0 }},
		{"max_uses = 3, status = 'PAUSED'", func() { want.MaxUses, want.Status = 3, "PAUSED" }},
		{"link_type = '', owner_id = 'o', ref = ''", func() { want.Owner = "o" }},
		{"expires_at = '2030-01-02 03:04:05', marked_at = '2030-01-02 03:04:05.678901'", func() {
			want.Expires, want.Marked = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC)
		}},
		{"changed_run = 9, change = 'bent'", func() { want.ChangedRun, want.Change = 9, "bent" }},
	} {
		db.Execute(t, "UPDATE links SET "+c.set+" WHERE short_code <> 'a'")
		c.want()
		var got []Rules
		visit := func(l *sink.Stored) error { got = append(got, rulesOf(l.Rules)); return nil }
		noError(t, store.ScanRules(context.Background(), visit))
		noError(t, store.Find(context.Background(), "w", "b", visit))
		noError(t, store.Find(context.Background(), "w", "a", visit))
		noError(t, store.OfURL(context.Background(), "w", coded("w", url, "").Key, visit))
		equal(t, got, Rules{}, want, want, want, Rules{}, Rules{}, want, want)
	}
}

// Codes are resolved in any order, each as often as it was asked for.
func testResolve(t *testing.T, db *database) {
	ls := []sink.Link{coded("w", "https://a.example/", "a"), coded("w", "https://b.example/", "b"), coded("x", "https://c.example/", "c")}
	ls[1].Original = []byte("HTTPS://b.example/ü")
	ls[1].Rules = &sink.Rules{Expires: asOf}
	db.with(func(s sink.Session) {
		run := startOwn(t, s, sink.Run{Rules: true})
		noError(t, s.Load(context.Background(), run, chunks(ls, 10)))
		complete(t, s, run)
	}, "w", "x")
	db.Insert(t, rows([]sink.Link{coded("w", "https://d.example/", "d")}, 0)[0])
	db.Execute(t, "UPDATE links SET status = 'DELETED' WHERE short_code = 'a'")
	store := db.Open(t)
	defer closed(t, store)
	resolve := func(workspace string, codes ...string) []string {
		out := make([]string, len(codes))
		noError(t, store.Resolve(context.Background(), workspace, codes, func(r *sink.Resolved) error {
			out[r.Index] += fmt.Sprint(r.Rules.Answer(asOf.Add(-1)), r.Rules.Answer(asOf), string(r.URL))
			return nil
		}))
		return out
	}
	const a, b, d = "404 404https://a.example/", "302 410HTTPS://b.example/ü", "302 302https://d.example/"
	equal(t, resolve("w", "b", "nobody", "a", "", "d", "b", "c", "A"), b, "", a, "", d, b, "", "")
	equal(t, resolve("w", "a\x00", "b", "\xff"), "", b, "")
	equal(t, resolve("w"))
	equal(t, resolve("v", "a"), "")
	stop := errors.New("stop")
	wantIs(t, store.Resolve(context.Background(), "w", []string{"a", "b"}, func(*sink.Resolved) error { return stop }), stop)
}

// A link answers with its redirect code, if that is one, for as long as it works.
func testResolveRedirect(t *testing.T, db *database) {
	attrs := []string{`{"redirect_code":301}`, `{"redirect_code":"308","title":"x"}`, `{"redirect_code":303}`, `{"redirect_code":[307]}`, `{"title":"redirect_code"}`, `[]`}
	db.loadAttrs(attrs...)
	var codes []string
	for i := range attrs {
		codes = append(codes, fmt.Sprintf("%03d", i))
	}
	got := map[int]int{}
	store := db.Open(t)
	defer closed(t, store)
	noError(t, store.Resolve(context.Background(), "w", codes, func(r *sink.Resolved) error {
		got[r.Answer(asOf)]++
		return nil
	}))
	if got[301] != 1 || got[308] != 1 || got[302] != len(attrs)-2 {
		t.Errorf("%v", got)
	}
	over := sink.Resolved{Redirect: 301, Rules: sink.Rules{Expires: asOf}}
	equal(t, []int{over.Answer(asOf.Add(-1)), over.Answer(asOf)}, 301, 410)
}

// More codes are resolved than one statement looks up.
func testResolveMany(t *testing.T, db *database) {
	ls := links("w", 0, 2_000)
	db.load(ls, "w")
	codes := make([]string, 120_000)
	for i := range codes {
		if codes[i] = fmt.Sprint("?", i); i%3 == 0 {
			codes[i] = string(ls[i*7%len(ls)].Code)
		}
	}
	found := 0
	store := db.Open(t)
	defer closed(t, store)
	noError(t, store.Resolve(context.Background(), "w", codes, func(r *sink.Resolved) error {
		if found++; r.Index%3 > 0 || string(r.URL) != string(ls[r.Index*7%len(ls)].Canonical) || r.Rules.Answer(asOf) != 302 {
			return fmt.Errorf("resolved %d: %s", r.Index, r.URL)
		}
		return nil
	}))
	if found != len(codes)/3 {
		t.Errorf("%d of %d codes found", found, len(codes)/3)
	}
}

func testSummary(t *testing.T, db *database) {
	day := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	db.with(func(sink.Session) {})
	var want []sink.Group
	var list []Row
	for i, g := range []sink.Group{
		{Workspace: "v", Links: 2},
		{Workspace: "w", Links: 1, Expires: day, Status: sink.Active},
		{Workspace: "w", Links: 3, Expires: day, Status: sink.Active, Type: "TEMPORARY", Uses: 1 + 3 + 4, Latency: sink.Mean{N: 4, Value: (1*10 + 3*20) / 4.}},
		{Workspace: "w", Links: 1, Expires: day.AddDate(0, 0, 1), Status: sink.Active, Type: "TEMPORARY", Uses: 5},
		{Workspace: "w", Links: 1, Status: sink.Deleted, Type: "TEMPORARY"},
		{Workspace: "w", Links: 1, Status: sink.Expired, Type: "TEMPORARY"},
	} {
		want = append(want, g)
		for n := range g.Links {
			row := Row{Workspace: g.Workspace, Code: fmt.Sprintf("%d%d", i, n), Key: sink.Key{byte(i), byte(n)}, Canonical: "http://a.example/", Created: asOf,
				Rules: Rules{Type: g.Type, Status: g.Status}}
			if !g.Expires.IsZero() {
				row.Expires = g.Expires.Add([]time.Duration{0, 24*time.Hour - time.Microsecond, time.Hour}[n])
			}
			list = append(list, row)
		}
	}
	db.Insert(t, list...)
	for code, set := range map[string]string{
		"20": "access_count = 1, avg_redirect_ms = 10", "21": "access_count = 3, avg_redirect_ms = 20", "22": "access_count = 4",
		"30": "access_count = 5, avg_redirect_ms = -1", "50": "access_count = 0, avg_redirect_ms = 7",
	} {
		db.Execute(t, "UPDATE links SET "+set+" WHERE short_code = '"+code+"'")
	}
	store := db.Open(t)
	defer closed(t, store)
	summary := func(workspace string) (got []sink.Group) {
		noError(t, store.Summary(context.Background(), workspace, func(g sink.Group) error { got = append(got, g); return nil }))
		return got
	}
	slices.SortStableFunc(want, func(a, b sink.Group) int {
		return cmp.Or(strings.Compare(a.Workspace, b.Workspace), strings.Compare(a.Type, b.Type), strings.Compare(a.Status, b.Status), a.Expires.Compare(b.Expires))
	})
	equal(t, summary(""), want...)
	equal(t, summary("w"), want[1:]...)
	equal(t, summary("x"))
	stop := errors.New("stop")
	wantIs(t, store.Summary(context.Background(), "", func(sink.Group) error { return stop }), stop)
}
