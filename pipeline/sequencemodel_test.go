package pipeline_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/campaign/campaigntest"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A world is a store as somebody has it who takes one row at a time: runs of all modes with all
// schemes, with link rules and without, and what ends links. It has no files, buckets or workers.
type world struct {
	schemeKind
	words []string // of the blocklist; nil: there is none
	next  int64    // number of the counter, if the scheme has one
	links map[place]*worldLink
}

// A place is where a link is.
type place struct{ workspace, code string }

// A worldLink is a link or an alias.
type worldLink struct {
	place
	identity
	rules.Link
	alias    bool
	original string

	run, changedRun int32 // that made it, and that changed it last
	change          rules.Change
}

// A turn is a run: what it was told, and its rows.
type turn struct {
	id       int32
	asOf     time.Time
	mode     legacy.Mode
	conflict legacy.Conflict
	flags    *rules.Flags
	ends     bool // the flags are those of a run that was told nothing of link rules: only expiry and limit count
	noRules  bool // these are left out, too
	onDrift  rules.OnDrift
	revive   rules.Revivals
	tasks    bool // it is done in tasks (package stage), and loaded
	ruled    bool // rows are held against their links: the run has link rules, or a workspace has
	retries  int
	source   string
	rows     []turnRow
	campaign *campaigntest.Model // nil: a row is one link
	items    []item              // of the rows, once the turn is done
}

// A turnRow is a row of the input.
type turnRow struct {
	workspace, url, code, kind string
	params                     [rules.ColumnCount]string // cells, the reference too
	note, more                 string
	written                    string // the code as it was written, where the world folds case
}

// An item is what a run takes for a row: a row of the input or, of a campaign, a variant of one.
type item struct {
	turnRow
	row, variant int    // from 1; variant 0: it is the row
	reason       string // why the row is rejected as a whole; "": it is not
}

// expand makes the items of the rows. Of a campaign a row is rejected as a whole, by what rejects its first variant.
func (t *turn) expand() {
	t.items = nil
	for n, r := range t.rows {
		if t.campaign == nil {
			t.items = append(t.items, item{turnRow: r, row: n + 1})
			continue
		}
		variants, bad := t.campaign.Expand(r.url, map[string]string{"note": r.note, "team": r.workspace, "kind": r.kind})
		if bad != "" {
			t.items = append(t.items, item{turnRow: r, row: n + 1, reason: outcome.BadCampaign})
			continue
		}
		for _, v := range variants {
			i := item{turnRow: r, row: n + 1, variant: int(v.Variant)}
			i.url = v.URL
			if t.items = append(t.items, i); v.URL == variants[0].URL {
				if _, reason := t.read(len(t.items) - 1); reason != "" {
					i.variant, i.reason = 0, reason
					t.items[len(t.items)-1] = i
					break
				}
			}
		}
	}
}

// A turned is what becomes of a row.
type turned struct {
	outcome, reason, change string
	code, kind, linkCode    string
	salt                    string // "": the row has its own code, or none tells it
	owner                   string // of the code that is taken
}

// An asked is a row that was read.
type asked struct {
	*turnRow
	identity
	rules.Params
	number int // from 0
	won    *worldLink
}

func (w *world) clone() *world {
	c := *w
	c.links = map[place]*worldLink{}
	for at, l := range w.links {
		copied := *l
		c.links[at] = &copied
	}
	return &c
}

// inOrder returns the links of a workspace by code; "": of all.
func (w *world) inOrder(workspace string) (list []*worldLink) {
	for _, l := range w.links {
		if workspace == "" || l.workspace == workspace {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *worldLink) int {
		return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.place.code, b.place.code))
	})
	return list
}

func compareIdentities(a, b identity) int {
	return cmp.Or(cmp.Compare(a.url, b.url), cmp.Compare(a.parts, b.parts))
}

// read reads a row, or says why it is rejected.
func (t *turn) read(n int) (a *asked, reason string) {
	if t.items[n].reason != "" {
		return nil, t.items[n].reason
	}
	a = &asked{turnRow: &t.items[n].turnRow, number: n}
	url, err := canon.Profile{}.Append(nil, []byte(a.turnRow.url))
	if err != nil {
		return nil, string(err.(canon.Reason))
	}
	a.identity.url = string(url)
	if t.flags == nil {
		return a, ""
	}
	flags := *t.flags
	flags.TemporaryTTL = cmp.Or(flags.TemporaryTTL, rules.DefaultTemporaryTTL)
	var cells rules.Cells
	for i, cell := range a.params {
		if !t.ends || rules.Column(i) <= rules.MaxUses {
			cells[i] = []byte(cell)
		}
	}
	var ok bool
	if a.Params, _, ok = flags.Parse(&cells); !ok {
		return nil, rules.BadParameter
	}
	if flags.Identity == rules.ByRow {
		a.Ref = rules.AppendRef(nil, a.Ref, t.source, int64(t.items[n].row))
	}
	a.parts = string(flags.Identity.AppendParts(nil, &a.Params))
	return a, ""
}

