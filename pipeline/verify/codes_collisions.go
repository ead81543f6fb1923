package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
)

// verifyCollisions checks the order and the codes of collisions.csv, and files
// its lines for claimCheck.
func verifyCollisions(ctx context.Context, reports *reports, sorts *sorters) error {
	r, err := openReport(ctx, reports, manifest.CollisionsName, true, readback.OpenCollisions)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	w := newLineChecker(reports.run, sorts, reports.findings)
	var before position
	rows := int64(0)
	for c, err := range r.Rows() {
		if rows++; err == nil {
			before = w.check(c, rows, before)
		} else if again, err := reports.damaged(manifest.CollisionsName, err); !again {
			return err
		}
	}
	reports.checkCounts(manifest.CollisionsName, rows, nil)
	return nil
}

// A lineChecker checks lines of collisions.csv by themselves, and files them.
type lineChecker struct {
	findings *findings
	run      *run
	codes    *coder
	claims   *claimer
	code     []byte
}

func newLineChecker(run *run, sorts *sorters, found *findings) *lineChecker {
	codes := newCoder(run)
	return &lineChecker{findings: found, run: run, codes: codes, claims: newClaimer(run, codes, newGrouper(sorts.groups), sorts.claims)}
}

// A position is where a line of collisions.csv stands in its order.
type position struct {
	workspace, code0, canonical, parts []byte
	salt                               int
}

// precedes reports whether the line must come before another one.
func (p *position) precedes(o *position) bool {
	return cmp.Or(bytes.Compare(p.workspace, o.workspace), bytes.Compare(p.code0, o.code0),
		bytes.Compare(p.canonical, o.canonical), bytes.Compare(p.parts, o.parts), cmp.Compare(p.salt, o.salt)) < 0
}

// mayPrecede reports whether the line may come before another one if the secret or the words are
// missing. Each link has a line for each salt from 0 on. Of a code that is longer or shorter than those
// of the run, code0 has only the beginning in common with them. It is empty if it is not known.
func (p *position) mayPrecede(o *position) bool {
	if o.salt > 0 {
		return o.salt == p.salt+1 && bytes.Equal(o.canonical, p.canonical) && bytes.Equal(o.parts, p.parts) && bytes.Equal(o.workspace, p.workspace)
	}
	n := min(len(p.code0), len(o.code0))
	if n == 0 {
		return bytes.Compare(p.workspace, o.workspace) <= 0
	}
	c := cmp.Or(bytes.Compare(p.workspace, o.workspace), bytes.Compare(p.code0[:n], o.code0[:n]))
	if len(p.code0) == len(o.code0) {
		c = cmp.Or(c, bytes.Compare(p.canonical, o.canonical), bytes.Compare(p.parts, o.parts))
	}
	return c <= 0
}

// check checks a line and returns its position.
func (w *lineChecker) check(c *report.Collision, row int64, before position) position {
	here := w.findings.fault(manifest.CollisionsName, row)
	spec := &w.run.coding.spec
	switch {
	case spec.Counts:
		here.wrong(BadCollision, "", "no line: codes of "+spec.Name+" have no salts", string(c.Canonical))
		return before
	case len(c.Code) < spec.MinLength || len(c.Code) > spec.MaxLength || c.Salt > w.run.mostSalt:
		here.wrong(BadCollision, "code", fmt.Sprintf("a code of %d to %d characters at a salt that is tried", spec.MinLength, spec.MaxLength), string(c.Code))
		return before
	}
	at := position{workspace: bytes.Clone(c.Workspace), canonical: bytes.Clone(c.Canonical), parts: bytes.Clone(c.Parts), salt: c.Salt}
	follows := before.mayPrecede
	if w.run.coding.hashes() {
		if code := w.codes.appendCode(nil, c.Code, c.Canonical, c.Workspace, c.Parts, c.Salt); !bytes.Equal(code, c.Code) {
			here.wrong(BadCode, "code", string(code), string(c.Code))
		}
	}
	switch {
	case w.run.coding.sorts():
		l := link{hash: w.codes.hash(c.Canonical, c.Workspace, c.Parts, 0), parts: c.Parts}
		l.Canonical, l.Workspace = c.Canonical, c.Workspace
		w.codes.fill(&l)
		at.code0, follows = l.code0, before.precedes
	case w.run.manifest.Scheme.Blocklist == "" && (c.Salt > 0 || len(c.Code) == w.run.coding.length || spec.Name == codegen.Name):
		// The secret is missing. A link must need the code.
		if at.code0 = before.code0; c.Salt == 0 {
			at.code0 = bytes.Clone(c.Code)
		}
	}
	if before.workspace != nil && !follows(&at) {
		here.wrong(BadOrder, "", "after the line before", string(c.Canonical))
	}
	to := claim{what: line, salt: c.Salt, row: row, code: c.Code, canonical: c.Canonical, parts: c.Parts, owner: c.Owner}
	if !w.run.coding.known {
		to.what = ownerOnly
		w.claims.file(c.Workspace, &to)
		w.code = w.codes.standIn(w.code[:0], c.Canonical, c.Workspace, c.Parts, c.Salt)
		to.what, to.code = line, w.code
	}
	w.claims.file(c.Workspace, &to)
	return at
}
