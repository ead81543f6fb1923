package pipeline

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// pieceRows is the most rows that are formatted and loaded at once.
const pieceRows = 1 << 14

// A piece is a stretch of a bucket on its way to the mapping and to the store.
type piece struct {
	bucket     *sharedBucket
	start, end int

	block report.Block
	*linked
	collisions []report.Collision
	rows       [3]int64 // by report.Outcome
	done       chan struct{}
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
	free.Put(p.linked)
	if p.bucket.pieces.Add(-1) == 0 {
		p.bucket.Release()
	}
}

// linked is the memory of a piece's links.
type linked struct {
	links []sink.Link
	codes []byte // never grown, since links refer to it
}

// emit writes mapping and collisions and loads the links. Workers format pieces;
// one goroutine writes them in order and hands their links on to the store. At
// most two pieces a worker are under way, and two buckets are loaded ahead.
func (r *run) emit(ctx context.Context, session sink.Session, row sink.Run) (*written, error) {
	r.cfg.Status.enter(StageWrite)
	r.cfg.Status.Written.Store(0)
	out, err := r.openReports()
	if err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	buckets := make(chan *loading, 2)
	tasks := make(chan *piece, r.cfg.Workers)
	order := make(chan *piece, r.cfg.Workers)
	loads := make(chan *piece)
	load := session != nil && !r.cfg.DryRun && r.settled.toLoad() > 0
	g.Go(func() error {
		defer close(buckets)
		return r.loadBuckets(ctx, g, buckets)
	})
	g.Go(func() error {
		defer close(tasks)
		defer close(order)
		return cut(ctx, buckets, tasks, order)
	})
	for range r.cfg.Workers {
		g.Go(func() error {
			f := formatter{run: r, load: load}
			for p := range tasks {
				p.block = out.mapping.Block()
				f.format(p)
				close(p.done)
			}
			out.digested(&f.digest)
			return nil
		})
	}
	g.Go(func() error {
		defer close(loads)
		return r.write(ctx, out, order, loads, load)
	})
	if load {
		g.Go(func() error { return session.Load(ctx, row, chunks(ctx, loads, &r.freeLinks)) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// A loading is a bucket that somebody is loading.
type loading struct {
	number int
	bucket *extsort.Bucket
	err    error
	done   chan struct{}
}

// loadBuckets loads all buckets, a few ahead of their use.
func (r *run) loadBuckets(ctx context.Context, g *errgroup.Group, buckets chan<- *loading) error {
	for i := range r.records.Buckets() {
		l := &loading{number: i, done: make(chan struct{})}
		select {
		case buckets <- l:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		g.Go(func() error {
			defer close(l.done)
			l.bucket, l.err = r.records.Load(l.number)
			return nil // cut meets the error
		})
	}
	return nil
}

// cut sends the stretches of all buckets to the workers and, in order, to the
// writer.
func cut(ctx context.Context, buckets <-chan *loading, tasks, order chan<- *piece) error {
	for l := range buckets {
		<-l.done
		if l.err != nil {
			return l.err
		}
		n := l.bucket.Len()
		b := &sharedBucket{Bucket: l.bucket, number: l.number}
		b.pieces.Store(int32((n + pieceRows - 1) / pieceRows))
		for start := 0; start < n; start += pieceRows {
			p := &piece{bucket: b, start: start, end: min(start+pieceRows, n), done: make(chan struct{})}
			for _, to := range []chan<- *piece{tasks, order} {
				select {
				case to <- p:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
	}
	return nil
}

// write takes the pieces in order as they are formatted.
func (r *run) write(ctx context.Context, out *written, order <-chan *piece, loads chan<- *piece, load bool) error {
	for p := range order {
		select {
		case <-p.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := out.add(p); err != nil {
			return err
		}
		r.cfg.Status.Written.Add(int64(p.end - p.start))
		if !load || len(p.links) == 0 {
			p.finished(&r.freeLinks)
			continue
		}
		select {
		case loads <- p:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// chunks yields the links of the pieces for sink.Session.Load.
func chunks(ctx context.Context, loads <-chan *piece, free *sync.Pool) iter.Seq2[[]sink.Link, error] {
	return func(yield func([]sink.Link, error) bool) {
		for {
			select {
			case p, ok := <-loads:
				if !ok {
					if ctx.Err() != nil {
						yield(nil, context.Cause(ctx))
					}
					return
				}
				if !yield(p.links, nil) {
					return
				}
				p.finished(free)
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
	}
}

// A formatter turns records into rows and links, for one goroutine.
type formatter struct {
	run  *run
	row  report.Row
	load bool // links are wanted

	digest report.RowDigest

	touched byte // of no meaning
}

// touchAhead is the number of records whose memory is asked for at once.
const touchAhead = 32

// format fills in a piece.
func (f *formatter) format(p *piece) {
	b := p.bucket.Bucket
	p.linked = f.run.freeLinks.Get().(*linked)
	p.links, p.codes = p.links[:0], slices.Grow(p.codes[:0], (p.end-p.start)*f.run.scheme.Length())
	first := firstOf(b, p.start)
	touched := p.start
	for i := p.start; i < p.end; {
		if i+touchAhead/2 > touched {
			f.touched += b.Touch(touched, touched+touchAhead)
			touched += touchAhead
		}
		end := i + 1
		for end < p.end && sameURL(b, i, end) {
			end++
		}
		f.url(p, first, i, end)
		i, first = end, end
	}
}

// firstOf returns the first record of the URL that record i belongs to.
func firstOf(b *extsort.Bucket, i int) int {
	if i == 0 || !sameURL(b, i-1, i) {
		return i
	}
	first := b.Search(b.Group(i), b.Key(i))
	for !sameURL(b, first, i) {
		first++
	}
	return first
}

// url adds the records [from, to) of the URL whose first record in the bucket is
// given; its very first may be in an earlier bucket.
func (f *formatter) url(p *piece, first, from, to int) {
	b, at := p.bucket, head{true, p.bucket.number, first}
	if first == 0 && f.run.settled.heads[b.number].known {
		at = f.run.settled.heads[b.number]
		first = -1
	}
	hash, verdict := hashOf(b.Record(from)), f.run.settled.verdict(at.bucket, at.first)
	f.row.Workspace = f.run.workspaceName(b.Group(from))
	outcome, load := report.Created, f.load && verdict == fresh
	if verdict == existing {
		outcome = report.Existing
	}
	f.row.Salt = 0
	if verdict == special {
		d := f.run.settled.special[hash.Key()]
		if d.outcome == exhausted {
			return
		}
		f.row.Code, f.row.Salt = []byte(d.code), d.salt
		load = f.load && d.outcome == created
		if d.outcome == found {
			outcome = report.Existing
		}
	} else {
		start := len(p.codes)
		p.codes = f.run.scheme.AppendCode(p.codes, hash)
		f.row.Code = p.codes[start:len(p.codes):len(p.codes)]
	}
	for i := from; i < to; i++ {
		r := decode(b.Record(i))
		f.row.Outcome = report.Duplicate
		if i == first {
			f.row.Outcome = outcome
			if load {
				p.links = append(p.links, f.link(&r))
			}
			if verdict == special {
				p.collisions = append(p.collisions, f.run.settled.collisions[hash.Key()]...)
			}
		}
		f.add(p, &r)
	}
}

// add formats one row.
func (f *formatter) add(p *piece, r *record) {
	cells, at := r.carried(f.row.Carried[:0], len(f.run.inputs.carried))
	f.row.Source, f.row.Row = f.run.inputs.list[at.source].Name, at.row
	f.row.Original, f.row.Canonical = r.original, r.canonical
	f.row.Carried = cells
	if f.run.cfg.NoCarry {
		f.row.Carried = cells[:0]
	}
	p.block.Append(&f.row)
	f.digest.Add(&f.row)
	p.rows[f.row.Outcome]++
}

// link returns what the store is to hold of the URL of the row in hand.
func (f *formatter) link(r *record) sink.Link {
	l := sink.Link{Workspace: f.row.Workspace, Code: f.row.Code, Key: r.hash.Key(), Canonical: r.canonical}
	if r.flags&flagSame == 0 {
		if original := canon.Trim(r.original); !bytes.Equal(original, r.canonical) {
			l.Original = escapeInvalid(original)
		}
	}
	return l
}

// escapeInvalid writes the bytes that are not UTF-8 as %XX.
func escapeInvalid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	const digits = "0123456789ABCDEF"
	var out []byte
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			out = append(out, '%', digits[text[0]>>4], digits[text[0]&15])
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}