// run does a run. It returns what becomes of each row and the collisions; not ok: the run stores
// nothing, since every row is rejected or a code is another URL's and that shall not be.
func (w *world) run(t *turn) (got []turned, collisions []string, ok bool) {
	got = make([]turned, len(t.items))
	before, byWorkspace := w.clone(), map[string][]*asked{}
	for n := range t.items {
		a, reason := t.read(n)
		if a != nil && w.scheme.Fold {
			row := *a.turnRow
			row.code, row.written, a.turnRow = strings.ToLower(row.code), row.code, &row
		}
		if reason != "" {
			got[n] = turned{reason: reason}
			continue
		}
		byWorkspace[a.workspace] = append(byWorkspace[a.workspace], a)
	}
	for _, workspace := range slices.Sorted(maps.Keys(byWorkspace)) {
		s := &settler{world: w, turn: t, workspace: workspace, rows: byWorkspace[workspace], got: got}
		if !s.claim() {
			*w = *before
			return got, nil, false
		}
		s.generate()
		s.judge()
		collisions = append(collisions, s.collisions()...)
	}
	if !slices.ContainsFunc(got, func(r turned) bool { return r.reason == "" }) {
		*w = *before
		return got, nil, false
	}
	slices.Sort(collisions)
	return got, collisions, true
}

// A settler does a run in one workspace.
type settler struct {
	*world
	*turn
	workspace string
	rows      []*asked
	got       []turned

	codes  map[string]*worldLink   // by code
	linked map[identity]*worldLink // by identity: its link
	salts  map[identity]int        // of links; -1: none makes the code
	own    map[identity][]*worldLink
	seen   map[identity]bool // identities of which a row was accepted after the link rules
}

func (s *settler) keeps() bool { return s.mode.Keeps() }

// add gives a code to an identity.
func (s *settler) add(code string, who identity, alias bool) *worldLink {
	l := &worldLink{place: place{s.workspace, code}, identity: who, alias: alias, run: s.id}
	s.links[l.place], s.codes[code] = l, l
	return l
}

// barred says why the rows of an identity are rejected whatever they are; "": they are not: all links of
// its URL are deleted, and the run does not revive them. Its rows claim codes nevertheless.
func (s *settler) barred(who identity) string {
	deleted := 0
	for _, l := range s.inOrder(s.workspace) {
		switch {
		case l.run == s.id || l.url != who.url:
		case !l.Status.Deleted():
			return ""
		default:
			deleted++
		}
	}
	if deleted == 0 || !s.ruled || s.revive == rules.ReviveAll {
		return ""
	}
	return rules.LinkDeleted.String()
}

// claim settles who has the legacy codes, and which of them are links (testdata/legacy.jsonl).
func (s *settler) claim() bool {
	s.codes, s.linked, s.salts = map[string]*worldLink{}, map[identity]*worldLink{}, map[identity]int{}
	s.own, s.seen = map[identity][]*worldLink{}, map[identity]bool{}
	for _, l := range s.inOrder(s.workspace) {
		s.codes[l.place.code] = l
		if !l.alias {
			s.linked[l.identity] = l
		}
	}
	best, marked := map[string]*asked{}, map[place]bool{}
	for _, r := range s.rows {
		if reason := s.barred(r.identity); reason != "" {
			s.got[r.number] = turned{reason: reason}
		}
		if r.turnRow.code == "" || !s.keeps() {
			continue
		}
		code := r.turnRow.code
		if b := best[code]; b == nil || cmp.Or(compareIdentities(r.identity, b.identity), cmp.Compare(r.turnRow.code, b.turnRow.code)) < 0 {
			best[code] = r
		}
	}
	for code, b := range best {
		switch {
		case s.codes[code] != nil:
		case s.got[b.number].reason != "":
			s.codes[code] = &worldLink{place: place{s.workspace, b.turnRow.code}, identity: b.identity, alias: true, run: s.id}
		default:
			s.add(b.turnRow.code, b.identity, true)
		}
	}
	for _, r := range s.rows {
		if r.turnRow.code == "" || !s.keeps() {
			continue
		}
		switch l := s.codes[r.turnRow.code]; {
		case s.has(l, r) && s.got[r.number].reason != "":
		case s.has(l, r):
			r.won = l
			if l.run == s.id && !slices.Contains(s.own[r.identity], l) {
				s.own[r.identity] = append(s.own[r.identity], l)
			}
			if r.kind == legacy.KindLink {
				marked[l.place] = true
			}
		case s.conflict == legacy.Fail:
			return false
		case s.conflict != legacy.Generate:
			s.got[r.number] = turned{reason: outcome.CodeTaken, owner: l.url}
		}
	}
	for who, own := range s.own {
		slices.SortFunc(own, func(a, b *worldLink) int {
			return cmp.Or(-compareBool(marked[a.place], marked[b.place]), cmp.Compare(a.place.code, b.place.code))
		})
		if s.linked[who] == nil && s.mode == legacy.Keep {
			s.linked[who], own[0].alias = own[0], false
		}
	}
	return true
}

