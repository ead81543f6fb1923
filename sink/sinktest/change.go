package sinktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

var changeTests = []test{
	{"change/columns", testChange},
	{"change/uses", testChangeUses},
	{"change/conflict", testChangeConflict},
	{"change/many", testChangeMany},
	{"change/run_is_over", testChangeOver},
	{"change/chunk_error", testChangeError},
	{"change/undo", testUndoChanges},
}

// change begins a run in workspace w, calls f, which may change links, and finishes the run.
func (db *database) change(f func(run sink.Run, change func([]sink.Change) error)) (run sink.Run) {
	db.t.Helper()
	db.with(func(s sink.Session) {
		run = start(db.t, s, "change")
		f(run, func(all []sink.Change) error { return s.Change(context.Background(), run, pieces(all, 2, nil)) })
		complete(db.t, s, run)
	}, "w")
	return run
}

// rulesOfRow are the rules of a row as a lookup finds them.
func rulesOfRow(r Row) sink.Rules {
	return sink.Rules{Expires: r.Expires, MaxUses: r.MaxUses, Uses: r.Uses, Type: []byte(r.Type), Owner: []byte(r.Owner), Ref: []byte(r.Ref), Status: r.Status, Marked: r.Marked,
		ChangedRun: r.ChangedRun, Change: r.Change}
}

// inserted are rows of a workspace, which are in the database.
func (db *database) inserted(workspace string, of ...Rules) (out []Row) {
	db.with(func(sink.Session) {})
	for i, r := range of {
		row := rows([]sink.Link{coded(workspace, fmt.Sprint("https://kept.example/", i), fmt.Sprintf("%06d", i))}, 0)[0]
		row.Rules, row.Created = r, asOf.Add(-time.Hour)
		out = append(out, row)
	}
	db.Insert(db.t, out...)
	return out
}

var (
	soon  = time.Date(2025, 5, 6, 7, 8, 9, 0, time.UTC)
	later = time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
)

// changed are links as changes leave them.
func changed(was []Row, changes []sink.Change, run int32) []Row {
	out := slices.Clone(was)
	for i, c := range changes {
		w := &out[i]
		w.Expires, w.MaxUses, w.Type, w.Owner, w.Status, w.Marked = c.Now.Expires, c.Now.MaxUses, string(c.Now.Type), string(c.Now.Owner), c.Now.Status, time.Time{}
		w.ChangedRun, w.Change = run, c.Now.Change
		if c.Revive {
			w.Uses, w.Original = 0, sql.NullString{String: string(c.Original), Valid: c.Original != nil}
		}
		if w.MaxUses > 0 && w.Uses >= w.MaxUses {
			w.Uses = 0
		}
	}
	return out
}

// fits says what a change changes.
func fits(c sink.Change, was Row) sink.Change {
	c.Workspace, c.Code, c.Was = []byte(was.Workspace), []byte(was.Code), rulesOfRow(was)
	return c
}

// Each column becomes what the Change says, and the others stay. The same changes can be passed
// again: they change nothing, though uses were counted.
func testChange(t *testing.T, db *database) {
	was := db.inserted("w",
		Rules{},
		Rules{Expires: soon, MaxUses: 5, Uses: 3, Type: "TEMPORARY", Owner: "u1", Ref: "r", Status: sink.Active},
		Rules{Expires: soon, MaxUses: 5, Uses: 7, Type: "TEMPORARY", Ref: "r", Status: sink.Expired, Marked: asOf.Add(-time.Minute), ChangedRun: 77, Change: "claimed"},
		Rules{Status: sink.Deleted},
		Rules{Uses: 4, Status: "PAUSED"},
		Rules{Expires: later, Owner: "u9", Status: sink.Active},
	)
	db.Execute(t, "UPDATE links SET original_url = 'HTTPS://KEPT.example/' WHERE short_code IN ('000001', '000003')")
	was[1].Original = sql.NullString{String: "HTTPS://KEPT.example/", Valid: true}
	changes := []sink.Change{
		fits(sink.Change{Now: sink.Rules{Expires: later, MaxUses: 9, Type: []byte("PERMANENT"), Owner: []byte("é'"), Status: sink.Active, Change: "updated"}}, was[0]),
		fits(sink.Change{Now: sink.Rules{Status: sink.Active, Change: "claimed"}}, was[1]),
		fits(sink.Change{Now: sink.Rules{Expires: later, MaxUses: 5, Status: sink.Active, Change: "revived"}, Revive: true, Original: []byte("HTTPS://kept.example/2")}, was[2]),
		fits(sink.Change{Now: sink.Rules{Status: sink.Active, Change: "revived"}, Revive: true}, was[3]),
		fits(sink.Change{Now: sink.Rules{MaxUses: 4, Status: sink.Active, Change: "updated"}}, was[4]),
	}
	db.Execute(t, "UPDATE links SET max_uses = 0 WHERE short_code = '000004'")
	changes[4].Was.MaxUses = -1
	want := changed(was, changes, 1)
	db.change(func(run sink.Run, change func([]sink.Change) error) {
		noError(t, change(changes))
		db.expect(want)
		db.Execute(t, "UPDATE links SET access_count = coalesce(access_count, 0) + 1 WHERE changed_run = 1")
		for i := range changes {
			want[i].Uses++
		}
		noError(t, change(changes))
		db.expect(want)
	})
	lines := db.exportCells("w")
	at := slices.Index(lines[0], "updated_at")
	for i, cells := range lines[1:] {
		if updated := cells[at] == asOf.Format("2006-01-02T15:04:05.000000Z"); updated != (i < len(changes)) {
			t.Errorf("link %d is updated at %s", i, cells[at])
		}
	}
}

