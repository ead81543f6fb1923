package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
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
type outcome uint8

const (
	created   outcome = iota // or fresh, as long as somebody may contest its code
	loaded                   // created by an earlier attempt of this very run
	found                    // in the store
	exhausted                // has no code
	special                  // see settlement.special
)

// A decision is what became of a URL, with its code if it is not that of salt 0.
type decision struct {
	outcome outcome
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

	outcomes [][]outcome // by bucket, then by the URL's first record; nil: all created
	heads    []head      // of each bucket, where the URL of its first record begins if in an earlier one

	mu         sync.Mutex // guards what follows while buckets are visited in parallel
	special    map[sink.Key]decision
	claims     []assign.URL
	rows       []int64 // of each claim, and then of each that assign draws in
	urls       int64   // distinct
	existing   int64
	ours       int64
	failed     int64                  // URLs without a code
	rejected   int64                  // their rows
	contested  int64                  // bytes of claims and of codes that they ask for
	lowerOwner map[assign.Slot][]byte // of the lower codes of links with a salt; nil: nobody known
}

const (
	claimCost = 300 // of a contested URL beside its bytes: its claim, and what is decided of it
	slotCost  = 100 // of each code that is asked for
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
		outcomes: make([][]outcome, buckets), heads: make([]head, buckets),
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
func (s *settlement) mark(bucket, first int, as outcome) {
	if s.outcomes[bucket] == nil {
		s.outcomes[bucket] = make([]outcome, s.run.records.Count(bucket))
	}
	s.outcomes[bucket][first] = as
}

// outcome returns that of a URL by its first record in a bucket, be its very first
// in an earlier one.
func (s *settlement) outcome(bucket, first int) outcome {
	if h := &s.heads[bucket]; first == 0 && h.known {
		bucket, first = h.bucket, h.first
	}
	if s.outcomes[bucket] == nil {
		return created
	}
	return s.outcomes[bucket][first]
}

// decision returns what became of a URL, whose first record in a bucket is given.
func (s *settlement) decision(bucket, first int, h codegen.Hash) decision {
	if as := s.outcome(bucket, first); as != special {
		return decision{outcome: as}
	}
	return s.special[h.Key()]
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
	return s.outcome(i, j) == created
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
