package pipeline_test

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/campaign/campaigntest"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"pgregory.net/rapid"
)

// TestSequences does operations of all kinds, one after the other, on one store, and holds each against
// a model that takes one row at a time (sequencemodel_test.go): the rows, the collisions, the store. A
// preview and a dry run say beforehand what a run does. Each run is verified, and all that still stand
// are verified again after each operation.
//
// A new feature joins in one of two ways. If it is an operation, it is a method of sequence that does it
// to the store and to the world, and an entry of sequenceOps. If it is an option of runs, it is a field of
// turn, which sequence.draw draws, turn.config passes on and the model obeys, as it does --revive. A campaign is one:
// its plain run is that of turn.items; that a plain run is done in tasks and loaded (sequencetasks_test.go) is
// another. What belongs to a workspace, such as that it folds case, is part of the
// world.
//
// BULK_SEQUENCES is how many sequences are done on SQLite; a tenth of them is done on PostgreSQL.
func TestSequences(t *testing.T) {
	checks := 40
	if v := os.Getenv("BULK_SEQUENCES"); v != "" {
		var err error
		checks, err = strconv.Atoi(v)
		must(t, err)
	}
	if testing.Short() {
		checks = min(checks, 10)
	}
	before := flag.Lookup("rapid.checks").Value.String()
	defer flag.Set("rapid.checks", before)
	onStores(t, func(t *testing.T, s linkStore) {
		n := checks
		if strings.HasSuffix(t.Name(), "postgres") {
			n = max(checks/10, 1)
		}
		must(t, flag.Set("rapid.checks", fmt.Sprint(n)))
		rapid.Check(t, func(rt *rapid.T) {
			s.empty(t)
			newSequence(t, rt, s).do()
		})
	})
}

// empty deletes all that a store has.
func (s linkStore) empty(t *testing.T) {
	sql := "DELETE FROM links; DELETE FROM runs; DELETE FROM workspaces"
	if strings.HasSuffix(t.Name(), "postgres") {
		sql = "TRUNCATE links, links_runs, links_ledger, links_workspaces"
	}
	must(t, s.execute(sql))
}

// sequenceOps are the operations, the more frequent ones several times.
var sequenceOps = []func(*sequence){
	(*sequence).run, (*sequence).run, (*sequence).run, (*sequence).run, (*sequence).run, (*sequence).run,
	(*sequence).inTasks, (*sequence).inTasks, (*sequence).again, (*sequence).erase, (*sequence).sweep, (*sequence).undo, (*sequence).serve, (*sequence).export,
}

// A sequence is a store and what it should have.
type sequence struct {
	t      *testing.T
	rt     *rapid.T
	store  linkStore
	world  *world
	urls   []string
	at     time.Time
	last   *turn
	parts  bool // identities may have parts
	made   []madeRun
	loose  bool     // not every salt is explained: links are gone that others gave way to, or codes were kept that a salt makes
	undone bool     // aliases may have lost the links of their URLs
	log    []string // what was done
}

// A madeRun is a run that stands.
type madeRun struct {
	id     int32
	dir    string         // its output
	places map[place]bool // that its mapping and its collisions name
}

// counterKinds are spaces that a counter fills.
var counterKinds = []*schemeKind{
	{scheme: pipeline.Scheme{Name: codegen.NameCounter, Multiplier: 1315423911}},
	{scheme: pipeline.Scheme{Name: codegen.NamePermuted, Secret: keyed.Secret}},
}

// foldKinds are spaces of workspaces that fold case.
var foldKinds = []*schemeKind{
	kindOf(pipeline.Scheme{Fold: true}, 1, "url", 80),
	kindOf(pipeline.Scheme{Fold: true}, 2, "url", 200),
	kindOf(pipeline.Scheme{Name: keyed32.Name, Secret: keyed32.Secret, Fold: true}, 4, "url", 20_000),
}

