package rules

import (
	"slices"
	"testing"

	"github.com/linkforge/bulk/pipeline/outcome"
	"pgregory.net/rapid"
)

var now = at("2026-01-02T12:00:00Z").Seconds

// someStored draws a link, or nil.
func someStored(t *rapid.T) *Stored {
	if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
		return nil
	}
	p := someParams(t)
	return &Stored{Link: Link{
		Expiry: p.Expiry.Reckon(now), Limit: p.Limit, Type: p.Type, Owner: p.Owner,
		Uses:   rapid.Int64Range(0, 2).Draw(t, "uses"),
		Status: rapid.SampledFrom([]Status{StatusActive, StatusActive, StatusActive, StatusExpired, StatusDeleted, StatusOther}).Draw(t, "status"),
	}}
}

// byTheBook are rules 3 and 4 as they are written, with all rows at hand.
func byTheBook(t Terms, stored *Stored, rows []Params) (results []Result, after Link) {
	var own []int
	for i := range rows {
		if stored == nil || !stored.Foreign(&rows[i]) {
			own = append(own, i)
		}
	}
	speaker := -1
	if n := slices.IndexFunc(own, func(i int) bool { return !rows[i].Over(t.AsOf) }); n >= 0 {
		speaker = own[n]
	} else if len(own) > 0 {
		speaker = own[0]
	}
	results = make([]Result, len(rows))
	if stored != nil {
		after = stored.Link
	}
	if speaker >= 0 {
		p := &rows[speaker]
		results[speaker] = t.Speak(nil, p)
		if stored != nil {
			results[speaker] = t.Speak(&stored.Link, p)
		}
		action := results[speaker].Action()
		if action == Revive {
			after = Link{Owner: after.Owner}
		}
		if action != Nothing {
			after.Write(p, t.AsOf)
		}
	}
	refused := Result{}
	if stored != nil && t.Revive != ReviveAll && stored.Status >= StatusDeleted {
		refused = Result{Reason: LinkDeleted}
	} else if speaker >= 0 && results[speaker].Reason == LinkEnded {
		refused = results[speaker]
	}
	for i := range rows {
		if refused.Reason != Accepted {
			results[i] = refused
		} else if i != speaker {
			results[i] = t.Hold(&after, &rows[i])
		}
	}
	if refused.Reason != Accepted {
		return results, after
	}
	if speaker < 0 || results[speaker].Reason != Accepted {
		accepted := func(foreign bool) func(Params) bool {
			i := -1
			return func(p Params) bool {
				i++
				return results[i].Reason == Accepted && after.Foreign(&p) == foreign
			}
		}
		first := slices.IndexFunc(rows, accepted(false))
		if first < 0 {
			first = slices.IndexFunc(rows, accepted(true))
		}
		if first >= 0 {
			results[first].Outcome = outcome.Existing
		}
	}
	return results, after
}

// A Judge sees no more rows than it asks for.
func TestJudge(t *testing.T) {
	judge := Judge{}
	rapid.Check(t, func(t *rapid.T) {
		judge.Terms = Terms{AsOf: now, OnDrift: rapid.SampledFrom([]OnDrift{Keep, Update, Reject}).Draw(t, "drift"),
			Revive: rapid.SampledFrom([]Revivals{ReviveEnded, ReviveAll, ReviveNone}).Draw(t, "revive")}
		stored := someStored(t)
		rows := rapid.SliceOfN(rapid.Custom(someParams), 1, 6).Draw(t, "rows")
		slices.SortStableFunc(rows, func(a, b Params) int { return Compare(&a, &b) })
		want, after := byTheBook(judge.Terms, stored, rows)

		judge.Begin(stored)
		for i := 0; i < len(rows) && judge.See(&rows[i]); i++ {
		}
		v := judge.Verdict()
		for i := range rows {
			if got := v.Row(judge.Terms, i, &rows[i]); got != want[i] {
				t.Errorf("%+v, row %d of %s: %+v, want %+v", stored, i, rows, got, want[i])
			}
		}
		if !slices.Equal(v.Link.Owner, after.Owner) || v.Link.Expiry != after.Expiry || v.Link.Limit != after.Limit || v.Link.Type != after.Type ||
			v.Link.Uses != after.Uses || v.Link.Status != after.Status {
			t.Errorf("%+v, %s: %+v, want %+v", stored, rows, v.Link, after)
		}
	})
}

