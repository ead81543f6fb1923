package source

import (
	"context"
	"io"
)

// A window is the part of a stream that its reader looks at: buf from pos on.
type window struct {
	*stream
	ctx   context.Context
	buf   []byte
	pos   int
	base  int64 // offset of buf[0] in the stream
	eof   bool  // the stream ends with buf
	block []byte
}

// offset is the place of buf[pos] in the stream.
func (w *window) offset() int64 { return w.base + int64(w.pos) }

// fill adds what follows in the stream, or sets eof. It moves buf. What is left
// of buf doubles once it is longer than the room before a block, so that a
// record that is looked at again after each fill costs linear time.
func (w *window) fill() error {
	rest, at := w.buf[w.pos:], w.offset()
	block, err := w.next(w.ctx)
	switch {
	case err != nil:
		return err
	case block == nil:
		w.eof = true
		return nil
	case len(rest) <= w.head:
		w.pos = w.head - len(rest)
		copy(block[w.pos:], rest)
		w.base = at - int64(w.pos)
		w.keep(block, block)
		return nil
	}
	long := append(make([]byte, 0, 2*len(rest)+len(block)), rest...)
	for block != nil && err == nil {
		long = append(long, block[w.head:]...)
		w.put(block)
		if len(long) >= 2*len(rest) {
			break
		}
		block, err = w.next(w.ctx)
	}
	w.eof = block == nil && err == nil
	w.pos, w.base = 0, at
	w.keep(nil, long)
	return err
}

// keep makes buf, in block, the window, and gives the last block back.
func (w *window) keep(block, buf []byte) {
	if w.block != nil {
		w.put(w.block)
	}
	w.block, w.buf = block, buf
}

func (s *stream) put(block []byte) { s.free <- block }

// skip moves on by n bytes, or to the end of the stream if n is negative.
func (w *window) skip(n int64) error {
	for n != 0 {
		have := int64(len(w.buf) - w.pos)
		if n > 0 {
			have = min(have, n)
			n -= have
		}
		w.pos += int(have)
		if n == 0 || w.eof {
			return nil
		}
		if err := w.fill(); err != nil {
			return err
		}
	}
	return nil
}

// Read makes the rest of the stream an io.Reader.
func (w *window) Read(p []byte) (int, error) {
	for w.pos == len(w.buf) {
		if w.eof {
			return 0, io.EOF
		}
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, w.buf[w.pos:])
	w.pos += n
	return n, nil
}

// look fills the window until it holds n bytes or the stream ends.
func (w *window) look(n int) error {
	for len(w.buf)-w.pos < n && !w.eof {
		if err := w.fill(); err != nil {
			return err
		}
	}
	return nil
}