// A service may count uses between the lookup and the change. A link that becomes used up, or is
// used up under its new limit, is not taken for what it was.
func testChangeUses(t *testing.T, db *database) {
	limited := Rules{MaxUses: 5, Uses: 1, Status: sink.Active}
	was := db.inserted("w", limited, limited, limited, limited)
	var changes []sink.Change
	for i, limit := range []int64{5, 3, 0, 9} {
		changes = append(changes, fits(sink.Change{Now: sink.Rules{MaxUses: limit, Owner: []byte("u1"), Status: sink.Active, Change: "updated"}}, was[i]))
	}
	db.Execute(t, "UPDATE links SET access_count = 4")
	db.Execute(t, "UPDATE links SET access_count = 5 WHERE short_code = '000003'")
	for i := range was {
		was[i].Uses = 4
	}
	was[3].Uses = 5
	db.change(func(run sink.Run, change func([]sink.Change) error) {
		wantIs(t, change(changes), sink.ErrConflict)
		db.expect(changed(was, changes[:3], run.ID))
	})
}

// Somebody has changed a link in each way since it was looked up. The others are changed. If the
// conflicts are settled, the call that was a conflict is none.
func testChangeConflict(t *testing.T, db *database) {
	seen := Rules{Expires: soon, MaxUses: 5, Type: "TEMPORARY", Owner: "u1", Status: sink.Active}
	sets := []string{"status = 'DELETED'", "status = NULL", "owner_id = 'u2'", "owner_id = NULL", "link_type = 'PERMANENT'", "max_uses = 6", "max_uses = NULL",
		"expires_at = NULL", "expires_at = '2025-05-06 07:08:08'", "access_count = 5"}
	was := db.inserted("w", slices.Repeat([]Rules{seen}, len(sets)+2)...)
	var changes []sink.Change
	for i, set := range sets {
		changes = append(changes, fits(sink.Change{Now: sink.Rules{Status: sink.Active, Change: "updated"}}, was[i]))
		db.Execute(t, fmt.Sprintf("UPDATE links SET %s WHERE short_code = '%s'", set, was[i].Code))
	}
	for i := len(sets); i < len(was); i++ {
		changes = append(changes, fits(sink.Change{Now: sink.Rules{Status: sink.Active, Change: "updated"}}, was[i]))
	}
	before := db.Dump(t)
	db.change(func(run sink.Run, change func([]sink.Change) error) {
		want := slices.Concat(before[:len(sets)], changed(was[len(sets):], changes[len(sets):], run.ID))
		for range 2 {
			wantIs(t, change(changes), sink.ErrConflict)
			db.expect(want)
		}
		changes = changes[len(sets):]
		noError(t, change(changes))
		db.expect(want)
		changes = append(changes, sink.Change{Workspace: []byte("w"), Code: []byte("nobody"), Now: sink.Rules{Change: "updated"}})
		wantIs(t, change(changes), sink.ErrConflict)
		db.expect(want)
	})
}

