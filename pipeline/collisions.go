package pipeline

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/report"
)

// hash returns that of a URL at a salt.
func (r *run) hash(canonical, workspace []byte, salt int) codegen.Hash {
	return codegen.Sum(codegen.AppendInput(nil, canonical, workspace, salt))
}

// explainSalts finds out, for every link of the batch with a salt above 0, who
// has each of the lower codes once the batch is stored.
func (s *settlement) explainSalts(ctx context.Context) error {
	owner := map[assign.Slot][]byte{} // nil: nobody known
	for key, d := range s.special {
		if d.outcome == exhausted || d.salt < 1 {
			continue
		}
		s.collisions[key] = s.lowerCodes(&d)
		for _, c := range s.collisions[key] {
			owner[slotOf(d.url.Workspace, c.Code)] = nil
		}
	}
	if len(owner) == 0 {
		return nil
	}
	if err := s.findOwners(ctx, owner); err != nil {
		return err
	}
	for key, list := range s.collisions {
		for i := range list {
			list[i].Owner = owner[slotOf(s.special[key].url.Workspace, list[i].Code)]
		}
	}
	return nil
}

func slotOf(workspace uint32, code []byte) assign.Slot {
	return assign.Slot{Workspace: workspace, Code: assign.MakeCode(code)}
}

// lowerCodes lists the codes that a link would have had at lower salts.
func (s *settlement) lowerCodes(d *decision) []report.Collision {
	workspace := s.run.workspaceName(d.url.Workspace)
	scheme, err := codegen.New(len(d.code))
	if err != nil {
		return nil // codegen.SaltOf found no salt for such a code
	}
	list := make([]report.Collision, d.salt)
	for salt := range list {
		list[salt] = report.Collision{
			Workspace: workspace, Canonical: d.url.Canonical, Salt: salt,
			Code: scheme.AppendCode(nil, s.run.hash(d.url.Canonical, workspace, salt)),
		}
	}
	return list
}

// findOwners fills in who has these slots: links of the store, links of this
// batch that contested one, links of this batch that nobody contested.
func (s *settlement) findOwners(ctx context.Context, owner map[assign.Slot][]byte) error {
	slots := slices.Collect(maps.Keys(owner))
	if err := s.owners(ctx, slots, func(i int, canonical []byte) {
		owner[slots[i]] = bytes.Clone(canonical)
	}); err != nil {
		return err
	}
	for _, d := range s.special {
		slot := slotOf(d.url.Workspace, []byte(d.code))
		if _, asked := owner[slot]; asked && d.outcome == created {
			owner[slot] = d.url.Canonical
		}
	}
	left := slices.DeleteFunc(slots, func(slot assign.Slot) bool {
		return owner[slot] != nil || len(slot.Code.Bytes()) != s.run.scheme.Length()
	})
	return s.freshHolders(left, func(i int, f freshURL) error {
		owner[left[i]] = f.canonical
		return nil
	})
}
