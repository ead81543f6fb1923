package account

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/terms"
)

// A Run is what is known of a run that has written its files. Of the manifest, options and inputs do
// not count. [OfDirectory] fills in all that the files tell.
type Run struct {
	manifest.Manifest
	Terms
	Timings        *manifest.Timings // nil: not known
	ManifestSHA256 string            // hexadecimal
	Out            string            // the output directory
	ID             int32             // 0: nothing was to be stored
	Store          string            // without password
	DryRun         bool
	Stored         bool // links may have been stored
	ShortURLs      bool // the mapping has them
	Took           time.Duration

	manifest.Told

	// What only the process knows.
	Resumed, Repeated  bool
	Refused            string             // why no links were stored; "": they were, or it was a dry run
	NewStore           bool               // the run has made the store
	BlankRows          int64              // records that are no rows, of all inputs
	Rejected           map[string]Example // the first reject of each reason, which the rejects have, too
	ExitCode           int
	Command            string // what to do next, for a shell; "": nothing
	RejectsFile, Amend string // where the rejects are, and what to do about them
}

// Terms are what a run was told that decides what there is to say about its rows.
type Terms struct {
	Mode      legacy.Mode // what becomes of legacy codes
	Domains   legacy.Domains
	Update    bool   // with --on-drift update
	ExpiresAt string // a date without a time for all rows; "": none
}

// OfDirectory returns what the files of a finished run tell of it: a manifest with its digest, and
// the timings; nil: these are not known.
func OfDirectory(out string, m *manifest.Manifest, sha256 string, t *manifest.Timings) *Run {
	given, _ := terms.Parse(m) // an option that no run has counts as none
	r := &Run{Manifest: *m, Out: out, ManifestSHA256: sha256, Timings: t, DryRun: given.DryRun, ShortURLs: given.BaseURL != "", BlankRows: m.Inputs.BlankRows()}
	r.Terms = Terms{Mode: given.Mode(), Update: given.Rules != nil && given.Rules.OnDrift == rules.Update}
	if given.Beyond != nil {
		r.Terms.Domains = given.Beyond.Domains
	}
	if t != nil {
		r.ID, r.Store, r.Took = t.RunID, t.Store, time.Duration(t.Seconds*float64(time.Second))
		r.Told = t.Told
	}
	files, parts := m.Reports()
	r.Stored = r.ID != 0 || t == nil && !r.DryRun && parts == nil && files.Mapping() != "" // of a mapping in parts nothing is stored
	if files.Mapping() == "" {
		r.Refused = "the rows were not as the run was told that they must be"
	}
	return r
}

// Account returns the facts of the run.
func (r *Run) Account() *Account {
	a := &Account{Title: "run finished"}
	if r.Repeated {
		a.Title = "nothing to do: the run is finished"
	}
	a.add(r.head()...)
	a.add(r.counts()...)
	a.add(r.rejects()...)
	a.add(blankRows(r.BlankRows)...)
	if r.Repeated {
		a.add(r.start()...)
		a.add(r.end()...)
		return a
	}
	a.add(r.campaign(nil)...)
	a.add(r.linksByValue()...)
	a.add(r.urls()...)
	a.add(r.links()...)
	if r.Legacy != nil {
		a.add(r.codes()...)
	}
	a.add(r.migration()...)
	a.add(r.rules()...)
	a.add(r.numbers()...)
	a.add(r.files()...)
	a.add(r.end()...)
	return a
}

// head says how the run ended.
func (r *Run) head() []Fact {
	run := Fact{Key: "run", Value: ID(r.ID)}
	switch {
	case r.Repeated:
		run.Words = "nothing to do: run {} is finished, and {out} has its files"
	case r.Refused != "" && !r.Stored:
		run.Words, run.Zero = "no links were stored; the run took {seconds}", true
	case r.Refused != "":
		run.Words = "run {} was refused in part; it took {seconds}"
	case r.DryRun:
		run.Words, run.Zero = "this was a dry run: no links were stored; it took {seconds}", true
	case r.Resumed:
		run.Words = "run {}, resumed, finished in {seconds}"
	default:
		run.Words, run.Zero = "run {} finished in {seconds}", true
		if r.ID == 0 {
			run.Words = "the run finished in {seconds}"
		}
	}
	if r.Took == 0 { // not known
		run.Words = strings.NewReplacer("; it took {seconds}", "", "; the run took {seconds}", "", " in {seconds}", "").Replace(run.Words)
	}
	out := Fact{Key: "out", Value: r.Out}
	if r.Repeated {
		return []Fact{run, out, {Key: "repeated", Value: true}}
	}
	return []Fact{run, {Key: "resumed", Value: r.Resumed}, {Key: "repeated", Log: "-", Value: false}, {Key: "dry_run", Value: r.DryRun}, {Key: "stored", Value: r.Stored},
		{Key: "refused", Log: "-", Value: r.Refused}, {Key: "seconds", Log: "-", Value: r.Took}}
}

