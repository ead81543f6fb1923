package source

import (
	"context"
)

// All workers read blocks of a text at the same time. A worker does not know where the first
// record of its block starts, so it guesses that the block starts with a record. The window,
// which says where the records before end, goes from the worker of one block to that of the
// next. How a record is split depends only on its own bytes: if one of the guessed records
// starts where the window says, it and all after it are right. If none does, the block is read
// again.
//
// A worker that has the window already does not guess. A single worker always has it.

// openLines makes Read read the input from offset start on. Each worker gets lines of its own
// from newLines.
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
			if b.worker == 0 { // the others wait until it passes the window on
				if err := l.finish(w, b); err != nil {
					return err
				}
			}
			return l.blocks(w.stream, b)
		})
	}
}

// blocks reads blocks of s until there are no more.
func (l *lines) blocks(s *stream, b *batcher) error {
	g := newBatcher(b.reading, b.worker)
	for !b.in.cut {
		blk, err := s.following(b.ctx)
		if blk == nil {
			return err
		}
		var w, guess *window
		select {
		case w = <-blk.turn:
		default:
			guess = l.guess(blk, g)
			select {
			case w = <-blk.turn:
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

// guess reads blk into g as if blk started with a record. The window that it returns is where the
// last record in blk ends.
func (l *lines) guess(blk *block, g *batcher) *window {
	l.enter(&window{buf: blk.buf, pos: blk.start, base: blk.offset - int64(blk.start), err: blk.err})
	l.read(g)
	return l.w
}

// take adds blk to the window and reads the records that were not guessed right. Then it hands
// the batches of b and g to emit.
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

// enter sets the window that l reads.
func (l *lines) enter(w *window) {
	l.w = w
	l.moved()
}

// adopt reads the records that begin before start into b. If one of the guessed records in g
// begins where these end, adopt drops the guessed ones before it, moves the window behind the
// rest and returns true.
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

// finish reads the records that end in the window into b, and hands b to emit each time it is
// full. Then it passes the window on, and hands the rest to emit.
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
		b.cancel(err) // other workers may wait for the window
		return err
	}
	w.turn <- w
	return b.flush()
}
