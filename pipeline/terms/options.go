package terms

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/charset"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/rules"
)

// An option is one of those that a manifest has.
type option struct {
	name   string
	wanted string                 // what it must be, for people
	get    func(*Terms) any       // a string, a bool or an int64; nil: the run does not have it
	set    func(*Terms, any) bool // takes what get gives; false: no run has that
	late   bool                   // earlier versions did not write it
	free   bool                   // what set takes may be written in several ways
}

// table has all options but those of mapped roles. Those of a group follow the one that makes it.
var table = []option{
	{name: "report_format", wanted: "csv, parquet or arrow", get: func(t *Terms) any { return t.ReportFormat },
		set: parsed(func(t *Terms, text string) bool {
			t.ReportFormat = text
			return text == "csv" || text == "parquet" || text == "arrow"
		})},
	{name: "report_order", wanted: "sort or input", late: true, get: func(t *Terms) any { return t.ReportOrder },
		set: parsed(func(t *Terms, text string) bool { t.ReportOrder = text; return text == "sort" || text == "input" })},
	{name: "base_url", get: func(t *Terms) any { return t.BaseURL }, set: text(func(t *Terms) *string { return &t.BaseURL })},
	{name: "excel_safe", get: func(t *Terms) any { return t.ExcelSafe }, set: flag(func(t *Terms) *bool { return &t.ExcelSafe })},
	{name: "carry", get: func(t *Terms) any { return t.Carry }, set: flag(func(t *Terms) *bool { return &t.Carry })},
	{name: "dry_run", get: func(t *Terms) any { return t.DryRun }, set: flag(func(t *Terms) *bool { return &t.DryRun })},
	{name: "max_rejects", wanted: "a number of rows or a percentage", get: func(t *Terms) any { return t.MaxRejects.String() }, set: parsed(func(t *Terms, text string) bool {
		t.MaxRejects, _ = manifest.ParseMaxRejects(text)
		return t.MaxRejects.String() == text
	})},
	{name: "expect_rows", get: func(t *Terms) any { return some(t.ExpectRows) }, set: number(func(t *Terms) *int64 { return &t.ExpectRows })},
	{name: "limit", get: func(t *Terms) any { return t.Limit }, set: number(func(t *Terms) *int64 { return &t.Limit })},
	{name: "workspace", get: func(t *Terms) any { return t.Workspace }, set: text(func(t *Terms) *string { return &t.Workspace })},
	{name: "max_field", get: func(t *Terms) any { return t.MaxField }, set: number(func(t *Terms) *int64 { return &t.MaxField })},
	{name: "encoding", wanted: "the name of an encoding", get: func(t *Terms) any { return some(t.Encoding) }, set: parsed(func(t *Terms, text string) bool {
		var err error
		t.Encoding, err = charset.Parse(text)
		return err == nil
	})},
	{name: "pad_rows", get: func(t *Terms) any { return some(t.PadRows) }, set: flag(func(t *Terms) *bool { return &t.PadRows })},
	{name: "fold_case", get: func(t *Terms) any {
		if t.Codes != nil {
			return t.Fold
		}
		return some(t.Fold)
	}, set: flag(func(t *Terms) *bool { return &t.Fold })},

	{name: "max_url_length", wanted: "0 to 8192", get: func(t *Terms) any { return int64(t.URLs.MaxLength) }, set: func(t *Terms, v any) bool {
		n, ok := v.(int64)
		t.URLs.MaxLength = int(n)
		return ok && t.URLs.Validate() == nil
	}},
	{name: "keep_fragment", get: func(t *Terms) any { return some(t.URLs.KeepFragment) }},        // the name of the
	{name: "strip_params", get: func(t *Terms) any { return some(t.URLs.StripParams.String()) }}, // profile has these
	{name: "assume_scheme", wanted: "http or https", get: func(t *Terms) any { return some(t.URLs.AssumeScheme.String()) }, set: parsed(func(t *Terms, text string) bool {
		var err error
		t.URLs.AssumeScheme, err = canon.ParseAssumedScheme(text)
		return err == nil
	})},

	{name: "legacy", wanted: "keep, both or map", get: ofCodes(func(c *Codes) any { return string(c.Mode) }), set: parsed(func(t *Terms, text string) bool {
		mode, err := legacy.ParseMode(text)
		t.Codes = &Codes{Codes: judge.Codes{Mode: mode}}
		return err == nil && mode != legacy.Off
	})},
	{name: "code_pattern", wanted: "a pattern", get: ofCodes(func(c *Codes) any { return c.Pattern }), set: toCodes(func(c *Codes, text string) (err error) {
		if c.Pattern = text; text != legacy.DefaultPattern {
			c.Rules.Pattern, err = legacy.ParsePattern(text)
		}
		return err
	})},
	{name: "on_conflict", wanted: "reject, fail or generate", get: ofCodes(func(c *Codes) any { return string(c.OnConflict) }), set: toCodes(func(c *Codes, text string) (err error) {
		c.OnConflict, err = legacy.ParseConflict(text)
		return err
	})},
	{name: "reserved_sha256", get: ofCodes(func(c *Codes) any { return c.ReservedSHA256 }), set: toCodes(func(c *Codes, text string) error { c.ReservedSHA256 = text; return nil })},

	{name: "hygiene", free: true, wanted: "kinds with keep, warn or reject", get: ofBeyond(func(b *Beyond) any { return b.Policy.String() }), set: parsed(func(t *Terms, text string) bool {
		policy, err := hygiene.ParsePolicy(text)
		t.Beyond = &Beyond{Policy: policy}
		return err == nil
	})},
	{name: "attrs", get: ofBeyond(func(b *Beyond) any { return b.Attrs }), set: toBeyond(func(b *Beyond, text string) error { b.Attrs = text; return nil })},
	{name: "keep_created", get: ofBeyond(func(b *Beyond) any { return some(b.KeepCreated) }), set: within(beyond, func(g *Beyond) *bool { return &g.KeepCreated })},
	{name: "domains", wanted: "keep or merge", get: ofBeyond(func(b *Beyond) any { return some(string(b.Domains)) }), set: toBeyond(func(b *Beyond, text string) (err error) {
		b.Domains, err = legacy.ParseDomains(text)
		return err
	})},
	{name: "short_domains", wanted: "domains", get: ofBeyond(func(b *Beyond) any { return some(strings.Join(slices.Sorted(maps.Keys(b.ShortDomains)), ",")) }), set: toBeyond(func(b *Beyond, text string) (err error) {
		b.ShortDomains, err = hygiene.ParseDomains(text)
		return err
	})},

	{name: "default_domain", wanted: "a domain", get: ofBeyond(func(b *Beyond) any { return some(b.DefaultDomain) }), set: toBeyond(func(b *Beyond, text string) (err error) {
		b.DefaultDomain, err = hygiene.ParseDomain(text)
		return err
	})},

	{name: "no_rules", get: ofBeyond(func(b *Beyond) any { return some(b.NoEnds) }), set: within(beyond, func(g *Beyond) *bool { return &g.NoEnds })},

	{name: "rules", get: ofRules(func(*Rules) any { return true }), set: func(t *Terms, v any) bool { t.Rules = new(Rules); return v == true }},
	{name: "ends", get: ofRules(func(r *Rules) any { return some(r.Ends) }), set: within(linkRules, func(g *Rules) *bool { return &g.Ends })},
	{name: "identity", wanted: "url, params or row", get: ofRules(func(r *Rules) any { return r.Identity.String() }), set: toRules(func(r *Rules, text string) (err error) {
		r.Identity, err = rules.ParseIdentity(text)
		return err
	})},
	{name: "on_drift", wanted: "keep, update or reject", get: ofRules(func(r *Rules) any { return r.OnDrift.String() }), set: toRules(func(r *Rules, text string) (err error) {
		r.OnDrift, err = rules.ParseOnDrift(text)
		return err
	})},
	{name: "revive", wanted: "ended, all or none", get: ofRules(func(r *Rules) any { return r.Revive.String() }), set: toRules(func(r *Rules, text string) (err error) {
		r.Revive, err = rules.ParseRevivals(text)
		return err
	})},
	{name: "temporary_ttl", wanted: "a time in whole seconds", get: ofRules(func(r *Rules) any { return r.TemporaryTTL.String() }), set: life(func(r *Rules) *time.Duration { return &r.TemporaryTTL })},
	{name: "expires_in", wanted: "a time in whole seconds", get: ofRules(func(r *Rules) any {
		if r.ExpiresIn == 0 {
			return nil
		}
		return r.ExpiresIn.String()
	}), set: life(func(r *Rules) *time.Duration { return &r.ExpiresIn })},
	{name: "expires_at", wanted: "a time in UTC", get: ofRules(func(r *Rules) any { return some(r.Expiry.String()) }), set: toRules(func(r *Rules, text string) error {
		r.Expiry, _ = rules.ParseExpiry([]byte(text))
		return nil
	})},
	{name: "max_uses", wanted: "1 or more", get: ofRules(func(r *Rules) any { return some(r.Limit) }), set: within(linkRules, func(g *Rules) *int64 { return &g.Limit })},
	{name: "link_type", wanted: "PERMANENT or TEMPORARY", get: ofRules(func(r *Rules) any { return some(r.Type.String()) }), set: toRules(func(r *Rules, text string) error { r.Type = rules.TypeOf(text); return nil })},
	{name: "owner", wanted: "UTF-8 without U+0000", get: ofRules(func(r *Rules) any { return some(string(r.Owner)) }), set: toRules(func(r *Rules, text string) error {
		r.Owner = []byte(text)
		return (&rules.Flags{Owner: r.Owner}).Check()
	})},

	{name: "expand", wanted: "a plan", get: func(t *Terms) any {
		if t.Campaign == nil {
			return nil
		}
		return t.Campaign.Text()
	}, set: parsed(func(t *Terms, text string) bool {
		var err error
		t.Campaign, err = campaign.ParseText(text)
		return err == nil
	})},

	{name: "target_base", wanted: "a URL", get: func(t *Terms) any {
		if t.Base == nil {
			return nil
		}
		return t.Base.String()
	}, set: parsed(func(t *Terms, text string) bool {
		var err error
		t.Base, err = canon.ParseBase(text)
		return err == nil
	})},

	{name: "profile", get: func(t *Terms) any { return some(t.Program) }, set: text(func(t *Terms) *string { return &t.Program })},
	{name: "code_from", get: func(t *Terms) any { return some(t.CodeFrom) }, set: text(func(t *Terms) *string { return &t.CodeFrom })},
}

