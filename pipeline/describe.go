package pipeline

import (
	"maps"
	"strings"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/pipeline/terms"
)

// reasons counts the rejects by reason.
func reasons(rows *intake.Rows, settled *settle.Settlement) map[string]int64 {
	reasons := maps.Clone(rows.Reasons)
	for reason, n := range settled.Rejected {
		reasons[reason] += n
	}
	return reasons
}

// describe returns the manifest as far as it tells what the run was given. Its as_of is
// there only if it was asked for.
func describe(cfg *Config, in *intake.Inputs) *manifest.Manifest {
	return &manifest.Manifest{
		Version: cfg.Version, Profile: cfg.Profile.Name(), UnicodeVersion: canon.UnicodeVersion,
		Scheme:  cfg.Scheme.describe(cfg.CodeLength, cfg.MaxRetries),
		Options: cfg.terms().Options(), AsOf: cfg.AsOf, Inputs: in.Manifest(),
	}
}

// terms are what the run was told that can change a result.
func (c *Config) terms() *terms.Terms {
	t := &terms.Terms{
		ReportFormat: string(c.ReportFormat), ReportOrder: string(c.ReportOrder), BaseURL: c.BaseURL, ExcelSafe: c.ExcelSafe, Carry: !c.NoCarry, DryRun: c.DryRun,
		MaxRejects: c.MaxRejects, ExpectRows: c.ExpectRows, Limit: c.Limit, Workspace: c.Workspace, MaxField: int64(c.Source.MaxField), Encoding: c.Source.Encoding, PadRows: c.Source.PadRows, Fold: c.Scheme.Fold, URLs: c.Profile,
		Map: c.Source.Map, CodeFrom: c.Source.CodeColumn, Campaign: c.Campaign, Base: c.TargetBase,
	}
	if c.Source.Profile != profile.Auto {
		t.Program = c.Source.Profile
	}
	if c.Legacy != legacy.Off {
		codes := c.Codes
		if c.Scheme.Fold {
			codes = codes.Folded()
		}
		t.Codes = &terms.Codes{Codes: judge.Codes{Mode: c.Legacy, Rules: codes, Pattern: c.CodePattern}, OnConflict: c.OnConflict, ReservedSHA256: c.ReservedSHA256}
	}
	if c.migrates() {
		t.Beyond = &terms.Beyond{Attrs: c.Attrs, Policy: c.Policy(), KeepCreated: c.KeepCreated, Domains: c.Domains, ShortDomains: c.ShortDomains, DefaultDomain: c.DefaultDomain, NoEnds: c.NoRules}
	}
	if c.Rules != nil {
		t.Rules = &terms.Rules{Flags: *c.Rules, OnDrift: c.OnDrift, Revive: c.Revive, Ends: c.Source.Ends}
	}
	return t
}

// describeLegacy tells of the legacy codes of the rows; nil: they are not looked at.
func describeLegacy(cfg *Config, rows *intake.Rows, settled *settle.Settlement, aliases int64) *manifest.Legacy {
	if cfg.Legacy == legacy.Off {
		return nil
	}
	l := &manifest.Legacy{Aliases: aliases, Conflicts: settled.Conflicts, WithoutCode: rows.WithoutCode, Damaged: rows.Damaged, Escaped: rows.Escaped}
	if claims := settled.Claims(); claims != nil && claims.Twins.Groups > 0 {
		twins := manifest.TwinsOf(claims.Twins.Groups, claims.Twins.Examples)
		l.CaseTwins = &twins
	}
	return l
}

// describeCampaign tells of the variants of the rows; nil: there are none.
func describeCampaign(rows *intake.Rows) *manifest.Campaign {
	if rows.Campaign == nil {
		return nil
	}
	return &manifest.Campaign{Combinations: rows.Campaign.Combinations(), Expanded: rows.Expanded, Tagged: rows.Tagged.Rows}
}

// linksByValue tells how many links the values of the parameters of a campaign have.
func linksByValue(values []campaign.Values) (list []manifest.LinksByValue) {
	for _, v := range values {
		of := manifest.LinksByValue{Parameter: v.Name, Values: v.Count, AtLeast: v.More, Links: []manifest.ValueLinks{}}
		for _, most := range v.Most {
			of.Links = append(of.Links, manifest.ValueLinks{Value: manifest.Text(most.Value), Links: most.Links})
		}
		list = append(list, of)
	}
	return list
}

// describeNumbers tells of the numbers that the run has; nil: the scheme has no counter.
func describeNumbers(settled *settle.Settlement) *manifest.Numbers {
	n := settled.Numbers()
	if n == nil {
		return nil
	}
	m := &manifest.Numbers{Ranges: []manifest.Range{}, Skipped: n.Skipped}
	for _, r := range n.Ranges {
		m.Ranges = append(m.Ranges, manifest.Range(r))
	}
	return m
}

// describeRules tells of the changes of rows; nil: there are no link rules.
func describeRules(ruled bool, changes *rules.ChangeCounts) *manifest.Rules {
	if !ruled {
		return nil
	}
	return &manifest.Rules{Changes: changes.ByName()}
}

// stays counts the links that keep what they have, by the change of the row that would change them.
func stays(existing *rules.ChangeCounts) map[string]int64 {
	var n rules.ChangeCounts
	n[rules.Drifted], n[rules.OtherOwner] = existing[rules.Drifted], existing[rules.OtherOwner]
	return n.ByName()
}

// describeMigration tells what the rows say beyond code and URL; nil: it is not looked at.
func describeMigration(cfg *Config, rows *intake.Rows, reasons map[string]int64) *manifest.Migration {
	if !cfg.migrates() {
		return nil
	}
	m := &manifest.Migration{Domains: manifest.DomainsOf(rows.Told.Domains), NoTime: noted(rows, &rows.Told.NoTime), NoExpiry: noted(rows, &rows.Told.NoExpiry),
		NoStart: noted(rows, &rows.Told.NoStart), NoRedirect: noted(rows, &rows.Told.NoRedirect), NoState: noted(rows, &rows.Told.NoState), Hygiene: map[string]manifest.Hygiene{}}
	for kind := range hygiene.Kind(hygiene.KindCount) {
		h := manifest.Hygiene{Decision: cfg.Hygiene[kind].String(), Rows: reasons[kind.String()]}
		if told := &rows.Told.Warned[kind]; told.Rows > 0 {
			first := noted(rows, told)
			h.Rows, h.Example = first.Rows, &manifest.Spelling{Source: first.Source, Row: first.Row, URL: first.Text}
		}
		if h.Rows > 0 {
			m.Hygiene[kind.String()] = h
		}
	}
	return m
}

// escaped is noted for texts that are not UTF-8.
func escaped(rows *intake.Rows, n *record.Noted) *manifest.Noted {
	shown := *n
	shown.Text = string(canon.EscapeInvalid([]byte(n.Text)))
	return noted(rows, &shown)
}

// noted describes rows that were noted; nil: none were.
func noted(rows *intake.Rows, n *record.Noted) *manifest.Noted {
	if n.Rows == 0 {
		return nil
	}
	const most = 300 // bytes
	text := hygiene.Redact(n.Text[:min(len(n.Text), 1<<16)])
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return &manifest.Noted{Rows: n.Rows, Source: manifest.Text(rows.List[n.First.Source].Name), Row: n.First.Row, Text: manifest.Text(text)}
}
