// Package settle decides the code of every URL of a run, as if the URLs had been handled
// one at a time in the order of (workspace, canonical URL), after those of the store
// (codegen/README.md, "Which URL gets which code").
//
// [Settle] visits the sorted records bucket by bucket, in parallel, and looks each URL up
// in the store. Nearly all URLs have their code of salt 0 to themselves. Those that want a
// code which another URL wants or has are contested: package assign decides about all of
// them together. The result is a [Settlement], which does not change any more.
package settle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/claim"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// Config says how codes are assigned. All fields but Contested, Counter, Kept and Rules must be set.
type Config struct {
	Order      record.Order
	MaxRetries int   // highest salt; 0: salt 0 only
	Contested  int64 // most bytes that contested URLs may take; 0: no bound
	Workers    int
	Counter    *Counter      // nil: codes are made from hashes
	Kept       *Kept         // nil: no legacy codes are kept
	Rules      *Rules        // nil: the run has no link rules, and no link of its workspaces has any
	Settled    *atomic.Int64 // accepted rows whose code is known; for another goroutine
}

// A Decision is what becomes of a URL.
type Decision struct {
	Outcome outcome.Outcome // of the first row: Created or Existing
	Stored  bool            // the store has the link, from an earlier attempt of this run if it is Created
	Reason  string          // why all rows of the URL are rejected; "": they are accepted
	Detail  string          // of the reason
	Kept    bool            // a row of the URL has the code of the link
	Code    string          // "": the first one, of salt 0, or if it is Kept that of LinkRow
	Salt    int             // -1: none gives the code
	URL     assign.URL      // only if the code is given, and has a salt
}

// A Settlement is the state of all URLs of the run: with the store as it was when it was
// made, the result of handling them one at a time. It is safe for concurrent use. It must be
// closed.
//
// What is said of URLs goes for identities, if legacy codes are kept: a URL and a code of its
// own, or the URL alone; or if there are link rules: a URL and the parts of its identity.
type Settlement struct {
	Existing  int64            // URLs that the store had before this run
	Stored    int64            // links in the store from an earlier attempt of this run
	Rejected  map[string]int64 // rows, by reason
	Fresh     []string         // workspaces in which the store had no link, in byte order
	Conflicts int64            // rows that claim the code of another URL

	buckets  []bucket
	special  map[sink.Key]Decision
	claims   *claim.Settled         // nil: no legacy codes are kept
	changes  *extsort.Sorter        // of links that exist; nil: there are no link rules
	shown    *extsort.Sorter        // what links have, by their rows, where these say something else; nil: as changes
	counting *counting              // nil: codes are made from hashes
	lower    map[assign.Slot][]byte // owners of the lower codes of links with a salt; nil: nobody known

	coder  Coder
	urls   int64 // distinct
	failed int64 // of these, rejected, or all of their rows are
	bare   int64 // links of this run with generated codes that no row has
}

// Close gives up what the settlement has on disk.
func (s *Settlement) Close() (err error) {
	if s.claims != nil {
		err = s.claims.Close()
	}
	if s.changes != nil {
		err = errors.Join(err, s.changes.Close(), s.shown.Close())
	}
	if s.counting != nil {
		err = errors.Join(err, s.counting.close())
	}
	return err
}

// A bucket is what is known of the URLs of a bucket of the sort.
type bucket struct {
	origin                 origin // where the URL of its first record begins, if in an earlier bucket
	fates                  []fate // by the URL's first record; nil: all new
	urls, existing, stored int64  // URLs that begin here; of them those that the store had before this run, and from an earlier attempt of it

	rows                  []Row // if legacy codes are kept
	bare, conflicts, lost int64 // as in Settlement; rows

	results []byte   // of rows with link rules, packed; 0, and nil: what is to be expected (Settlement.Result)
	refused refusals // of these rows
	mute    int64    // URLs that the store had before this run, and whose rows are all refused
}

// refusals are rows that are rejected because of link rules.
type refusals [rules.ReasonCount]int64

func (r *refusals) count(result rules.Result) {
	if result.Reason != rules.Accepted {
		r[result.Reason]++
	}
}

func (r *refusals) take(o refusals) {
	for i := range r {
		r[i] -= o[i]
	}
}

func (r *refusals) add(o refusals) {
	for i := range r {
		r[i] += o[i]
	}
}

// A fate says what becomes of a URL. Nearly all have the code of salt 0, and need no more
// than this byte.
type fate uint8

const (
	isNew     fate = iota // during the settling: perhaps
	isStored              // created by an earlier attempt of this run
	isThere               // in the store before
	isSpecial             // see Settlement.special
	isKept                // its link has the code of a row: see LinkRow
	isNone                // all of its rows are lost
	isGone                // new, and rejected: all links of its URL are deleted
)

// An origin is the first record of a URL; the zero value is none.
type origin struct {
	known         bool
	bucket, first int
}