// counts are the books of the run.
func (r *Run) counts() []Fact {
	c := r.Counts
	one := func(key, name string, n int64) Fact {
		return Fact{In: "counts", Key: key, Name: name, Value: n, Zero: true, Depth: 1}
	}
	created := "created"
	if !r.Stored && !r.Repeated {
		created = "would be created"
	}
	return []Fact{
		{In: "counts", Key: "read", Name: "rows", Noun: "row", Value: c.Read, Zero: true},
		one("created", created, c.Created), one("existing", "existing", c.Existing), one("duplicate", "duplicate", c.Duplicate), one("rejected", "rejected", c.Rejected),
	}
}

// blankRows tells of records that are no rows, if there are any.
func blankRows(n int64) []Fact {
	if n == 0 {
		return nil
	}
	return []Fact{{Key: "blank_rows", Name: "blank rows", Noun: "row", Value: n, Note: "skipped: their cells are all empty"}}
}

// rejects are the rejects by reason, the most frequent first, each with its first row.
func (r *Run) rejects() []Fact {
	list := []Fact{{Key: "reasons", Log: "-", Full: Empty{}}}
	for _, p := range parts(r.Reasons) {
		f := reason(p, 2, advice(p.Name))
		if e, ok := r.Rejected[p.Name]; ok {
			e.In = "rejected"
			f.Example = &e
		}
		list = append(list, f)
	}
	list = append(list, Fact{Key: "rejected", Log: "-", Full: Empty{}})
	if r.Counts.Rejected > 0 {
		list = append(list, Fact{Key: "rejects_file", Log: "-", Value: r.RejectsFile, Depth: 1, Words: "rejected rows are in {}: " + r.Amend})
	}
	return list
}

// reason is a fact of rejects for a reason.
func reason(p Part, depth int, note string) Fact {
	return Fact{In: "reasons", Key: p.Name, Name: p.Name, Words: "{} rejected: " + p.Name, Noun: "row", Value: p.Count, Depth: depth, Note: note, Look: true}
}

// advice says what flag could accept rows that were rejected for a reason; "": none.
func advice(reason string) string {
	switch reason {
	case string(canon.MissingScheme):
		return "--target-base completes /new, --assume-scheme host.example/new"
	case outcome.BadCode:
		return "--code-pattern says which old codes are accepted"
	case rules.ForDrift.String():
		return "--on-drift keep or update accepts them"
	case rules.LinkDeleted.String():
		return "--revive all brings these links back"
	case rules.LinkEnded.String():
		return "--revive ended brings these links back"
	case outcome.CodeTaken:
		return "with --on-conflict generate they get generated codes"
	}
	if kind, err := hygiene.ParseKind(reason); err == nil {
		return fmt.Sprintf("--hygiene %s=warn accepts them", kind)
	}
	return ""
}

// urls says what became of the URLs of the rows.
func (r *Run) urls() []Fact {
	list := []Fact{{Key: "rewritten", Name: "URLs rewritten", Noun: "row", Value: r.Rewritten, By: parts(r.RewrittenBy), Note: "visitors still go to the original URLs"}}
	list = append(list, r.read()...)
	if m := r.MergedDiffers; m != nil {
		f := merged(m, "URLs merged that may differ")
		list = append(list, f)
	}
	return list
}