// mapPrefix begins the name of the option of a mapped role.
const mapPrefix = "map_"

// some returns a value, or nil if it is the zero value: then the option is not written.
func some[V comparable](v V) any {
	if v == *new(V) {
		return nil
	}
	return v
}

// text, flag and number take a value as it is. What is nil belongs to a group that is not there.
func text(at func(*Terms) *string) func(*Terms, any) bool  { return taken(at) }
func flag(at func(*Terms) *bool) func(*Terms, any) bool    { return taken(at) }
func number(at func(*Terms) *int64) func(*Terms, any) bool { return taken(at) }

func taken[V any](at func(*Terms) *V) func(*Terms, any) bool {
	return func(t *Terms, v any) bool {
		value, ok := v.(V)
		if to := at(t); to != nil && ok {
			*to = value
		}
		return ok
	}
}

func parsed(parse func(t *Terms, text string) bool) func(*Terms, any) bool {
	return func(t *Terms, v any) bool {
		text, ok := v.(string)
		return parse(t, text) && ok
	}
}

// group takes a text in a group, if the run has the group.
func group[G any](of func(*Terms) *G, parse func(*G, string) error) func(*Terms, any) bool {
	return parsed(func(t *Terms, text string) bool {
		g := of(t)
		return g == nil || parse(g, text) == nil
	})
}

