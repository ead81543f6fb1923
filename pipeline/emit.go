package pipeline

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// A piece has at most pieceRows rows, and fewer if they are long: their records are to
// take no more than pieceBytes.
const (
	pieceRows  = 1 << 14
	pieceBytes = 4 << 20
)

// A piece is a stretch of a bucket on its way to the mapping and to the store.
type piece struct {
	bucket     *sharedBucket
	start, end int

	block report.Block // nil: its rows are only put in the order of the input
	*linked
	salted []decision // of its links, those with a salt above 0
	rows   [3]int64   // of the block, by outcome.Outcome
	done   chan struct{}
}

// A sharedBucket is released when the last of its pieces is done with.
type sharedBucket struct {
	*extsort.Bucket
	number int
	pieces atomic.Int32
}

// finished tells that a piece is written and, if it is to be, loaded. Its links
// and their codes may be used again.
func (p *piece) finished(free *sync.Pool) {
	if p.linked != nil {
		free.Put(p.linked)
	}
	if p.bucket.pieces.Add(-1) == 0 {
		p.bucket.Release()
	}
}

// linked is the memory of a piece's links.
type linked struct {
	links []sink.Link
	codes []byte // never grown, since links refer to it
}

// emit writes mapping and collisions and loads the links, all in the order of the
// sort. If the mapping is wanted in that of the input, its rows only go into
// another sort, and are written when that is complete.
func (r *run) emit(ctx context.Context, session sink.Session, row sink.Run) (_ *written, err error) {
	r.cfg.DiskBound()
	out, err := r.openReports()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			out.mapping.Abandon()
		}
	}()
	if r.cfg.ReportOrder != report.InputOrder {
		return out, r.timeWriting(func() error { return r.emitSorted(ctx, out, nil, session, row) })
	}
	if size := r.records.Size(); r.budget.placed > 0 && size > r.budget.placed {
		if err := r.needRoom(size); err != nil {
			return nil, err
		}
	}
	placed := r.newPlaceSorter(r.budget.placed, r.budget.loads)
	defer func() { err = errors.Join(err, r.closeSorter(placed)) }()
	r.cfg.Status.enter(StageOrder)
	if err := r.timings.time("order", func(s *manifest.Stage) error {
		s.Rows = r.records.Len()
		if err := r.emitSorted(ctx, out, placed, session, row); err != nil {
			return err
		}
		return placed.Finish(ctx)
	}); err != nil {
		return nil, err
	}
	return out, r.timeWriting(func() error { return r.emitPlaced(ctx, out, placed) })
}

// timeWriting does the stage that writes the mapping.
func (r *run) timeWriting(write func() error) error {
	r.cfg.Status.enter(StageWrite)
	return r.timings.time("write", func(s *manifest.Stage) error {
		err := write()
		s.Rows = r.cfg.Status.Written.Load()
		return err
	})
}

// emitSorted goes over the records: their rows are written, or placed if they are
// to be in another order.
func (r *run) emitSorted(ctx context.Context, out *written, placed *extsort.Sorter, session sink.Session, row sink.Run) error {
	g, ctx := errgroup.WithContext(ctx)
	loads := make(chan *piece)
	load := session != nil && !r.cfg.DryRun && r.settled.toLoad() > 0
	order := r.inPieces(ctx, g, r.records, func(pieces <-chan *piece) error {
		f := formatter{run: r, load: load}
		if placed != nil {
			f.placed = placed.NewWriter()
		}
		for p := range pieces {
			if placed == nil {
				p.block = out.mapping.Block()
			}
			start := time.Now()
			f.format(p)
			r.timings.worked(start)
			close(p.done)
			if placed != nil && f.placed.Err() != nil {
				return f.placed.Err()
			}
		}
		out.digested(&f.digest)
		return nil
	})
	g.Go(func() error { return ended(loads, r.writePieces(ctx, out, order, loads)) })
	if load {
		g.Go(func() error { return session.Load(ctx, row, chunks(ctx, loads, &r.freeLinks)) })
	}
	return g.Wait()
}

// inPieces loads the buckets of a sorter, a few ahead of their use, cuts them into
// pieces, and has the workers work on these. It returns the pieces in order; each
// is done when its channel says so. Under way are at most as many pieces as there are
// workers and three, of which one waits to be among them, one is written and one is
// loaded into the store; two buckets are loaded ahead.
func (r *run) inPieces(ctx context.Context, g *errgroup.Group, s *extsort.Sorter, work func(pieces <-chan *piece) error) <-chan *piece {
	tasks := make(chan *piece, r.cfg.Workers)
	order := make(chan *piece, r.cfg.Workers)
	g.Go(func() error {
		defer close(tasks)
		return ended(order, s.InOrder(ctx, 2, func(i int, b *extsort.Bucket) error {
			return cut(ctx, &sharedBucket{Bucket: b, number: i}, tasks, order)
		}))
	})
	for range r.cfg.Workers {
		g.Go(func() error { return work(tasks) })
	}
	return order
}

