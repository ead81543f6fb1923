// Package judge says why a row is rejected before its code is settled: of a run, and of whoever
// checks one. It is pure: it knows cells, and neither files nor stores.
//
// The order of the reasons is part of what a run promises, since of several the first is told:
//
//  1. what its cells show (package hygiene, [Judge.Cells])
//  2. outcome.MissingURL; of a campaign then canon.Empty, and outcome.BadCampaign ([Judge.Expand])
//  3. those of package canon
//  4. outcome.BadWorkspace
//  5. outcome.BadCode, outcome.CodeReserved
//  6. rules.BadParameter ([Judge.Params], [Judge.RedirectCode])
//  7. what its URL and its code show (package hygiene, [Judge.URL])
//
// A row that cannot be split has a reason of package source, and is not judged.
package judge

import (
	"bytes"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A Judge has what a run was told. Safe for concurrent use.
type Judge struct {
	Profile  canon.Profile
	Hygiene  *hygiene.Rules // nil: nothing but code and URL is looked at
	ByDomain bool           // each domain has links of its own
	Fold     bool           // workspaces fold case: the codes of rows are put in lower case
	Codes    *Codes         // nil: rows have no legacy codes
	Rules    *rules.Flags   // nil: rows have no parameters
	Campaign *campaign.Plan // nil: a row is one link
	Redirect bool           // a redirect code that no link can have rejects the row
	Base     *canon.Base    // URLs without scheme and host are resolved against it; nil: they are not
}

// Codes say which legacy codes are accepted.
type Codes struct {
	Mode    legacy.Mode
	Rules   legacy.Rules
	Pattern string // of Rules, as it was given
}

// Columns say where an input has what is judged.
type Columns struct {
	Input   string                 // its name
	Names   []string               // of its columns
	Hygiene *hygiene.Columns       // nil: none
	Params  [rules.ColumnCount]int // -1: none

	Campaign campaign.Columns // with Judge.Campaign
}

// A Row is one of an input, or one of several that it became. It can be used again for the next row,
// by one goroutine.
type Row struct {
	Number    int64  // from 1
	Original  []byte // the URL as the input has it; the judge makes that of the link of it
	Workspace []byte
	Code      []byte                  // nil: none
	Domain    []byte                  // of the code, or of the row
	Cell      func(column int) []byte // of the input; not called if there are no terms but code and URL
	Reserved  bool                    // the code is known to be a reserved word, whatever Codes say

	// What the judge finds:

	// Code as the workspace has it, from Placed on
	Canonical []byte        // the canonical form of Original is appended to it
	Changes   canon.Changes // of Original
	Resolved  bool          // Original is resolved against Judge.Base
	Placed    bool          // the row has a URL and a workspace: it got as far as its code
	Found     hygiene.Set   // what cells, URL and code show
	Params    rules.Params  // valid until the next row

	Variants *campaign.Row // with Judge.Campaign: of the row, once it is judged (Judge.Expand)

	ref   []byte
	code  []byte
	sound []byte // the last workspace that was good

	resolved []byte // Original, if it is

	url   []byte      // of the variant in hand
	cells hygiene.Set // of a row with variants: Found by its cells
	tried [2][]byte   // URLs that stand for all variants
	form  []byte      // a canonical form of one
}

// Row says why a row is rejected; "": it is not.
func (j *Judge) Row(c *Columns, r *Row) (reason, detail string) {
	r.Placed = false
	if reason, detail = j.Cells(c, r); reason != "" {
		return reason, detail
	}
	if len(r.Original) == 0 {
		return outcome.MissingURL, outcome.MissingURLDetail
	}
	j.resolve(r)
	var err error
	start := len(r.Canonical)
	r.Changes = 0
	if r.Canonical, err = j.Profile.AppendChanged(r.Canonical, r.Original, &r.Changes); err != nil {
		reason := err.(canon.Reason)
		return string(reason), canon.Detail(r.Original, reason)
	}
	if reason, detail = j.rest(c, r); reason != "" {
		return reason, detail
	}
	return j.URL(r, r.Canonical[start:])
}

// resolve makes the URL of a row that of its link.
func (j *Judge) resolve(r *Row) {
	if r.Resolved = false; j.Base == nil {
		return
	}
	if r.resolved, r.Resolved = j.Base.Resolve(r.resolved[:0], r.Original); r.Resolved {
		r.Original = r.resolved
	}
}

// Whole returns the URL of the row in hand that its variants are made of, if the input has this one.
func (r *Row) Whole(input []byte) []byte {
	if r.Resolved {
		return r.resolved
	}
	return input
}

// rest says whether a row that has a canonical URL is rejected because of its workspace, its code or its
// parameters.
func (j *Judge) rest(c *Columns, r *Row) (reason, detail string) {
	if len(r.sound) == 0 || !bytes.Equal(r.Workspace, r.sound) {
		if err := codegen.CheckWorkspace(r.Workspace); err != nil {
			return outcome.BadWorkspace, outcome.BadWorkspaceDetail(err, r.Workspace, j.ByDomain)
		}
		r.sound = append(r.sound[:0], r.Workspace...)
	}
	r.Placed = true
	if r.Code != nil {
		if j.Fold {
			r.code = legacy.Fold(r.code[:0], r.Code)
			r.Code = r.code
		}
		if reason, detail = j.Code(r.Code, r.Reserved); reason != "" {
			return reason, detail
		}
	}
	if j.Rules != nil {
		if reason, detail = j.Params(c, r); reason != "" {
			return reason, detail
		}
	}
	return j.RedirectCode(c, r)
}

// RedirectCode says whether a row is rejected because of its redirect code.
func (j *Judge) RedirectCode(c *Columns, r *Row) (reason, detail string) {
	if !j.Redirect || c.Hygiene == nil {
		return "", ""
	}
	if bad, column := c.Hygiene.BadRedirect(r.Cell); bad != nil {
		return rules.BadParameter, outcome.BadRedirectDetail(c.Names[column], bad)
	}
	return "", ""
}

// Cells says whether a row is rejected because of what its cells show of its link, which is then all
// of Found.
func (j *Judge) Cells(c *Columns, r *Row) (reason, detail string) {
	r.Found = 0
	if j.Hygiene != nil && c.Hygiene != nil {
		r.Found, reason, detail = j.Hygiene.JudgeCells(c.Hygiene, r.Cell)
	}
	return reason, detail
}

// Code says whether a row is rejected because of its legacy code. A code that is not kept may be any
// text.
func (j *Judge) Code(code []byte, reserved bool) (reason, detail string) {
	c := j.Codes
	switch reason := c.Rules.Check(code); {
	case !c.Mode.Keeps() && utf8.Valid(code) && !legacy.HasControl(code), reason == "" && !reserved:
		return "", ""
	case reason == legacy.BadCode:
		return reason, outcome.BadCodeDetail(code, c.Pattern)
	}
	return outcome.CodeReserved, outcome.CodeReservedDetail(code)
}

// Params reads the parameters of a row, or says why it is rejected.
func (j *Judge) Params(c *Columns, r *Row) (reason, detail string) {
	var cells rules.Cells
	for n, column := range c.Params {
		if column >= 0 {
			cells[n] = r.Cell(column)
		}
	}
	p, bad, ok := j.Rules.Parse(&cells)
	if !ok {
		return rules.BadParameter, bad.Detail(c.Names[c.Params[bad]], cells[bad])
	}
	if j.Rules.Identity == rules.ByRow {
		r.ref = rules.AppendRef(r.ref[:0], p.Ref, c.Input, r.Number)
		p.Ref = r.ref
	}
	r.Params = p
	return "", ""
}

// URL says whether a row is rejected because of what its URL and its code show of its link, which is
// added to Found.
func (j *Judge) URL(r *Row, canonical []byte) (reason, detail string) {
	if j.Hygiene == nil {
		return "", ""
	}
	r.Found, reason, detail = j.Hygiene.JudgeURL(r.Found, r.Original, canonical, r.Code, r.Domain)
	return reason, detail
}
