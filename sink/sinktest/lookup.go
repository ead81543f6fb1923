package sinktest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

var lookupTests = []test{
	{"lookup/code_key_both_two", testLookupKinds},
	{"lookup/isolated", testLookupIsolated},
	{"lookup/code_only", testLookupCodeOnly},
	{"lookup/shared_code", testLookupSharedCode},
	{"lookup/many", testLookupMany},
	{"lookup/strange_bytes", testLookupStrange},
	{"lookup/visitor_error", testLookupVisitorError},
	{"lookup/damaged", testLookupDamaged},
	{"lookup/concurrent", testLookupConcurrent},
}

func testLookupKinds(t *testing.T, db *database) {
	a := coded("w", "https://a.example/", "AAAA")
	b := coded("w", "https://b.example/", "BBBB")
	db.load([]sink.Link{a, b}, "w")
	db.load([]sink.Link{coded("w", "https://c.example/", "CCCC")}, "w")
	other := func(canonical, code string) sink.Probe { return probe(coded("w", canonical, code)) }
	table := []struct {
		name  string
		probe sink.Probe
		want  []found
	}{
		{"neither", other("https://x.example/", "XXXX"), nil},
		{"both", probe(a), []found{{0, true, "AAAA", "", 1, false}}},
		{"key", other("https://a.example/", "XXXX"), []found{{0, true, "AAAA", "", 1, false}}},
		{"code", other("https://x.example/", "CCCC"), []found{{0, false, "CCCC", "https://c.example/", 2, false}}},
		{"two", other("https://a.example/", "CCCC"), []found{{0, true, "AAAA", "", 1, false}, {0, false, "CCCC", "https://c.example/", 2, false}}},
		{"case", other("https://x.example/", "aaaa"), nil},
		{"prefix", other("https://x.example/", "AAA"), nil},
		{"longer", other("https://x.example/", "AAAAA"), nil},
	}
	unwanted := other("https://a.example/", "CCCC")
	unwanted.WantRun = false
	db.peek(func(s sink.Session) {
		for _, c := range table {
			t.Run(c.name, func(t *testing.T) { equal(t, look(t, s, c.probe), c.want...) })
		}
		equal(t, look(t, s))
		of := look(t, s, unwanted)
		for i := range of {
			if run := of[i].Run; run != 0 && run != int32(i+1) {
				t.Errorf("link %d is of run %d", i, run)
			}
			of[i].Run = 0
		}
		equal(t, of, found{0, true, "AAAA", "", 0, false}, found{0, false, "CCCC", "https://c.example/", 0, false})
		equal(t, look(t, s, other("https://b.example/", "AAAA"), other("https://a.example/", "BBBB")),
			found{0, true, "BBBB", "", 1, false}, found{0, false, "AAAA", "https://a.example/", 1, false},
			found{1, true, "AAAA", "", 1, false}, found{1, false, "BBBB", "https://b.example/", 1, false})
	})
}

// Several URLs may want one code. Each gets the owner.
func testLookupSharedCode(t *testing.T, db *database) {
	const owner = "https://owner.example/"
	db.load([]sink.Link{coded("w", owner, "MMMM")}, "w")
	var probes []sink.Probe
	var want []found
	for i := range 50 {
		probes = append(probes, probe(coded("w", fmt.Sprintf("https://%d.example/", i), "MMMM")))
		want = append(want, found{i, false, "MMMM", owner, 1, false})
	}
	db.peek(func(s sink.Session) { equal(t, look(t, s, probes...), want...) })
}

func testLookupIsolated(t *testing.T, db *database) {
	const url = "https://a.example/"
	db.load([]sink.Link{coded("v", url, "AAAA"), coded("w", url, "BBBB")}, "v", "w")
	db.peek(func(s sink.Session) {
		equal(t, look(t, s, probe(coded("u", url, "AAAA")), probe(coded("v", url, "BBBB")), probe(coded("w", "https://x.example/", "AAAA"))),
			found{1, true, "AAAA", "", 1, false})
	})
}

