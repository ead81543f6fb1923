package sinktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

var deleteTests = []test{
	{"delete/owner", testDeleteOwner},
	{"delete/marks", testDeleteMarks},
	{"delete/other_url", testDeleteOtherURL},
	{"delete/many", testDeleteMany},
	{"delete/dry_run", testDeleteDry},
	{"delete/locked", testDeleteLocked},
	{"delete/errors", testDeleteErrors},
}

// ofURL names all links of a URL, and ofCode one of a code.
func ofURL(workspace, url string) sink.Deletion {
	return sink.Deletion{Base: link(workspace, url).Key, Canonical: url}
}

func ofCode(code string) sink.Deletion { return sink.Deletion{Code: code} }

// delete deletes with a store of its own. For each item there is a text, of the codes of its
// links: + if the link was marked, ! if it has another URL, - if it is another owner's.
func (db *database) delete(opts sink.DeleteOptions, items ...sink.Deletion) []string {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	if opts.Lock.NoWait = true; opts.AsOf.IsZero() {
		opts.AsOf = asOf
	}
	opts.Workspace = "w"
	out := make([]string, len(items))
	last, given := 0, 0
	chunks := func(yield func([]sink.Deletion, error) bool) {
		for part := range pieces(items, 700, nil) {
			last, given = given, given+len(part)
			if !yield(part, nil) {
				return
			}
		}
	}
	noError(db.t, store.Delete(context.Background(), opts, chunks, func(n sink.Named) error {
		if n.Item < last || n.Item >= given {
			return fmt.Errorf("item %d after %d, of %d", n.Item, last, given)
		}
		last = n.Item
		switch {
		case n.Marked:
			out[n.Item] += "+"
		case n.OtherURL:
			out[n.Item] += "!"
		case n.Others:
			out[n.Item] += "-"
		}
		out[n.Item] += n.Code + " "
		return nil
	}))
	return out
}

// of is a link with rules, as another program would store it.
func (r Rules) of(l sink.Link) Row {
	row := rows([]sink.Link{l}, 0)[0]
	row.Rules = r
	return row
}

// deletable are links of two URLs with parts, aliases and owners, and of another workspace.
func (db *database) deletable() (all []Row) {
	db.with(func(sink.Session) {})
	const a, b, c = "https://a.example/", "https://b.example/", "https://c.example/"
	for _, row := range []Row{
		Rules{Owner: "u1", Status: sink.Active}.of(coded("w", a, "a")),
		Rules{Owner: "u2", Status: sink.Active}.of(part(coded("w", a, "a-m5"), "m=5")),
		Rules{Status: sink.Expired, Marked: asOf.Add(-time.Hour)}.of(alias("w", a, "AA")),
		Rules{Owner: "u2"}.of(coded("w", b, "b")),
		Rules{}.of(coded("w", c, "c")),
		Rules{Owner: "u1"}.of(coded("v", a, "a")),
	} {
		row.Created = asOf.Add(-time.Hour)
		all = append(all, row)
	}
	db.Insert(db.t, all...)
	return all
}

// Of an owner, only its own links are marked.
func testDeleteOwner(t *testing.T, db *database) {
	const a, b, c = "https://a.example/", "https://b.example/", "https://c.example/"
	all := db.deletable()
	equal(t, db.delete(sink.DeleteOptions{Owner: "u1"}, ofURL("w", a), ofURL("w", a), ofURL("w", b), ofURL("w", "https://nobody.example/"), ofCode("b"), ofCode("nobody"), ofCode("c"), ofCode("A")),
		"-AA +a -a-m5 ", "-AA a -a-m5 ", "-b ", "", "-b ", "", "-c ", "")
	all[0].Status, all[0].Marked = sink.Deleted, asOf
	db.expect(all)
	equal(t, db.delete(sink.DeleteOptions{Owner: "u2", AsOf: asOf.Add(time.Hour)}, ofURL("w", a), ofCode("a"), ofCode("b")), "-AA -a +a-m5 ", "-a ", "+b ")
	all[1].Status, all[1].Marked = sink.Deleted, asOf.Add(time.Hour)
	all[3].Status, all[3].Marked = sink.Deleted, asOf.Add(time.Hour)
	db.expect(all)
	db.with(func(s sink.Session) {
		set, err := s.Rules(context.Background(), nil)
		noError(t, err)
		if len(set) != 1 || !set["w"] {
			t.Errorf("workspaces with rules: %v", set)
		}
	}, "w")
}

// A delete marks live, dead and expired links, and not those that are Deleted. It does not change
// updated_at.
func testDeleteMarks(t *testing.T, db *database) {
	all := db.deletable()
	items := []sink.Deletion{ofURL("w", "https://a.example/"), ofCode("c"), ofCode("c")}
	equal(t, db.delete(sink.DeleteOptions{}, items...), "+AA +a +a-m5 ", "+c ", "c ")
	for _, i := range []int{0, 1, 2, 4} {
		all[i].Status, all[i].Marked = sink.Deleted, asOf
	}
	db.expect(all)
	equal(t, db.delete(sink.DeleteOptions{AsOf: asOf.Add(time.Hour)}, items...), "AA a a-m5 ", "c ", "c ")
	db.expect(all)
	lines := db.exportCells("")
	at := slices.Index(lines[0], "updated_at")
	for _, cells := range lines[1:] {
		if cells[at] != asOf.Add(-time.Hour).Format("2006-01-02T15:04:05.000000Z") {
			t.Errorf("link %s is updated at %s", cells[1], cells[at])
		}
	}
}