// has reports whether a link is one of the identity of a row.
func (s *settler) has(l *worldLink, r *asked) bool { return l.identity == r.identity }

// wanted returns the identities that have a row which is not rejected, in their order.
func (s *settler) wanted() (list []identity) {
	for _, r := range s.rows {
		if s.got[r.number].reason == "" {
			list = append(list, r.identity)
		}
	}
	slices.SortFunc(list, compareIdentities)
	return slices.Compact(list)
}

// generate gives a code to each identity that has no link.
func (s *settler) generate() {
	m, counter, err := s.scheme.Make(s.length)
	if err != nil {
		panic(err)
	}
	for _, who := range s.wanted() {
		if l := s.linked[who]; l != nil {
			s.salts[who] = -1
			if counter == nil && l.run != s.id {
				s.salts[who] = m.SaltOf([]byte(who.url), []byte(s.workspace+who.parts), []byte(l.place.code), max(s.retries, 10))
			}
			continue
		}
		free := func(code string) bool { return s.codes[code] == nil && wordIn(s.words, code) == "" }
		for ; counter != nil && s.linked[who] == nil; s.next++ {
			if code := string(counter.AppendCode(nil, uint64(s.next))); free(code) {
				s.linked[who], s.salts[who] = s.add(code, who, false), -1
			}
		}
		for salt := 0; s.linked[who] == nil && salt <= s.retries; salt++ {
			if code := who.code(m, s.workspace, salt); free(code) {
				s.linked[who], s.salts[who] = s.add(code, who, false), salt
			}
		}
		if own := s.own[who]; s.linked[who] == nil && len(own) > 0 {
			least := slices.MinFunc(own, func(a, b *worldLink) int { return cmp.Compare(a.place.code, b.place.code) })
			s.linked[who], least.alias, s.salts[who] = least, false, -1
		}
	}
}

// judge holds the rows of each link against it.
func (s *settler) judge() {
	groups, all := map[*worldLink][]*asked{}, map[identity][]*asked{}
	for _, r := range s.rows {
		if s.got[r.number].reason != "" {
			continue
		}
		l := cmp.Or(r.won, s.linked[r.identity])
		if l == nil {
			s.got[r.number].reason = outcome.CodeSpaceExhausted
			continue
		}
		if r.won != nil && r.won == s.linked[r.identity] { // whatever salt would give it
			s.salts[r.identity] = -1
		}
		groups[l], all[r.identity] = append(groups[l], r), append(all[r.identity], r)
	}
	for l, rows := range groups {
		s.speak(l, rows, true)
	}
	for who, rows := range all {
		l := s.linked[who]
		generated := l != nil && (s.salts[who] >= 0 || s.scheme.Name == codegen.NameCounter || s.scheme.Name == codegen.NamePermuted)
		if l == nil || groups[l] != nil || l.run != s.id && !(s.mode == legacy.Both && generated) {
			continue
		}
		if l.run == s.id { // rows that are rejected say nothing of a link that no row has
			rows = slices.DeleteFunc(slices.Clone(rows), func(r *asked) bool { return s.got[r.number].reason != "" })
		}
		if len(rows) > 0 {
			s.speak(l, rows, false)
		} else {
			delete(s.links, l.place)
			s.linked[who] = nil
		}
	}
	for _, rows := range all {
		for _, r := range rows {
			l, got := cmp.Or(r.won, s.linked[r.identity]), &s.got[r.number]
			if got.reason != "" {
				continue
			}
			s.seen[r.identity] = true
			got.code, got.kind = l.place.code, "link"
			link := s.linked[r.identity]
			if link != nil {
				got.linkCode = link.place.code
			}
			if l.alias || link != nil && l != link {
				got.kind = "alias"
			}
			if salt := s.salts[r.identity]; r.won == nil && salt >= 0 {
				got.salt = strconv.Itoa(salt)
			}
		}
	}
}