// A probe without a URL has the zero key. A link may have that key, too.
func testLookupCodeOnly(t *testing.T, db *database) {
	a := coded("w", "https://a.example/", "AAAA")
	zero := coded("w", "https://zero.example/", "ZZZZ")
	zero.Key = sink.Key{}
	db.load([]sink.Link{a, zero}, "w")
	w := []byte("w")
	db.peek(func(s sink.Session) {
		equal(t, look(t, s, sink.Probe{Workspace: w, Code: []byte("AAAA"), WantRun: true}, sink.Probe{Workspace: w, Code: []byte("BBBB"), WantRun: true}),
			found{0, false, "AAAA", "https://a.example/", 1, false})
	})
}

// Every other link is stored, and every tenth of these has another code. There are more
// probes than a statement may have parameters. Without codes the answers are the same.
func testLookupMany(t *testing.T, db *database) {
	all := sorted(links("v", 0, few(20_000)), links("w", 0, few(20_000)))
	var stored []sink.Link
	var want []found
	for i, l := range all {
		if i%2 == 1 {
			continue
		}
		if i%20 == 0 {
			l.Code = append([]byte("~"), l.Code...)
		}
		stored = append(stored, l)
		want = append(want, found{i, true, string(l.Code), "", 1, false})
	}
	db.load(sorted(stored), "v", "w")
	db.peek(func(s sink.Session) {
		list := probes(all)
		equal(t, look(t, s, list...), want...)
		for i := range list {
			list[i].Code = nil
		}
		equal(t, look(t, s, list...), want...)
	})
}

func testLookupStrange(t *testing.T, db *database) {
	ls := strange()
	db.load(ls, workspacesOf(ls)...)
	db.expect(rows(ls, 1))
	db.peek(func(s sink.Session) {
		p, err := s.Populated(context.Background(), workspacesOf(ls))
		noError(t, err)
		for i, l := range ls {
			equal(t, look(t, s, probe(l)), found{0, true, string(l.Code), "", 1, false})
			if !p[i] {
				t.Errorf("workspace %q has links", l.Workspace)
			}
		}
		if got := look(t, s, probes(ls)...); len(got) != len(ls) {
			t.Errorf("%d of %d found", len(got), len(ls))
		}
	})
}

func testLookupVisitorError(t *testing.T, db *database) {
	ls := links("w", 0, 100)
	db.load(ls, "w")
	stop := errors.New("stop")
	db.peek(func(s sink.Session) {
		visits := 0
		err := s.Lookup(context.Background(), probes(ls), func(sink.Found) error { visits++; return stop })
		if visits != 1 {
			t.Errorf("%d visits", visits)
		}
		wantIs(t, err, stop)
		equal(t, look(t, s, probe(ls[7])), found{0, true, string(ls[7].Code), "", 1, false})
	})
}

// A link has the key of another URL: the store is damaged, whatever the code.
func testLookupDamaged(t *testing.T, db *database) {
	forged := coded("w", "https://a.example/", "AAAA")
	forged.Key = link("w", "https://b.example/").Key
	db.load([]sink.Link{forged}, "w")
	db.peek(func(s sink.Session) {
		for _, code := range []string{"AAAA", "BBBB"} {
			err := s.Lookup(context.Background(), []sink.Probe{probe(coded("w", "https://b.example/", code))},
				func(sink.Found) error { return nil })
			wantFatal(t, err)
		}
	})
}

func testLookupConcurrent(t *testing.T, db *database) {
	ls := links("w", 0, 5_000)
	db.load(ls, "w")
	db.with(func(s sink.Session) {
		g, ctx := errgroup.WithContext(context.Background())
		for i := range 8 {
			g.Go(func() error {
				mine := ls[i*len(ls)/8 : (i+1)*len(ls)/8]
				seen := make([]bool, len(mine))
				err := s.Lookup(ctx, probes(mine), func(f sink.Found) error {
					seen[f.Probe] = f.Same && string(f.Code) == string(mine[f.Probe].Code)
					return nil
				})
				for j, ok := range seen {
					if !ok && err == nil {
						err = fmt.Errorf("%s was not found", mine[j].Canonical)
					}
				}
				return err
			})
		}
		noError(t, g.Wait())
	}, "w")
}
