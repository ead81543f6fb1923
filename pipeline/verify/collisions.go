package verify

import (
	"bytes"
	"cmp"
	"context"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
)

// verifyCollisions checks the order and the codes of collisions.csv, and files
// its lines for verifyClaims.
func (v *verifier) verifyCollisions(ctx context.Context) error {
	r, err := openReport(ctx, v, manifest.CollisionsName, true, readback.OpenCollisions)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	w := &checker{verifier: v, claims: v.claims.NewWriter()}
	var before position
	rows := int64(0)
	for c, err := range r.Rows() {
		if rows++; err == nil {
			before = w.collision(c, rows, before)
		} else if again, err := v.damaged(manifest.CollisionsName, err); !again {
			return err
		}
	}
	v.verifyCounts(manifest.CollisionsName, rows, nil)
	return nil
}

// A position is where a line of collisions.csv stands in its order.
type position struct {
	workspace, code0, canonical []byte
	folded                      []byte // code0 in lower case, if codes that differ only in case are one
	salt                        int
}

// precedes reports whether the line must come before another one.
func (p *position) precedes(o *position) bool {
	return cmp.Or(bytes.Compare(p.workspace, o.workspace), bytes.Compare(p.folded, o.folded), bytes.Compare(p.code0, o.code0),
		bytes.Compare(p.canonical, o.canonical), cmp.Compare(p.salt, o.salt)) < 0
}

// mayPrecede reports whether the line may come before another one if identities have parts. Each
// link has a line for each salt from 0 on. Of a code that is longer or shorter than those of the run,
// code0 has only the beginning in common with them.
func (p *position) mayPrecede(o *position) bool {
	if o.salt > 0 {
		return o.salt == p.salt+1 && bytes.Equal(o.canonical, p.canonical) && bytes.Equal(o.workspace, p.workspace)
	}
	n := min(len(p.code0), len(o.code0))
	c := cmp.Or(bytes.Compare(p.workspace, o.workspace), bytes.Compare(p.code0[:n], o.code0[:n]))
	if len(p.code0) == len(o.code0) {
		c = cmp.Or(c, bytes.Compare(p.canonical, o.canonical))
	}
	return c <= 0
}

// collision checks a line and returns its position.
func (w *checker) collision(c *report.Collision, row int64, before position) position {
	here := w.fault(manifest.CollisionsName, row)
	scheme, err := codegen.New(len(c.Code))
	if err != nil || c.Salt > w.run.mostSalt {
		here.wrong(BadCollision, "code", "a code of 1 to 24 characters at a salt that is tried", string(c.Code))
		return before
	}
	at := position{workspace: bytes.Clone(c.Workspace), canonical: bytes.Clone(c.Canonical), salt: c.Salt}
	follows := before.mayPrecede
	if w.run.hasParts() { // the line does not tell them; a link must need the code
		if at.code0 = before.code0; c.Salt == 0 {
			at.code0 = bytes.Clone(c.Code)
		}
	} else {
		code := scheme.AppendCode(nil, w.hash(c.Canonical, c.Workspace, nil, c.Salt))
		if !bytes.Equal(code, c.Code) {
			here.wrong(BadCode, "code", string(code), string(c.Code))
		}
		if at.code0 = w.run.scheme.AppendCode(nil, w.hash(c.Canonical, c.Workspace, nil, 0)); w.run.rules.Fold {
			at.folded = legacy.Fold(nil, at.code0)
		}
		follows = before.precedes
	}
	if before.workspace != nil && !follows(&at) {
		here.wrong(BadOrder, "", "after the line before", string(c.Canonical))
	}
	w.fileClaim(w.group(c.Workspace), &claim{what: line, salt: c.Salt, row: row, code: c.Code, canonical: c.Canonical, owner: c.Owner})
	return at
}
