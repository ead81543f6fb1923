package sinktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

var sweepTests = []test{
	{"sweep/law", testSweepLaw},
	{"sweep/last_day", testSweepLastDay},
	{"sweep/workspace", testSweepWorkspace},
	{"sweep/one_at_a_time", testSweepAlone},
	{"sweep/at_least", testSweepAtLeast},
	{"sweep/busy", testSweepBusy},
	{"sweep/many", testSweepMany},
	{"sweep/interrupted", testSweepInterrupted},
	{"sweep/changed_meanwhile", testSweepChanged},
	{"sweep/no_database", testSweepNone},
	{"sweep/vectors", testVectors},
}

// sweep sweeps with a store of its own, and lists what it does: the codes, with * if the link was
// deleted.
func (db *database) sweep(opts sink.SweepOptions) (out sink.Sweeping, list []string, err error) {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	if opts.AsOf.IsZero() {
		opts.AsOf = asOf
	}
	out, err = store.Sweep(context.Background(), opts, func(s sink.Swept) error {
		text := s.Workspace + " " + s.Code + " " + s.Status
		if s.Deleted {
			text += " *"
		}
		if want := "https://kept.example/"; !strings.HasPrefix(s.Canonical, want) {
			db.t.Errorf("swept %+v", s)
		}
		list = append(list, text)
		return nil
	})
	return out, list, err
}

// A link is in all states, as of asOf. The result is that of the law.
func testSweepLaw(t *testing.T, db *database) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(times ...time.Duration) time.Time {
		if i := random.IntN(len(times) + 1); i < len(times) {
			return asOf.Add(times[i])
		}
		return time.Time{}
	}
	var of []Rules
	for range 3_000 {
		of = append(of, Rules{
			Status:  []string{"", sink.Active, sink.Active, sink.Expired, sink.Deleted, "PAUSED"}[random.IntN(6)],
			Expires: pick(-time.Hour, -time.Microsecond, 0, time.Microsecond, time.Hour), MaxUses: int64(random.IntN(4) - 1), Uses: int64(random.IntN(4)),
			Marked: pick(-48*time.Hour, -24*time.Hour-time.Microsecond, -24*time.Hour, -24*time.Hour+time.Microsecond, -time.Hour, 0, time.Hour),
			Owner:  "u1", ChangedRun: 7, Change: "updated",
		})
	}
	now := db.inserted("w", of...)
	for _, grace := range []time.Duration{24 * time.Hour, 24 * time.Hour, time.Hour, 0, 0} {
		var want []Row
		var list []string
		for _, row := range now {
			r := rulesOfRow(row)
			if (row.Status == "" || row.Status == sink.Active) && !r.Live(asOf) {
				row.Status, row.Marked = sink.Expired, asOf
				list = append(list, "w "+row.Code+" EXPIRED")
			}
			ended := row.Status == sink.Expired || row.Status == sink.Deleted
			if ended && row.Marked.IsZero() {
				row.Marked = asOf
			}
			if ended && asOf.Sub(row.Marked) >= grace {
				list = append(list, "w "+row.Code+" "+row.Status+" *")
			} else {
				want = append(want, row)
			}
		}
		out, got, err := db.sweep(sink.SweepOptions{Grace: grace})
		noError(t, err)
		db.expect(want)
		slices.Sort(list)
		slices.Sort(got)
		equal(t, got, list...)
		n := int64(len(now) - len(want))
		if out != (sink.Sweeping{Marked: int64(len(list)) - n, Deleted: n}) {
			t.Errorf("%+v", out)
		}
		now = want
	}
	db.with(func(s sink.Session) {
		set, err := s.Rules(context.Background(), nil)
		noError(t, err)
		if len(set) != 1 || !set["w"] {
			t.Errorf("workspaces with rules: %v", set)
		}
	})
}

// As of the last day, all links that ever expire have expired.
func testSweepLastDay(t *testing.T, db *database) {
	now := db.inserted("w", Rules{}, Rules{Expires: asOf}, Rules{Expires: time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)})
	out, _, err := db.sweep(sink.SweepOptions{AsOf: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)})
	noError(t, err)
	if out.Deleted != 2 {
		t.Errorf("%+v", out)
	}
	db.expect(now[:1])
}

// due are links of several workspaces, one of each is dead.
func (db *database) due(workspaces ...string) (all []Row) {
	for _, w := range workspaces {
		all = append(all, db.inserted(w, Rules{Expires: asOf, Status: sink.Active}, Rules{Status: sink.Active})...)
	}
	return all
}

