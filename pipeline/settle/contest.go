package settle

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// What the contest takes of the memory, in bytes.
const (
	claimCost = 300 // a contested URL, beside its own bytes: its claim and its decision
	slotCost  = 100 // a code that is asked for
)

// addContested notes one more contested URL. The caller has the lock.
func (s *settling) addContested(r rival) {
	s.rivals = append(s.rivals, r)
	s.cost += claimCost + int64(len(r.canonical))
}

// tooContested is the error of more contested URLs than there is memory for.
func (s *settling) tooContested() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit := s.cfg.Contested; limit == 0 || s.cost <= limit {
		return nil
	}
	return fmt.Errorf("codes of %d characters are too short: over %d URLs contest them, which do not fit in memory; use a larger Config.CodeLength or more Config.Memory",
		s.cfg.Order.Length(), len(s.rivals))
}

// contest settles the contested URLs.
func (s *settling) contest(ctx context.Context) error {
	claims, err := s.made.coder.Settle(ctx, s.contested, s)
	if err != nil {
		return err
	}
	for i := range claims {
		c := &claims[i]
		d := s.made.coder.Decision(c)
		switch {
		case c.Exhausted && s.cfg.Kept != nil:
			d = s.exhaust(&s.rivals[i], d)
		case c.Exhausted:
			s.made.failed++
			s.made.Rejected[d.Reason] += s.rivals[i].rows
			s.refused.take(s.rivals[i].refused)
		}
		s.decide(s.made.coder.Key(&c.URL), d)
	}
	return nil
}

// saltOf returns the salt of the code of the link of an identity, which may have been made with more
// retries; -1: none gives it.
func (s *settling) saltOf(identity, workspace, code []byte) int {
	canonical, parts := rules.CutKey(identity)
	return s.cfg.Order.SaltOf(canonical, slices.Concat(workspace, parts), code, max(s.cfg.MaxRetries, codegen.DefaultRetries))
}

// firstSlot returns the first code of a record's URL.
func (s *settling) firstSlot(rec []byte) string {
	var buf [codegen.MaxLength]byte
	return string(s.cfg.Order.AppendFirst(buf[:0], rec))
}

// Holders implements assign.Holders: the store's owners, then URLs of the
// batch that have their code without a contest so far.
func (s *settling) Holders(ctx context.Context, slots []assign.Slot, report func(int, assign.Holder)) error {
	s.cost += slotCost * int64(len(slots))
	if err := s.tooContested(); err != nil {
		return err
	}
	taken := make([]bool, len(slots))
	if err := s.Stored(ctx, slots, func(i int, _ []byte) {
		taken[i] = true
		report(i, assign.Holder{Fixed: true})
	}); err != nil {
		return err
	}
	return s.newHolders(ctx, slots, func(i int) bool { return taken[i] }, func(i int, r rival) error {
		s.mark(r.bucket, r.first, isSpecial)
		s.addContested(r)
		report(i, assign.Holder{Canonical: r.canonical, Salt: r.salt})
		return s.tooContested()
	})
}

// SlotOrder returns the indices of slots in the order in which the sort has the URLs that want them.
func SlotOrder(names *record.Workspaces, slots []assign.Slot) []int {
	order := make([]int, len(slots))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(names.Compare(slots[i].Workspace, slots[j].Workspace), cmp.Compare(slots[i].Code, slots[j].Code))
	})
	return order
}

// Stored implements Owners.
func (s *settling) Stored(ctx context.Context, slots []assign.Slot, visit func(i int, canonical []byte)) error {
	known := make([]bool, len(slots))
	see := func(i int, canonical []byte) {
		known[i] = true
		visit(i, canonical)
	}
	if err := s.storedOwners(ctx, slots, see); err != nil {
		return err
	}
	if s.made.claims == nil {
		return nil
	}
	claims := s.made.claims.Finder()
	defer claims.Close()
	for _, i := range SlotOrder(s.names, slots) {
		if known[i] {
			continue
		}
		canonical, err := claims.Owner(ctx, slots[i].Workspace, []byte(slots[i].Code))
		if err != nil {
			return err
		}
		if canonical != nil {
			visit(i, canonical)
		}
	}
	return nil
}

// storedOwners asks the store who has the slots.
func (s *settling) storedOwners(ctx context.Context, slots []assign.Slot, visit func(i int, canonical []byte)) error {
	order := slices.DeleteFunc(SlotOrder(s.names, slots), func(i int) bool { return !s.populated[slots[i].Workspace] })
	for chunk := range slices.Chunk(order, maxProbes) {
		probes := make([]sink.Probe, len(chunk))
		for n, i := range chunk {
			probes[n] = sink.Probe{Workspace: s.names.Name(slots[i].Workspace), Code: []byte(slots[i].Code)}
		}
		err := s.lookup(ctx, probes, func(f sink.Found) error {
			visit(chunk[f.Probe], f.Canonical)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// newHolders visits those of the slots, by index, that are not known and that a new URL of
// the batch has as its code of salt 0 without being contested. Buckets are loaded in order,
// each once, or twice where a slot ends with one.
func (s *settling) newHolders(ctx context.Context, slots []assign.Slot, known func(i int) bool, visit func(i int, r rival) error) error {
	at := s.records.Finder()
	defer at.Close()
	for _, i := range slices.DeleteFunc(SlotOrder(s.names, slots), known) {
		r, err := s.newHolder(ctx, at, &slots[i])
		if err == nil && r.known {
			err = visit(i, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *settling) newHolder(ctx context.Context, at *extsort.Finder, slot *assign.Slot) (r rival, err error) {
	var url sink.Key // of r
	key := s.cfg.Order.KeyOf([]byte(slot.Code))
	first := s.records.Locate(slot.Workspace, key)
	for i := first; i < s.records.Buckets() && (i == first || s.records.Joined(i)); i++ {
		b, err := at.Load(ctx, i)
		if err != nil {
			return r, err
		}
		j := b.Search(slot.Workspace, key)
		for ; j < b.Len() && b.Group(j) == slot.Workspace && b.Key(j) == key; j++ {
			rec := b.Record(j)
			switch {
			case r.known && record.Key(rec) == url:
				s.count(&r, i, j, rec)
			case !r.known && s.isNew(b, i, j) && s.firstSlot(rec) == slot.Code:
				r, url = rival{origin: origin{true, i, j}, canonical: identity(rec), salt: s.cfg.Order.FirstOf(rec).Salt}, record.Key(rec)
				s.count(&r, i, j, rec)
			}
		}
		if j < b.Len() {
			break // the slot ends here, although the last bucket may continue in the next
		}
	}
	return r, nil
}

// count counts record j of bucket i in.
func (s *settling) count(r *rival, i, j int, rec []byte) {
	if s.made.claims == nil {
		r.rows++
		if results := s.made.buckets[i].results; results != nil && results[j] != 0 {
			r.refused.count(rules.Unpack(results[j]))
		}
		return
	}
	r.count(origin{true, i, j}, s.made.Row(i, j), bytes.Clone(record.LegacyCode(rec)))
}

// isNew reports whether record j of bucket i is the first of a new URL.
func (s *settling) isNew(b *extsort.Bucket, i, j int) bool {
	if j == 0 && s.made.Continues(i) || j > 0 && b.Alike(j-1, j, record.KeySize) {
		return false
	}
	return s.made.fate(i, j) == isNew
}