// cut sends the stretches of a bucket to the workers and, in order, to the writer.
func cut(ctx context.Context, b *sharedBucket, tasks, order chan<- *piece) error {
	n := b.Len()
	rows := max(1, min(pieceRows, int(pieceBytes*int64(n)/max(b.Size(), 1))))
	b.pieces.Store(int32((n + rows - 1) / rows))
	for start := 0; start < n; start += rows {
		p := &piece{bucket: b, start: start, end: min(start+rows, n), done: make(chan struct{})}
		for _, to := range []chan<- *piece{tasks, order} {
			if err := send(ctx, to, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// writePieces takes the pieces in order as they are formatted, and sends on those with links.
func (r *run) writePieces(ctx context.Context, out *written, order <-chan *piece, loads chan<- *piece) error {
	r.cfg.Status.Written.Store(0)
	for {
		p, ok, err := receive(ctx, order)
		if !ok {
			return err
		}
		if _, _, err := receive(ctx, p.done); err != nil {
			return err
		}
		if err := out.add(p); err != nil {
			return err
		}
		r.cfg.Status.Written.Add(int64(p.end - p.start))
		if p.linked == nil || len(p.links) == 0 {
			p.finished(&r.freeLinks)
			continue
		}
		if err := send(ctx, loads, p); err != nil {
			return err
		}
	}
}

// chunks yields the links of the pieces for sink.Session.Load.
func chunks(ctx context.Context, loads <-chan *piece, free *sync.Pool) iter.Seq2[[]sink.Link, error] {
	return func(yield func([]sink.Link, error) bool) {
		for {
			p, ok, err := receive(ctx, loads)
			if err != nil {
				yield(nil, err)
			}
			if !ok || !yield(p.links, nil) {
				return
			}
			p.finished(free)
		}
	}
}

// ended closes a channel that has been sent all there is. After an error it stays
// open, so that nobody takes a part for the whole: who receives meets the end of
// the context.
func ended[T any](to chan<- T, err error) error {
	if err == nil {
		close(to)
	}
	return err
}

// send sends to a channel, or returns what ended the context.
func send[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// receive receives from a channel, or returns what ended the context.
func receive[T any](ctx context.Context, from <-chan T) (v T, ok bool, err error) {
	select {
	case v, ok = <-from:
		return v, ok, nil
	case <-ctx.Done():
		return v, false, context.Cause(ctx)
	}
}

// A formatter turns records into rows and links, for one goroutine.
type formatter struct {
	run    *run
	row    report.Row
	load   bool            // links are wanted
	placed *extsort.Writer // of the rows in the order of the input; nil: they are formatted
	buf    []byte

	digest report.RowDigest
}

// touchAhead is the number of records whose memory is asked for at once.
const touchAhead = 32

// format fills in a piece.
func (f *formatter) format(p *piece) {
	b := p.bucket.Bucket
	p.linked = f.run.freeLinks.Get().(*linked)
	p.links, p.codes = p.links[:0], slices.Grow(p.codes[:0], (p.end-p.start)*f.run.scheme.Length())
	first := firstOf(b, p.start)
	f.walk(p, func(i int) (next int) {
		end := i + 1
		for end < p.end && sameURL(b, i, end) {
			end++
		}
		f.url(p, first, i, end)
		first = end
		return end
	})
}

// walk visits records of the piece in order, each where the visit before says. Their
// memory is asked for ahead.
func (f *formatter) walk(p *piece, visit func(i int) (next int)) {
	touched := p.start
	for i := p.start; i < p.end; i = visit(i) {
		if i+touchAhead/2 > touched {
			p.bucket.Touch(touched, touched+touchAhead)
			touched += touchAhead
		}
	}
}

// firstOf returns the first record of the URL that record i belongs to.
func firstOf(b *extsort.Bucket, i int) int {
	if i == 0 || !sameURL(b, i-1, i) {
		return i
	}
	slot := b.Search(b.Group(i), b.Key(i)) // in which other URLs may come before, with many rows
	return slot + sort.Search(i-slot, func(n int) bool { return sameURL(b, slot+n, i) })
}

// url adds the records [from, to) of the URL whose first record in the bucket is
// given; its very first may be in an earlier bucket.
func (f *formatter) url(p *piece, first, from, to int) {
	b, s, hash := p.bucket, f.run.settled, hashOf(p.bucket.Record(from))
	d := s.decision(b.number, first, hash)
	if d.outcome == exhausted {
		return
	}
	f.row.Workspace, f.row.Salt = f.run.workspaceName(b.Group(from)), d.salt
	if d.code != "" {
		f.row.Code = []byte(d.code)
	} else {
		start := len(p.codes)
		p.codes = f.run.scheme.AppendCode(p.codes, hash)
		f.row.Code = p.codes[start:len(p.codes):len(p.codes)]
	}
	as := outcome.Created
	if d.outcome == found {
		as = outcome.Existing
	}
	if first == 0 && s.heads[b.number].known {
		first = -1
	}
	for i := from; i < to; i++ {
		rec := b.Record(i)
		r := decode(rec)
		f.row.Outcome = outcome.Duplicate
		if i == first {
			f.row.Outcome = as
			if f.load && d.outcome == created {
				p.links = append(p.links, f.link(&r, hash))
			}
			if d.salt > 0 {
				p.salted = append(p.salted, d)
			}
		}
		if f.placed != nil {
			f.place(b.Group(i), rec, &r)
		} else {
			f.add(p, &r)
		}
	}
}

// add formats one row.
func (f *formatter) add(p *piece, r *record) {
	f.row.Source, f.row.Row = f.run.inputs.list[r.place.source].Name, r.place.row
	f.row.Original, f.row.Canonical = r.original, r.canonical
	if !f.run.cfg.NoCarry {
		f.row.Carried = r.carried(f.row.Carried[:0], len(f.run.inputs.carried))
	}
	p.block.Append(&f.row)
	f.digest.Add(&f.row)
	p.rows[f.row.Outcome]++
}

// link returns what the store is to hold of the URL of the row in hand.
func (f *formatter) link(r *record, hash codegen.Hash) sink.Link {
	l := sink.Link{Workspace: f.row.Workspace, Code: f.row.Code, Key: hash.Key(), Canonical: r.canonical}
	if r.flags&flagSame == 0 {
		if original := canon.Trim(r.original); !bytes.Equal(original, r.canonical) {
			l.Original = canon.EscapeInvalid(original)
		}
	}
	return l
}
