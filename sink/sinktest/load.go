package sinktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/sink"
)

var loadTests = []test{
	{"load/sizes", testLoadSizes},
	{"load/many_into_new", testLoadMany},
	{"load/into_existing", testLoadExisting},
	{"load/strays", testLoadStrays},
	{"load/twice_in_a_run", testLoadTwice},
	{"load/byte_order", testLoadOrder},
	{"load/chunk_error_new", func(t *testing.T, db *database) { testChunkError(t, db, nil) }},
	{"load/chunk_error_existing", func(t *testing.T, db *database) { testChunkError(t, db, links("w", 50_000, 50_010)) }},
	{"load/conflict_code_new", func(t *testing.T, db *database) { testConflict(t, db, nil, takeCode) }},
	{"load/conflict_key_new", func(t *testing.T, db *database) { testConflict(t, db, nil, takeKey) }},
	{"load/conflict_code_existing", func(t *testing.T, db *database) { testConflict(t, db, links("w", 50_000, 50_010), takeCode) }},
	{"load/conflict_key_existing", func(t *testing.T, db *database) { testConflict(t, db, links("w", 50_000, 50_010), takeKey) }},
	{"load/conflict_each_time", testConflictEachTime},
	{"load/conflict_code_within", func(t *testing.T, db *database) { testConflictWithin(t, db, takeCode) }},
	{"load/conflict_key_within", func(t *testing.T, db *database) { testConflictWithin(t, db, takeKey) }},
}

// testLoadSizes loads 0, 1 and more links in chunks of several sizes, one load after another.
func testLoadSizes(t *testing.T, db *database) {
	var want []Row
	next := 0
	for run, c := range []struct{ links, chunk int }{{0, 1}, {1, 1}, {0, 1}, {2, 1}, {10, 3}, {1000, 7}, {999, 1000}} {
		ls := links("w", next, next+c.links)
		next += c.links
		db.with(func(s sink.Session) {
			r := start(t, s, "f")
			seq := chunks(ls, c.chunk)
			if c.links == 0 {
				seq = followed(chunks(nil, 1), nil) // one empty chunk
			}
			noError(t, s.Load(context.Background(), r, seq))
			complete(t, s, r)
		}, "w")
		want = append(want, rows(ls, int32(run+1))...)
		db.expect(want)
	}
}

func testLoadMany(t *testing.T, db *database) {
	ls := sorted(links("v", 0, few(20_000)), links("w", 0, few(12_000)), links("wü", 0, few(8_000)))
	for i := range ls {
		if i%3 == 0 {
			ls[i].Original = []byte("HTTPS://WWW.example.com/catalogue//item/ü?" + fmt.Sprint(i))
		}
	}
	db.load(ls, "v", "w", "wü")
	db.expect(rows(ls, 1))
}

func testLoadExisting(t *testing.T, db *database) {
	all := links("w", 0, few(40_000))
	var odd, even []sink.Link
	for i, l := range all {
		if i%2 == 0 {
			even = append(even, l)
		} else {
			odd = append(odd, l)
		}
	}
	db.load(even, "w")
	db.load(odd, "w")
	db.expect(rows(even, 1), rows(odd, 2))
}

func testLoadStrays(t *testing.T, db *database) {
	ls := links("w", 0, 3_000)
	mixed := slices.Clone(ls)
	for i := 0; i+500 < len(mixed); i += 97 {
		mixed[i], mixed[i+500] = mixed[i+500], mixed[i]
	}
	slices.Reverse(mixed[2_900:])
	db.load(mixed, "w")
	db.expect(rows(ls, 1))
}

func testLoadTwice(t *testing.T, db *database) {
	first, second := links("w", 0, 100), links("w", 100, 200)
	db.with(func(s sink.Session) {
		run := start(t, s, "f")
		noError(t, s.Load(context.Background(), run, chunks(first, 30)))
		if got := look(t, s, probes(first)...); len(got) != len(first) {
			t.Errorf("%d of %d links found after their load", len(got), len(first))
		}
		noError(t, s.Load(context.Background(), run, chunks(second, 30)))
		complete(t, s, run)
	}, "w")
	db.expect(rows(first, 1), rows(second, 1))
}

