package audit

import (
	"testing"

	"github.com/linkforge/bulk/pipeline/report"
)

// What the rows of run and inputs were sorted with is let go, since the store needs its
// share of the memory.
func TestVerifyInputsLetsGo(t *testing.T) {
	v := &verifier{manifest: &report.Manifest{}, unread: []string{report.RejectsName}}
	if err := v.verifyInputs(t.Context()); err != nil || v.rows != nil {
		t.Errorf("%v, rows %p", err, v.rows)
	}
}
