package settle

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/rules"
)

// findLowerOwners finds out, for every link of the run with a salt above 0, which URL has
// each of the lower codes once the batch is stored: one of the store, one of the run that
// contested the code, or one of the run that has it without a contest. Where codes are nearly used up, links have
// very many of them in common, so the codes of each link are not kept.
func (s *settling) findLowerOwners(ctx context.Context) error {
	owner := s.made.lower
	for _, d := range s.made.special {
		for l := range s.made.lowerCodes(&d) {
			if l.Owner == nil {
				owner[s.made.slot(&d, l.Code)] = nil
			}
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
	for _, d := range s.made.special {
		if d.Kept { // the claims know
			continue
		}
		slot := s.made.slot(&d, d.Code)
		if _, asked := owner[slot]; asked && d.Outcome == outcome.Created && !d.Stored {
			owner[slot] = d.URL.Canonical
		}
	}
	known := func(i int) bool { // or a code that none of the run has
		return owner[slots[i]] != nil || len(slots[i].Code) != s.cfg.Order.Length()
	}
	return s.newHolders(ctx, slots, known, func(i int, r rival) error {
		owner[slots[i]] = r.canonical
		return nil
	})
}

// A Lower is a code of a lower salt than that of a link.
type Lower struct {
	Salt  int
	Code  string
	Owner []byte // canonical URL, or blocklist: and a word; nil: nobody is known to hold it
}

// Lower yields the owner of each of the lower codes of a link with a salt above 0.
func (s *Settlement) Lower(d *Decision) iter.Seq[Lower] {
	return func(yield func(Lower) bool) {
		for l := range s.lowerCodes(d) {
			if l.Owner == nil {
				l.Owner, _ = rules.CutKey(s.lower[s.slot(d, l.Code)])
			}
			if !yield(l) {
				return
			}
		}
	}
}

// slot returns that of a code of a link.
func (s *Settlement) slot(d *Decision, code string) assign.Slot {
	return assign.Slot{Workspace: d.URL.Workspace, Code: code}
}

// lowerCodes yields the codes that a link would have had at lower salts, with an owner only if they
// are blocked.
func (s *Settlement) lowerCodes(d *Decision) iter.Seq[Lower] {
	return func(yield func(Lower) bool) {
		scheme, _ := s.order.WithLength(len(d.Code)) // of a length that there is, where there is a salt
		workspace := s.names.Name(d.URL.Workspace)
		canonical, parts := rules.CutKey(d.URL.Canonical)
		var input, code []byte
		for salt := range d.Salt {
			input = codegen.AppendIdentity(input[:0], canonical, workspace, parts, salt)
			code = scheme.AppendCode(code[:0], scheme.Sum(input))
			l := Lower{Salt: salt, Code: string(code)}
			if word := s.order.Word(code); word != "" {
				l.Owner = []byte(outcome.BlockedBy + word)
			}
			if !yield(l) {
				return
			}
		}
	}
}
