package pipeline

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/report"
)

// explainSalts finds out, for every link of the batch with a salt above 0, who has each
// of the lower codes once the batch is stored: a link of the store, one of the batch that
// contested it, or one that nobody contested. Where codes are nearly used up, links have
// very many of them in common, so the codes of each link are not kept.
func (s *settlement) explainSalts(ctx context.Context) error {
	owner := s.lowerOwner
	for _, d := range s.special {
		for _, slot := range s.lowerSlots(&d) {
			owner[slot] = nil
		}
	}
	if len(owner) == 0 {
		return nil
	}
	slots := slices.Collect(maps.Keys(owner))
	if err := s.owners(ctx, slots, func(i int, canonical []byte) {
		owner[slots[i]] = bytes.Clone(canonical)
	}); err != nil {
		return err
	}
	for _, d := range s.special {
		slot := assign.Slot{Workspace: d.url.Workspace, Code: assign.MakeCode([]byte(d.code))}
		if _, asked := owner[slot]; asked && d.outcome == created {
			owner[slot] = d.url.Canonical
		}
	}
	known := func(i int) bool { // or a code that none of the batch has
		return owner[slots[i]] != nil || len(slots[i].Code.Bytes()) != s.run.scheme.Length()
	}
	return s.freshHolders(ctx, slots, known, func(i int, f rival) error {
		owner[slots[i]] = f.canonical
		return nil
	})
}

// collisions yields who has each of the lower codes of a link.
func (s *settlement) collisions(d *decision) iter.Seq[report.Collision] {
	return func(yield func(report.Collision) bool) {
		for salt, slot := range s.lowerSlots(d) {
			c := report.Collision{
				Workspace: s.run.workspaceName(d.url.Workspace), Canonical: d.url.Canonical, Salt: salt,
				Code: slot.Code.Bytes(), Owner: s.lowerOwner[slot],
			}
			if !yield(c) {
				return
			}
		}
	}
}

// lowerSlots yields the slots that a link would have had at lower salts.
func (s *settlement) lowerSlots(d *decision) iter.Seq2[int, assign.Slot] {
	return func(yield func(int, assign.Slot) bool) {
		scheme, _ := codegen.New(len(d.code)) // of a length that there is, where there is a salt
		workspace := s.run.workspaceName(d.url.Workspace)
		var input, code []byte
		for salt := range d.salt {
			input = codegen.AppendInput(input[:0], d.url.Canonical, workspace, salt)
			code = scheme.AppendCode(code[:0], codegen.Sum(input))
			if !yield(salt, assign.Slot{Workspace: d.url.Workspace, Code: assign.MakeCode(code)}) {
				return
			}
		}
	}
}
