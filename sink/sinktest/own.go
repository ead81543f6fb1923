package sinktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// ownTests are about what only some links have: attrs, and a created_at of their own.
var ownTests = []test{
	{"own/new", func(t *testing.T, db *database) { testOwn(t, db, nil, sink.Run{Attrs: true, KeepCreated: true}) }},
	{"own/new_aliases", func(t *testing.T, db *database) {
		testOwn(t, db, nil, sink.Run{Aliases: true, Attrs: true, KeepCreated: true})
	}},
	{"own/new_attrs", func(t *testing.T, db *database) { testOwn(t, db, nil, sink.Run{Attrs: true}) }},
	{"own/new_created", func(t *testing.T, db *database) { testOwn(t, db, nil, sink.Run{KeepCreated: true}) }},
	{"own/new_created_aliases", func(t *testing.T, db *database) {
		testOwn(t, db, nil, sink.Run{Aliases: true, KeepCreated: true})
	}},
	{"own/existing", func(t *testing.T, db *database) {
		testOwn(t, db, links("w", 50_000, 50_010), sink.Run{Aliases: true, Attrs: true, KeepCreated: true})
	}},
	{"own/existing_attrs", func(t *testing.T, db *database) { testOwn(t, db, links("w", 50_000, 50_010), sink.Run{Attrs: true}) }},
	{"own/existing_created", func(t *testing.T, db *database) {
		testOwn(t, db, links("w", 50_000, 50_010), sink.Run{KeepCreated: true})
	}},
	{"own/resumed", testOwnResumed},
	{"own/numbers", testOwnNumbers},
	{"own/read", testAttrsRead},
	{"own/undo", testUndoCreated},
}

// attrs of links, in their canonical form.
var attrs = []string{
	`{}`,
	`{"title":"a <b> & \"c\" 'd' \\ \\u0041 $1 %s"}`,
	`{"tags":["é","日本語","😀"],"title":"\u2028\u2029\t\u0001 end"}`,
	`{"clicks":999999999999999999,"created_at":"2011-02-03T04:05:06Z","n":-0.50}`,
	`{"":"blank","Z":null,"a":{"b":[true,false,[],{}]},"é":1}`,
	`{"title":"` + strings.Repeat("long ü ", 500) + `"}`,
}

// own gives some of the links attrs and a created_at, as far as the run may have them.
func own(run sink.Run, ls []sink.Link) []sink.Link {
	for i := range ls {
		if run.Attrs && i%3 > 0 {
			ls[i].Attrs = []byte(attrs[i/3%len(attrs)])
		}
		if run.KeepCreated && i%4 > 0 {
			ls[i].Created = time.Date(1999+i%40, 12, 31, 23, 59, 59, i%1_000_000*1000, time.UTC)
		}
	}
	return ls
}

// startOwn begins a run with the flags of another.
func startOwn(t *testing.T, s sink.Session, flags sink.Run) sink.Run {
	t.Helper()
	flags.Fingerprint, flags.AsOf = "own", asOf
	run, err := s.Start(context.Background(), flags)
	noError(t, err)
	if run.Aliases != flags.Aliases || run.Attrs != flags.Attrs || run.KeepCreated != flags.KeepCreated || run.Rules != flags.Rules || run.Parts != flags.Parts {
		t.Errorf("started %+v with the flags of %+v", run, flags)
	}
	return run
}

// Links with and without attrs and a created_at of their own come back as they are. The
// updated_at of all of them is the AsOf of the run. A link with what the run has not said is an
// error.
func testOwn(t *testing.T, db *database, before []sink.Link, flags sink.Run) {
	old := db.loadBefore(before)
	ls, locks := own(flags, links("w", 0, 2_000)), []string{"w"}
	if flags.Aliases {
		ls, locks = own(flags, mixed("w", 700)), locksFor(before)
	}
	other := link("w", "https://other.example/")
	var run sink.Run
	db.with(func(s sink.Session) {
		run = startOwn(t, s, flags)
		if !flags.Attrs {
			other.Attrs = []byte("{}")
			wantFatal(t, s.Load(context.Background(), run, chunks([]sink.Link{other}, 10)))
		}
		if !flags.KeepCreated {
			other.Attrs, other.Created = nil, asOf.Add(-time.Hour)
			wantFatal(t, s.Load(context.Background(), run, chunks([]sink.Link{other}, 10)))
		}
		noError(t, s.Load(context.Background(), run, chunks(ls, 700)))
		complete(t, s, run)
	}, locks...)
	db.expect(old, rows(ls, run.ID))
	var got []Row
	noError(t, db.scan(func(l *sink.Stored) error { got = append(got, stored(l)); return nil }))
	equal(t, got, db.Dump(t)...)
	updated := slices.Index(strings.Fields(db.export("")[0]), "updated_at")
	store := db.Open(t)
	defer closed(t, store)
	noError(t, store.Export(context.Background(), "", func([]string) error { return nil }, func(row [][]byte) error {
		if at := string(row[updated]); at != "2025-03-04T05:06:07.890123Z" {
			return fmt.Errorf("link %s is updated at %s", row[1], at)
		}
		return nil
	}))
}