// read tells of URLs with bytes that are not UTF-8, and of those that were resolved.
func (r *Run) read() (list []Fact) {
	one := func(key, name, note string, n *manifest.Noted) {
		if n != nil {
			list = append(list, Fact{Key: key, Name: name, Noun: "row", Value: n.Rows, Full: n, Note: note,
				Example: &Example{Source: string(n.Source), Row: n.Row, Text: string(n.Text)}})
		}
	}
	one("not_utf8", "URLs that are not UTF-8", "the links may lead nowhere; --encoding says what their bytes mean", r.NotUTF8)
	one("resolved", "URLs completed", "by --target-base", r.Resolved)
	return list
}

// merged tells of rows whose URL may lead elsewhere than that of their link.
func merged(m *manifest.MergedDiffers, name string) Fact {
	first, row := &m.Example[0], &m.Example[1]
	return Fact{Key: "merged_differs", Name: name, Noun: "row", Value: m.Rows, By: parts(m.By), Full: m, Look: true, Example: &Example{
		Source: string(row.Source), Row: row.Row, Text: redacted(row.URL) + " leads to " + redacted(first.URL)}}
}

// links says where the links are.
func (r *Run) links() []Fact {
	created := Fact{Key: "links_created", Log: "-", Value: r.Counts.Created}
	if r.LinksCreated != nil {
		created.Value = *r.LinksCreated
	}
	if r.Legacy != nil {
		created.Log = ""
		if r.Mode.Keeps() && r.Refused == "" {
			created.Name, created.Noun, created.Zero = "links and aliases created", "link", true
			if r.DryRun {
				created.Name = "links and aliases to create"
			}
		}
	}
	list := []Fact{created}
	if r.Folds {
		list = append(list, Fact{Key: "fold_case", Value: true, Words: "the workspaces fold case, as the store says: codes are in lower case"})
	}
	return list
}

// codes says what became of legacy codes. A run that was refused has not counted the aliases.
func (r *Run) codes() []Fact {
	l := r.Legacy
	aliases := Fact{In: "legacy", Key: "aliases", Value: l.Aliases}
	conflicts := Fact{In: "legacy", Key: "conflicts", Value: l.Conflicts, Look: l.Conflicts > 0}
	if r.Mode.Keeps() {
		conflicts.Name, conflicts.Noun, conflicts.Zero = "conflicts over codes", "conflict", true
		if r.Refused == "" {
			aliases.Name, aliases.Noun, aliases.Zero = "rows whose code is an alias", "row", true
		}
	}
	list := []Fact{aliases, conflicts, withoutCode(l, r.Counts.Read)}
	if t := l.CaseTwins; t != nil {
		list = append(list, caseTwins(t, "in new workspaces --fold-case joins them"))
	}
	if d := l.Damaged; d != nil {
		list = append(list, damagedCodes(d, "export the codes again as text"))
	}
	if e := l.Escaped; e != nil {
		list = append(list, escapedCodes(e))
	}
	return list
}

// NoCodes is said if no row has a legacy code.
const NoCodes = "no row has an old code: is it the right column (--code-column)?"

// withoutCode tells of rows without a legacy code.
func withoutCode(l *manifest.Legacy, read int64) Fact {
	f := Fact{In: "legacy", Key: "without_code", Name: "rows without an old code", Noun: "row", Value: l.WithoutCode, Zero: true}
	if l.WithoutCode == read && read > 0 {
		f.Note, f.Look = NoCodes, true
	}
	return f
}

// caseTwins tells of codes that differ only in case.
func caseTwins(t *manifest.CaseTwins, note string) Fact {
	var codes []string
	for _, code := range t.Examples[0] {
		codes = append(codes, string(code))
	}
	return Fact{In: "legacy", Key: "case_twins", Name: "codes that differ only in case", Noun: "group", Value: t.Groups, Full: t, Note: note, Look: true,
		Example: &Example{Text: strings.Join(codes, ", ")}}
}

// damagedCodes tells of codes that a spreadsheet may have rewritten.
func damagedCodes(d *manifest.OddCodes, note string) Fact {
	return Fact{In: "legacy", Key: "damaged", Name: "codes damaged by a spreadsheet", Noun: "code", Value: d.Rows, Full: d, Note: note, Look: true,
		Example: &Example{Source: string(d.Example.Source), Row: d.Example.Row, Text: string(d.Example.Code)}}
}

