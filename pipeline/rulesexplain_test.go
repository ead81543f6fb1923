package pipeline_test

import (
	"cmp"
	"context"
	"encoding/json"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/explain"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// What package explain says of a row is what a run does that has no other.
func TestRulesForetold(t *testing.T) {
	foretold := map[ruleResult]int{}
	vectors := ruleVectors(t)
	for i := range vectors {
		v := vectors[i]
		ops := v.Ops
		w := newRuleWorld(t, &v)
		locked, err := w.store.Lock(t.Context(), nil, sink.LockOptions{}) // makes the store
		must(t, err)
		must(t, locked.Close())
		for n := range ops {
			if op := &ops[n]; op.Op == "run" && len(op.Rows) == 1 {
				var want ruleState
				must(t, json.Unmarshal(op.Expect, &want))
				got := w.foretell(op)
				if got != want.Rows[0] {
					t.Errorf("%s, operation %d: %+v, want %+v", v.Name, n, got, want.Rows[0])
				}
				got.ShortCode = ""
				foretold[got]++
			}
			v.Ops = ops[n : n+1]
			w.run()
		}
	}
	if len(foretold) < 8 {
		t.Errorf("%v", foretold)
	}
}

// foretell returns what package explain says of the only row of a run.
func (w *ruleWorld) foretell(op *ruleOp) ruleResult {
	t, ctx, row := w.t, context.Background(), op.Rows[0]
	r := explain.Rules{Workspace: w.v.Workspace, MaxRetries: w.v.MaxRetries, Ruled: true, Terms: rules.Terms{AsOf: op.AsOf.Unix()}}
	scheme, err := codegen.New(w.v.CodeLength)
	must(t, err)
	r.Scheme = scheme
	flags, onDrift := op.flags(t)
	r.Identity, r.Terms.OnDrift = flags.Identity, onDrift
	r.Terms.Revive, _ = rules.ParseRevivals(cmp.Or(op.Revive, "ended"))
	var cells rules.Cells
	for c, text := range row.cells() {
		cells[c] = []byte(text)
	}
	params, _, _ := flags.Parse(&cells)
	params.Ref = rules.AppendRef(nil, params.Ref, op.Source, 1)
	r.Params = params
	canonical, err := canon.Profile{}.Append(nil, []byte(row.URL))
	must(t, err)
	session, err := w.store.Peek(ctx)
	must(t, err)
	defer session.Close()
	s, err := explain.Ask(ctx, &r, session, string(canonical))
	must(t, err)
	if !s.Accepted() {
		return ruleResult{Outcome: "rejected", Reason: s.Outcome}
	}
	return ruleResult{Outcome: s.Outcome, Change: s.Change, ShortCode: s.Code}
}
