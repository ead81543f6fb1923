package source

import (
	"cmp"
	"context"
	"errors"
	"io"
)

// errClosed is the error of a goroutine that still reads when the input is closed.
var errClosed = errors.New("the input was closed")

// A window is the part of a stream that is being read: buf from pos on.
type window struct {
	*stream
	ctx   context.Context
	buf   []byte
	pos   int
	base  int64  // offset of buf[0] in the stream
	err   error  // why nothing follows buf, such as io.EOF; nil: the stream goes on
	block []byte // the block that buf lies in; nil: none
	need  int    // bytes that must follow pos before the record there is tried again
	turn  chan *window

	records int64   // records before pos
	line    badLine // the one that pos is in; without a fault, none
}

// newWindow returns the window at the start of a stream.
func newWindow(ctx context.Context, s *stream) *window {
	return &window{stream: s, ctx: ctx, turn: s.first}
}

// offset returns the offset of buf[pos] in the stream.
func (w *window) offset() int64 { return w.base + int64(w.pos) }

// eof says whether the stream ends with buf.
func (w *window) eof() bool { return w.err == io.EOF }

// add puts the next block behind what is left of the window, which moves buf. It says whether the
// record at pos shall be tried again: if the window has twice as many bytes of it as at the last
// try. So all tries at a record of many blocks take linear time together.
func (w *window) add(b *block) bool {
	rest := w.buf[w.pos:]
	at := b.offset - int64(len(rest))
	if len(rest) <= b.start {
		pos := b.start - len(rest)
		copy(b.buf[pos:], rest)
		w.release()
		w.block, w.buf, w.pos = b.buf, b.buf, pos
	} else {
		if w.block != nil {
			rest = append(make([]byte, 0, 2*len(rest)+len(b.buf)), rest...)
		}
		w.buf, w.pos = append(rest, b.buf[b.start:]...), 0
		w.release()
		w.free <- b.buf
	}
	w.base, w.err, w.turn = at-int64(w.pos), b.err, b.next
	return len(w.buf)-w.pos >= w.need || w.err != nil
}

// release returns the block that buf lies in to the stream.
func (w *window) release() {
	if w.block != nil {
		w.free <- w.block
		w.block = nil
	}
}

// fill adds the next block of the stream, or returns why there is none.
func (w *window) fill() error {
	if w.err != nil {
		return w.err
	}
	b, err := w.following(w.ctx)
	if b == nil {
		return cmp.Or(err, errClosed)
	}
	w.add(b)
	return nil
}

// drain moves to the end of the stream.
func (w *window) drain() error {
	for {
		w.pos = len(w.buf)
		if err := w.fill(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Read makes the rest of the stream an io.Reader.
func (w *window) Read(p []byte) (int, error) {
	for w.pos == len(w.buf) {
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
	for len(w.buf)-w.pos < n && !w.eof() {
		if err := w.fill(); err != nil {
			return err
		}
	}
	return nil
}