// strange returns links with unusual bytes: the longest ones, and what SQL, COPY and
// collations treat in a special way. One for each workspace, sorted.
func strange() []sink.Link {
	out := []sink.Link{
		link("long", "https://long.example/"+strings.Repeat("x", 8192-21)),
		link("longer", "https://long.example/"+strings.Repeat("y", 8192-21)),
		link("original", "https://original.example/"),
		link("originals", "https://original.example/%C3%BC?a=b&c=%00"),
	}
	out[1].Original = []byte("https://long.example/" + strings.Repeat("ü", 32_000))
	out[2].Original = []byte("https://original.example/?tab=\\t&null=\\N&quote='\"&$1%s;--")
	out[3].Original = []byte("HTTPS://ORIGINAL.example/ü?a=b&c=%00#日本 😀 \u00a0")
	for _, w := range []string{
		"é", "e\u0301", "日本語", "😀", "a b", " ", "o'brien", `"quoted"`, "x'); DROP TABLE links; --",
		`\N`, `\.`, `\`, "$1", "%s", "NULL", "?1", "{}", ",", "A", "a", "B", "42", "042", "\u00a0", "\u2028", "\ufeff",
		strings.Repeat("ш", 64), strings.Repeat("😀", 64),
	} {
		out = append(out, link(w, "https://example.com/"))
	}
	return sorted(out)
}

func workspacesOf(ls []sink.Link) (out []string) {
	for _, l := range ls {
		if w := string(l.Workspace); len(out) == 0 || out[len(out)-1] != w {
			out = append(out, w)
		}
	}
	return out
}

// Collations of languages would sort these codes differently, or consider some equal.
func testLoadOrder(t *testing.T, db *database) {
	codes := []string{"-", "-a", "1", "10", "2", "9", "A", "B", "Z", "_", "a", "aA", "aa", "ab", "b", "z", "zz"}
	var ls []sink.Link
	for _, w := range []string{"B", "a", "b-c", "bc"} {
		for i, c := range codes {
			ls = append(ls, coded(w, fmt.Sprint("https://example.com/", i), c))
		}
	}
	db.load(ls, "B", "a", "b-c", "bc")
	db.expect(rows(ls, 1))
}

// locksFor are the workspaces that a test of failures locks. If the database is empty there
// is a second one, since a store may have another way to load several.
func locksFor(before []sink.Link) []string {
	if before == nil {
		return []string{"v", "w"}
	}
	return []string{"w"}
}

// testChunkError ends a load in the middle. Links that stay have the run's ID, and a second
// load of the session adds the others.
func testChunkError(t *testing.T, db *database, before []sink.Link) {
	old := db.loadBefore(before)
	ls := some(before)
	stop := errors.New("cannot read the next chunk")
	db.with(func(s sink.Session) {
		run := start(t, s, "f")
		for _, n := range []int{0, len(ls) * 3 / 4} {
			wantIs(t, s.Load(context.Background(), run, followed(chunks(ls[:n], len(ls)/20), stop)), stop)
			db.subset(slices.Concat(old, rows(ls[:n], run.ID)))
		}
		finishLoad(t, s, run, ls)
		old = append(old, rows(ls, run.ID)...)
	}, locksFor(before)...)
	db.expect(old)
}

// finishLoad loads the links that are not stored yet, with the run, as the pipeline does after
// a failed load.
func finishLoad(t *testing.T, s sink.Session, run sink.Run, ls []sink.Link) {
	t.Helper()
	missing := unstored(t, s, ls)
	if stay := len(ls) - len(missing); stay > 0 {
		unfinished, err := s.Unfinished(context.Background())
		noError(t, err)
		if !slices.ContainsFunc(unfinished, func(r sink.Run) bool { return r.ID == run.ID }) {
			t.Fatalf("%d links stay of run %d, which is not in the table of runs", stay, run.ID)
		}
	}
	noError(t, s.Load(context.Background(), run, chunks(missing, 1000)))
	complete(t, s, run)
}

// unstored returns the links whose URLs are not stored yet.
func unstored(t *testing.T, s sink.Session, ls []sink.Link) []sink.Link {
	t.Helper()
	missing := slices.Clone(ls)
	for _, f := range look(t, s, probes(ls)...) {
		if !f.Same {
			t.Fatalf("%s owns the code of %s", f.Canonical, ls[f.Probe].Canonical)
		}
		missing[f.Probe].Code = nil
	}
	return slices.DeleteFunc(missing, func(l sink.Link) bool { return l.Code == nil })
}

// takeCode gives the code of a link to another URL. takeKey gives its URL another code.
func takeCode(l sink.Link) sink.Link {
	return coded("w", "https://taken.example/", string(l.Code))
}
func takeKey(l sink.Link) sink.Link { return coded("w", string(l.Canonical), "~taken") }

// testConflict lets another writer take the code or URL of the last link but one.
func testConflict(t *testing.T, db *database, before []sink.Link, take func(sink.Link) sink.Link) {
	old := db.loadBefore(before)
	ls := some(before)
	at := len(ls) - 2
	taken := rows([]sink.Link{take(ls[at])}, 0)
	old = append(old, taken...)
	db.with(func(s sink.Session) {
		if before == nil {
			db.Insert(t, taken[0])
		}
		run := start(t, s, "f")
		if before != nil {
			db.Insert(t, taken[0])
		}
		wantIs(t, s.Load(context.Background(), run, chunks(ls, len(ls)/20)), sink.ErrConflict)
		db.subset(slices.Concat(old, rows(ls, run.ID)))
		rest := slices.Delete(slices.Clone(ls), at, at+1)
		if bytes.Equal(take(ls[at]).Canonical, ls[at].Canonical) {
			equal(t, look(t, s, probe(ls[at])), found{0, true, "~taken", "", 0, false})
		} else {
			equal(t, look(t, s, probe(ls[at])), found{0, false, string(ls[at].Code), "https://taken.example/", 0, false})
			ls[at].Code = []byte("~again")
			rest = append(rest, ls[at])
		}
		finishLoad(t, s, run, rest)
		old = append(old, rows(rest, run.ID)...)
	}, locksFor(before)...)
	db.expect(old)
}

// testConflictEachTime lets another writer take some of the remaining URLs before each load.
// The run gets through nevertheless.
func testConflictEachTime(t *testing.T, db *database) {
	const loads = 20 // as often as package pipeline tries
	before := links("w", 50_000, 50_010)
	db.load(before, "w")
	ls := some(before)
	taken := map[sink.Key]bool{}
	var theirs []Row
	db.with(func(s sink.Session) {
		run := start(t, s, "f")
		left := ls
		for n := 1; ; n++ {
			var now []sink.Link
			for i := 125; i < len(left); i += 250 {
				now, taken[left[i].Key] = append(now, coded("w", string(left[i].Canonical), "~"+string(left[i].Code))), true
			}
			db.Insert(t, rows(now, 0)...)
			theirs = append(theirs, rows(now, 0)...)
			err := s.Load(context.Background(), run, chunks(left, 250))
			if err == nil {
				break
			}
			wantIs(t, err, sink.ErrConflict)
			if left = unstored(t, s, left); n == loads {
				t.Fatalf("%d of %d links are left after %d loads", len(left), len(ls), n)
			}
		}
		complete(t, s, run)
		ours := slices.DeleteFunc(ls, func(l sink.Link) bool { return taken[l.Key] })
		db.expect(rows(before, 1), theirs, rows(ours, run.ID))
	}, "w")
}

// testConflictWithin loads two links that share a code or a URL.
func testConflictWithin(t *testing.T, db *database, take func(sink.Link) sink.Link) {
	ls := links("w", 0, 5_000)
	ls = append(ls, take(ls[4_000]))
	db.with(func(s sink.Session) {
		run := start(t, s, "f")
		wantIs(t, s.Load(context.Background(), run, chunks(ls, 1000)), sink.ErrConflict)
		stay := db.subset(rows(ls, run.ID))
		if got := look(t, s, probes(ls[:4_000])...); len(got) != min(stay, 4_000) {
			t.Errorf("%d links found, %d stayed", len(got), stay)
		}
	}, locksFor(nil)...)
}