// within takes a value as it is in a group, if the run has the group.
func within[G, V any](of func(*Terms) *G, at func(*G) *V) func(*Terms, any) bool {
	return taken(func(t *Terms) *V {
		if g := of(t); g != nil {
			return at(g)
		}
		return nil
	})
}

// value returns a value of a group, or nil.
func value[G any](of func(*Terms) *G, get func(*G) any) func(*Terms) any {
	return func(t *Terms) any {
		if g := of(t); g != nil {
			return get(g)
		}
		return nil
	}
}

func codes(t *Terms) *Codes     { return t.Codes }
func beyond(t *Terms) *Beyond   { return t.Beyond }
func linkRules(t *Terms) *Rules { return t.Rules }

func ofCodes(get func(*Codes) any) func(*Terms) any                     { return value(codes, get) }
func toCodes(parse func(*Codes, string) error) func(*Terms, any) bool   { return group(codes, parse) }
func ofBeyond(get func(*Beyond) any) func(*Terms) any                   { return value(beyond, get) }
func toBeyond(parse func(*Beyond, string) error) func(*Terms, any) bool { return group(beyond, parse) }
func ofRules(get func(*Rules) any) func(*Terms) any                     { return value(linkRules, get) }
func toRules(parse func(*Rules, string) error) func(*Terms, any) bool   { return group(linkRules, parse) }