// There are more changes than a transaction makes, of two workspaces.
func testChangeMany(t *testing.T, db *database) {
	n := few(25_100)
	ls := sorted(links("v", 0, 10), links("w", 0, n))
	db.load(ls, "v", "w")
	was := rows(ls, 1)
	var changes []sink.Change
	for i := range was {
		changes = append(changes, fits(sink.Change{Now: sink.Rules{Expires: later.Add(time.Duration(i) * time.Second), Status: sink.Active, Change: "updated"}}, was[i]))
	}
	db.with(func(s sink.Session) {
		run := start(t, s, "change")
		noError(t, s.Change(context.Background(), run, pieces(changes, 4096, nil)))
		complete(t, s, run)
	}, "v", "w")
	db.expect(changed(was, changes, 2))
}

// A run that is over changes nothing.
func testChangeOver(t *testing.T, db *database) {
	was := db.inserted("w", Rules{}, Rules{})
	changes := []sink.Change{fits(sink.Change{Now: sink.Rules{Owner: []byte("u1"), Change: "updated"}}, was[0])}
	db.with(func(s sink.Session) {
		run := start(t, s, "change")
		complete(t, s, run)
		wantIs(t, s.Change(context.Background(), run, pieces(changes, 1, nil)), sink.ErrConflict)
	}, "w")
	db.expect(was)
}

// If a chunk cannot be read, Change says so, and what it has changed stays.
func testChangeError(t *testing.T, db *database) {
	was := db.inserted("w", Rules{}, Rules{})
	changes := []sink.Change{fits(sink.Change{Now: sink.Rules{Owner: []byte("u1"), Change: "updated"}}, was[0])}
	stop := errors.New("cannot read the next chunk")
	db.with(func(s sink.Session) {
		run := start(t, s, "change")
		wantIs(t, s.Change(context.Background(), run, pieces(changes, 1, stop)), stop)
		db.subset(slices.Concat(was, changed(was[:1], changes, run.ID)))
		noError(t, s.Change(context.Background(), run, pieces(changes, 1, nil)))
		complete(t, s, run)
	}, "w")
	db.expect(changed(was, changes, 1))
}

// An undo tells which links of other runs the run has changed. A link of the run that another run
// has changed stays, even if both runs have the same AsOf.
func testUndoChanges(t *testing.T, db *database) {
	ls := links("w", 0, 6)
	first := db.load(ls[:3], "w")
	second := db.load(ls[3:], "w")
	was := rows(ls, 0)
	var changes []sink.Change
	for _, i := range []int{0, 1, 3} {
		changes = append(changes, fits(sink.Change{Now: sink.Rules{Owner: []byte("u1"), Change: "claimed"}}, was[i]))
	}
	third := db.change(func(run sink.Run, change func([]sink.Change) error) { noError(t, change(changes)) })
	changes = []sink.Change{fits(sink.Change{Now: sink.Rules{Owner: []byte("u2"), Change: "updated"}}, Row{Workspace: "w", Code: was[1].Code, Rules: Rules{Owner: "u1"}})}
	fourth := db.change(func(run sink.Run, change func([]sink.Change) error) { noError(t, change(changes)) })
	db.Execute(t, fmt.Sprintf("UPDATE links SET status = 'DELETED', marked_at = updated_at WHERE short_code = '%s'", was[5].Code))
	for _, c := range []struct {
		run                    int32
		deleted, kept, changed int64
		list                   string
	}{
		{first.ID, 1, 2, 0, "0 1"}, {second.ID, 2, 1, 0, "3"}, {third.ID, 0, 0, 2, "0 claimed 3 claimed"}, {fourth.ID, 0, 0, 1, "1 updated"},
	} {
		preview := db.preview(c.run)
		if preview.Deleted != c.deleted || preview.Kept != c.kept || preview.Changed != c.changed {
			t.Errorf("preview of run %d: %+v", c.run, preview)
		}
		out, kept, err := db.undo(c.run)
		noError(t, err)
		if out.Deleted != c.deleted || out.Kept != c.kept || out.Changed != c.changed || out.Run.State != sink.Undone {
			t.Errorf("undo of run %d: %+v", c.run, out)
		}
		var list []string
		for _, k := range kept {
			list = append(list, fmt.Sprint(slices.IndexFunc(was, func(r Row) bool { return r.Code == k.Code })))
			if k.Change != "" {
				list = append(list, k.Change)
			}
			if !k.Updated.Equal(asOf) {
				t.Errorf("%+v", k)
			}
		}
		if got := strings.Join(list, " "); got != c.list {
			t.Errorf("undo of run %d kept %q, want %q", c.run, got, c.list)
		}
	}
	if got := db.Dump(t); len(got) != 3 {
		t.Errorf("%d links stay", len(got))
	}
}
