package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/sink"
)

// What the contest takes of the memory, in bytes.
const (
	claimCost = 300 // a contested URL, beside its own bytes: its claim and its decision
	slotCost  = 100 // a code that is asked for
)

// tooContested is the error of more contested URLs than there is memory for.
func (s *settlement) tooContested() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit := s.run.budget.contested; limit == 0 || s.contested <= limit {
		return nil
	}
	return fmt.Errorf("codes of %d characters are too short: over %d URLs contest them, which do not fit in memory; use a larger --code-length or more --memory",
		s.run.scheme.Length(), len(s.rows))
}

// contest settles the contested URLs.
func (s *settlement) contest(ctx context.Context) error {
	claims, err := assign.Settle(ctx, s.claims, s.propose, s.run.cfg.MaxRetries, s)
	if err != nil {
		return err
	}
	for i := range claims {
		c := &claims[i]
		d := decision{outcome: created, url: c.URL, code: string(c.Code.Bytes()), salt: c.Salt}
		if c.Exhausted {
			d = decision{outcome: exhausted}
			s.failed++
			s.rejected += s.rows[i]
		}
		s.special[s.hash(&c.URL, 0).Key()] = d
	}
	return nil
}

func (s *settlement) propose(u *assign.URL, salt int) assign.Code {
	return s.run.codeOf(s.hash(u, salt))
}

func (s *settlement) hash(u *assign.URL, salt int) codegen.Hash {
	return codegen.Sum(codegen.AppendInput(nil, u.Canonical, s.run.workspaceName(u.Workspace), salt))
}

// Holders implements assign.Holders: the store's owners, then URLs of the batch
// that nobody contested so far.
func (s *settlement) Holders(ctx context.Context, slots []assign.Slot, report func(int, assign.Holder)) error {
	s.contested += slotCost * int64(len(slots))
	if err := s.tooContested(); err != nil {
		return err
	}
	taken := make([]bool, len(slots))
	if err := s.owners(ctx, slots, func(i int, _ []byte) {
		taken[i] = true
		report(i, assign.Holder{Fixed: true})
	}); err != nil {
		return err
	}
	return s.freshHolders(ctx, slots, func(i int) bool { return taken[i] }, func(i int, f rival) error {
		s.mark(f.bucket, f.first, special)
		s.rows = append(s.rows, f.rows)
		s.contested += claimCost + int64(len(f.canonical))
		report(i, assign.Holder{Canonical: f.canonical})
		return s.tooContested()
	})
}

// slotOrder returns the indices of the slots in the order of the sort.
func (s *settlement) slotOrder(slots []assign.Slot) []int {
	order := make([]int, len(slots))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &slots[i], &slots[j]
		return cmp.Or(s.run.workspaces.compare(a.Workspace, b.Workspace), bytes.Compare(a.Code[:], b.Code[:]))
	})
	return order
}

// owners visits those of the slots, by index, that have an owner in the store.
// The canonical URL is valid during the call.
func (s *settlement) owners(ctx context.Context, slots []assign.Slot, visit func(i int, canonical []byte)) error {
	order := slices.DeleteFunc(s.slotOrder(slots), func(i int) bool { return !s.populated[slots[i].Workspace] })
	for chunk := range slices.Chunk(order, maxProbes) {
		probes := make([]sink.Probe, len(chunk))
		for n, i := range chunk {
			probes[n] = sink.Probe{Workspace: s.run.workspaceName(slots[i].Workspace), Code: slots[i].Code.Bytes()}
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

// freshHolders visits those of the slots, by index, that are not known and that a URL
// of the batch has as its code of salt 0 without being contested. Buckets are loaded
// in order, each once, or twice where a slot ends with one.
func (s *settlement) freshHolders(ctx context.Context, slots []assign.Slot, known func(i int) bool, visit func(i int, f rival) error) error {
	var at loadedBucket
	defer at.release()
	for _, i := range slices.DeleteFunc(s.slotOrder(slots), known) {
		f, err := s.freshHolder(ctx, &at, &slots[i])
		if err == nil && f.known {
			err = visit(i, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *settlement) freshHolder(ctx context.Context, at *loadedBucket, slot *assign.Slot) (f rival, err error) {
	var hash codegen.Hash // of f
	rank := s.run.scheme.RankOf(slot.Code.Bytes())
	first := s.run.records.Locate(slot.Workspace, rank)
	for i := first; i < s.run.records.Buckets() && (i == first || s.run.records.Joined(i)); i++ {
		b, err := at.load(ctx, s.run.records, i)
		if err != nil {
			return f, err
		}
		j := b.Search(slot.Workspace, rank)
		for ; j < b.Len() && b.Group(j) == slot.Workspace && b.Key(j) == rank; j++ {
			h := hashOf(b.Record(j))
			switch {
			case f.known && h == hash:
				f.rows++
			case !f.known && s.isFresh(b, i, j) && s.run.codeOf(h) == slot.Code:
				f, hash = rival{head{true, i, j}, bytes.Clone(canonicalOf(b.Record(j))), 1}, h
			}
		}
		if j < b.Len() {
			break // the slot ends here, although buckets may go on from one to the next
		}
	}
	return f, nil
}

// isFresh reports whether record j of bucket i is the first of a fresh URL.
func (s *settlement) isFresh(b *extsort.Bucket, i, j int) bool {
	if j == 0 && s.heads[i].known || j > 0 && sameURL(b, j-1, j) {
		return false
	}
	return s.fateOf(i, j) == created
}

func (r *run) codeOf(h codegen.Hash) assign.Code {
	var buf [codegen.MaxLength]byte
	return assign.MakeCode(r.scheme.AppendCode(buf[:0], h))
}

// A loadedBucket is the bucket that one goroutine looks at.
type loadedBucket struct {
	number int
	bucket *extsort.Bucket
}

func (l *loadedBucket) load(ctx context.Context, s *extsort.Sorter, i int) (*extsort.Bucket, error) {
	if l.bucket != nil && l.number == i {
		return l.bucket, nil
	}
	l.release()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b, err := s.Load(i)
	if err == nil {
		l.number, l.bucket = i, b
	}
	return b, err
}

func (l *loadedBucket) release() {
	if l.bucket != nil {
		l.bucket.Release()
		l.bucket = nil
	}
}