// A run that was cut off reports what it did.
func TestJudgeAgain(t *testing.T) {
	u1, u2 := []byte("u1"), []byte("u2")
	rows := []Params{{Owner: u1, Expiry: at("2026-01-01T00:00:00Z")}, {Owner: u2, Expiry: at("2026-02-01T00:00:00Z")}}
	link := Link{Owner: u2, Expiry: rows[1].Expiry}
	for _, test := range []struct {
		stored Stored
		want   Result
	}{
		{Stored{Link: link}, Result{Outcome: outcome.Existing}},
		{Stored{Link: link, Made: true}, Result{Outcome: outcome.Created, Done: true}},
		{Stored{Link: link, Changed: Claimed}, Result{Outcome: outcome.Existing, Change: Claimed, Done: true}},
		{Stored{Link: Link{Owner: u1}, Made: true}, Result{Outcome: outcome.Created, Done: true}}, // another changed it since
	} {
		judge := Judge{Terms: Terms{AsOf: now}}
		judge.Begin(&test.stored)
		for i := 0; judge.See(&rows[i]); i++ {
		}
		if v := judge.Verdict(); v.Speaker != 1 || v.Result != test.want || v.Result.Action() != Nothing {
			t.Errorf("%+v: %+v of row %d, want %+v", test.stored, v.Result, v.Speaker, test.want)
		}
	}
}

func TestDetails(t *testing.T) {
	link := Link{Owner: []byte("u1"), Type: Temporary, Limit: 1}
	row := Params{Owner: []byte("u2"), Expiry: Expiry{Reckoned, 60}}
	drift := Terms{AsOf: now, OnDrift: Reject}.Speak(&link, &row)
	for got, want := range map[string]string{
		drift.Detail():                    "the link has other parameters: expires_at, max_uses, link_type, owner_id",
		Result{Reason: ForOwner}.Detail(): "the link belongs to another owner",
		Result{Reason: NotFound}.Detail(): "there is no such link",
		Result{}.Detail():                 "",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	drift.Outcome = 0
	for _, r := range []Result{{}, drift, {Reason: ForOwner}, {Outcome: outcome.Existing, Change: Revived, Done: true}, {Outcome: outcome.Duplicate, Change: OtherOwner}} {
		if n := r.Pack(); n == 0 || Unpack(n) != r {
			t.Errorf("%+v is %x, and that is %+v", r, n, Unpack(n))
		}
	}
}

// A limit of 0 in the store, whoever set it, is a link that is used up.
func TestNoUses(t *testing.T) {
	link := Link{Limit: -1}
	if link.Live(now) || link.Differs(&Params{}) == 0 || Resolve(&link, now) != Gone {
		t.Error(link)
	}
}

// A status that somebody set is as old as the first sweep that sees it. One that is not known stays.
func TestForeignStatus(t *testing.T) {
	link, banned := Link{Status: StatusDeleted, Mark: 1}, Link{Status: StatusOther}
	if link.Due(now, 0) || link.Expire(now) || link.Due(now+9, 10) || !link.Due(now+10, 10) {
		t.Errorf("%+v", link)
	}
	if banned.Expire(now) || banned.Due(now, 0) || Resolve(&banned, now) != Gone || Resolve(&link, now) != Absent {
		t.Errorf("%+v", banned)
	}
}

// A delete that was cut off reports what it marked.
func TestDeletionAgain(t *testing.T) {
	d := Deletion{}
	if d.Link(&Stored{Link: Link{Status: StatusDeleted}, Changed: Deleted}, false) {
		t.Error("marked twice")
	}
	if r := d.Result(); r.Change != Deleted || r.Action() != Nothing {
		t.Errorf("%+v", r)
	}
}

// What a row needs, from its cells to its result.
func BenchmarkRow(b *testing.B) {
	flags := Flags{Identity: ByParams, Owner: []byte("campaigns")}
	judge := Judge{Terms: Terms{AsOf: now}}
	cells := Cells{ExpiresAt: []byte("2026-03-01T00:00:00Z"), MaxUses: []byte("500"), OwnerID: []byte("u1234")}
	stored := Stored{Link: Link{Expiry: at("2026-03-01T00:00:00Z"), Limit: 500, Owner: cells[OwnerID]}}
	p, _, _ := flags.Parse(&cells)
	enc := p.Append(nil)
	var buf []byte
	for name, do := range map[string]func(){
		"parse":  func() { p, _, _ = flags.Parse(&cells) },
		"append": func() { buf = p.Append(buf[:0]) },
		"parts":  func() { buf = flags.Identity.AppendParts(buf[:0], &p) },
		"cut":    func() { p.Cut(enc) },
		"split":  func() { buf, _ = Split(enc) },
		"judge": func() {
			judge.Begin(&stored)
			judge.See(&p)
			v := judge.Verdict()
			v.Row(judge.Terms, 0, &p)
		},
	} {
		b.Run("do="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
		if n := testing.AllocsPerRun(100, do); n != 0 {
			b.Errorf("%s: %g allocations", name, n)
		}
	}
}