// escapedCodes tells of codes that no request asks for as they stand, if they were cut out of URLs.
func escapedCodes(e *manifest.OddCodes) Fact {
	return Fact{In: "legacy", Key: "escaped", Name: "codes with escapes such as %2F", Noun: "code", Value: e.Rows, Full: e,
		Note: "if they are parts of URLs, --code-column 'path(COLUMN)' decodes them", Look: true,
		Example: &Example{Source: string(e.Example.Source), Row: e.Example.Row, Text: string(e.Example.Code)}}
}

// migration says what the links of the rows were beyond code and URL. People are told of rejects
// elsewhere.
func (r *Run) migration() (list []Fact) {
	m := r.Migration
	if m == nil {
		return nil
	}
	if d := m.Domains; d != nil {
		f := domains(d)
		if (len(d.Rows) > 1 || d.More) && r.Domains != legacy.DomainsKeep {
			f.Name, f.Note = "domains that share a workspace", ""
			if r.Domains == legacy.DomainsOff {
				f.Note = "--domains keep makes a workspace of each"
			}
		} else {
			f.Name = ""
		}
		list = append(list, f)
	}
	list = append(list, Fact{In: "migration", Key: "hygiene", Log: "-", Full: Empty{}})
	var kinds []Fact
	for kind := range hygiene.Kind(hygiene.KindCount) {
		if h, ok := m.Hygiene[kind.String()]; ok {
			f := kindOf(kind, h)
			if f.Example == nil {
				f.Name = ""
			}
			f.Note, f.Look = "links that "+thatKind[kind], true
			kinds = append(kinds, f)
		}
	}
	slices.SortFunc(kinds, func(a, b Fact) int { return strings.Compare(a.Key, b.Key) })
	return append(append(list, kinds...), unread(m)...)
}

// domains tells of the domains of the codes.
func domains(d *manifest.Domains) Fact {
	const most = 5
	f := Fact{In: "migration", Key: "domains", Name: "domains", Noun: "domain", Value: d.Count, Full: d}
	if d.More {
		f.Note = "there are more"
		return f
	}
	for i, p := range parts(d.Rows) {
		if i == most {
			f.By = append(f.By, Part{Name: "others"})
		}
		if i >= most {
			f.By[most].Count += p.Count
			continue
		}
		if p.Name == "" {
			p.Name = "none"
		}
		f.By = append(f.By, p)
	}
	return f
}

// thatKind says of links of each kind what they are.
var thatKind = [hygiene.KindCount]string{
	hygiene.Pattern:   "are a regular expression",
	hygiene.Protected: "have a password",
	hygiene.Inactive:  "are archived, banned, disabled or deleted",
	hygiene.Expired:   "have expired",
	hygiene.Targeted:  "have targets by country or device",
	hygiene.Starts:    "do not work before a later time",
	hygiene.Ends:      "have an expiry or a use limit, which --no-rules leaves out",
	hygiene.Loop:      "lead to themselves",
	hygiene.Chain:     "lead to another short link",
	hygiene.Secret:    "have a secret in their URL",
	hygiene.Suspect:   "have another URL in their URL",
	hygiene.Private:   "lead to a host that not everybody can reach",
}

// kindOf tells of links of a kind that the store cannot keep as they were.
func kindOf(kind hygiene.Kind, h manifest.Hygiene) Fact {
	f := Fact{In: "migration.hygiene", Key: kind.String(), Name: fmt.Sprintf("%s links (%s)", kind, h.Decision), Noun: "link", Value: h.Rows, Full: h}
	if e := h.Example; e != nil {
		f.Example = &Example{Source: string(e.Source), Row: e.Row, Text: string(e.URL)}
	}
	return f
}

// unread tells of cells that cannot be read.
func unread(m *manifest.Migration) (list []Fact) {
	one := func(key, name, note string, n *manifest.Noted) {
		if n != nil {
			list = append(list, Fact{In: "migration", Key: key, Name: name, Noun: "row", Value: n.Rows, Full: n, Note: note, Look: true,
				Example: &Example{Source: string(n.Source), Row: n.Row, Text: string(n.Text)}})
		}
	}
	one("no_time", "creation times not read", "these links have the time of the run", m.NoTime)
	one("no_expiry", "expiries not read", "they count as links that have not expired", m.NoExpiry)
	one("no_start", "beginnings not read", "they count as links that work already", m.NoStart)
	one("no_redirect", "redirect codes not read", "these links redirect with 302; known are 301, 302, 307, 308 and 410", m.NoRedirect)
	one("no_state", "states not read", "they count as links that work; for a time to come, use --map expires_at=COLUMN", m.NoState)
	return list
}

