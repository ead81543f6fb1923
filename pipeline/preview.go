package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/emit"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/settle"
)

// An Input is what was found out about an input, and how its columns are used. Before its rows
// are read, their number, the size and the digest are not there.
type Input struct {
	manifest.Input
	Mapped  []profile.Column  // columns that have a role, as of columns.Table.Mapped
	Unused  []string          // flags that would use columns that are known to say something of links
	Like    *profile.Profile  // whose export it seems to be, though nobody asked for its codes; nil: none
	Learned []profile.Learned // from where its profile is known; nil: it has none
	Carried []string          // columns that have no role
}

// describeInputs describes the inputs of a run with an identity of links: references are used by row
// only.
func describeInputs(inputs *intake.Inputs, identity rules.Identity) []Input {
	list := make([]Input, len(inputs.List))
	for i, described := range inputs.Manifest() {
		in := &list[i]
		in.Input = described
		in.Mapped = slices.DeleteFunc(inputs.List[i].Mapped(), func(c profile.Column) bool { return c.Role == profile.Ref && identity != rules.ByRow })
		in.Unused, in.Like = inputs.List[i].Unused(), inputs.List[i].LooksLike()
		if in.Dialect != nil && inputs.List[i].NotUTF8() {
			in.Dialect.Encoding = "not utf-8"
		}
		if p := profile.Named(in.Profile); p != nil {
			in.Learned = p.Learned
		}
		used := map[string]bool{}
		for _, c := range in.Mapped {
			used[c.Name] = true
		}
		for _, name := range inputs.List[i].Columns {
			if !used[name] {
				in.Carried = append(in.Carried, name)
			}
		}
	}
	return list
}

// A PreviewResult tells what a run would do.
type PreviewResult struct {
	// Of the result of the run Out, ManifestSHA256, RunID, Resumed, Repeated and AsOf are not
	// there.
	Result
	Inputs []Input
	First  []PreviewRow // the first rows in the order of the input, at most FirstRows

	Kept, Generated, Aliases int64 // of Result.LinksCreated: links with legacy codes, with generated codes, aliases

	Examples [ExampleCount]*PreviewRow // of each the first in the order of the input; nil: none
	Refused  *TooManyRejectsError      // why the run would store nothing; nil: it would

	Tagged *manifest.Noted // rows whose own URL has a parameter of the campaign; nil: none

	Seen         hygiene.Set   // kinds of links that columns or options tell
	URLs         int64         // different ones of the accepted rows, each with its workspace
	Alternatives []Alternative // options that would make that number another
}

// An Alternative is an option of identity that a run does not have, and how many different URLs
// there would be with it.
type Alternative struct {
	Option string `json:"option"`
	URLs   int64  `json:"urls"`
}

// tracking are the parameters of usual campaign tools.
const tracking = "utm_*,gclid,fbclid"

// alternatives returns the options that are compared with the profile of a run, and the profiles that they
// make of it.
func alternatives(c *Config) (list []Alternative, profiles []canon.Profile) {
	p := c.Profile
	if !p.KeepFragment {
		with := p
		with.KeepFragment = true
		list, profiles = append(list, Alternative{Option: "--keep-fragment"}), append(profiles, with)
	}
	if p.StripParams == (canon.StripParams{}) {
		with := p
		with.StripParams, _ = canon.ParseStripParams(tracking)
		if c.Campaign != nil && c.Campaign.Stripped(with.StripParams) != "" {
			return list, profiles
		}
		list, profiles = append(list, Alternative{Option: "--strip-params '" + tracking + "'"}), append(profiles, with)
	}
	return list, profiles
}

// FirstRows is the number of rows that a preview shows. Of a campaign it shows FirstVariants of
// FirstExpanded rows.
const (
	FirstRows     = 5
	FirstExpanded = 3
	FirstVariants = 10
)

// The examples of a preview.
const (
	ExampleKept        = iota // a row whose legacy code would be that of a new link
	ExampleGenerated          // a row whose URL would get a link with a generated code
	ExampleAlias              // a row whose code would be a new alias
	ExampleExisting           // a row that the store has
	ExampleDuplicate          // a row that is merged into another
	ExampleConflict           // a row that claims the code of another URL, which Detail names
	ExampleWithoutCode        // an accepted row without a legacy code
	ExampleChange             // plus a rules.Change: a row with that change
	ExampleCount       = ExampleChange + rules.ChangeCount
)

