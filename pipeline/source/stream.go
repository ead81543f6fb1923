package source

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/linkforge/bulk/pipeline/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// A stream reads an input in blocks. Its goroutine does all that must be done in order, while
// others parse: it counts and hashes the raw bytes, decompresses them and decodes UTF-16.
type stream struct {
	size, head int           // bytes read for a block, room before them
	full       chan *block   // closed after the last
	free       chan []byte   // memory for blocks, of which there are no more; nil: to be allocated
	stop, done chan struct{} // closed to end the goroutine, and by it when it has ended
	lines      atomic.Bool   // a block ends with a line, if one ends near the block's end
	first      chan *window  // block.turn of the first block
	wanted     string        // Options.Encoding

	// Set by the goroutine before the first block.
	compression, encoding string
	digest                *digest
}

// A block is a part of a stream: buf from start on. In the room before start the reader puts the
// record in which the last block ended, so that no other byte is moved.
type block struct {
	buf        []byte
	start      int
	offset     int64        // of buf[start] in the stream
	err        error        // why the stream ends here, such as io.EOF; nil: it goes on
	turn, next chan *window // hand the window to the reader of this block, and of the next
}

const (
	someBlocks = 3  // of a stream that one goroutine reads
	mostBlocks = 64 // of any

	magicBytes = 4 // that tell compression and byte order

	codedBuffer = 64 << 10 // bytes of compressed input that are read at a time; decoders ask for fewer
)

// newStream starts to read raw, a text of which may be in an encoding, into a few blocks of size bytes.
func newStream(raw *digest, size int, encoding string) *stream {
	s := &stream{
		wanted: encoding,
		size:   size, head: min(16*size, 64<<10),
		full: make(chan *block, mostBlocks), free: make(chan []byte, mostBlocks),
		stop: make(chan struct{}), done: make(chan struct{}), first: make(chan *window, 1),
		digest: raw,
	}
	for range someBlocks {
		s.free <- nil
	}
	go s.run()
	return s
}

// share makes room for the blocks that more readers hold.
func (s *stream) share(readers int) {
	for range min(readers, mostBlocks-someBlocks) {
		s.free <- nil
	}
}

func (s *stream) run() {
	defer close(s.done)
	defer close(s.full)
	r, closer, err := s.open()
	if closer != nil {
		defer closer()
	}
	var rest []byte // of the line that the last block had only the start of
	for b := (&block{next: s.first}); b.err == nil; {
		b = &block{offset: b.offset + int64(len(b.buf)-b.start), start: s.head - len(rest), turn: b.next, next: make(chan *window, 1), err: err}
		select {
		case b.buf = <-s.free:
		case <-s.stop:
			return
		}
		if b.buf == nil {
			b.buf = make([]byte, s.head+s.size)
		}
		b.buf = b.buf[:s.head+s.size]
		copy(b.buf[b.start:], rest)
		if !s.fill(b, r) {
			return
		}
		end := len(b.buf)
		if near := max(end-s.head/2, b.start); s.lines.Load() && b.err == nil {
			if i := bytes.LastIndexByte(b.buf[near:], '\n'); i >= 0 {
				end = near + i + 1
			}
		}
		rest = append(rest[:0], b.buf[end:]...)
		b.buf = b.buf[:end]
		s.full <- b // has room for all blocks that exist
	}
}

// fill reads a block from r. An error may cut it short. It returns false if it was stopped.
func (s *stream) fill(b *block, r io.Reader) bool {
	n := s.head
	for n < len(b.buf) && b.err == nil {
		select {
		case <-s.stop: // the rest of the input may be for another reader
			return false
		default:
		}
		var m int
		m, b.err = r.Read(b.buf[n:])
		n += m
	}
	b.buf = b.buf[:n]
	switch {
	case errors.Is(b.err, io.ErrUnexpectedEOF): // gzip and zstd do not say which
		b.err = fmt.Errorf("its %s ends too early, or something follows it", s.compression)
	case errors.Is(b.err, gzip.ErrHeader), errors.Is(b.err, zstd.ErrMagicMismatch): // not at the start, which was looked at
		b.err = fmt.Errorf("something follows its %s: %w", s.compression, b.err)
	}
	return true
}