// numbers tells which numbers of the counter the run has.
func (r *Run) numbers() []Fact {
	n := r.Numbers
	if n == nil {
		return nil
	}
	f := Fact{In: "numbers", Key: "ranges", Log: "numbers", Name: "numbers of the counter", Value: Ranges(n.Ranges), Full: some(n.Ranges)}
	skipped := Fact{In: "numbers", Key: "skipped", Log: "numbers_skipped", Name: "numbers skipped", Noun: "number", Value: n.Skipped, Note: "their codes are taken or blocked"}
	if r.Refused != "" {
		f.Name, skipped.Name = "", ""
	}
	if r.DryRun && len(n.Ranges) > 0 {
		f.Note = "another run may take them first"
	}
	if r.Refused != "" {
		return []Fact{f, skipped}
	}
	last := Fact{In: "numbers", Key: "last_given", Log: "numbers_last", Name: "last number given out", Value: ID(r.Counter.Last)}
	return append([]Fact{f, skipped, last}, r.start()...)
}

// start says whether the counter was moved to where it was to start.
func (r *Run) start() []Fact {
	c := &r.Counter
	if c.Start == 0 {
		return nil
	}
	f := Fact{In: "numbers", Key: "start", Log: "counter_start", Value: ID(c.Start), Words: fmt.Sprintf("--counter-start {} changes nothing: the next number was %d", c.Was)}
	if c.Moved {
		moved := "moved the counter"
		if r.DryRun {
			moved = "would move the counter"
		}
		f.Words = fmt.Sprintf("--counter-start {} %s: its next number was %d", moved, c.Was)
	}
	return []Fact{f, {In: "numbers", Key: "moved", Log: "counter_moved", Value: c.Moved}}
}

// Ranges writes ranges of numbers: 1-10 21-30.
func Ranges(ranges []manifest.Range) string {
	var list []string
	for _, r := range ranges {
		list = append(list, fmt.Sprintf("%d-%d", r.First, r.Last))
	}
	return strings.Join(list, " ")
}

// files says what was written, and how fast.
func (r *Run) files() (list []Fact) {
	wrote := Fact{Key: "out", Name: "wrote", Value: r.Out}
	if len(r.Files) > 0 {
		wrote.Words = "wrote {}: {files}"
	}
	var files, rates []Part
	for _, f := range r.Files {
		if n := len(files) - 1; n >= 0 && manifest.IsPart(f.Name) && files[n].Name == manifest.PartsDir {
			files[n].Count += f.Rows
		} else if manifest.IsPart(f.Name) {
			files = append(files, Part{manifest.PartsDir, f.Rows})
		} else {
			files = append(files, Part{f.Name, f.Rows})
		}
		if f.Name == manifest.CollisionsName {
			list = append(list, Fact{Key: "collisions", Name: "codes that other URLs had", Noun: "code", Value: f.Rows, Note: manifest.CollisionsName + " has them"})
		}
	}
	if r.Timings != nil {
		rates = ratesOf(r.Timings.Stages)
	}
	list = append(list, wrote, Fact{Key: "files", Log: "-", By: files}, Fact{Key: "rows_per_second", Name: "rows a second", By: rates})
	if !r.ShortURLs && r.Refused == "" {
		list = append(list, Fact{Key: "short_urls_blank", Value: true, Words: "short_url is blank: --base-url says what short URLs begin with"})
	}
	return list
}

// ratesOf returns how many rows a second each stage did, in their order. Stages that were done again
// count as one.
func ratesOf(stages []manifest.Stage) (rates []Part) {
	seconds := map[string]float64{}
	rows := map[string]int64{}
	var names []string
	for _, s := range stages {
		if s.Rows > 0 && seconds[s.Name] == 0 {
			names = append(names, s.Name)
		}
		seconds[s.Name] += s.Seconds
		rows[s.Name] += s.Rows
	}
	for _, name := range names {
		if seconds[name] > 0 {
			rates = append(rates, Part{name, int64(float64(rows[name]) / seconds[name])})
		}
	}
	return rates
}

