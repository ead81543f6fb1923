package sinktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/linkforge/bulk/sink"
)

var aliasTests = []test{
	{"alias/round_trip_new", func(t *testing.T, db *database) { testAliases(t, db, nil) }},
	{"alias/round_trip_existing", func(t *testing.T, db *database) { testAliases(t, db, links("w", 50_000, 50_010)) }},
	{"alias/lookup", testAliasLookup},
	{"alias/of_url", testOfURL},
	{"alias/arbitrary_codes", testArbitraryCodes},
	{"alias/unannounced_new", func(t *testing.T, db *database) { testUnannounced(t, db, nil) }},
	{"alias/unannounced_existing", func(t *testing.T, db *database) { testUnannounced(t, db, links("w", 50_000, 50_010)) }},
	{"alias/conflict_code_new", func(t *testing.T, db *database) { testAliasConflict(t, db, nil, "a7", "https://taken.example/") }},
	{"alias/conflict_key_new", func(t *testing.T, db *database) { testAliasConflict(t, db, nil, "~taken", "") }},
	{"alias/conflict_code_existing", func(t *testing.T, db *database) {
		testAliasConflict(t, db, links("w", 50_000, 50_010), "a7", "https://taken.example/")
	}},
	{"alias/conflict_key_existing", func(t *testing.T, db *database) {
		testAliasConflict(t, db, links("w", 50_000, 50_010), "~taken", "")
	}},
}

// startAliases begins a run that may have aliases.
func startAliases(t *testing.T, s sink.Session) sink.Run {
	t.Helper()
	run, err := s.Start(context.Background(), sink.Run{Fingerprint: "aliases", AsOf: asOf, Aliases: true})
	noError(t, err)
	if !run.Aliases {
		t.Error("a run that was started with aliases has none")
	}
	return run
}

// mixed are links with codes of several lengths, each with two aliases, in the order of a load.
func mixed(workspace string, n int) []sink.Link {
	var out []sink.Link
	for i := range n {
		url := fmt.Sprint("https://kept.example/", i)
		out = append(out, coded(workspace, url, fmt.Sprint(i)), alias(workspace, url, fmt.Sprint("a", i)), alias(workspace, url, fmt.Sprint("a-", i*i)))
		out[3*i+1].Original = []byte("HTTPS://kept.example/" + fmt.Sprint(i))
	}
	return sorted(out)
}

// Links and aliases come back with all their columns, and undo deletes both.
func testAliases(t *testing.T, db *database, before []sink.Link) {
	old := db.loadBefore(before)
	ls := mixed("w", 700)
	var run sink.Run
	db.with(func(s sink.Session) {
		run = startAliases(t, s)
		noError(t, s.Load(context.Background(), run, chunks(ls, 700)))
		complete(t, s, run)
	}, locksFor(before)...)
	db.expect(old, rows(ls, run.ID))
	var got []Row
	noError(t, db.scan(func(l *sink.Stored) error { got = append(got, stored(l)); return nil }))
	equal(t, got, db.Dump(t)...)
	orphan := rows([]sink.Link{alias("w", "https://kept.example/7", "another run's")}, run.ID+1)
	db.Insert(t, orphan[0])
	if out := db.preview(run.ID); out.Deleted != int64(len(ls)) || out.Kept != 0 || out.Orphans != 1 {
		t.Errorf("preview of undo: %+v", out)
	}
	out, _, err := db.undo(run.ID)
	noError(t, err)
	if out.Deleted != int64(len(ls)) {
		t.Errorf("undo: %+v", out)
	}
	db.expect(old, orphan)
}

// All links of a URL are found, in its workspace only.
func testOfURL(t *testing.T, db *database) {
	const a, b = "https://a.example/", "https://b.example/"
	ls := sorted([]sink.Link{coded("v", a, "x"), alias("v", a, "y"), coded("w", a, "a"), alias("w", a, "AA"), alias("w", a, "z"), alias("w", b, "b")})
	db.with(func(s sink.Session) {
		run := startAliases(t, s)
		noError(t, s.Load(context.Background(), run, chunks(ls, 10)))
		complete(t, s, run)
	}, "v", "w")
	db.Insert(t, rows([]sink.Link{part(coded("w", a, "p"), "m=5")}, 0)[0])
	store := db.Open(t)
	defer closed(t, store)
	for _, c := range []struct {
		workspace, url string
		want           string
	}{{"w", a, "[AA a p z]"}, {"v", a, "[x y]"}, {"w", b, "[b]"}, {"v", b, "[]"}} {
		codes := []string{}
		noError(t, store.OfURL(context.Background(), c.workspace, coded(c.workspace, c.url, "").Key, func(l *sink.Stored) error {
			codes = append(codes, string(l.Code))
			return nil
		}))
		if got := fmt.Sprint(codes); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.url, c.workspace, got, c.want)
		}
	}
}

