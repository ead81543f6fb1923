package settle

import (
	"context"

	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/sink"
)

// Survey is Settle of a part of the rows of a run that generates all codes from hashes and has no link
// rules. The store need only have the links of their URLs and the owners of their first codes. URLs that
// contest a code among themselves or with the store are returned, in any order: the settlement takes them
// for new ones that have their first code, until Amend says what becomes of them.
func Survey(ctx context.Context, records *extsort.Sorter, names *record.Workspaces, store Store, cfg Config) (*Settlement, []assign.URL, error) {
	s := newSettling(records, names, store, 0, cfg)
	if err := s.survey(ctx); err != nil {
		return s.made, nil, err
	}
	return s.made, s.contested, nil
}

// Found yields the URLs that the store has under another code than their first one, in any order.
func (s *Settlement) Found(yield func(Decision) bool) {
	for _, d := range s.special {
		if d.Stored && !yield(d) {
			return
		}
	}
}

// An Amendment is what other parts of the rows decide of one that was surveyed.
type Amendment struct {
	Continues bool                   // its first rows are of a URL that begins in a part before it
	Decisions map[sink.Key]Decision  // of its URLs, by url_key
	Lower     map[assign.Slot][]byte // owners of the lower codes of links with a salt
}

// Amend decides the URLs of a part that was surveyed as other parts say.
func (s *Settlement) Amend(ctx context.Context, records *extsort.Sorter, a *Amendment) error {
	err := records.InOrder(ctx, 1, func(i int, b *extsort.Bucket) error {
		defer b.Release()
		for first := range b.Runs(record.KeySize) {
			key := record.Key(b.Record(first))
			d, ok := a.Decisions[key]
			if !ok || first == 0 && s.Continues(i) {
				continue
			}
			if s.buckets[i].fates == nil {
				s.buckets[i].fates = make([]fate, b.Len())
			}
			s.buckets[i].fates[first] = isSpecial
			if s.special[key] = d; d.Reason != "" {
				s.failed++
			}
		}
		return nil
	})
	s.lower = a.Lower
	if !a.Continues {
		return err
	}
	for i := range s.buckets {
		if records.Count(i) > 0 {
			s.buckets[i].origin = origin{true, i, 0} // which is itself
			break
		}
	}
	return err
}
