// Package terms says what a run was told that can change its result. The manifest of the run has it:
// [Terms.Options] writes it there, [Parse] reads it again for whoever checks, compares or explains the
// run, and [Fingerprint] tells runs apart by it. A new option is declared in the table of this package,
// and at its flag.
package terms

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/rules"
)

// Terms are those of a run. How codes are made, the inputs and as_of have places of their own in the
// manifest.
type Terms struct {
	ReportFormat string // csv, parquet or arrow
	ReportOrder  string // sort or input
	BaseURL      string // of short_url; "": blank
	ExcelSafe    bool
	Carry        bool // the mapping has the other columns of the inputs
	DryRun       bool
	MaxRejects   manifest.MaxRejects
	ExpectRows   int64  // of all inputs; 0: any number
	Limit        int64  // records that are read; 0: all
	Workspace    string // of rows without one
	MaxField     int64  // bytes
	Encoding     string // of CSV and text (package charset); "": UTF-8, or any bytes
	PadRows      bool   // cells that are missing at the end of a row are blank
	Fold         bool   // the workspaces fold case: all codes are in ASCII lower case

	URLs   canon.Profile
	Codes  *Codes  // nil: rows have no legacy codes
	Beyond *Beyond // nil: nothing but code and URL is looked at
	Rules  *Rules  // nil: rows have no parameters

	Campaign *campaign.Plan // nil: a row is one link
	Base     *canon.Base    // URLs without scheme and host are resolved against it; nil: they are not

	Program  string            // whose export the inputs are, if that was given
	Map      map[string]string // columns by role, as they were given
	CodeFrom string            // the column of the legacy codes, likewise
}

// Codes say what becomes of legacy codes.
type Codes struct {
	judge.Codes
	OnConflict     legacy.Conflict
	ReservedSHA256 string // of the file of reserved words; "": none
}

// Beyond says what is looked at beyond code and URL.
type Beyond struct {
	Attrs        string // what goes along with links, as of along.Parse
	Policy       hygiene.Policy
	KeepCreated  bool
	Domains      legacy.Domains
	ShortDomains map[string]bool
	NoEnds       bool // expiry and use limit of links are left out

	DefaultDomain string // of rows without one, as of columns.Choice; "": none
}

// ByDomain reports whether each domain has links of its own. A nil Beyond has none.
func (b *Beyond) ByDomain() bool { return b != nil && b.Domains == legacy.DomainsKeep }

// Rules are link rules.
type Rules struct {
	rules.Flags
	OnDrift rules.OnDrift
	Revive  rules.Revivals
	Ends    bool // nobody has asked for link rules: of the inputs only ends of links count (columns.Choice.Ends)
}

// Mode returns what becomes of legacy codes.
func (t *Terms) Mode() legacy.Mode {
	if t.Codes == nil {
		return legacy.Off
	}
	return t.Codes.Mode
}

// Identity says what tells links of one URL apart.
func (t *Terms) Identity() rules.Identity {
	if t.Rules == nil {
		return rules.ByURL
	}
	return t.Rules.Identity
}

// Judge returns what rejects the rows of a run at as_of.
func (t *Terms) Judge(asOf time.Time) *judge.Judge {
	j := &judge.Judge{Profile: t.URLs, ByDomain: t.Beyond.ByDomain(), Fold: t.Fold, Campaign: t.Campaign, Base: t.Base, Redirect: t.Map["redirect_code"] != ""}
	if t.Codes != nil {
		j.Codes = &t.Codes.Codes
	}
	if t.Rules != nil {
		j.Rules = &t.Rules.Flags
	}
	if b := t.Beyond; b != nil {
		j.Hygiene = &hygiene.Rules{Policy: b.Policy, ShortDomains: hygiene.WithDomain(b.ShortDomains, b.DefaultDomain), Merged: !b.ByDomain(), Fold: t.Fold, AsOf: asOf, Ends: b.NoEnds}
	}
	return j
}

// Fingerprint tells runs apart that could have different results, by what their manifest has before
// they begin. The version of the tool and the clock are no part of it: a run that resumes an unfinished
// one takes over its as_of.
func Fingerprint(before manifest.Manifest) (string, error) {
	before.Version = ""
	var buf bytes.Buffer
	if err := manifest.Write(&buf, &before); err != nil {
		return "", err
	}
	sum := sha256.Sum256(buf.Bytes())
	return hex.EncodeToString(sum[:]), nil
}
