package source

import (
	"context"
	"time"
)

// Text is read in blocks by all workers at once. What a splitter finds depends
// on the bytes of a record alone, so a worker reads its block before it knows
// where the first record of the block starts, as if the block started with one.
// The window goes from the worker of one block to that of the next, and brings
// along the place where the records so far end. If one of the records that were
// guessed starts there, it and those after it are as they would be read from
// there. If none does, the block is read again.
//
// Whoever has the window already, as a single worker always has, guesses nothing.

// openLines has the input read from offset start on, by the lines that newLines makes
// for each worker.
func (in *Input) openLines(start int, newLines func() *lines) {
	in.read = func(r *reading) error {
		w := in.src
		w.lines.Store(true)
		if err := w.look(start); err != nil {
			return &ReadError{Err: err}
		}
		w.pos = min(w.pos+start, len(w.buf))
		w.share(r.workers)
		return r.share(func(b *batcher) error {
			l := newLines()
			l.keep = l.ncols
			if b.worker == 0 { // and nobody else, until it passes the window on
				if err := l.finish(w, b); err != nil {
					return err
				}
			}
			return l.blocks(w.stream, b)
		})
	}
}

// blocks reads blocks of s, as long as there are any.
func (l *lines) blocks(s *stream, b *batcher) error {
	g := newBatcher(b.reading, b.worker)
	for !b.in.cut {
		start := time.Now()
		blk, err := s.following(b.ctx)
		b.in.waited(start)
		if blk == nil {
			return err
		}
		var w, guess *window
		select {
		case w = <-blk.turn:
		default:
			guess = l.guess(blk, g)
			start := time.Now()
			select {
			case w = <-blk.turn:
				b.in.waited(start)
			case <-b.ctx.Done():
				return context.Cause(b.ctx)
			}
		}
		if err := l.take(w, blk, b, guess, g); err != nil {
			return err
		}
	}
	return nil
}

// guess reads blk into g as if a record started with it, and returns where it
// got to.
func (l *lines) guess(blk *block, g *batcher) *window {
	l.enter(&window{buf: blk.buf, pos: blk.start, base: blk.offset - int64(blk.start), err: blk.err})
	l.read(g)
	return l.w
}

// take adds blk to the window and reads on in it, but for what was guessed right. It
// hands on what b and g have then.
func (l *lines) take(w *window, blk *block, b *batcher, guess *window, g *batcher) error {
	b.base = w.records
	if !w.add(blk) {
		g.reset()
		w.turn <- w
		return nil
	}
	l.enter(w)
	if guess == nil || !l.adopt(guess, blk.offset, b, g) {
		g.reset()
		return l.finish(w, b)
	}
	if err := l.finish(w, g); err != nil {
		return err
	}
	return b.flush()
}

// enter makes w the window that l reads.
func (l *lines) enter(w *window) {
	l.w = w
	l.moved()
}

// adopt reads the records that begin before start into b. If one of those guessed, in
// g, begins where these end, it drops the ones before that, moves on behind the others
// and returns true.
func (l *lines) adopt(guess *window, start int64, b, g *batcher) bool {
	w := l.w
	for w.line.fault != nil || w.offset() < start {
		if b.full() || !l.one(b) {
			return false
		}
	}
	if !l.begin() {
		return false
	}
	g.base = b.base + b.n
	if !g.dropBefore(w.offset()) {
		return false
	}
	w.pos, w.line = int(guess.offset()-w.base), guess.line
	return true
}

// finish reads the records that end in the window into b, which it hands on each time
// it is full. It then passes the window on, and hands on what b has.
func (l *lines) finish(w *window, b *batcher) error {
	l.enter(w)
	for l.read(b) {
		if err := b.flush(); err != nil {
			return err
		}
		if b.limited() {
			b.in.cut = l.begin()
			break
		}
	}
	w.records, w.need = b.base+b.n, 2*(len(w.buf)-w.pos)
	if w.err != nil && !w.eof() {
		err := &ReadError{After: w.records, Err: w.err}
		b.cancel(err) // others may wait for the window
		return err
	}
	w.turn <- w
	return b.flush()
}