// A PreviewRow is what would become of a row. The names in JSON are those of columns in the
// mapping and the rejects.
type PreviewRow struct {
	Source     manifest.Text `json:"source"`
	Row        int64         `json:"row"`
	Workspace  manifest.Text `json:"workspace_id,omitempty"`
	URL        manifest.Text `json:"original_url,omitempty"` // of a line that cannot be split, the line
	LegacyCode manifest.Text `json:"legacy_code,omitempty"`
	Code       manifest.Text `json:"short_code,omitempty"`
	LinkCode   manifest.Text `json:"link_code,omitempty"` // with legacy.Both
	Kind       string        `json:"kind,omitempty"`      // with legacy.Keep and Both
	Outcome    string        `json:"outcome"`             // of package outcome, or "rejected"
	Change     string        `json:"change,omitempty"`    // with link rules
	Variant    int64         `json:"variant,omitempty"`   // of a campaign
	Values     []Value       `json:"values,omitempty"`    // of the parameters that it has
	Reason     string        `json:"reason,omitempty"`    // of a reject
	Detail     string        `json:"detail,omitempty"`

	canonical string
	parts     []byte // of the identity
}

// A Value is that of a parameter of a variant.
type Value struct {
	Name  string        `json:"name"`
	Value manifest.Text `json:"value"`
	// Constant says that all rows have it in this variant.
	Constant bool `json:"constant"`
}

// Preview does all that a run does before it stores or writes anything, and tells what would
// come of it. It creates no store and no file, except spill files without a name. Of the
// configuration Out and all about the reports do not count, and DryRun is true. The result is
// valid, as far as the preview got, also with an error. Errors are those of Run; but that the
// run would store nothing is no error.
func Preview(ctx context.Context, cfg Config) (*PreviewResult, error) {
	cfg.Out, cfg.DryRun, cfg.NoCarry, cfg.counts = ".", true, true, true
	cfg, err := cfg.withDefaults()
	if err != nil {
		return &PreviewResult{}, err
	}
	p := &preview{job: newJob(&cfg)}
	p.result.AsOf = asOf(&cfg, p.meter.started)
	var profiles []canon.Profile
	p.made.Alternatives, profiles = alternatives(&cfg)
	p.others = &intake.Others{Profiles: profiles, Sorter: p.sorter(p.budget.others, 1)}
	err = p.do(ctx)
	p.made.Result = p.result
	p.made.Timings = &manifest.Timings{Started: p.meter.started, PeakMemory: peakMemory(), Stages: p.meter.stages}
	return &p.made, err
}

// A preview is a job that does not write.
type preview struct {
	*job
	made PreviewResult
}

func (p *preview) do(ctx context.Context) (err error) {
	names, err := listInputs(p.cfg)
	if err != nil {
		return err
	}
	inputs, err := p.open(ctx, names)
	if err != nil {
		return err
	}
	err = p.look(ctx, inputs)
	for readAgain(err) {
		if inputs, err = p.reopen(ctx, names, err); err == nil {
			err = p.look(ctx, inputs)
		}
	}
	return err
}

// look reads the inputs, which it closes, and does everything from there.
func (p *preview) look(ctx context.Context, inputs *intake.Inputs) (err error) {
	defer func() { err = errors.Join(err, inputs.Close()) }()
	for _, in := range inputs.List {
		in.Inspect = true
	}
	err = p.readRows(ctx, inputs)
	defer func() { err = errors.Join(err, p.rows.Close()) }()
	if err != nil {
		return err
	}
	p.made.Inputs = describeInputs(inputs, p.cfg.identity())
	p.made.Seen = 0
	if rules := p.cfg.terms().Judge(p.result.AsOf).Hygiene; rules != nil {
		for _, in := range inputs.List {
			p.made.Seen |= in.Along.Seen(rules)
		}
	}
	urls, others, err := p.rows.CountOthers(ctx)
	if err != nil {
		return err
	}
	for i, urls := range others {
		p.made.Alternatives[i].URLs = urls
	}
	p.made.URLs = urls
	return retry(ctx, p.cfg, &p.meter, p.attempt)
}

