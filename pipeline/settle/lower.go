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

// Owners tell who has slots, each by its index.
type Owners interface {
	// Stored visits those that have an owner in the store, or because of a legacy code. The canonical
	// URL is valid during the call.
	Stored(ctx context.Context, slots []assign.Slot, visit func(i int, canonical []byte)) error
	// Uncontested visits those, unless they are known, that a new URL of the run has as its first code
	// without a contest.
	Uncontested(ctx context.Context, slots []assign.Slot, known func(i int) bool, visit func(i int, canonical []byte)) error
}

// LowerOwners finds out, for every link of the run with a salt above 0, which URL has
// each of the lower codes once the batch is stored: one of the store, one of the run that
// contested the code, or one of the run that has it without a contest. The decisions are those of all
// links with a salt above 0, and of all that contested a code. Where codes are nearly used up, links have
// very many of them in common, so the codes of each link are not kept.
func (c *Coder) LowerOwners(ctx context.Context, decisions iter.Seq[Decision], who Owners) (map[assign.Slot][]byte, error) {
	owner := map[assign.Slot][]byte{}
	for d := range decisions {
		for l := range c.LowerCodes(&d) {
			if l.Owner == nil {
				owner[c.slot(&d, l.Code)] = nil
			}
		}
	}
	if len(owner) == 0 {
		return owner, nil
	}
	slots := slices.Collect(maps.Keys(owner))
	if err := who.Stored(ctx, slots, func(i int, canonical []byte) {
		owner[slots[i]] = bytes.Clone(canonical)
	}); err != nil {
		return nil, err
	}
	for d := range decisions {
		if d.Kept { // the claims know
			continue
		}
		slot := c.slot(&d, d.Code)
		if _, asked := owner[slot]; asked && d.Outcome == outcome.Created && !d.Stored {
			owner[slot] = d.URL.Canonical
		}
	}
	known := func(i int) bool { // or a code that none of the run has
		return owner[slots[i]] != nil || len(slots[i].Code) != c.Order.Length()
	}
	return owner, who.Uncontested(ctx, slots, known, func(i int, canonical []byte) { owner[slots[i]] = canonical })
}

// findLowerOwners notes who has the lower codes of all links with a salt above 0.
func (s *settling) findLowerOwners(ctx context.Context) (err error) {
	s.made.lower, err = s.made.coder.LowerOwners(ctx, maps.Values(s.made.special), s)
	return err
}

// Uncontested implements Owners.
func (s *settling) Uncontested(ctx context.Context, slots []assign.Slot, known func(i int) bool, visit func(i int, canonical []byte)) error {
	return s.newHolders(ctx, slots, known, func(i int, r rival) error {
		visit(i, r.canonical)
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
		for l := range s.coder.LowerCodes(d) {
			if l.Owner == nil {
				l.Owner, _ = rules.CutKey(s.lower[s.coder.slot(d, l.Code)])
			}
			if !yield(l) {
				return
			}
		}
	}
}

// LowerCodes yields the codes that a link would have had at lower salts, with an owner only if they
// are blocked.
func (c *Coder) LowerCodes(d *Decision) iter.Seq[Lower] {
	return func(yield func(Lower) bool) {
		scheme, _ := c.Order.WithLength(len(d.Code)) // of a length that there is, where there is a salt
		workspace := c.Names.Name(d.URL.Workspace)
		canonical, parts := rules.CutKey(d.URL.Canonical)
		var input, code []byte
		for salt := range d.Salt {
			input = codegen.AppendIdentity(input[:0], canonical, workspace, parts, salt)
			code = scheme.AppendCode(code[:0], scheme.Sum(input))
			l := Lower{Salt: salt, Code: string(code)}
			if word := c.Order.Word(code); word != "" {
				l.Owner = []byte(outcome.BlockedBy + word)
			}
			if !yield(l) {
				return
			}
		}
	}
}