// A code that is given with a URL names no link of another one, whichever item comes first.
func testDeleteOtherURL(t *testing.T, db *database) {
	all := db.deletable()
	with := func(code, url string) sink.Deletion { return sink.Deletion{Code: code, Canonical: url} }
	equal(t, db.delete(sink.DeleteOptions{}, with("c", "https://b.example/"), with("a", "https://a.example/"), with("c", "https://c.example/"), with("c", "https://a.example/"), ofCode("c"), with("b", "https://c.example/")),
		"!c ", "+a ", "+c ", "!c ", "c ", "!b ")
	for _, i := range []int{0, 4} {
		all[i].Status, all[i].Marked = sink.Deleted, asOf
	}
	db.expect(all)
}

// There are more items than a page has, and a URL with more links than a transaction marks.
func testDeleteMany(t *testing.T, db *database) {
	const url = "https://a.example/"
	n := few(12_000)
	flags := sink.Run{Rules: true, Parts: true}
	ls := links("w", 0, 2_600)
	items := []sink.Deletion{ofURL("w", url)}
	for _, l := range ls {
		items = append(items, ofCode(string(l.Code)))
	}
	of := make([]sink.Link, n)
	for i := range of {
		of[i] = part(coded("w", url, fmt.Sprintf("~%06d", i)), fmt.Sprint("m=", i+1))
	}
	ls = sorted(ls, of)
	db.with(func(s sink.Session) {
		run := startOwn(t, s, flags)
		noError(t, s.Load(context.Background(), run, chunks(ls, 4096)))
		complete(t, s, run)
	}, "w")
	want := rows(ls, 1)
	for i := range want {
		want[i].Status, want[i].Marked = sink.Deleted, asOf
	}
	got := db.delete(sink.DeleteOptions{}, items...)
	db.expect(want)
	if want := len("+~000000 ") * n; len(got[0]) != want {
		t.Errorf("%d bytes of the codes of a URL, want %d", len(got[0]), want)
	}
	for i, item := range items[1:] {
		if got[i+1] != "+"+item.Code+" " {
			t.Fatalf("item %d: %q", i+1, got[i+1])
		}
	}
}

// A dry run says what would be marked, and takes no lock.
func testDeleteDry(t *testing.T, db *database) {
	all := db.deletable()
	db.with(func(s sink.Session) {
		equal(t, db.delete(sink.DeleteOptions{DryRun: true, Owner: "u1"}, ofURL("w", "https://a.example/"), ofCode("nobody"), ofCode("b")), "-AA +a -a-m5 ", "", "-b ")
		set, err := s.Rules(context.Background(), nil)
		noError(t, err)
		if len(set) != 0 {
			t.Errorf("workspaces with rules: %v", set)
		}
	}, "w")
	db.expect(all)
}

func testDeleteLocked(t *testing.T, db *database) {
	all := db.deletable()
	store := db.Open(t)
	defer closed(t, store)
	none := func(sink.Named) error { t.Error("visited"); return nil }
	opts := sink.DeleteOptions{Workspace: "w", AsOf: asOf, Lock: sink.LockOptions{NoWait: true}}
	db.with(func(sink.Session) {
		wantIs(t, store.Delete(context.Background(), opts, pieces([]sink.Deletion{ofCode("a")}, 1, nil), none), sink.ErrLocked)
	}, "w")
	db.expect(all)
}

// An error of the items or of the visitor ends the call. A link with the key of another URL is
// an error. There is nothing to delete in no database.
func testDeleteErrors(t *testing.T, db *database) {
	store := db.Open(t)
	defer closed(t, store)
	stop := errors.New("stop")
	run := func(end error, visit error, items ...sink.Deletion) error {
		return store.Delete(context.Background(), sink.DeleteOptions{Workspace: "w", AsOf: asOf}, pieces(items, 1, end), func(sink.Named) error { return visit })
	}
	wantIs(t, run(nil, nil, ofCode("a")), sink.ErrMissing)
	if db.Created(t) {
		t.Error("a delete created the database")
	}
	all := db.deletable()
	wantIs(t, run(stop, nil), stop)
	db.expect(all)
	forged := ofURL("w", "https://a.example/")
	forged.Canonical = "https://forged.example/"
	wantFatal(t, run(nil, nil, forged))
	db.expect(all)
	wantIs(t, run(nil, stop, ofCode("a"), ofCode("b")), stop)
	all[0].Status, all[0].Marked = sink.Deleted, asOf
	db.expect(all)
}