var errLife = errors.New("not a number of whole seconds")

// life takes how long a link lives: whole seconds, as a Duration writes them.
func life(at func(*Rules) *time.Duration) func(*Terms, any) bool {
	return toRules(func(r *Rules, text string) (err error) {
		*at(r), err = time.ParseDuration(text)
		if err != nil || *at(r) < time.Second || *at(r)%time.Second != 0 {
			*at(r) = 0
			return errLife
		}
		return nil
	})
}

// Options returns the options as a manifest has them.
func (t *Terms) Options() manifest.Options {
	options := manifest.Options{}
	for _, o := range table {
		if v := o.get(t); v != nil {
			options[o.name] = v
		}
	}
	for role, column := range t.Map {
		options[mapPrefix+role] = column
	}
	return options
}

// OfDelete returns the options of a delete that has these terms, of links of an owner; "": of any.
func (t *Terms) OfDelete(owner string) manifest.Options {
	options := t.Options()
	maps.DeleteFunc(options, func(name string, _ any) bool {
		return !slices.Contains([]string{"workspace", "dry_run", "max_field", "encoding", "pad_rows", "assume_scheme", "code_from"}, name)
	})
	if owner != "" {
		options["owner"] = owner
	}
	return options
}

// A Problem is an option, or the profile, that no run writes.
type Problem struct {
	Field         string // of the manifest
	Expected, Got any
}

// Parse returns the terms of a run. What Options does not give back of them is a problem.
func Parse(m *manifest.Manifest) (*Terms, []Problem) {
	t := &Terms{ReportOrder: "sort"}
	var problems []Problem
	told := map[string]bool{}
	tell := func(field string, expected, got any) {
		if expected == "" {
			expected = "a value of its type"
		}
		if got == nil {
			got = "nothing"
		}
		problems = append(problems, Problem{field, expected, got})
		told[field] = true
	}
	var err error
	if t.URLs, err = canon.ParseProfile(m.Profile); err != nil {
		tell("profile", "the name of a profile", m.Profile)
	}
	given := map[string]any{}
	for name, v := range m.Options {
		if text, ok := v.(manifest.Text); ok {
			v = string(text)
		}
		given[name] = v
		if role, ok := strings.CutPrefix(name, mapPrefix); ok {
			if t.Map == nil {
				t.Map = map[string]string{}
			}
			t.Map[role], _ = v.(string)
		}
	}
	known := map[string]bool{}
	for _, o := range table {
		v, ok := given[o.name]
		if known[o.name] = true; o.set != nil && ok && !o.set(t, v) {
			tell("options."+o.name, o.wanted, v)
		}
	}
	back := t.Options()
	for _, o := range table {
		v, ok := given[o.name]
		switch want, has := back[o.name]; {
		case told["options."+o.name], ok && has && (v == want || o.free), !ok && (!has || o.late):
		case o.wanted == "" && has:
			tell("options."+o.name, want, v)
		case has:
			tell("options."+o.name, o.wanted, v)
		case o.wanted == "":
			tell("options."+o.name, "nothing", v)
		default:
			tell("options."+o.name, "nothing, or "+o.wanted, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !known[name] && back[name] != given[name] {
			tell("options."+name, "nothing", given[name])
		}
	}
	return t, problems
}