func newSequence(t *testing.T, rt *rapid.T, store linkStore) *sequence {
	s := &sequence{t: t, rt: rt, store: store, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s.parts = rapid.IntRange(0, 2).Draw(rt, "parts") == 0
	kinds := append([]*schemeKind{schemeKinds[0], schemeKinds[1], schemeKinds[4], longKinds[0], foldKinds[0], foldKinds[1], foldKinds[2]}, counterKinds...)
	kind := rapid.SampledFrom(kinds).Draw(rt, "kind")
	s.world = &world{schemeKind: *kind, next: max(nextNumber(t, store), 1), links: map[place]*worldLink{}}
	size := rapid.SampledFrom([]int{6, 3, 30}).Draw(rt, "urls")
	for i := range size {
		s.urls = append(s.urls, fmt.Sprintf("http://example.com/%d", i))
	}
	if kind.crowd != nil {
		for i, who := range kind.crowd()[:min(size, len(kind.crowd()))] {
			s.urls[i] = who.url
		}
		if rapid.IntRange(0, 3).Draw(rt, "blocks") == 0 {
			s.world.words = drawWords(rt, kind.crowd()[:3], func(who identity) string { return who.code(kind.maker(), "demo", 0) })
		}
	}
	return s
}

func (s *sequence) do() {
	for range rapid.IntRange(4, 12).Draw(s.rt, "operations") {
		rapid.SampledFrom(sequenceOps).Draw(s.rt, "operation")(s)
		if got, want := s.links(), s.world.show(); !slices.Equal(got, want) {
			s.fail("the store has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, r := range s.made {
			s.verify(r.dir, nil, false)
		}
		s.at = s.at.Add(time.Duration(rapid.SampledFrom([]int{1, 0, 24, 60}).Draw(s.rt, "hours")) * time.Hour)
	}
}

// fail ends a sequence.
func (s *sequence) fail(format string, args ...any) {
	s.rt.Helper()
	s.rt.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), strings.Join(s.log, "\n"))
}

func (s *sequence) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// pick draws one of the texts, the first ones rather.
func (s *sequence) pick(name string, of ...string) string {
	return rapid.SampledFrom(of).Draw(s.rt, name)
}

// draw draws a run of any mode.
func (s *sequence) draw() *turn {
	t := &turn{asOf: s.at, source: "in.csv", retries: rapid.IntRange(0, 3).Draw(s.rt, "retries")}
	modes, identities := []string{"plain", "rules", "plain", "rules", "map", "map rules", "keep", "both", "keep rules", "both rules"}, []string{"url", "params", "row"}
	if !s.parts {
		identities = identities[:1]
	}
	switch s.pick("mode", modes...) {
	case "rules":
		t.flags = s.by(identities)
	case "keep":
		t.mode, t.ends = legacy.Keep, true
	case "both":
		t.mode, t.ends = legacy.Both, true
	case "map":
		t.mode, t.ends = legacy.Map, true
	case "keep rules":
		t.mode, t.flags = legacy.Keep, s.by(identities)
	case "both rules":
		t.mode, t.flags = legacy.Both, s.by(identities)
	case "map rules":
		t.mode, t.flags = legacy.Map, &rules.Flags{}
	}
	if t.mode.Keeps() {
		t.conflict = legacy.Conflict(s.pick("conflict", "reject", "generate", "reject", "generate", "fail"))
	}
	if t.noRules = t.ends && rapid.IntRange(0, 2).Draw(s.rt, "no rules") == 0; t.noRules {
		t.ends = false
	}
	if t.ends {
		t.flags = &rules.Flags{}
	}
	if t.flags != nil && !t.ends {
		t.onDrift, _ = rules.ParseOnDrift(s.pick("on drift", "keep", "update", "reject"))
		t.revive, _ = rules.ParseRevivals(s.pick("revive", "ended", "ended", "all", "none"))
		t.flags.Owner = []byte(s.pick("its owner", "", "", "", "bob"))
		if rapid.IntRange(0, 4).Draw(s.rt, "expires in") == 0 {
			t.flags.ExpiresIn = 48 * time.Hour
		}
	}
	for range rapid.SampledFrom([]int{8, 3, 1, 40}).Draw(s.rt, "rows") {
		t.rows = append(t.rows, s.drawRow())
	}
	if t.mode == legacy.Off && !t.ends && rapid.IntRange(0, 2).Draw(s.rt, "campaign") > 0 {
		t.campaign = s.drawCampaign()
	}
	return t
}

