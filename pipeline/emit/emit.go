// Package emit makes the mapping, the collisions, the links that the store is to load, and
// the rejects, of sorted rows and what was settled about them.
//
// All of it goes in the order of the sort, in pieces: workers format pieces of a bucket in
// parallel, one goroutine writes them in order, and passes their links on to the store. For a
// mapping in the order of the input, [Order] puts the rows into another sort while the links
// are loaded, and [Placed] writes that.
package emit

import (
	"bytes"
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// Config says how rows are emitted.
type Config struct {
	Workers            int
	Domains            bool            // short URLs have the domains of rows, which records have
	NoCarry            bool            // leave the carried cells out of the mapping
	Columns            report.Columns  // of the mapping
	AsOf               int64           // Unix time, from which expiries are reckoned
	Rules              bool            // links bring along the parameters of their rows
	Profile            canon.Profile   // of the canonical URLs
	Attrs, KeepCreated bool            // links bring along what they were (along.Along.AppendAttrs), and when they were created
	Links              *extsort.Sorter // of SortLinks: what is loaded, rather than the links in the order of the records; may be nil
	Origin             *record.Record  // the first of the URL that continues from a part of the rows before these (settle.Amendment); nil: none does
	Written            *atomic.Int64   // accepted rows that are written or, by Order, placed; for another goroutine
}

// Load takes links into the store: chunks of them in the order of the sort, each valid
// until the next is asked for. It returns the error of a chunk.
type Load func(ctx context.Context, chunks iter.Seq2[[]sink.Link, error]) error

// Written is what was written.
type Written struct {
	Rows       [outcome.Count]int64 // of the mapping, by outcome
	Collisions int64
	Digest     string             // row digest of the mapping
	Aliases    int64              // rows of the mapping
	Changes    rules.ChangeCounts // of the mapping, rows by change
	Existing   rules.ChangeCounts // of these, rows that are outcome.Existing: links, by the change of the row that decides
	Merged     *manifest.MergedDiffers
	Values     []campaign.Values // links of the mapping by the values of parameters; nil: a row is one link
}

// Sorted writes mapping and collisions in the order of the sort, and loads the links if
// load is not nil. Errors are those of the files, the sort and load, or the cause that ended
// ctx. When it returns no goroutine is at work.
func Sorted(ctx context.Context, rows *intake.Rows, s *settle.Settlement, mapping report.Mapping, collisions *report.Collisions, load Load, cfg Config) (Written, error) {
	e := newEmitter(rows, cfg)
	e.settled, e.mapping, e.collisions, e.load = s, mapping, collisions, load
	return e.run(ctx, rows.Records, (*formatter).format)
}

// Order writes the collisions, loads the links if load is not nil, and puts the rows of the
// mapping into a sorter by place, which it finishes.
func Order(ctx context.Context, rows *intake.Rows, s *settle.Settlement, placed *extsort.Sorter, collisions *report.Collisions, load Load, cfg Config) (Written, error) {
	e := newEmitter(rows, cfg)
	e.settled, e.placed, e.collisions, e.load = s, placed, collisions, load
	w, err := e.run(ctx, rows.Records, (*formatter).format)
	if err != nil {
		return w, err
	}
	return w, placed.Finish(ctx)
}

// Placed writes a mapping of the rows that Order put into a sorter.
func Placed(ctx context.Context, rows *intake.Rows, placed *extsort.Sorter, mapping report.Mapping, cfg Config) (Written, error) {
	e := newEmitter(rows, cfg)
	e.mapping = mapping
	return e.run(ctx, placed, (*formatter).formatPlaced)
}

// An emitter does one of these.
type emitter struct {
	rows       *intake.Rows
	cfg        Config
	settled    *settle.Settlement
	mapping    report.Mapping  // nil: rows are placed
	placed     *extsort.Sorter // nil: they are written
	collisions *report.Collisions
	load       Load
	links      *extsort.Sorter // that links are put into; nil: they are loaded
	free       sync.Pool       // *chunk
}

func newEmitter(rows *intake.Rows, cfg Config) *emitter {
	e := &emitter{rows: rows, cfg: cfg}
	e.free.New = func() any { return new(chunk) }
	return e
}

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

	block  report.Block // nil: its rows are only placed
	chunk  *chunk       // nil: it has no links
	salted []settle.Decision
	done   chan struct{} // closed when it is formatted
}

// A sharedBucket is released when the last of its pieces is done with.
type sharedBucket struct {
	*extsort.Bucket
	number  int
	origin  *record.Record // the first of the URL that begins in an earlier bucket; nil: none does
	origins origins        // of that URL, if legacy codes are kept
	codes   *settle.Codes  // nil: they are made from hashes
	shown   *settle.Shown  // nil: links have what their rows say
	pieces  atomic.Int32
}

// numberOf returns the number that the run made the code of a URL from, whose first record is given; 0:
// none.
func (b *sharedBucket) numberOf(first int) int64 {
	if b.codes == nil {
		return 0
	}
	_, number := b.codes.Of(first)
	return number
}

// last returns a copy of the first record of the last URL.
func (b *sharedBucket) last() *record.Record {
	first := b.Bucket.FirstOf(b.Len()-1, record.KeySize)
	if first == 0 && b.origin != nil {
		return b.origin
	}
	r := record.Decode(b.Record(first))
	return &record.Record{Original: bytes.Clone(r.Original), Place: r.Place}
}

// A chunk is the memory of a piece's links.
type chunk struct {
	links []sink.Link
	codes []byte       // never grown, since the links refer to it
	rules []sink.Rules // nor this
}