// A run is resumed without knowing more of it than the store does.
func testOwnResumed(t *testing.T, db *database) {
	flags := sink.Run{Aliases: true, Attrs: true, KeepCreated: true}
	db.load(links("x", 0, 10), "x")
	ls := own(flags, mixed("w", 200))
	var run sink.Run
	db.with(func(s sink.Session) {
		run = startOwn(t, s, flags)
		noError(t, s.Load(context.Background(), run, chunks(ls[:300], 100)))
	}, "w")
	db.with(func(s sink.Session) {
		unfinished, err := s.Unfinished(context.Background())
		noError(t, err)
		if len(unfinished) != 1 || !unfinished[0].KeepCreated || unfinished[0].Attrs {
			t.Fatalf("%+v", unfinished)
		}
		unfinished[0].Aliases, unfinished[0].Attrs, unfinished[0].KeepCreated = true, true, false
		again, err := s.Start(context.Background(), unfinished[0])
		noError(t, err)
		if again.ID != run.ID || !again.Aliases || !again.Attrs || !again.KeepCreated {
			t.Errorf("continued %+v", again)
		}
		noError(t, s.Load(context.Background(), again, chunks(ls[300:], 100)))
		complete(t, s, again)
	}, "w")
	db.expect(rows(links("x", 0, 10), 1), rows(ls, run.ID))
}

// KeepCreated, LinksCreated and LinksChanged are stored in one column, and do not get in each
// other's way.
func testOwnNumbers(t *testing.T, db *database) {
	db.with(func(s sink.Session) {
		for _, keep := range []bool{false, true} {
			run := startOwn(t, s, sink.Run{KeepCreated: keep})
			for _, n := range []int64{0, 7, 0, 8} {
				run.LinksCreated, run.LinksChanged = n, 7-n
				noError(t, s.Loaded(context.Background(), run))
				got := db.runs()[run.ID-1]
				if got.LinksCreated != n || got.LinksChanged != 7-n || got.KeepCreated != keep {
					t.Errorf("%d links, created_at kept: %v; got %+v", n, keep, got)
				}
			}
			noError(t, s.Finish(context.Background(), run))
		}
		complete(t, s, start(t, s, "other"))
	}, "w")
	var kept []bool
	for _, r := range db.runs() {
		kept = append(kept, r.KeepCreated)
	}
	equal(t, kept, false, true, false)
}

// Attrs that somebody else wrote are in the same form, and so are those of Find and OfURL.
func testAttrsRead(t *testing.T, db *database) {
	const url = "https://a.example/"
	ls := []sink.Link{coded("w", url, "a"), alias("w", url, "b"), alias("w", url, "c")}
	db.with(func(s sink.Session) {
		run := startAliases(t, s)
		noError(t, s.Load(context.Background(), run, chunks(ls, 10)))
		complete(t, s, run)
	}, "w")
	store := db.Open(t)
	defer closed(t, store)
	for written, want := range map[string]string{
		`{ "b" : "\u00e9\u2028" , "a" : [1e2, -0, 1.50, 15E-1, {"y": 1, "x": 2}] }`: `{"a":[100,0,1.50,1.5,{"x":2,"y":1}],"b":"é\u2028"}`,
		`{"a": 1, "a": 2}`: `{"a":2}`,
		`[1, 2]`:           `[1,2]`,
		`"a \/ <b>"`:       `"a / <b>"`,
		` null `:           `null`,
	} {
		db.Execute(t, `UPDATE links SET attrs = '`+written+`' WHERE short_code = 'b'`)
		var got []string
		visit := func(l *sink.Stored) error {
			got = append(got, fmt.Sprint(string(l.Code), string(l.Attrs), l.Attrs == nil))
			return nil
		}
		noError(t, store.Scan(context.Background(), visit))
		noError(t, store.Find(context.Background(), "w", "b", visit))
		noError(t, store.Find(context.Background(), "w", "c", visit))
		noError(t, store.OfURL(context.Background(), "w", coded("w", url, "").Key, visit))
		b := "b" + want + "false"
		equal(t, got, "atrue", b, "ctrue", b, "ctrue", "atrue", b, "ctrue")
	}
}

// An undo deletes the links of a run whatever their created_at, except those that somebody
// changed.
func testUndoCreated(t *testing.T, db *database) {
	flags := sink.Run{Attrs: true, KeepCreated: true}
	ls := own(flags, links("w", 0, 40))
	var run sink.Run
	db.with(func(s sink.Session) {
		run = startOwn(t, s, flags)
		noError(t, s.Load(context.Background(), run, chunks(ls, 7)))
		complete(t, s, run)
	}, "w")
	at := asOf.Add(time.Hour)
	db.Change(t, "w", string(ls[7].Code), at)
	before := asOf.Add(-time.Hour)
	db.Change(t, "w", string(ls[8].Code), before)
	if out := db.preview(run.ID); out.Deleted != 38 || out.Kept != 2 || !out.Run.KeepCreated {
		t.Errorf("preview: %+v", out)
	}
	out, kept, err := db.undo(run.ID)
	noError(t, err)
	if out.Deleted != 38 || !out.Run.KeepCreated {
		t.Errorf("undo: %+v", out)
	}
	equal(t, kept, sink.Kept{Workspace: "w", Code: string(ls[7].Code), Updated: at}, sink.Kept{Workspace: "w", Code: string(ls[8].Code), Updated: before})
	db.expect(rows(ls[7:9], run.ID))
}