// Continues reports whether the first record of a bucket belongs to a URL that begins in
// an earlier one.
func (s *Settlement) Continues(bucket int) bool { return s.buckets[bucket].origin.known }

// Decide returns what becomes of a URL, whose first record in a bucket is given.
func (s *Settlement) Decide(bucket, first int, group uint32, rec []byte) (d Decision) {
	switch s.fate(bucket, first) {
	case isSpecial:
		return s.special[record.Key(rec)]
	case isThere:
		d = Decision{Outcome: outcome.Existing, Stored: true}
	case isStored:
		d = Decision{Stored: true}
	case isKept:
		return Decision{Kept: true, Salt: -1}
	case isGone:
		gone := rules.Result{Reason: rules.LinkDeleted}
		return Decision{Reason: gone.Reason.String(), Detail: gone.Detail()}
	}
	if s.coder.Order.Words == nil {
		return d
	}
	if f := s.coder.Order.FirstOf(rec); f.Salt > 0 {
		d.Code, d.Salt, d.URL = string(s.coder.Order.AppendCode(nil, f.Hash)), f.Salt, assign.URL{Workspace: group, Canonical: identity(rec)}
	}
	return d
}

// fate returns that of the URL whose first record in a bucket is given.
func (s *Settlement) fate(bucket, first int) fate {
	if h := &s.buckets[bucket].origin; first == 0 && h.known {
		bucket, first = h.bucket, h.first
	}
	if s.buckets[bucket].fates == nil {
		return isNew
	}
	return s.buckets[bucket].fates[first]
}

// MayReject reports whether rows of a bucket may be rejected. If not, it need not be loaded
// to find out which.
func (s *Settlement) MayReject(bucket int) bool {
	return s.Conflicts > 0 && s.buckets[bucket].lost > 0 || s.changes != nil && s.buckets[bucket].refused != refusals{} ||
		s.failed > 0 && (s.buckets[bucket].fates != nil || s.Continues(bucket))
}

// Counts returns the books as they must come out if so many rows were read, and so many of
// them got into the sort.
func (s *Settlement) Counts(read, accepted int64) sink.Counts {
	rejected := int64(0)
	for _, rows := range s.Rejected {
		rejected += rows
	}
	return sink.Counts{
		Read:      read,
		Created:   s.urls - s.Existing - s.failed,
		Existing:  s.Existing,
		Duplicate: accepted - rejected - (s.urls - s.failed),
		Rejected:  read - accepted + rejected,
	}
}

// ToLoad returns the number of links that the store has not got yet.
func (s *Settlement) ToLoad() int64 { return s.LinksCreated() - s.Stored }

// LinksCreated returns the number of links and aliases that are in the store because of the
// run, once all are loaded.
func (s *Settlement) LinksCreated() int64 { return s.urls - s.Existing - s.failed + s.bare }

// ErrBroken is what a store did that the contract rules out.
var ErrBroken = errors.New("the store broke its contract")

// settling is what is needed until the settlement is made.
type settling struct {
	cfg       Config
	records   *extsort.Sorter
	names     *record.Workspaces
	session   Store  // nil: there is no store
	run       int32  // an unfinished run that this one continues; 0: none
	populated []bool // workspaces, by number, that have links in the store
	anywhere  bool   // one of them has

	mu        sync.Mutex // guards what follows, and the maps of the settlement, while buckets are visited in parallel
	contested []assign.URL
	rivals    []rival // of each of these, and then of each that assign draws in
	cost      int64   // bytes of contested URLs and of codes that they ask for
	refused   refusals
	made      *Settlement
}

// A Store is what settling asks of a sink.Session.
type Store interface {
	Populated(ctx context.Context, workspaces []string) ([]bool, error)
	Lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error
	Gone(ctx context.Context, bases []sink.Key) ([]bool, error)
}

// Settle decides the code of every URL of the sorted records. The names of their
// workspaces are frozen. Without a session there is no store. Links of the given run count
// as created, unless it is 0. Errors are those of the sort and of the store, ErrBroken, and
// that of more contested URLs than there is memory for. The settlement must be closed, also
// with an error, if it is not nil.
func Settle(ctx context.Context, records *extsort.Sorter, names *record.Workspaces, session Store, run int32, cfg Config) (*Settlement, error) {
	s := newSettling(records, names, session, run, cfg)
	if err := s.survey(ctx); err != nil {
		return s.made, err
	}
	if err := s.contest(ctx); err != nil {
		return s.made, err
	}
	if cfg.Rules != nil {
		if cfg.Kept != nil {
			if err := s.judgeKept(ctx); err != nil {
				return s.made, err
			}
		}
		s.refuse()
		if err := errors.Join(s.made.changes.Finish(ctx), s.made.shown.Finish(ctx)); err != nil {
			return s.made, err
		}
	}
	return s.made, s.findLowerOwners(ctx)
}