// speak judges rows, and writes to the link what the one that speaks says. If not shown, the rows have
// other codes.
func (s *settler) speak(l *worldLink, rows []*asked, shown bool) {
	slices.SortFunc(rows, s.compareRows)
	judge := rules.Judge{Terms: rules.Terms{AsOf: s.asOf.Unix(), OnDrift: s.onDrift, Revive: s.revive}}
	var stored *rules.Stored
	if l.run != s.id {
		stored = &rules.Stored{Link: l.Link}
	}
	judge.Begin(stored)
	for i := 0; i < len(rows) && judge.See(&rows[i].Params); i++ {
	}
	verdict := judge.Verdict()
	switch verdict.Result.Action() {
	case rules.Create:
		l.original = rows[verdict.Speaker].turnRow.url
	case rules.Revive:
		l.original = rows[verdict.Speaker].turnRow.url
		fallthrough
	case rules.Write:
		l.changedRun, l.change = s.id, verdict.Result.Change
	}
	l.Link = verdict.Link
	for i, r := range rows {
		if !shown {
			break
		}
		result := verdict.Row(judge.Terms, i, &r.Params)
		if s.got[r.number] = (turned{outcome: result.Outcome.String(), change: result.Change.String()}); result.Reason != rules.Accepted {
			s.got[r.number] = turned{reason: result.Reason.String()}
		}
	}
}

// compareRows orders the rows of an identity. Where codes are kept and nothing is held against links,
// those that have their code come first, and then those that have lost one.
func (s *settler) compareRows(a, b *asked) int {
	code := func(r *asked) []byte {
		if r.turnRow.code == "" {
			return nil
		}
		return []byte(r.turnRow.code)
	}
	codes := compareBool(code(a) == nil, code(b) == nil)
	codes = cmp.Or(codes, bytes.Compare(code(a), code(b)))
	first, second := 0, 0
	switch {
	case s.keeps() && !s.ruled:
		first = cmp.Or(compareBool(a.won == nil, b.won == nil), codes)
	case s.mode == legacy.Map:
		second = codes
	}
	return cmp.Or(first, rules.Compare(&a.Params, &b.Params), second, cmp.Compare(a.turnRow.url, b.turnRow.url),
		slices.Compare(a.carried(s.turn), b.carried(s.turn)), cmp.Compare(a.number, b.number))
}

// carried returns the carried cells in the order in which they are compared: those of parameters come last,
// but for the reference.
func (r *turnRow) carried(t *turn) []string {
	cells := []string{r.note, r.more, cmp.Or(r.written, r.code), r.kind}
	switch {
	case t.ends:
		cells = append(cells, r.params[rules.LinkType:]...)
	case t.flags != nil:
		cells = append(cells, r.params[rules.Ref])
	}
	return append(cells, r.params[:]...)
}

// collisions says of links with a salt above 0 who has each lower code.
func (s *settler) collisions() (list []string) {
	m := s.maker()
	for who := range s.seen {
		for salt := range max(s.salts[who], 0) {
			lengthed := m
			lengthed.Scheme, _ = m.WithLength(len(s.linked[who].place.code)) // the store may have codes of other lengths
			code, owner := who.code(lengthed, s.workspace, salt), ""
			if l := s.codes[code]; l != nil {
				owner = l.url
			}
			if word := wordIn(s.words, code); word != "" {
				owner = "blocklist:" + word
			}
			list = append(list, strings.Join([]string{s.workspace, who.url, strconv.Itoa(salt), code, owner}, " "))
		}
	}
	return list
}

