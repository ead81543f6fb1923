package pipeline

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// An outcome says what became of a URL of the batch. Nearly all have the code of
// salt 0, and need no more than this byte.
type fate uint8

const (
	created   fate = iota // or fresh, as long as somebody may contest its code
	loaded                // created by an earlier attempt of this very run
	found                 // in the store
	exhausted             // has no code
	special               // see settlement.special
)

// A decision is what became of a URL, with its code if it is not that of salt 0.
type decision struct {
	outcome fate
	url     assign.URL // none if exhausted
	code    string
	salt    int // -1: none gives the code
}

// A settlement is the state of all URLs of the batch: with the store as it was
// when it was made, the result of handling them one at a time.
type settlement struct {
	run       *run
	session   sink.Session // nil: there is no store
	runID     int32        // of an unfinished run that this one continues; 0: none
	populated []bool       // workspaces, by number, that have links in the store

	anyPopulated bool // one of them has

	outcomes [][]fate // by bucket, then by the URL's first record; nil: all created
	heads    []head   // of each bucket, where the URL of its first record begins if in an earlier one

	mu         sync.Mutex // guards what follows while buckets are visited in parallel
	special    map[sink.Key]decision
	claims     []assign.URL
	rows       []int64                // of each claim, and then of each that assign draws in
	urls       int64                  // distinct
	existing   int64                  // of these in the store, from before this run
	ours       int64                  // of these in the store, from an earlier attempt of this run
	failed     int64                  // of these without a code
	rejected   int64                  // their rows
	contested  int64                  // bytes of claims and of codes that they ask for
	lowerOwner map[assign.Slot][]byte // of the lower codes of links with a salt; nil: nobody known
}

// A head is the first record of a URL; the zero value is none.
type head struct {
	known         bool
	bucket, first int
}

// settle decides the code of every URL. Buckets are visited in parallel, one
// probe of the store a URL; contested URLs are then settled together.
func (r *run) settle(ctx context.Context, session sink.Session, runID int32) error {
	r.cfg.Status.enter(StageSettle)
	r.cfg.Status.Settled.Store(0)
	r.settled = nil // its memory is for this one
	buckets := r.records.Buckets()
	s := &settlement{
		run: r, session: session, runID: runID,
		outcomes: make([][]fate, buckets), heads: make([]head, buckets),
		special: map[sink.Key]decision{}, lowerOwner: map[assign.Slot][]byte{},
	}
	if err := s.askPopulated(ctx); err != nil {
		return err
	}
	visits := make(chan *visit, s.visitors())
	for range cap(visits) {
		visits <- &visit{settlement: s}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(cap(visits))
	for from, to := 0, 0; from < buckets; from = to {
		for to = from + 1; to < buckets && r.records.Joined(to); {
			to++
		}
		g.Go(func() error {
			defer r.timings.worked(time.Now())
			v := <-visits
			defer func() { visits <- v }()
			return v.do(gctx, from, to)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for range cap(visits) {
		v := <-visits
		s.urls, s.existing, s.ours = s.urls+v.distinct, s.existing+v.stored, s.ours+v.own
	}
	if err := s.contest(ctx); err != nil {
		return err
	}
	r.settled = s
	return s.explainSalts(ctx)
}

// visitors is how many buckets are visited at once: as many as there are workers,
// and twice as many where half of them wait for the store.
func (s *settlement) visitors() int {
	if s.anyPopulated {
		return 2 * s.run.cfg.Workers
	}
	return s.run.cfg.Workers
}

func (s *settlement) askPopulated(ctx context.Context) error {
	names := s.run.workspaces.names
	s.populated = make([]bool, len(names))
	if s.session == nil || len(names) == 0 {
		return nil
	}
	populated, err := s.session.Populated(ctx, s.run.workspaces.sorted())
	if err == nil && len(populated) != len(names) {
		err = fmt.Errorf("%w: of %d workspaces it told of %d whether they have links", errBroken, len(names), len(populated))
	}
	if err != nil {
		return err
	}
	for i, id := range s.run.workspaces.order {
		s.populated[id] = populated[i]
		s.anyPopulated = s.anyPopulated || populated[i]
	}
	return nil
}

// lookup asks the store.
func (s *settlement) lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	return s.session.Lookup(ctx, probes, func(f sink.Found) error {
		if uint(f.Probe) >= uint(len(probes)) {
			return fmt.Errorf("%w: it found a link for probe %d of %d", errBroken, f.Probe, len(probes))
		}
		return visit(f)
	})
}

// urlsOf yields the records of each distinct URL of a bucket: [first, end).
func urlsOf(b *extsort.Bucket) iter.Seq2[int, int] {
	return func(yield func(first, end int) bool) {
		for first := 0; first < b.Len(); {
			end := first + 1
			for end < b.Len() && sameURL(b, first, end) {
				end++
			}
			if !yield(first, end) {
				return
			}
			first = end
		}
	}
}

func sameURL(b *extsort.Bucket, i, j int) bool {
	return b.Key(i) == b.Key(j) && b.Group(i) == b.Group(j) && hashOf(b.Record(i)) == hashOf(b.Record(j))
}

// mark sets the outcome of a URL. Only one goroutine at a time has to do with a
// bucket.
func (s *settlement) mark(bucket, first int, as fate) {
	if s.outcomes[bucket] == nil {
		s.outcomes[bucket] = make([]fate, s.run.records.Count(bucket))
	}
	s.outcomes[bucket][first] = as
}

// outcome returns that of the URL whose first record in a bucket is given; its very first
// may be in an earlier bucket.
func (s *settlement) fateOf(bucket, first int) fate {
	if h := &s.heads[bucket]; first == 0 && h.known {
		bucket, first = h.bucket, h.first
	}
	if s.outcomes[bucket] == nil {
		return created
	}
	return s.outcomes[bucket][first]
}

// decision returns what became of a URL, given as for outcome.
func (s *settlement) decision(bucket, first int, h codegen.Hash) decision {
	if as := s.fateOf(bucket, first); as != special {
		return decision{outcome: as}
	}
	return s.special[h.Key()]
}

// counts returns the books as they must come out.
func (s *settlement) counts() sink.Counts {
	read, accepted := s.run.recordsRead(), s.run.records.Len()
	return sink.Counts{
		Read:      read,
		Created:   s.urls - s.existing - s.failed,
		Existing:  s.existing,
		Duplicate: accepted - s.rejected - (s.urls - s.failed),
		Rejected:  read - accepted + s.rejected,
	}
}

// toLoad returns the number of links that the store has not got yet.
func (s *settlement) toLoad() int64 { return s.urls - s.existing - s.failed - s.ours }