func newSettling(records *extsort.Sorter, names *record.Workspaces, session Store, run int32, cfg Config) *settling {
	cfg.Settled.Store(0)
	return &settling{
		cfg: cfg, records: records, names: names, session: session, run: run,
		made: &Settlement{
			coder: Coder{cfg.Order, cfg.MaxRetries, names}, buckets: make([]bucket, records.Buckets()), Rejected: map[string]int64{},
			special: map[sink.Key]Decision{}, lower: map[assign.Slot][]byte{},
		},
	}
}

// survey visits all buckets: it finds what the store has of their URLs, and those that contest a code.
func (s *settling) survey(ctx context.Context) (err error) {
	cfg := &s.cfg
	if err := s.askPopulated(ctx); err != nil {
		return err
	}
	if cfg.Kept != nil {
		if err := s.claims(ctx); err != nil {
			return err
		}
	}
	if cfg.Rules != nil {
		s.made.changes, s.made.shown = newChanges(cfg.Rules.Changes, s.names), newShown(cfg.Rules.Shown)
	}
	if cfg.Counter != nil {
		if s.made.counting, err = s.newCounting(); err != nil {
			return err
		}
	}
	if err := s.visitAll(ctx); err != nil {
		return err
	}
	s.sum()
	return nil
}

// sum adds up what is known of the buckets.
func (s *settling) sum() {
	made, lost := s.made, int64(0)
	for i := range made.buckets {
		b := &made.buckets[i]
		made.urls, made.Existing, made.Stored = made.urls+b.urls, made.Existing+b.existing, made.Stored+b.stored
		made.bare, made.Conflicts, lost = made.bare+b.bare, made.Conflicts+b.conflicts, lost+b.lost
		made.failed += b.mute
		s.refused.add(b.refused)
	}
	if lost > 0 {
		made.Rejected[outcome.CodeTaken] = lost
	}
}

// visitAll visits all buckets in parallel: as many at once as there are workers, and twice
// as many where half of them wait for the store.
func (s *settling) visitAll(ctx context.Context) error {
	visits := make(chan *visit, s.parallel())
	for range cap(visits) {
		visits <- s.newVisit()
	}
	return s.eachStretch(ctx, func(ctx context.Context, from, to int) error {
		v := <-visits
		defer func() { visits <- v }()
		if s.made.claims != nil {
			v.verdicts = s.made.claims.Reader()
			defer v.verdicts.Close()
		}
		return v.do(ctx, from, to)
	})
}

func (s *settling) newVisit() *visit {
	v := &visit{s: s, judging: s.newJudging()}
	if c := s.made.counting; c != nil {
		v.urls, v.codeOf = c.urls.NewWriter(), c.codes.NewWriter()
	}
	return v
}

// parallel is how many goroutines visit buckets.
func (s *settling) parallel() int {
	if s.anywhere {
		return 2 * s.cfg.Workers
	}
	return s.cfg.Workers
}

// eachStretch visits all buckets in parallel: each that is by itself, and those that are joined
// [from, to).
func (s *settling) eachStretch(ctx context.Context, visit func(ctx context.Context, from, to int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.parallel())
	for from, to := 0, 0; from < s.records.Buckets(); from = to {
		for to = from + 1; to < s.records.Buckets() && s.records.Joined(to); {
			to++
		}
		g.Go(func() error { return visit(ctx, from, to) })
	}
	return g.Wait()
}

func (s *settling) askPopulated(ctx context.Context) error {
	order := s.names.Order()
	s.populated = make([]bool, len(order))
	sorted := s.names.Sorted()
	if s.session == nil || len(order) == 0 {
		s.made.Fresh = sorted
		return nil
	}
	populated, err := s.session.Populated(ctx, sorted)
	if err == nil && len(populated) != len(order) {
		err = fmt.Errorf("%w: of %d workspaces it told of %d whether they have links", ErrBroken, len(order), len(populated))
	}
	if err != nil {
		return err
	}
	for i, id := range order {
		s.populated[id] = populated[i]
		s.anywhere = s.anywhere || populated[i]
		if !populated[i] {
			s.made.Fresh = append(s.made.Fresh, sorted[i])
		}
	}
	return nil
}

// lookup asks the store.
func (s *settling) lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	return s.session.Lookup(ctx, probes, func(f sink.Found) error {
		if uint(f.Probe) >= uint(len(probes)) {
			return fmt.Errorf("%w: it found a link for probe %d of %d", ErrBroken, f.Probe, len(probes))
		}
		return visit(f)
	})
}

// isOurs reports whether an earlier attempt of this run made a link.
func (s *settling) isOurs(f *sink.Found) bool { return s.run != 0 && f.Run == s.run }

// mark sets the fate of a URL. Only one goroutine at a time has to do with a bucket.
func (s *settling) mark(bucket, first int, as fate) {
	b := &s.made.buckets[bucket]
	if b.fates == nil {
		b.fates = make([]fate, s.records.Count(bucket))
	}
	b.fates[first] = as
}

// decide makes a special decision. The caller has the lock.
func (s *settling) decide(key sink.Key, d Decision) { s.made.special[key] = d }