// An alias is the owner of its code, never the link of its URL.
func testAliasLookup(t *testing.T, db *database) {
	const a, b = "https://a.example/", "https://b.example/"
	db.load([]sink.Link{coded("w", "https://c.example/", "C")}, "w")
	db.with(func(s sink.Session) {
		run := startAliases(t, s)
		noError(t, s.Load(context.Background(), run, chunks([]sink.Link{alias("w", a, "AA"), coded("w", a, "a"), alias("w", b, "b")}, 10)))
		complete(t, s, run)
	}, "w")
	of := func(code string) sink.Probe {
		return sink.Probe{Workspace: []byte("w"), Code: []byte(code), WantRun: true}
	}
	other := func(canonical, code string) sink.Probe { return probe(coded("w", canonical, code)) }
	unwanted := other(b, "b")
	unwanted.WantRun = false
	db.peek(func(s sink.Session) {
		for _, c := range []struct {
			name   string
			probes []sink.Probe
			want   []found
		}{
			{"owners of codes", []sink.Probe{of("AA"), of("C"), of("a"), of("x")},
				[]found{{0, false, "AA", a, 2, true}, {1, false, "C", "https://c.example/", 1, false}, {2, false, "a", a, 2, false}}},
			{"the URL's own alias", []sink.Probe{other(a, "AA")}, []found{{0, true, "a", "", 2, false}, {0, false, "AA", a, 2, true}}},
			{"an alias and no link", []sink.Probe{other(b, "b")}, []found{{0, false, "b", b, 2, true}}},
			{"the alias of another URL", []sink.Probe{other("https://c.example/", "b")}, []found{{0, true, "C", "", 1, false}, {0, false, "b", b, 2, true}}},
			{"the link", []sink.Probe{other(a, "a")}, []found{{0, true, "a", "", 2, false}}},
		} {
			t.Run(c.name, func(t *testing.T) { equal(t, look(t, s, c.probes...), c.want...) })
		}
		got := look(t, s, unwanted)
		if len(got) != 1 || got[0].Same || !got[0].Alias || got[0].Canonical != b {
			t.Errorf("without the run: %+v", got)
		}
	})
}

// Codes have nothing to do with keys, and any length. The answers to dense and sparse probes,
// with and without URLs, are those of a map.
func testArbitraryCodes(t *testing.T, db *database) {
	random := rand.New(rand.NewPCG(1, 2))
	code := func() string {
		b := make([]byte, 1+random.IntN(4))
		for i := range b {
			b[i] = "-09AZaz~\xc3"[random.IntN(9)]
		}
		return strings.ToValidUTF8(string(b), "é")
	}
	type place struct{ workspace, code string }
	owners, byURL := map[place]sink.Link{}, map[place]sink.Link{}
	var all []sink.Link
	for i := range 6_000 {
		at := place{[]string{"v", "w"}[i%2], code()}
		if _, taken := owners[at]; taken {
			continue
		}
		url := fmt.Sprint("https://kept.example/", i/3)
		l := coded(at.workspace, url, at.code)
		if _, there := byURL[place{at.workspace, url}]; there || i%5 == 0 {
			l = alias(at.workspace, url, at.code)
		} else {
			byURL[place{at.workspace, url}] = l
		}
		owners[at], all = l, append(all, l)
	}
	db.with(func(s sink.Session) {
		run := startAliases(t, s)
		noError(t, s.Load(context.Background(), run, chunks(sorted(all), 700)))
		complete(t, s, run)
	}, "v", "w")
	db.peek(func(s sink.Session) {
		for _, c := range []struct{ probes, urls int }{{5_000, 0}, {5_000, 2}, {5_000, 1}, {200, 0}, {200, 2}, {20, 2}, {2, 0}} { // every urls-th probe has a URL
			var asked []sink.Link
			for i := range c.probes {
				l := coded([]string{"v", "w"}[random.IntN(2)], fmt.Sprint("https://kept.example/", random.IntN(2_500)), code())
				if c.urls == 0 || i%c.urls > 0 {
					l.Canonical, l.Key = nil, sink.Key{}
				}
				asked = append(asked, l)
			}
			var want []found
			asked = sorted(asked)
			for i, l := range asked {
				link, there := byURL[place{string(l.Workspace), string(l.Canonical)}]
				if there {
					want = append(want, found{i, true, string(link.Code), "", 1, false})
				}
				if o, taken := owners[place{string(l.Workspace), string(l.Code)}]; taken && !(there && string(link.Code) == string(l.Code)) {
					want = append(want, found{i, false, string(o.Code), string(o.Canonical), 1, o.Alias})
				}
			}
			equal(t, look(t, s, probes(asked)...), want...)
		}
	})
}

// A run that has not said that it has aliases cannot load one.
func testUnannounced(t *testing.T, db *database, before []sink.Link) {
	old := db.loadBefore(before)
	db.with(func(s sink.Session) {
		run := start(t, s, "f")
		wantFatal(t, s.Load(context.Background(), run, chunks([]sink.Link{alias("w", "https://a.example/", "a")}, 10)))
		finishLoad(t, s, run, links("w", 0, 10))
		old = append(old, rows(links("w", 0, 10), run.ID)...)
	}, locksFor(before)...)
	db.expect(old)
}

// testAliasConflict lets another writer take the code of an alias, for another URL, or its key,
// with another code.
func testAliasConflict(t *testing.T, db *database, before []sink.Link, code, canonical string) {
	old := db.loadBefore(before)
	ls := mixed("w", 700)
	taken := coded("w", canonical, code)
	if canonical == "" {
		taken = alias("w", "https://kept.example/7", "a7")
		taken.Code = []byte(code)
	}
	old = append(old, rows([]sink.Link{taken}, 0)...)
	db.with(func(s sink.Session) {
		run := startAliases(t, s)
		db.Insert(t, rows([]sink.Link{taken}, 0)[0])
		wantIs(t, s.Load(context.Background(), run, chunks(ls, 700)), sink.ErrConflict)
		db.subset(append(old, rows(ls, run.ID)...))
	}, "w")
}
