package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// A stream reads an input in blocks, in a goroutine of its own that counts and
// hashes the raw bytes, decompresses them and decodes UTF-16: all that is in
// order by nature, beside the parsing. A block has room before its bytes, into
// which the reader copies the part of a record that the last block ended in, so
// no other byte is moved.
type stream struct {
	size, head int           // bytes of a block, room before them
	full       chan []byte   // room and bytes; closed at the end
	free       chan []byte   // bounds the blocks that exist; nil: not made yet
	stop, done chan struct{} // Close asks; the goroutine has ended

	// Settled by the goroutine before the first block.
	compression, encoding string
	err                   error // once full is closed
	digest                *digest
}

// newStream starts to read raw into at most depth blocks of size bytes. The
// digest of the raw bytes is that of raw.
func newStream(raw *digest, size, depth int) *stream {
	s := &stream{
		size: size, head: min(16*size, 64<<10),
		full: make(chan []byte, depth), free: make(chan []byte, depth),
		stop: make(chan struct{}), done: make(chan struct{}),
		digest: raw,
	}
	for range depth {
		s.free <- nil
	}
	go s.run()
	return s
}

func (s *stream) run() {
	defer close(s.done)
	defer close(s.full)
	r, closer, err := s.open()
	if closer != nil {
		defer closer()
	}
	for err == nil {
		var block []byte
		select {
		case block = <-s.free:
		case <-s.stop:
			return
		}
		if block == nil {
			block = make([]byte, s.head+s.size)
		}
		n, block := s.head, block[:s.head+s.size]
		for n < len(block) && err == nil {
			var m int
			m, err = r.Read(block[n:])
			n += m
		}
		if n == s.head {
			break
		}
		s.full <- block[:n] // has room for all blocks that exist
	}
	if err != io.EOF {
		s.err = err
	}
}

// open settles compression and encoding by the first bytes.
func (s *stream) open() (io.Reader, func(), error) {
	magic, r, err := peek(s.digest, 4)
	if err != nil {
		return nil, nil, err
	}
	var closer func()
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		s.compression = "gzip"
		r, err = gzip.NewReader(r)
	case isZstd(magic):
		s.compression = "zstd"
		var z *zstd.Decoder
		// One goroutine is enough beside the parsing; 128 MiB is the window
		// that the zstd tool accepts.
		z, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err == nil {
			r, closer = z, z.Close
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if s.compression != "" {
		if magic, r, err = peek(r, 4); err != nil {
			return nil, closer, err
		}
	}
	s.encoding = "utf-8"
	endian := unicode.LittleEndian
	switch {
	case bytes.HasPrefix(magic, []byte{0xff, 0xfe}):
		s.encoding = "utf-16le"
	case bytes.HasPrefix(magic, []byte{0xfe, 0xff}):
		s.encoding, endian = "utf-16be", unicode.BigEndian
	default:
		return r, closer, nil
	}
	return transform.NewReader(r, unicode.UTF16(endian, unicode.IgnoreBOM).NewDecoder()), closer, nil
}

// isZstd knows the magic numbers of a frame and of the skippable frame with
// which parallel compressors start (RFC 8878, section 3.1).
func isZstd(b []byte) bool {
	return bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(b) >= 4 && b[0]&0xf0 == 0x50 && bytes.Equal(b[1:4], []byte{0x2a, 0x4d, 0x18})
}

// peek returns the first n bytes of r, fewer at its end, and a reader of all.
func peek(r io.Reader, n int) ([]byte, io.Reader, error) {
	b := make([]byte, n)
	n, err := io.ReadFull(r, b)
	if err != nil && err != io.EOF && (err != io.ErrUnexpectedEOF || n == 0) {
		return nil, nil, err
	}
	return b[:n], io.MultiReader(bytes.NewReader(b[:n]), r), nil
}

// next returns the next block, or nil at the end of the stream.
func (s *stream) next(ctx context.Context) ([]byte, error) {
	select {
	case block, ok := <-s.full:
		if !ok {
			return nil, s.err
		}
		return block, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close ends the goroutine, and waits for it unless it hangs in a read that
// nothing can interrupt (a standard input that is no pipe of ours).
func (s *stream) Close() {
	close(s.stop)
	f, ok := s.digest.r.(*os.File)
	if !ok {
		return
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() || f.SetReadDeadline(time.Unix(1, 0)) == nil {
		<-s.done
	}
}

// A digest counts and hashes what is read through it.
type digest struct {
	r    io.Reader
	hash hash.Hash
	n    *atomic.Int64
}

func newDigest(r io.Reader, n *atomic.Int64) *digest {
	return &digest{r: r, hash: sha256.New(), n: n}
}

func (d *digest) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	d.hash.Write(p[:n])
	d.n.Add(int64(n))
	return n, err
}