// end says which store it was, and what to do next.
func (r *Run) end() []Fact {
	if r.Repeated {
		return r.last()
	}
	store := Fact{Key: "store", Name: "store", Value: r.Store}
	if r.NewStore {
		store.Words = "created the store {}"
	}
	return r.last(store, Fact{Key: "new_store", Value: r.NewStore}, workspaces(r.Workspaces, r.NewWorkspaces, r.Stored), Fact{Key: "new_workspaces", Value: some(r.NewWorkspaces)})
}

// last returns the last facts: the manifest, those between, and what to do next.
func (r *Run) last(between ...Fact) []Fact {
	list := append([]Fact{{Key: "manifest_sha256", Name: "manifest", Value: r.ManifestSHA256, Exact: true}}, between...)
	return append(list, Fact{Key: "exit_code", Log: "-", Value: ID(r.ExitCode)}, Fact{Key: "command", Log: "-", Name: "next", Value: r.Command, Exact: true})
}

// workspaces says which workspaces a run has, and which of them are new; some may be new since the
// run has stored links there.
func workspaces(names, fresh []string, stored bool) Fact {
	f := Fact{Key: "workspaces", Name: "workspaces", Value: some(names)}
	none := "no links yet"
	if stored {
		none = "no links before"
	}
	have := "all had links before"
	if !stored {
		have = "all have links already"
	}
	if len(names) == 1 {
		f.Name = "workspace"
		if have = "had links before"; !stored {
			have = "has links already"
		}
	}
	switch {
	case len(fresh) == len(names):
		f.Words = f.Name + ": {} (" + none + ")"
	case len(fresh) > 0:
		f.Words = f.Name + ": {} (" + none + ": {new_workspaces})"
	default:
		f.Words = f.Name + ": {} (" + have + ")"
	}
	return f
}

// A reasonToStay says why rows leave links as they are, and what would change them.
type reasonToStay struct {
	name    string // of a change; reasons of rejects are told with these (advice)
	why, do string
	updated string // in place of do, if the run has --on-drift update; "": do
}

var reasonsToStay = []reasonToStay{
	{rules.Drifted.String(), "links left, though rows differ", "--on-drift update changes them, except links of an owner that the row does not have",
		"they have ended, or have an owner that the row does not have"},
	{rules.OtherOwner.String(), "links left to another owner", "no flag changes them, only rows of that owner do", ""},
}

// stays says which links keep what they have, and what would change that.
func stays(links map[string]int64, updated bool, name string, depth int) (list []Fact) {
	for _, s := range reasonsToStay {
		if n := links[s.name]; n > 0 {
			f := Fact{In: "links_unchanged", Key: s.name, Log: "links_unchanged_" + s.name, Name: s.why, Noun: "link", Value: n, Depth: depth, Note: s.do, Look: true}
			if updated && s.updated != "" {
				f.Note = s.updated
			}
			if name != "" {
				f.Name = name
			}
			list = append(list, f)
		}
	}
	return list
}

// dateEnds says what a date without a time is.
const dateEnds = "links end at 00:00 UTC of that day, not at its end"

// rules say what the run did to links that exist, and what it left as it is.
func (r *Run) rules() (list []Fact) {
	if r.Rules != nil {
		list = append(list, Fact{In: "rules", Key: "changes", Name: "links that existed", By: parts(r.Rules.Changes)})
	}
	list = append(list, stays(r.Unchanged, r.Update, "", 0)...)
	if r.ExpiresAt != "" {
		list = append(list, Fact{Key: "expires_at", Log: "-", Value: r.ExpiresAt, Words: "--expires-at {} has no time: " + dateEnds})
	}
	return append(list, dates(r.Dates, r.Nones)...)
}

// dates tells of rows whose expiry is a date without a time.
func dates(rows, nones int64) (list []Fact) {
	if rows > 0 {
		list = append(list, Fact{Key: "dates_without_time", Name: "rows with a date without a time", Noun: "row", Value: rows, Note: dateEnds})
	}
	if nones > 0 {
		list = append(list, Fact{Key: "no_ends", Name: "rows with a word for no end", Noun: "row", Value: nones, Note: "such as null, never, 0 or 0001-01-01T00:00:00Z: expiry or use limit is none"})
	}
	return list
}