// attempt settles all rows and looks at what would be written.
func (p *preview) attempt(ctx context.Context) (err error) {
	session, err := p.openSession(ctx)
	if err != nil {
		return err
	}
	if session != nil {
		defer func() { err = errors.Join(err, session.Close()) }()
	}
	if err := p.checkProfile(ctx, session); err != nil {
		return err
	}
	if err := p.checkScheme(ctx, session); err != nil {
		return err
	}
	if err := p.checkRules(ctx, session); err != nil {
		return err
	}
	if err := p.tellMoved(ctx, session); err != nil {
		return err
	}
	settled, err := p.settle(ctx, session, 0, nil)
	if settled != nil {
		defer func() { err = errors.Join(err, settled.Close()) }()
	}
	if err != nil {
		return err
	}
	p.cfg.Status.enter(StageCount)
	return p.meter.time("count", func(s *manifest.Stage) error {
		s.Rows = p.rows.Read()
		return p.count(ctx, settled)
	})
}

// count counts what would be written and takes examples of it.
func (p *preview) count(ctx context.Context, settled *settle.Settlement) error {
	all := &sample{campaign: p.cfg.Campaign, keeps: p.rows.Claims != nil, both: p.cfg.Legacy == legacy.Both, fold: p.cfg.Scheme.Fold}
	written, err := emit.Sorted(ctx, p.rows, settled, all, report.NewCollisions(io.Discard, false, false), nil,
		emit.Config{Workers: p.cfg.Workers, NoCarry: true, Written: &p.cfg.Status.Written, Columns: p.columns(), Profile: p.cfg.Profile, AsOf: p.result.AsOf.Unix()})
	if err != nil {
		return err
	}
	p.result.Rejected = map[string]*PreviewRow{}
	seen := 0
	rejects, first, err := p.rejects(ctx, settled, func(r *outcome.Reject) error {
		if seen++; seen > FirstRows && p.result.Rejected[r.Reason] != nil { // they come in the order of the input
			return nil
		}
		row := p.rejected(r)
		all.addFirst(&row)
		if p.result.Rejected[r.Reason] == nil {
			p.result.Rejected[r.Reason] = &row
		}
		return nil
	})
	if err == nil {
		err = balance(p.rows.Read(), p.result.Counts, written.Rows, rejects)
	}
	if links := all.kept + all.generated + all.aliases; err == nil && links != p.result.LinksCreated {
		err = fmt.Errorf("the books do not balance: %d links settled, %d counted", p.result.LinksCreated, links)
	}
	if err != nil {
		return err
	}
	p.result.Reasons, p.result.MergedDiffers = reasons(p.rows, settled), written.Merged
	p.result.Campaign, p.made.Tagged = describeCampaign(p.rows), noted(p.rows, &p.rows.Tagged)
	p.result.Legacy = describeLegacy(p.cfg, p.rows, settled, written.Aliases)
	p.result.Migration = describeMigration(p.cfg, p.rows, p.result.Reasons)
	p.result.Rules, p.result.Unchanged = describeRules(p.ruled, &written.Changes), stays(&written.Existing)
	p.made.First, p.made.Examples = all.first, all.examples
	p.made.Kept, p.made.Generated, p.made.Aliases = all.kept, all.generated, all.aliases
	if p.limited, err = p.byInputRow(ctx, settled); err != nil {
		return err
	}
	if p.mayNotStore(settled) {
		p.made.Refused = p.tooMany(settled, &first)
	}
	return p.findWinner(ctx, settled)
}

// findWinner completes the example of a conflict with the URL that has the code.
func (p *preview) findWinner(ctx context.Context, settled *settle.Settlement) error {
	if taken := p.result.Rejected[outcome.CodeTaken]; taken != nil {
		p.made.Examples[ExampleConflict] = taken
	}
	c := p.made.Examples[ExampleConflict]
	if c == nil || c.Detail != "" {
		return nil
	}
	h := codegen.Sum(codegen.AppendIdentity(nil, []byte(c.canonical), []byte(c.Workspace), c.parts, 0))
	verdicts := settled.Claims().Reader()
	defer verdicts.Close()
	first := p.rows.Order.First(h, []byte(c.canonical), []byte(c.Workspace), c.parts)
	code := []byte(c.LegacyCode)
	if p.cfg.Scheme.Fold {
		code = legacy.Fold(code[:0], code)
	}
	owner, err := verdicts.Owner(ctx, p.rows.Workspaces.ID(string(c.Workspace)), p.rows.Order.Key(first.Hash), h.Key(), code)
	c.Detail = outcome.CodeTakenDetail(code, owner, []byte(c.canonical))
	return err
}