func testSweepWorkspace(t *testing.T, db *database) {
	all := db.due("v", "w", "w\x01", "x")
	out, list, err := db.sweep(sink.SweepOptions{Workspace: "w", Grace: time.Hour})
	noError(t, err)
	equal(t, list, "w 000000 EXPIRED")
	if out != (sink.Sweeping{Marked: 1}) {
		t.Errorf("%+v", out)
	}
	all[2].Status, all[2].Marked = sink.Expired, asOf
	db.expect(all)
	_, list, err = db.sweep(sink.SweepOptions{})
	noError(t, err)
	slices.Sort(list)
	equal(t, list, "v 000000 EXPIRED", "v 000000 EXPIRED *", "w\x01 000000 EXPIRED", "w\x01 000000 EXPIRED *", "w 000000 EXPIRED *", "x 000000 EXPIRED", "x 000000 EXPIRED *")
}

// While a sweep is at work, no other begins, and it says who is at work. Neither does a run begin
// in the workspace.
func testSweepAlone(t *testing.T, db *database) {
	all := db.due("w")
	store := db.Open(t)
	defer closed(t, store)
	visits := 0
	_, err := store.Sweep(context.Background(), sink.SweepOptions{AsOf: asOf, Grace: time.Hour}, func(sink.Swept) error {
		visits++
		out, list, err := db.sweep(sink.SweepOptions{})
		wantIs(t, err, sink.ErrSweeping)
		if len(list) > 0 || out != (sink.Sweeping{}) || len(err.Error()) < len(sink.ErrSweeping.Error())+10 {
			t.Errorf("%+v, %q, %v", out, list, err)
		}
		other := db.Open(t)
		defer closed(t, other)
		_, err = other.Lock(context.Background(), []string{"w"}, sink.LockOptions{NoWait: true})
		wantIs(t, err, sink.ErrLocked)
		return nil
	})
	noError(t, err)
	if visits != 1 {
		t.Errorf("%d visits", visits)
	}
	all[0].Status, all[0].Marked = sink.Expired, asOf
	db.expect(all)
	_, list, err := db.sweep(sink.SweepOptions{})
	noError(t, err)
	equal(t, list, "w 000000 EXPIRED *")
}

// A sweep that ended well lets no other begin for a while, and then lets it. One that failed, or
// does not say so, hinders no other.
func testSweepAtLeast(t *testing.T, db *database) {
	db.due("w")
	store := db.Open(t)
	defer closed(t, store)
	stop := errors.New("stop")
	_, err := store.Sweep(context.Background(), sink.SweepOptions{AsOf: asOf, Grace: time.Hour, AtLeast: time.Hour}, func(sink.Swept) error { return stop })
	wantIs(t, err, stop)
	begun := time.Now()
	for _, atLeast := range []time.Duration{0, 500 * time.Millisecond} {
		_, _, err = db.sweep(sink.SweepOptions{Grace: time.Hour, AtLeast: atLeast})
		noError(t, err)
	}
	for tries := 0; ; tries++ {
		_, _, err = db.sweep(sink.SweepOptions{Grace: time.Hour, AtLeast: time.Hour})
		if took := time.Since(begun); err == nil && took < 500*time.Millisecond {
			t.Errorf("the next sweep began after %v", took)
		} else if err != nil && took > patience {
			t.Fatalf("no sweep began for %v: %v", took, err)
		}
		if err == nil {
			break
		}
		wantIs(t, err, sink.ErrSweeping)
		if !strings.Contains(err.Error(), "no other may begin before 20") {
			t.Errorf("error %v", err)
		}
		time.Sleep(moment / 10)
	}
	_, _, err = db.sweep(sink.SweepOptions{})
	wantIs(t, err, sink.ErrSweeping)
	db.load(links("x", 0, 10), "x") // a run does not care
}

// A workspace that a run has locked is passed over, if something is to do there. Others are
// swept, if the store has locks for each workspace.
func testSweepBusy(t *testing.T, db *database) {
	all := append(db.due("u", "v", "w"), db.inserted("live", Rules{Status: sink.Active})...)
	var busy []string
	opts := sink.SweepOptions{Grace: time.Hour, Busy: func(workspace, holder string) {
		if busy = append(busy, workspace); holder == "" {
			t.Error("nobody holds the lock")
		}
	}}
	db.with(func(sink.Session) {
		out, list, err := db.sweep(opts)
		noError(t, err)
		if db.FineLocks {
			equal(t, busy, "v")
			equal(t, list, "u 000000 EXPIRED", "w 000000 EXPIRED")
		} else {
			equal(t, busy, "u", "v", "w")
			equal(t, list)
		}
		if out.Busy != int64(len(busy)) {
			t.Errorf("%+v", out)
		}
		opts.Workspace = "v"
		busy = nil
		_, list, err = db.sweep(opts)
		noError(t, err)
		equal(t, busy, "v")
		equal(t, list)
	}, "live", "v")
	opts.Workspace, busy = "", nil
	_, _, err := db.sweep(opts)
	noError(t, err)
	equal(t, busy)
	for i := range all {
		if !all[i].Expires.IsZero() {
			all[i].Status, all[i].Marked = sink.Expired, asOf
		}
	}
	db.expect(all)
}