// campaigns are plans that a turn may have: values from cells, some of which are empty; values that are equal by cells
// or when they are lower; sets that overlap, which a cell or the workspace chooses.
var campaigns = []campaigntest.Model{
	{Parameters: map[string][]string{"c": {"x", "y"}}},
	{Parameters: map[string][]string{"c": {"x", "{note}", "X", "y"}, "d": {"{team}-{kind}", "{team}"}}, Lower: true},
	{Parameters: map[string][]string{"d": {"{team}", "demo", "{note}"}}, Sets: map[string][]map[string][]string{
		"demo": {{"a": {"1"}, "b": {"2", "{note}"}}, {"a": {"1", "2"}}, {"b": {"{note}"}}}, "red": {{"a": {"2"}, "b": {"{kind}"}}},
	}, Use: "{team}"},
	{Sets: map[string][]map[string][]string{"link": {{"a": {"x", "{team}"}}}, "alias": {{"a": {"x"}, "b": {"{note}", "{kind}"}}}}, Use: "{kind}"},
	{Sets: map[string][]map[string][]string{"s": {{"a": {"{note}", "{kind}"}}, {"a": {"X"}}}, "t": {{"a": {"x"}, "b": {"{note}"}}}}, Lower: true},
}

// drawCampaign draws a plan. Now and then it is one with which links are as those of plain rows.
func (s *sequence) drawCampaign() *campaigntest.Model {
	m := &campaigns[rapid.IntRange(0, len(campaigns)-1).Draw(s.rt, "plan")]
	if rapid.IntRange(0, 5).Draw(s.rt, "mostly lacking") == 0 {
		m = &campaigntest.Model{Parameters: map[string][]string{"a": {"{note}"}}}
	}
	return m
}

// by draws how a run finds links.
func (s *sequence) by(identities []string) *rules.Flags {
	identity, _ := rules.ParseIdentity(s.pick("identity", identities...))
	return &rules.Flags{Identity: identity}
}

// drawRow draws a row. Its cells may be looked at or not.
func (s *sequence) drawRow() (r turnRow) {
	day := func(n int) string { return s.at.AddDate(0, 0, n).Format(time.RFC3339) }
	url := rapid.SampledFrom(s.urls).Draw(s.rt, "url")
	r.url = strings.Replace(url, "http:", s.pick("written", "http:", "HTTP:"), 1) + s.pick("fragment", "", "", "#x", "?a=2", "?A=old&c=y#x")
	if rapid.IntRange(0, 30).Draw(s.rt, "bad") == 30 {
		r.url = "ftp://example.com/"
	}
	r.workspace = s.pick("workspace", "demo", "demo", "demo", "demo", "red")
	if rapid.Bool().Draw(s.rt, "has code") {
		r.code, r.kind = s.pick("code", "a", "b", "c", "old-1", "old-2", "old-3", "A", "Old-1"), s.pick("kind", "", "", "link", "alias")
		if m, counter, _ := s.world.scheme.Make(s.world.length); counter == nil && rapid.IntRange(0, 3).Draw(s.rt, "generated") == 0 {
			r.code = identity{url: rapid.SampledFrom(s.urls).Draw(s.rt, "of")}.code(m, r.workspace, rapid.IntRange(0, 1).Draw(s.rt, "salt"))
		} else if counter != nil && rapid.IntRange(0, 3).Draw(s.rt, "generated") == 0 {
			r.code = string(counter.AppendCode(nil, uint64(s.world.next)+rapid.Uint64Range(0, 3).Draw(s.rt, "number")))
		}
	}
	if rapid.IntRange(0, 2).Draw(s.rt, "parameters") > 0 {
		r.params = [...]string{s.pick("expires", "", "", day(-1), day(1), day(2), day(2)[:10], "2099-01-01"), s.pick("uses", "", "", "1", "2"),
			s.pick("type", "", "", "PERMANENT", "TEMPORARY"), s.pick("owner", "", "", "ann", "bob"), s.pick("ref", "", "", "r|1", "r2")}
	}
	if rapid.IntRange(0, 60).Draw(s.rt, "bad parameter") == 60 {
		r.params[rules.ExpiresAt] = "tomorrow"
	}
	r.note, r.more = s.pick("note", "", "", "x"), s.pick("more", "", "", "", "y", likeParams(s.at.AddDate(0, 0, 1)), likeParams(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)))
	r.more = strings.ReplaceAll(r.more, "\x00", "") // which no CSV may have
	return r
}