// erase marks the links of a workspace that URLs and codes name, and returns what becomes of each item, by
// its place in urls.csv or codes.csv.
func (w *world) erase(workspace, owner string, urls, codes []string, at time.Time) map[string]string {
	named, results := map[*worldLink]bool{}, map[string]string{}
	name := func(place string, names func(l *worldLink) bool) {
		d := rules.Deletion{Owner: []byte(owner)}
		var found, marked []string
		for _, l := range w.inOrder(workspace) {
			if !names(l) {
				continue
			}
			if owner == "" || string(l.Owner) == owner {
				found = append(found, l.place.code)
			}
			if d.Link(&rules.Stored{Link: l.Link}, named[l]) {
				l.Status, l.Marked, l.Mark = rules.StatusDeleted, true, at.Unix()
				marked = append(marked, l.place.code)
			}
			named[l] = true
		}
		r := d.Result()
		switch {
		case r.Reason != rules.Accepted:
			results[place] = r.Reason.String()
		case r.Outcome == outcome.Duplicate:
			results[place] = r.Outcome.String()
		case marked == nil:
			results[place] = r.Outcome.String() + " " + strings.Join(found, " ")
		default:
			results[place] = r.Outcome.String() + " " + r.Change.String() + " " + strings.Join(marked, " ")
		}
	}
	order := make([]int, len(urls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(urls[i], urls[j]) })
	for _, i := range order {
		name(fmt.Sprint("urls.csv:", i+1), func(l *worldLink) bool { return l.url == urls[i] })
	}
	order = order[:0]
	for i := range codes {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(codes[i], codes[j]) })
	for _, i := range order {
		name(fmt.Sprint("codes.csv:", i+1), func(l *worldLink) bool { return l.place.code == codes[i] })
	}
	return results
}

// sweep marks dead links, and deletes those that were marked long ago.
func (w *world) sweep(at time.Time, grace time.Duration) (marked, deleted int64) {
	for _, l := range w.inOrder("") {
		if l.Status == rules.StatusActive && !l.Live(at.Unix()) {
			l.Status, l.Marked, l.Mark = rules.StatusExpired, true, at.Unix()
			marked++
		}
		if l.Marked && at.Unix()-l.Mark >= int64(grace/time.Second) {
			deleted++
			delete(w.links, l.place)
		}
	}
	return marked, deleted
}

// undo deletes the links of a run that no other has changed, and returns their places.
func (w *world) undo(run int32) (deleted []place) {
	for _, l := range w.inOrder("") {
		if l.run == run && l.changedRun == 0 {
			deleted = append(deleted, l.place)
			delete(w.links, l.place)
		}
	}
	return deleted
}

// keys returns the url_key and the base_key of a link.
func (l *worldLink) keys() (key, base [16]byte) {
	sum := func(parts string) [16]byte {
		return codegen.Sum(codegen.AppendIdentity(nil, []byte(l.url), []byte(l.workspace), []byte(parts), 0)).Key()
	}
	parts := l.parts
	if l.alias {
		parts += "|c=" + l.place.code
	}
	if parts != "" {
		base = sum("")
	}
	return sum(parts), base
}

// showWith describes a link that has these keys.
func (l *worldLink) showWith(key, base [16]byte) string {
	mark := ""
	if l.Marked {
		mark = time.Unix(l.Mark, 0).UTC().Format(time.RFC3339)
	}
	original := l.original
	if original == l.url {
		original = ""
	}
	return fmt.Sprintf("%s %s %x %x alias=%t %q %q expires=%s limit=%d uses=%d type=%s owner=%s ref=%q status=%s mark=%s run=%d changed=%d %s",
		l.workspace, l.place.code, key, base, l.alias, l.url, original, l.Expiry, l.Limit, l.Uses, l.Type, l.Owner, l.Ref, l.Status, mark, l.run, l.changedRun, l.change)
}

func (w *world) show() (lines []string) {
	for _, l := range w.inOrder("") {
		lines = append(lines, l.showWith(l.keys()))
	}
	return lines
}

// config returns the configuration of a run on a store.
func (t *turn) config(w *world) pipeline.Config {
	cfg := pipeline.Config{Workspace: "demo", Scheme: w.scheme, CodeLength: w.length, MaxRetries: t.retries, Legacy: t.mode, Rules: t.flags, OnDrift: t.onDrift, Revive: t.revive, AsOf: t.asOf}
	cfg.Scheme.Words, cfg.Source.WorkspaceColumn = blocklist(w.words), "team"
	if t.ends {
		cfg.Rules = nil
	}
	cfg.NoRules = t.noRules
	if t.retries == 0 {
		cfg.MaxRetries = pipeline.NoRetries
	}
	if t.mode != legacy.Off {
		cfg.Source.CodeColumn, cfg.Source.Map = "code", map[string]string{"kind": "kind"}
	}
	if t.campaign != nil {
		var err error
		if cfg.Campaign, err = campaign.Parse(nil, "c.yaml", []byte(t.campaign.File()), campaign.DefaultMost); err != nil {
			panic(err)
		}
	}
	if t.mode.Keeps() {
		cfg.OnConflict = t.conflict
	}
	return cfg
}