// manyDue are dead links and others, more than a transaction of a sweep takes.
func manyDue(t *testing.T, db *database) (want []Row) {
	ls := sorted(links("v", 0, few(5_000)), links("w", 0, 45_000))
	for i := range ls {
		ls[i].Rules = new(sink.Rules)
		if i%2 > 0 {
			ls[i].Rules.Expires = asOf
		}
	}
	db.with(func(s sink.Session) {
		run := startOwn(t, s, sink.Run{Rules: true})
		noError(t, s.Load(context.Background(), run, chunks(ls, 4096)))
		complete(t, s, run)
	}, "v", "w")
	return rows(ls, 1)
}

func testSweepMany(t *testing.T, db *database) {
	want := manyDue(t, db)
	n := int64(len(want) / 2)
	store := db.Open(t)
	defer closed(t, store)
	opts := sink.SweepOptions{AsOf: asOf, Grace: time.Hour}
	out, err := store.Sweep(context.Background(), opts, nil)
	noError(t, err)
	if out != (sink.Sweeping{Marked: n}) {
		t.Errorf("%+v", out)
	}
	for i := 1; i < len(want); i += 2 {
		want[i].Status, want[i].Marked = sink.Expired, asOf
	}
	db.expect(want)
	opts.AsOf = asOf.Add(time.Hour)
	out, err = store.Sweep(context.Background(), opts, nil)
	noError(t, err)
	if out != (sink.Sweeping{Deleted: n}) {
		t.Errorf("%+v", out)
	}
	db.expect(slices.DeleteFunc(want, func(r Row) bool { return r.Status == sink.Expired }))
}

// A sweep that is interrupted has done a part, and the next does the rest.
func testSweepInterrupted(t *testing.T, db *database) {
	want := manyDue(t, db)
	n := int64(len(want) / 2)
	store := db.Open(t)
	defer closed(t, store)
	because := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	visits := 0
	out, err := store.Sweep(ctx, sink.SweepOptions{AsOf: asOf}, func(sink.Swept) error {
		if visits++; visits == int(n/2) {
			cancel(because)
		}
		return nil
	})
	wantIs(t, err, because)
	if out.Marked+out.Deleted == 0 || out.Deleted == n {
		t.Errorf("%+v", out)
	}
	next, err := store.Sweep(context.Background(), sink.SweepOptions{AsOf: asOf}, nil)
	noError(t, err)
	if out.Marked+next.Marked != n || out.Deleted+next.Deleted != n {
		t.Errorf("%+v and then %+v, of %d", out, next, n)
	}
	db.expect(slices.DeleteFunc(want, func(r Row) bool { return !r.Expires.IsZero() }))
}

// A service changes links after the sweep has read them.
func testSweepChanged(t *testing.T, db *database) {
	if !db.FineLocks {
		t.Skip("the store reads links again in a transaction that excludes other writers")
	}
	dead := Rules{Expires: asOf, Status: sink.Active}
	aged := Rules{Status: sink.Deleted, Marked: asOf.Add(-time.Hour)}
	db.inserted("v", dead)
	all := db.inserted("w", dead, dead, aged, aged, dead, aged)
	changed := false
	store := db.Open(t)
	defer closed(t, store)
	var list []string
	_, err := store.Sweep(context.Background(), sink.SweepOptions{AsOf: asOf, Grace: time.Hour}, func(s sink.Swept) error {
		if list = append(list, s.Workspace+" "+s.Code); changed {
			return nil
		}
		changed = true
		db.Execute(t, "UPDATE links SET expires_at = NULL WHERE short_code = '000000' AND workspace_id = 'w'")
		db.Execute(t, "UPDATE links SET status = 'PAUSED' WHERE short_code = '000001' AND workspace_id = 'w'")
		db.Execute(t, "UPDATE links SET status = 'ACTIVE' WHERE short_code = '000002' AND workspace_id = 'w'")
		db.Execute(t, "UPDATE links SET marked_at = NULL WHERE short_code = '000003' AND workspace_id = 'w'")
		return nil
	})
	noError(t, err)
	equal(t, list, "v 000000", "w 000004", "w 000005")
	all[0].Expires = time.Time{}
	all[1].Status, all[2].Status, all[3].Marked = "PAUSED", sink.Active, time.Time{}
	all[4].Status, all[4].Marked = sink.Expired, asOf
	got := db.Dump(t)
	equal(t, got[1:], all[:5]...)
}

func testSweepNone(t *testing.T, db *database) {
	_, _, err := db.sweep(sink.SweepOptions{})
	wantIs(t, err, sink.ErrMissing)
	if db.Created(t) {
		t.Error("a sweep created the database")
	}
}