// open finds compression and encoding by the first bytes.
func (s *stream) open() (io.Reader, func(), error) {
	r, closer, err := s.decompress()
	if err != nil {
		return nil, nil, err
	}
	start, r, err := peek(r, s.peeked())
	s.encoding = "utf-8"
	endian := unicode.LittleEndian
	switch {
	case bytes.HasPrefix(start, []byte{0xff, 0xfe}):
		s.encoding = "utf-16le"
	case bytes.HasPrefix(start, []byte{0xfe, 0xff}):
		s.encoding, endian = "utf-16be", unicode.BigEndian
	case !bytes.HasPrefix(start, []byte(utf8BOM)) && isDecoded(start, s.wanted, s.compression):
		s.encoding = s.wanted
		return transform.NewReader(r, charset.NewReader(s.wanted)), closer, err
	default:
		return r, closer, err
	}
	if s.encoding == s.wanted {
		return transform.NewReader(r, charset.NewReader(s.wanted)), closer, err
	}
	return transform.NewReader(r, unicode.UTF16(endian, unicode.IgnoreBOM).NewDecoder()), closer, err
}

// peeked is how many bytes tell what the text is.
func (s *stream) peeked() int {
	if s.wanted != "" {
		return peekBytes
	}
	return magicBytes
}

// decompress finds the compression by the first bytes. The function that it returns, unless
// nil, releases what the decoder holds.
func (s *stream) decompress() (io.Reader, func(), error) {
	start, r, err := peek(s.digest, magicBytes)
	switch {
	case err != nil:
		return nil, nil, err
	case isGzip(start):
		s.compression = "gzip"
		z, err := gzip.NewReader(bufio.NewReaderSize(r, codedBuffer))
		return z, nil, err
	case isZstd(start):
		s.compression = "zstd"
		// Others parse meanwhile, so one goroutine is enough. The zstd tool accepts windows of 128 MiB.
		z, err := zstd.NewReader(bufio.NewReaderSize(r, codedBuffer), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return r, nil, nil
}

func isGzip(b []byte) bool { return bytes.HasPrefix(b, []byte{0x1f, 0x8b}) }

// isZstd looks for the magic number of a frame, or of a skippable frame, with which parallel
// compressors start (RFC 8878, section 3.1).
func isZstd(b []byte) bool {
	return bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(b) >= 4 && b[0]&0xf0 == 0x50 && bytes.Equal(b[1:4], []byte{0x2a, 0x4d, 0x18})
}

// peek returns the first n bytes of r, or fewer if it ends, and a reader of all bytes.
func peek(r io.Reader, n int) ([]byte, io.Reader, error) {
	b := bufio.NewReaderSize(r, max(n, 16)) // small: larger reads bypass it
	start, err := b.Peek(n)
	if err == io.EOF {
		err = nil
	}
	return start, b, err
}

// following returns the next block, or nil after the last.
func (s *stream) following(ctx context.Context) (*block, error) {
	select {
	case b := <-s.full:
		return b, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close ends the goroutine and waits for it, unless it hangs in a read that cannot be
// interrupted, such as that of a terminal.
func (s *stream) Close() {
	close(s.stop)
	f, ok := s.digest.r.(interface {
		Stat() (fs.FileInfo, error)
		SetReadDeadline(time.Time) error
	})
	if !ok {
		return
	}
	if f.SetReadDeadline(time.Unix(1, 0)) != nil {
		if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
			return
		}
	}
	<-s.done
}

// A digest counts and hashes the bytes that are read through it.
type digest struct {
	r    io.Reader
	hash hash.Hash // nil: it only counts
	n    *atomic.Int64
}

func newDigest(r io.Reader, n *atomic.Int64, countOnly bool) *digest {
	d := &digest{r: r, n: n}
	if !countOnly {
		d.hash = sha256.New()
	}
	return d
}

func (d *digest) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if d.hash != nil {
		d.hash.Write(p[:n])
	}
	d.n.Add(int64(n))
	return n, err
}
