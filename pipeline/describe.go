package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/settle"
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
		Options: cfg.options(), AsOf: cfg.AsOf, Inputs: in.Manifest(),
	}
}

// options are those that can change a result.
func (c *Config) options() manifest.Options {
	o := manifest.Options{
		"report_format": string(c.ReportFormat), "report_order": string(c.ReportOrder), "base_url": c.BaseURL,
		"excel_safe": c.ExcelSafe, "carry": !c.NoCarry, "dry_run": c.DryRun,
		"max_rejects": c.MaxRejects.String(), "limit": c.Limit,
		"workspace": c.Workspace, "max_url_length": int64(c.Profile.MaxLength),
		"max_field": int64(c.Source.MaxField),
	}
	if c.Legacy != legacy.Off {
		o["legacy"], o["code_pattern"], o["on_conflict"] = string(c.Legacy), c.CodePattern, string(c.OnConflict)
		o["fold_case"], o["reserved_sha256"] = c.Codes.Fold, c.ReservedSHA256
	}
	if c.Profile.KeepFragment {
		o["keep_fragment"] = true
	}
	if list := c.Profile.StripParams.String(); list != "" {
		o["strip_params"] = list
	}
	if c.Profile.AssumeScheme != canon.NoScheme {
		o["assume_scheme"] = c.Profile.AssumeScheme.String()
	}
	if c.migrates() {
		o["attrs"], o["hygiene"] = c.Attrs, c.Hygiene.String()
		if c.KeepCreated {
			o["keep_created"] = true
		}
		if c.Domains != legacy.DomainsOff {
			o["domains"] = string(c.Domains)
		}
		if len(c.ShortDomains) > 0 {
			o["short_domains"] = strings.Join(slices.Sorted(maps.Keys(c.ShortDomains)), ",")
		}
	}
	if f := c.Rules; f != nil {
		o["rules"], o["identity"], o["on_drift"], o["temporary_ttl"] = true, f.Identity.String(), c.OnDrift.String(), f.TemporaryTTL.String()
		o["revive"] = c.Revive.String()
		for name, value := range map[string]string{"expires_at": f.Expiry.String(), "link_type": f.Type.String(), "owner": string(f.Owner)} {
			if value != "" {
				o[name] = value
			}
		}
		if f.ExpiresIn > 0 {
			o["expires_in"] = f.ExpiresIn.String()
		}
		if f.Limit > 0 {
			o["max_uses"] = f.Limit
		}
	}
	if p := c.Source.Profile; p != "" && p != "auto" {
		o["profile"] = p
	}
	for role, column := range c.Source.Map {
		o["map_"+role] = column
	}
	if c.Source.CodeColumn != "" {
		o["code_from"] = c.Source.CodeColumn
	}
	return o
}

// describeLegacy tells of the legacy codes of the rows; nil: they are not looked at.
func describeLegacy(cfg *Config, rows *intake.Rows, settled *settle.Settlement, aliases int64) *manifest.Legacy {
	if cfg.Legacy == legacy.Off {
		return nil
	}
	l := &manifest.Legacy{Aliases: aliases, Conflicts: settled.Conflicts, WithoutCode: rows.WithoutCode, Damaged: rows.Damaged}
	if claims := settled.Claims(); claims != nil && claims.Twins.Groups > 0 {
		twins := manifest.TwinsOf(claims.Twins.Groups, claims.Twins.Examples)
		l.CaseTwins = &twins
	}
	return l
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

// fingerprint tells runs apart that could have different results. The clock is no part of
// it: a run that resumes an unfinished one takes over its as_of.
func fingerprint(cfg *Config, in *intake.Inputs) (string, error) {
	m := describe(cfg, in)
	m.Version = ""
	var buf bytes.Buffer
	if err := manifest.Write(&buf, m); err != nil {
		return "", err
	}
	sum := sha256.Sum256(buf.Bytes())
	return hex.EncodeToString(sum[:]), nil
}

// describeMigration tells what the rows say beyond code and URL; nil: it is not looked at.
func describeMigration(cfg *Config, rows *intake.Rows, reasons map[string]int64) *manifest.Migration {
	if !cfg.migrates() {
		return nil
	}
	m := &manifest.Migration{Domains: manifest.DomainsOf(rows.Told.Domains), NoTime: noted(rows, &rows.Told.NoTime), NoExpiry: noted(rows, &rows.Told.NoExpiry), Hygiene: map[string]manifest.Hygiene{}}
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
