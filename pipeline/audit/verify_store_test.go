package audit

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
)

// An ailing store is empty, and fails once it was listed so often.
type ailing struct {
	sink.Store
	lists int
}

var errAiling = errors.New("the store has failed")

func (*ailing) Runs(context.Context) ([]sink.Run, error) { return nil, nil }

func (s *ailing) Scan(context.Context, func(*sink.Stored) error) error {
	if s.lists--; s.lists < 0 {
		return errAiling
	}
	return nil
}

// What a store did not list before it failed is not said to be missing.
func TestVerifyStoreFails(t *testing.T) {
	for lists := range 2 {
		v := &verifier{cfg: VerifyConfig{Dir: t.TempDir(), Store: &ailing{lists: lists}, Workers: 1}, mapping: report.CSV.FileName(),
			groups: groups{ids: map[string]uint32{}}, manifest: &report.Manifest{Inputs: []report.Input{{Name: "in.csv"}}}}
		v.run.scheme, _ = codegen.New(10)
		bigMapping(20).writeMapping(t, filepath.Join(v.cfg.Dir, v.mapping), report.CSV, false, 1)
		v.created.Store(1) // what it lists is not that
		v.claims, v.stored = v.newSorter(compareClaims), v.newSorter(compareClaims)
		w := &checker{verifier: v, wanted: v.stored.NewWriter()}
		w.want(&link{MappingRow: report.MappingRow{Row: report.Row{Outcome: report.Existing}}})
		if err := v.verifyStore(t.Context()); !errors.Is(err, errAiling) || v.log.kinds[StoreMissing] != int64(lists) {
			t.Errorf("listed %d times: %v, found %v", lists, err, v.log.kinds)
		}
		if err := errors.Join(v.claims.Close(), v.stored.Close()); err != nil {
			t.Error(err)
		}
	}
}