// finished tells that a piece is written and, if it is to be, loaded. Its links and their
// codes may be used again.
func (e *emitter) finished(p *piece) {
	if p.chunk != nil {
		e.free.Put(p.chunk)
	}
	if p.bucket.pieces.Add(-1) == 0 {
		if p.bucket.codes != nil {
			p.bucket.codes.Release()
		}
		p.bucket.Release()
	}
}

// run has the workers format the records of a sorter, and writes what they make of them.
//
// Buckets are loaded two ahead of their use and cut into pieces. At most as many pieces as
// workers and three more exist at once. Of these three, one waits for a worker, one is
// written, and one is loaded into the store.
func (e *emitter) run(ctx context.Context, from *extsort.Sorter, format func(*formatter, *piece)) (w Written, err error) {
	e.cfg.Written.Store(0)
	g, ctx := errgroup.WithContext(ctx)
	tasks, order, loads := make(chan *piece, e.cfg.Workers), make(chan *piece, e.cfg.Workers), make(chan *piece)
	g.Go(func() error {
		defer close(tasks)
		origin := e.cfg.Origin
		var kept origins
		var codes *settle.CodeReader
		var shown *settle.ShownReader
		if e.settled != nil {
			if shown = e.settled.Shown(ctx); shown != nil {
				defer shown.Close()
			}
			if codes = e.settled.Codes(ctx); codes != nil {
				defer codes.Close()
			}
		}
		return ended(order, from.InOrder(ctx, 2, func(i int, b *extsort.Bucket) error {
			shared := &sharedBucket{Bucket: b, number: i}
			if s := e.settled; s != nil {
				if !s.Continues(i) && b.Len() > 0 {
					origin, kept = nil, origins{}
				}
				shared.origin, shared.origins = origin, kept
				if shown != nil {
					var err error
					if shared.shown, err = shown.Next(i); err != nil {
						return err
					}
				}
				if codes != nil && b.Len() > 0 {
					var err error
					if shared.codes, err = codes.Next(b, i, b.FirstOf(b.Len()-1, record.KeySize)); err != nil {
						return err
					}
				}
				if more := i+1 < from.Buckets() && s.Continues(i+1) && b.Len() > 0; more && s.Claims() != nil {
					kept = e.origins(shared)
				} else if more {
					origin = shared.last()
				}
			}
			return cut(ctx, shared, tasks, order)
		}))
	})
	formatters := make([]*formatter, e.cfg.Workers)
	for i := range formatters {
		f := newFormatter(e)
		formatters[i] = f
		g.Go(func() error {
			for p := range tasks {
				if e.mapping != nil {
					p.block = e.mapping.Block()
				}
				format(f, p)
				close(p.done)
				if err := f.err(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error { return ended(loads, e.write(ctx, order, loads, &w)) })
	if e.load != nil {
		chunks := e.chunks(ctx, loads)
		if e.cfg.Links != nil {
			chunks = sorted(ctx, e.cfg.Links, e.rows.Workspaces, &e.cfg)
		}
		g.Go(func() error { return e.load(ctx, chunks) })
	}
	if err := g.Wait(); err != nil {
		return w, err
	}
	digest := report.RowDigest{Columns: e.cfg.Columns}
	for _, f := range formatters {
		if first := formatters[0].tally; first != nil && f.tally != first {
			first.Merge(f.tally)
		}
		digest.Merge(&f.digest)
		for as, n := range f.counts {
			w.Rows[as] += n
		}
		w.Aliases += f.aliases
		w.Changes.Merge(&f.changes)
		w.Existing.Merge(&f.existing)
	}
	if tally := formatters[0].tally; tally != nil {
		w.Values = tally.Values()
	}
	w.Merged = merged(formatters)
	w.Digest = digest.Sum()
	return w, nil
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

// write writes the pieces in order as they are formatted, and sends on those with links.
func (e *emitter) write(ctx context.Context, order <-chan *piece, loads chan<- *piece, w *Written) error {
	for {
		p, ok, err := receive(ctx, order)
		if !ok {
			return err
		}
		if _, _, err := receive(ctx, p.done); err != nil {
			return err
		}
		if p.block != nil {
			if err := e.mapping.Write(p.block); err != nil {
				return err
			}
		}
		for i := range p.salted {
			n, err := e.writeCollisions(&p.salted[i])
			if err != nil {
				return err
			}
			w.Collisions += n
		}
		e.cfg.Written.Add(int64(p.end - p.start))
		if p.chunk == nil || len(p.chunk.links) == 0 {
			e.finished(p)
			continue
		}
		if err := send(ctx, loads, p); err != nil {
			return err
		}
	}
}

// writeCollisions writes the owner of each of the lower codes of a link, and returns how
// many codes those are.
func (e *emitter) writeCollisions(d *settle.Decision) (n int64, err error) {
	c := report.Collision{Workspace: e.rows.Workspaces.Name(d.URL.Workspace)}
	c.Canonical, c.Parts = rules.CutKey(d.URL.Canonical)
	for lower := range e.settled.Lower(d) {
		c.Salt, c.Code, c.Owner = lower.Salt, []byte(lower.Code), lower.Owner
		if err := e.collisions.Append(&c); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// chunks yields the links of the pieces.
func (e *emitter) chunks(ctx context.Context, loads <-chan *piece) iter.Seq2[[]sink.Link, error] {
	return func(yield func([]sink.Link, error) bool) {
		for {
			p, ok, err := receive(ctx, loads)
			if err != nil {
				yield(nil, err)
			}
			if !ok || !yield(p.chunk.links, nil) {
				return
			}
			e.finished(p)
		}
	}
}

// ended closes a channel that has been sent all there is. After an error it stays open, so
// that a part is not taken for the whole: the receiver meets the end of the context.
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