// likeParams is a cell that looks as parameters with an expiry do in a record.
func likeParams(expires time.Time) string {
	return string((&rules.Params{Expiry: rules.Expiry{When: rules.At, Seconds: expires.Unix()}}).Append(nil))
}

// csv writes the rows as a file.
func (t *turn) csv() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write([]string{"url", "team", "note", "more", "code", "kind", "expires_at", "max_uses", "link_type", "owner_id", "ref"})
	for _, r := range t.rows {
		w.Write(append([]string{r.url, r.workspace, r.note, r.more, r.code, r.kind}, r.params[:]...))
	}
	w.Flush()
	return b.String()
}

// run does a run that is drawn.
func (s *sequence) run() { s.turn(s.draw()) }

// inTasks does a plain run in tasks, as far as that is possible.
func (s *sequence) inTasks() {
	t := s.draw()
	s.turn(&turn{tasks: true, asOf: t.asOf, source: t.source, retries: t.retries, rows: t.rows})
}

// again does the last run once more, perhaps with its rows in another order.
func (s *sequence) again() {
	if s.last == nil {
		return
	}
	t := *s.last
	t.asOf, t.rows = s.at, slices.Clone(t.rows)
	if rapid.Bool().Draw(s.rt, "shuffled") {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(s.rt, "seed"), 1))
		rnd.Shuffle(len(t.rows), func(i, j int) { t.rows[i], t.rows[j] = t.rows[j], t.rows[i] })
	}
	s.turn(&t)
}

// turn does a run: a preview, perhaps a dry run, the run, and perhaps the same command once more.
func (s *sequence) turn(t *turn) {
	s.last, s.loose = t, s.loose || t.mode.Keeps()
	cfg := t.config(s.world)
	if cfg.Scheme.Fold && rapid.Bool().Draw(s.rt, "not told to fold") && s.fold(t) {
		if cfg.Scheme.Fold = false; cfg.Scheme.Name == codegen.NameBase32 {
			cfg.Scheme.Name = ""
		}
	}
	cfg.Store, cfg.Workers = s.store.Store, rapid.IntRange(1, 3).Draw(s.rt, "workers")
	cfg.ReportOrder = rapid.SampledFrom([]report.Order{report.SortOrder, report.InputOrder}).Draw(s.rt, "order")
	if rapid.Bool().Draw(s.rt, "spill") {
		cfg.SpillAt(1)
	}
	t.expand()
	t.ruled = t.flags != nil || s.flagged(t)
	t.tasks = t.tasks && s.stageable(t)
	if t.campaign != nil {
		s.note("campaign\n%s", t.campaign.File())
	}
	s.note("run %q, in tasks %t, rules %+v, %v, %s, retries %d, ruled %t, as of %s:\n%s", t.mode, t.tasks, t.flags, t.onDrift, t.conflict, t.retries, t.ruled, t.asOf, t.csv())
	s.t.Chdir(s.t.TempDir())
	write(s.t, t.source, t.csv())
	cfg.Inputs, cfg.Out = []string{t.source}, "out"
	preview, err := pipeline.Preview(context.Background(), cfg)
	if err != nil {
		s.fail("preview: %v", err)
	}
	runs, err := s.store.Runs(context.Background())
	must(s.t, err)
	t.id = int32(1)
	for _, r := range runs {
		t.id = max(t.id, r.ID+1)
	}
	for _, l := range s.world.links {
		t.id = max(t.id, l.run+1)
	}
	if rapid.IntRange(0, 3).Draw(s.rt, "dry") == 0 {
		dry := cfg
		dry.DryRun = true
		w := s.world.clone()
		if result := s.runs(w, t, dry, preview); result != nil {
			s.verify(result.Out, cfg.Inputs, true)
		}
		if got, want := s.links(), s.world.show(); !slices.Equal(got, want) {
			s.fail("a dry run changes the store")
		}
	}
	if rapid.IntRange(0, 3).Draw(s.rt, "ended") == 0 {
		cfg.Store = endedAfter(s.store.Store, int64(rapid.IntRange(1, 6).Draw(s.rt, "parts")))
	}
	result := s.runs(s.world, t, cfg, preview)
	if result == nil {
		return
	}
	cfg.Store = s.store.Store
	dir, err := filepath.Abs(result.Out)
	must(s.t, err)
	s.verify(dir, []string{t.source}, true)
	made := madeRun{id: result.RunID, dir: dir, places: map[place]bool{}}
	for _, r := range records(s.t, s.mapping("out")) {
		made.places[place{r["workspace_id"], r["short_code"]}] = true
		made.places[place{r["workspace_id"], r["link_code"]}] = true
	}
	for _, r := range records(s.t, read(s.t, "out/collisions.csv")) {
		made.places[place{r["workspace_id"], r["code"]}] = true
	}
	s.made = append(s.made, made)
	if rapid.IntRange(0, 3).Draw(s.rt, "repeated") == 0 {
		if again, err := s.perform(t, cfg); err != nil || !again.Repeated {
			s.fail("the same command: repeated %t, %v", again.Repeated, err)
		}
	}
}

