package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
)

// settled is what an attempt of Settle tells.
type settled struct {
	Amended []amended `json:"amended"` // shards, in order
}

// An amended shard is one of which Reduce wrote something else than is settled.
type amended struct {
	Shard int  `json:"shard"`
	File  File `json:"file"` // see amendment
}

func (s settled) files() []File { return s.of(func(int) bool { return true }) }

// of returns the files of some shards.
func (s settled) of(some func(shard int) bool) (files []File) {
	for _, a := range s.Amended {
		if some(a.Shard) {
			files = append(files, a.File)
		}
	}
	return files
}

func (s settled) digest() string {
	var shards []int
	for _, a := range s.Amended {
		shards = append(shards, a.Shard)
	}
	return fmt.Sprint(shards)
}

// An amendment is what is settled of a shard (settle.Amendment).
type amendment struct {
	Continues *origin    `json:"continues,omitempty"` // the URL of the first rows begins in a shard before; nil: it does not
	Decisions []decision `json:"decisions"`
	Lower     []lower    `json:"lower"`
}

// A decision is that about a URL.
type decision struct {
	url
	Code   string `json:"code"`
	Salt   int    `json:"salt"`
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// A lower is the owner of a lower code of a link.
type lower struct {
	Workspace []byte `json:"workspace"`
	Code      string `json:"code"`
	Owner     []byte `json:"owner"` // nil: nobody known
}

// Settle settles the URLs of all shards that contest a code. It holds these in memory, and what the shards
// have at their edges. It writes the amendments of shards, and the tasks of Apply.
func (j *Job) Settle(ctx context.Context) error {
	shards, err := accepted[reduced](j, "reduce", upTo(j.Shards()))
	if err != nil {
		return err
	}
	if err := j.checkSums(shards); err != nil {
		return err
	}
	s := newSettling(j, inOrder(shards))
	defer s.holders.close()
	s.join()
	s.number()
	if err := s.decide(ctx); err != nil {
		return err
	}
	a := j.begin("settle", 0)
	err = s.write(a)
	a.ended(err)
	return err
}

// checkSums returns an error if an engine has lost or doubled what Map sent, or the exports are not as they
// were described.
func (j *Job) checkSums(shards map[int]reduced) error {
	maps, err := accepted[mapped](j, "map", upTo(j.inputTasks()))
	if err != nil {
		return err
	}
	links, err := j.links()
	if err != nil {
		return err
	}
	sum := uint64(0)
	for _, m := range maps {
		sum += m.Sum
	}
	for _, l := range links {
		sum += l.Sum
	}
	for _, r := range shards {
		sum -= r.Sum
	}
	if sum != 0 {
		return errors.New("the tasks of reduce did not get what those of map sent: " + anew)
	}
	return nil
}

// anew says how a run begins anew.
const anew = "remove the directory, or take another, and begin anew with bulk stage plan"

// settling is the state of Settle.
type settling struct {
	j         *Job
	shards    []reduced
	coder     settle.Coder
	holders   lookup
	urls      []url // that contest a code
	at        map[urlID][]int
	continues map[int]*origin // by shard
	ids       map[string]uint32

	claims []assign.Claim
	known  map[urlID]bool // those of the claims
	made   []settle.Decision
	lower  map[assign.Slot][]byte
}

func newSettling(j *Job, shards []reduced) *settling {
	s := &settling{j: j, shards: shards, coder: j.coder, holders: lookup{j: j}, at: map[urlID][]int{}, continues: map[int]*origin{}, ids: map[string]uint32{}, known: map[urlID]bool{}}
	for n := range shards {
		for i := range shards[n].Contested {
			s.contest(shards[n].Contested[i], n)
		}
	}
	return s
}

// contest notes that a URL contests a code, and has rows in a shard.
func (s *settling) contest(u url, shard int) {
	id := u.id()
	if len(s.at[id]) == 0 {
		s.urls = append(s.urls, u)
	}
	if !slices.Contains(s.at[id], shard) {
		s.at[id] = append(s.at[id], shard)
	}
}

// A stretch is URLs that no link has and that want one code, in shards that follow each other.
type stretch struct {
	urls   []url
	shards []int // of each
}

// join finds the URLs and codes that go on in the next shard.
func (s *settling) join() {
	var open stretch
	var before *reduced
	for n := range s.shards {
		now := &s.shards[n]
		if now.First == nil {
			continue
		}
		first := now.First
		if before == nil || before.Last.Code != first.Code || string(before.Last.Workspace) != string(first.Workspace) {
			s.close(&open)
		} else if string(before.Last.URL) == string(first.URL) {
			from := before.Last.Origin
			if o := s.continues[s.last(n)]; o != nil && before.Last.Single {
				from = *o
			}
			s.continues[n] = &from
		}
		open.add(first, n)
		if !now.Last.All {
			s.close(&open)
			open.add(now.Last, n)
		}
		before = now
	}
	s.close(&open)
}

// last returns the last shard before one that has rows.
func (s *settling) last(shard int) int {
	for shard--; s.shards[shard].First == nil; {
		shard--
	}
	return shard
}

func (t *stretch) add(e *edge, shard int) {
	for _, canonical := range e.New {
		t.urls, t.shards = append(t.urls, url{e.Workspace, canonical}), append(t.shards, shard)
	}
}

// close has the URLs of a stretch contest their code if they are several, and empties it.
func (s *settling) close(t *stretch) {
	several := slices.ContainsFunc(t.urls, func(u url) bool { return u.id() != t.urls[0].id() })
	for i, u := range t.urls {
		if several || len(s.at[u.id()]) > 0 {
			s.contest(u, t.shards[i])
		}
	}
	*t = stretch{}
}

// number gives all workspaces that the contest may meet a number.
func (s *settling) number() {
	names := record.NewWorkspaces()
	for _, u := range s.urls {
		s.ids[string(u.Workspace)] = names.ID(string(u.Workspace))
	}
	for n := range s.shards {
		for _, d := range s.shards[n].Salted {
			s.ids[string(d.Workspace)] = names.ID(string(d.Workspace))
		}
	}
	names.Freeze()
	s.coder.Names = names
}

// decide lets the URLs settle it.
func (s *settling) decide(ctx context.Context) (err error) {
	urls := make([]assign.URL, len(s.urls))
	for i, u := range s.urls {
		urls[i] = assign.URL{Workspace: s.ids[string(u.Workspace)], Canonical: u.Canonical}
		s.known[u.id()] = true
	}
	if s.claims, err = s.coder.Settle(ctx, urls, s); err != nil {
		return err
	}
	for i := range s.claims {
		s.made = append(s.made, s.coder.Decision(&s.claims[i]))
	}
	all := slices.Clone(s.made)
	for n := range s.shards {
		for i := range s.shards[n].Salted {
			all = append(all, s.existing(&s.shards[n].Salted[i]))
		}
	}
	s.lower, err = s.coder.LowerOwners(ctx, slices.Values(all), s)
	return err
}

// existing returns the decision about a URL that has a link.
func (s *settling) existing(d *decision) settle.Decision {
	return settle.Decision{Outcome: outcome.Existing, Stored: true, Code: d.Code, Salt: d.Salt, URL: assign.URL{Workspace: s.ids[string(d.Workspace)], Canonical: d.Canonical}}
}

// Holders implements assign.Holders.
func (s *settling) Holders(ctx context.Context, slots []assign.Slot, report func(int, assign.Holder)) error {
	taken := make([]bool, len(slots))
	if err := s.Stored(ctx, slots, func(i int, _ []byte) {
		taken[i] = true
		report(i, assign.Holder{Fixed: true})
	}); err != nil {
		return err
	}
	return s.find(ctx, slots, holdersOf, func(i, shard int, canonical []byte) {
		u := url{s.coder.Names.Name(slots[i].Workspace), canonical}
		if id := u.id(); !s.known[id] && !taken[i] {
			s.known[id], s.at[id] = true, append(s.at[id], shard)
			report(i, assign.Holder{Canonical: canonical})
		}
	})
}

// Stored implements settle.Owners.
func (s *settling) Stored(ctx context.Context, slots []assign.Slot, visit func(i int, canonical []byte)) error {
	if len(s.j.plan.Links) == 0 {
		return nil
	}
	return s.find(ctx, slots, ownersOf, func(i, _ int, canonical []byte) { visit(i, canonical) })
}

func holdersOf(r *reduced) *table { return &r.Holders }
func ownersOf(r *reduced) *table  { return &r.Owners }

// Uncontested implements settle.Owners.
func (s *settling) Uncontested(ctx context.Context, slots []assign.Slot, known func(i int) bool, visit func(i int, canonical []byte)) error {
	var ask []assign.Slot
	var of []int
	for i, slot := range slots {
		if !known(i) {
			ask, of = append(ask, slot), append(of, i)
		}
	}
	return s.find(ctx, ask, holdersOf, func(i, _ int, canonical []byte) {
		if u := (url{s.coder.Names.Name(ask[i].Workspace), canonical}); !s.known[u.id()] {
			visit(of[i], canonical)
		}
	})
}

// find visits those of the slots, by index, that are in a table of the shards, and in which shard. Slots
// are asked for in the order of the shards.
func (s *settling) find(ctx context.Context, slots []assign.Slot, in func(*reduced) *table, visit func(i, shard int, canonical []byte)) error {
	for _, i := range settle.SlotOrder(s.coder.Names, slots) {
		if err := cancelled(ctx); err != nil {
			return err
		}
		workspace, code := s.coder.Names.Name(slots[i].Workspace), slots[i].Code
		key := s.coder.Order.KeyOf([]byte(code))
		first, last := s.j.span(workspace, key)
		for n := first; n <= last; n++ {
			canonical, err := s.holders.find(in(&s.shards[n]), workspace, key, code)
			if err != nil {
				return err
			}
			if canonical != nil {
				visit(i, n, canonical)
				break
			}
		}
	}
	return nil
}

// write writes the amendments of all shards that need one.
func (s *settling) write(a *attempt) error {
	of := s.amendments()
	var told settled
	var tasks []string
	for n := range s.shards {
		if of[n] == nil {
			continue
		}
		name := fmt.Sprintf("%s/settle/%s-%05d.amendment", work, a.name, n)
		f, err := a.createAs(name)
		if err != nil {
			return err
		}
		w, err := f.written(name, encode(f, of[n]))
		if err != nil {
			return err
		}
		told.Amended, tasks = append(told.Amended, amended{n, w}), append(tasks, s.j.task("apply", n))
	}
	if err := s.j.writeTasks("apply", tasks); err != nil {
		return err
	}
	_, err := a.report(told)
	return err
}

// amendments returns those of the shards.
func (s *settling) amendments() map[int]*amendment {
	of := map[int]*amendment{}
	at := func(n int) *amendment {
		if of[n] == nil {
			of[n] = &amendment{}
		}
		return of[n]
	}
	for n, o := range s.continues {
		at(n).Continues = o
	}
	for i := range s.claims {
		d, u := &s.made[i], url{s.coder.Names.Name(s.claims[i].Workspace), s.claims[i].Canonical}
		if d.Salt == 0 {
			continue
		}
		for _, n := range s.through(u) {
			a := at(n)
			a.Decisions = append(a.Decisions, decision{u, d.Code, d.Salt, d.Reason, d.Detail})
			s.addLower(a, d)
		}
	}
	for n := range s.shards {
		for i := range s.shards[n].Salted {
			d := s.existing(&s.shards[n].Salted[i])
			s.addLower(at(n), &d)
		}
	}
	return of
}

// addLower adds the owners of the lower codes of a link.
func (s *settling) addLower(a *amendment, d *settle.Decision) {
	for l := range s.coder.LowerCodes(d) {
		slot := assign.Slot{Workspace: d.URL.Workspace, Code: l.Code}
		a.Lower = append(a.Lower, lower{s.coder.Names.Name(slot.Workspace), l.Code, s.lower[slot]})
	}
}

// through returns the shards that have rows of a URL.
func (s *settling) through(u url) []int {
	shards := slices.Clone(s.at[u.id()])
	for n := slices.Max(shards) + 1; n < len(s.shards); n++ {
		if s.shards[n].First == nil {
			continue
		}
		before := s.shards[s.last(n)].Last
		if s.continues[n] == nil || string(before.URL) != string(u.Canonical) || string(before.Workspace) != string(u.Workspace) {
			break
		}
		shards = append(shards, n)
	}
	return shards
}

// local returns an amendment as the settlement of a shard takes it.
func (a *amendment) local(names *record.Workspaces) *settle.Amendment {
	made := &settle.Amendment{Continues: a.Continues != nil, Decisions: map[sink.Key]settle.Decision{}, Lower: map[assign.Slot][]byte{}}
	for _, d := range a.Decisions {
		u := assign.URL{Workspace: names.ID(string(d.Workspace)), Canonical: d.Canonical}
		key := codegen.Sum(codegen.AppendInput(nil, d.Canonical, d.Workspace, 0)).Key()
		made.Decisions[key] = settle.Decision{URL: u, Code: d.Code, Salt: d.Salt, Reason: d.Reason, Detail: d.Detail}
	}
	for _, l := range a.Lower {
		made.Lower[assign.Slot{Workspace: names.ID(string(l.Workspace)), Code: l.Code}] = l.Owner
	}
	return made
}