// fold reports whether the store knows that the workspaces of the rows fold case.
func (s *sequence) fold(t *turn) bool {
	session, err := s.store.Peek(context.Background())
	must(s.t, err)
	defer session.Close()
	set, err := session.Schemes(context.Background(), nil)
	must(s.t, err)
	return !slices.ContainsFunc(t.rows, func(r turnRow) bool { return !set[r.workspace].Fold })
}

var errEnded = errors.New("ended")

// endedAfter returns a store that commits two links at a time and fails once so many parts are committed.
func endedAfter(store sink.Store, parts int64) sink.Store {
	fail := func() error { return errEnded }
	return &committing{store, map[string]*countdown{"after": newCountdown(0, fail), "chunk": newCountdown(parts, fail)}, 2}
}

// flagged reports whether a workspace of the rows is flagged as one that may have links with rules.
func (s *sequence) flagged(t *turn) bool {
	session, err := s.store.Peek(context.Background())
	must(s.t, err)
	defer session.Close()
	has, err := session.Rules(context.Background(), nil)
	must(s.t, err)
	return slices.ContainsFunc(t.items, func(i item) bool {
		return has[i.workspace] && !strings.HasPrefix(i.url, "ftp:") && i.reason == ""
	})
}

// runs does a run, and holds it against what becomes of the world and against a preview. nil: it stores
// nothing, as it must.
func (s *sequence) runs(w *world, t *turn, cfg pipeline.Config, preview *pipeline.PreviewResult) *pipeline.Result {
	links := len(w.links)
	want, collisions, ok := w.run(t)
	result, err := s.perform(t, cfg)
	if errors.Is(err, errEnded) {
		s.note("it ended while links were stored, and was resumed")
		cfg.Store = s.store.Store
		if result, err = s.perform(t, cfg); !result.Resumed {
			s.fail("the run is not resumed: %v", err)
		}
	}
	refused, isRefused := errors.AsType[*pipeline.TooManyRejectsError](err)
	if err != nil && !isRefused || ok == isRefused || (preview.Refused == nil) != ok {
		s.fail("dry %t: %v, preview %v, stores something: %t", cfg.DryRun, err, preview.Refused, ok)
	}
	if preview.Counts != result.Counts || preview.LinksCreated != result.LinksCreated || !maps.Equal(preview.Reasons, result.Reasons) {
		s.fail("preview %+v %v, the run has %+v %v", preview.Counts, preview.Reasons, result.Counts, result.Reasons)
	}
	if isRefused {
		if refused.Stored > 0 {
			s.fail("%d links are stored", refused.Stored)
		}
		return nil
	}
	got := make([]turned, len(t.items))
	at := func(r map[string]string) *turned {
		row, err := strconv.Atoi(r["row"])
		must(s.t, err)
		variant, _ := strconv.Atoi(r["variant"])
		if r["reason"] != "" && t.campaign != nil {
			number, _ := outcome.CutVariant(r["detail"])
			variant = int(number)
		}
		return &got[s.item(t, row, variant)]
	}
	for _, r := range records(s.t, s.mapping(result.Out)) {
		*at(r) = turned{outcome: r["outcome"], change: r["change"], code: r["short_code"], salt: r["salt"], kind: r["kind"], linkCode: r["link_code"]}
	}
	for _, r := range records(s.t, read(s.t, filepath.Join(result.Out, "rejects.csv"))) {
		if *at(r) = (turned{reason: r["reason"]}); r["reason"] == outcome.CodeTaken {
			_, at(r).owner, _ = strings.Cut(r["detail"], " belongs to ")
			at(r).owner, _, _ = strings.Cut(at(r).owner, ", with another ")
		}
	}
	if told, counted := s.byValue(t, result); !maps.EqualFunc(told, counted, maps.Equal) {
		s.fail("links by value %v, the mapping has %v", told, counted)
	}
	c := sink.Counts{Read: int64(len(t.items))}
	for i := range want {
		if !t.mode.Keeps() {
			want[i].kind = got[i].kind // a cell of the input, if there is one
		}
		if !t.mode.Keeps() {
			want[i].linkCode = ""
		}
		if want[i] != got[i] {
			s.fail("row %d: %+v, want %+v", i+1, got[i], want[i])
		}
		*map[string]*int64{"": &c.Rejected, "created": &c.Created, "existing": &c.Existing, "duplicate": &c.Duplicate}[want[i].outcome]++
	}
	for _, r := range preview.First {
		if w := want[s.item(t, int(r.Row), int(r.Variant))]; r.Outcome != cmp.Or(w.outcome, "rejected") || r.Reason != w.reason || string(r.Code) != w.code || r.Change != w.change {
			s.fail("preview of row %d: %+v, want %+v", r.Row, r, w)
		}
	}
	if result.Counts != c || result.LinksCreated != int64(len(w.links)-links) {
		s.fail("%+v, %d links, want %+v, %d", result.Counts, result.LinksCreated, c, len(w.links)-links)
	}
	var lines []string
	for _, r := range records(s.t, read(s.t, filepath.Join(result.Out, "collisions.csv"))) {
		lines = append(lines, strings.Join([]string{r["workspace_id"], r["canonical_url"], r["salt"], r["code"], r["owner"]}, " "))
	}
	if slices.Sort(lines); !slices.Equal(lines, collisions) {
		s.fail("collisions\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(collisions, "\n"))
	}
	return result
}

// byValue returns how many links each value of each parameter has, as a run says, and as its mapping does.
func (s *sequence) byValue(t *turn, result *pipeline.Result) (told, counted map[string]map[string]int64) {
	told, counted = map[string]map[string]int64{}, map[string]map[string]int64{}
	for _, of := range result.LinksByValue {
		told[of.Parameter], counted[of.Parameter] = map[string]int64{}, map[string]int64{}
		for _, v := range of.Links {
			told[of.Parameter][string(v.Value)] = v.Links
		}
	}
	for _, r := range records(s.t, s.mapping(result.Out)) {
		for name := range counted {
			if value := r[name]; value != "" && r["outcome"] != outcome.Duplicate.String() {
				counted[name][value]++
			}
		}
	}
	if (t.campaign != nil) != (len(told) > 0) {
		s.fail("links by value: %v", told)
	}
	return told, counted
}

// item returns the index of an item of a turn.
func (s *sequence) item(t *turn, row, variant int) int {
	i := slices.IndexFunc(t.items, func(i item) bool { return i.row == row && i.variant == variant })
	if i < 0 {
		s.fail("there is variant %d of row %d", variant, row)
	}
	return i
}

// verify finds nothing wrong with a run; if it is the last thing that was done, nothing has changed since.
func (s *sequence) verify(dir string, inputs []string, last bool) {
	v, err := verify.Run(context.Background(), verify.Config{Dir: dir, Inputs: inputs, Store: s.store.Store, Secret: s.world.scheme.Secret, Words: blocklist(s.world.words), Memory: 8 << 20})
	must(s.t, err)
	findings := slices.DeleteFunc(v.Findings, func(f verify.Finding) bool { return f.Kind == verify.StoreAlias && s.undone })
	if len(findings) > 0 || last && v.Since != (verify.Since{}) || last && len(v.Unexplained) > 0 && !s.loose {
		s.fail("verify %s, inputs %q: %+v, %+v, %+v", dir, inputs, findings, v.Since, v.Unexplained)
	}
}

// erase deletes what a list names.
func (s *sequence) erase() {
	workspace, owner := s.pick("workspace", "demo", "demo", "red"), s.pick("owner", "", "", "ann")
	urls := rapid.SliceOfN(rapid.SampledFrom(s.urls), 1, 3).Draw(s.rt, "urls")
	codes := []string{"a", "old-1"}
	for _, l := range s.world.inOrder(workspace) {
		if rapid.IntRange(0, 5).Draw(s.rt, "code") == 0 {
			codes = append(codes, l.place.code)
		}
	}
	s.note("delete in %s, owner %q, %q, %q at %s", workspace, owner, urls, codes, s.at)
	want := s.world.erase(workspace, owner, urls, codes, s.at)
	if s.world.scheme.Fold && s.fold(&turn{rows: []turnRow{{workspace: workspace}}}) {
		for i, code := range codes {
			codes[i] = strings.ToUpper(code)
		}
	}
	got, _, err := s.store.remove(pipeline.DeleteConfig{Workspace: workspace, Owner: owner, AsOf: s.at}, urls, codes)
	if err != nil {
		s.fail("delete: %v", err)
	}
	for place := range want {
		if g := strings.Join(strings.Fields(got[place]), " "); g != want[place] {
			s.fail("delete, %s: %s, want %s", place, g, want[place])
		}
	}
}

func (s *sequence) sweep() {
	grace := time.Duration(rapid.SampledFrom([]int{0, 24}).Draw(s.rt, "grace")) * time.Hour
	s.note("sweep at %s, grace %s", s.at, grace)
	marked, deleted := s.world.sweep(s.at, grace)
	got, err := s.store.Sweep(context.Background(), sink.SweepOptions{AsOf: s.at, Grace: grace}, nil)
	if err != nil || got.Marked != marked || got.Deleted != deleted {
		s.fail("sweep: %+v, want %d, %d: %v", got, marked, deleted, err)
	}
	s.loose = s.loose || deleted > 0
}

// undo takes a run back. It stands no more, and neither do runs that have found its links.
func (s *sequence) undo() {
	if len(s.made) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.made)-1).Draw(s.rt, "run")
	id := s.made[i].id
	s.note("undo %d", id)
	deleted := s.world.undo(id)
	got, err := s.store.Undo(context.Background(), id, sink.LockOptions{}, func(sink.Kept) error { return nil })
	if err != nil || got.Deleted != int64(len(deleted)) {
		s.fail("undo: %+v, want %d links: %v", got, len(deleted), err)
	}
	s.loose, s.undone = s.loose || len(deleted) > 0, s.undone || len(deleted) > 0
	s.made = slices.DeleteFunc(s.made, func(r madeRun) bool {
		return r.id == id || slices.ContainsFunc(deleted, func(at place) bool { return r.places[at] })
	})
}

// serve does what a redirect service does: it counts uses, or sets a status where links may have one.
func (s *sequence) serve() {
	list := s.world.inOrder("")
	if len(list) == 0 {
		return
	}
	l := rapid.SampledFrom(list).Draw(s.rt, "link")
	where := fmt.Sprintf(" WHERE workspace_id = '%s' AND short_code = '%s'", l.workspace, l.place.code)
	s.note("uses of %+v", l.place)
	l.Uses += 2
	must(s.t, s.store.execute("UPDATE links SET access_count = coalesce(access_count, 0) + 2"+where))
}

// export gives what the store has.
func (s *sequence) export() {
	var names, got, want []string
	must(s.t, s.store.Export(context.Background(), "", func(columns []string) error { names = columns; return nil }, func(row [][]byte) error {
		var line []string
		for _, name := range []string{"workspace_id", "short_code", "kind", "canonical_url", "original_url", "max_uses", "link_type", "owner_id", "ref"} {
			cell := ""
			if i := slices.Index(names, name); i >= 0 { // columns that no link has are left out
				cell = string(row[i])
			}
			line = append(line, cell)
		}
		got = append(got, strings.Join(line, " "))
		return nil
	}))
	for _, l := range s.world.inOrder("") {
		kind, limit, original := "link", "", l.original
		if l.alias {
			kind = "alias"
		}
		if l.Limit > 0 {
			limit = strconv.FormatInt(l.Limit, 10)
		}
		if original == l.url {
			original = ""
		}
		kindOf := l.Type.String()
		want = append(want, strings.Join([]string{l.workspace, l.place.code, kind, l.url, original, limit, kindOf, string(l.Owner), string(l.Ref)}, " "))
	}
	if !slices.Equal(got, want) {
		s.fail("export\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// links describes the links of the store as world.show does.
func (s *sequence) links() (lines []string) {
	must(s.t, s.store.ScanRules(context.Background(), func(l *sink.Stored) error {
		r := cmp.Or(l.Rules, new(sink.Rules))
		change, _ := rules.ParseChange(r.Change)
		w := worldLink{place: place{string(l.Workspace), string(l.Code)}, identity: identity{url: string(l.Canonical)}, alias: l.Alias,
			original: string(l.Original), run: l.Run, changedRun: r.ChangedRun, change: change}
		w.Limit, w.Uses, w.Type, w.Owner, w.Ref, w.Status = r.MaxUses, r.Uses, rules.TypeOf(string(r.Type)), r.Owner, r.Ref, rules.StatusOf(r.Status)
		if !r.Expires.IsZero() {
			w.Expiry = rules.Expiry{When: rules.At, Seconds: r.Expires.Unix()}
		}
		if !r.Marked.IsZero() {
			w.Marked, w.Mark = true, r.Marked.Unix()
		}
		lines = append(lines, w.showWith(l.Key, l.Base))
		return nil
	}))
	return lines
}

// A cell that is carried is not taken for parameters: where links have rules, a plain row whose second carried
// cell looks as the parameters of its link do in a record drifts from it as any other. (The first one stands
// where the parts of the identity would be.)
func TestCarriedLikeParams(t *testing.T) {
	onStores(t, func(t *testing.T, s linkStore) {
		expires := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
		cfg := pipeline.Config{Workspace: "demo", Store: s.Store, Rules: new(rules.Flags), AsOf: asOf}
		job(t, cfg, map[string]string{"rules.csv": "url,expires_at\nhttp://example.com/,2099-01-01\n"})
		cfg.Rules, cfg.AsOf = nil, asOf.AddDate(0, 0, 1)
		for _, first := range []string{"", "x", strings.Repeat("x", 100)} {
			for _, second := range []string{"", "x", likeParams(expires), likeParams(expires) + "x"} {
				var in strings.Builder
				w := csv.NewWriter(&in)
				must(t, w.WriteAll([][]string{{"url", "first", "second", "code"}, {"http://example.com/", first, second, "a"}, {"http://example.com/#", first, second, "b"}}))
				for _, mode := range []legacy.Mode{legacy.Off, legacy.Map} {
					plain := cfg
					if plain.Legacy = mode; mode == legacy.Map {
						plain.Source.CodeColumn = "code"
					}
					files, result := job(t, plain, map[string]string{"plain.csv": in.String()})
					for _, r := range records(t, files["mapping.csv"]) {
						if r["change"] != "drifted" || r["second"] != second {
							t.Errorf("%s, cells %q and %q: %v", string(mode), first, second, r)
						}
					}
					verifies(t, "run", result, verify.Config{Inputs: []string{"plain.csv"}, Store: s.Store}, 3, false)
				}
			}
		}
	})
}
