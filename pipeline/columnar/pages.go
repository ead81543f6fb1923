package columnar

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	someHeader = 256      // bytes that most headers of pages fit in
	mostHeader = 16 << 20 // of any: statistics may have two values of any length
)

// pages decompresses and checks the pages of a chunk one after the other. Between two pages it
// holds only the buffer of the file.
type pages struct {
	*inflaters
	*leaf
	codec format.CompressionCodec
	file  *bufio.Reader
	left  int64 // bytes of the chunk that are not read
	n     int   // pages so far
	dict  bool  // there was a dictionary

	at           int64  // bytes that were given to the decoder
	header, page []byte // what is left of a page
	held         []*[]byte
	err          error
}

func newPages(p *inflated, c *chunk) *pages {
	n := c.end - c.start
	return &pages{
		inflaters: &p.inflaters, leaf: c.leaf, codec: c.codec, left: n,
		file: bufio.NewReaderSize(io.NewSectionReader(p.r, c.start, n), int(max(someHeader, min(n, chunkBuffer)))),
	}
}

// read copies what is left of the page to b, or the start of the next page.
func (p *pages) read(b []byte) (n int, err error) {
	if p.err == nil && len(p.header)+len(p.page) == 0 {
		if p.err = p.next(); p.err != nil && p.err != io.EOF {
			p.err = fmt.Errorf("page %d: %w", p.n, p.err)
		}
	}
	if p.err != nil {
		p.release()
		return 0, p.err
	}
	n = copy(b, p.header)
	m := copy(b[n:], p.page)
	p.header, p.page = p.header[n:], p.page[m:]
	if len(p.page) == 0 {
		p.release()
	}
	p.at += int64(n + m)
	return n + m, nil
}

// next reads the next page, and makes the header and the page that the decoder shall read.
func (p *pages) next() error {
	if p.left == 0 {
		return io.EOF
	}
	p.n++
	var h format.PageHeader
	size, err := p.readHeader(&h)
	if err != nil {
		return err
	}
	p.left -= int64(size)
	if err := p.checkHeader(&h); err != nil {
		return err
	}
	body := p.hold(int(h.CompressedPageSize))
	if _, err := io.ReadFull(p.file, body); err != nil {
		return fmt.Errorf("it is cut off: %w", err)
	}
	p.left -= int64(len(body))
	if h.CRC != 0 && uint32(h.CRC) != crc32.ChecksumIEEE(body) {
		return errors.New("its checksum is wrong")
	}
	if p.page, err = p.decompress(&h, body); err != nil {
		return err
	}
	p.dict = p.dict || h.Type == format.DictionaryPage
	h.CompressedPageSize, h.UncompressedPageSize, h.CRC = int32(len(p.page)), int32(len(p.page)), 0
	h.DataPageHeader.V.Statistics, h.DataPageHeaderV2.V.Statistics = format.Statistics{}, format.Statistics{}
	p.header, err = thrift.Marshal(new(thrift.CompactProtocol), &h)
	return err
}

// hold returns n bytes of memory that it owns until release.
func (p *pages) hold(n int) []byte {
	b, _ := p.memory.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	p.held = append(p.held, b)
	return (*b)[:n]
}

func (p *pages) release() {
	for _, b := range p.held {
		p.memory.Put(b)
	}
	p.held = p.held[:0]
}

// readHeader decodes the header of a page, once it has seen all of it.
func (p *pages) readHeader(h *format.PageHeader) (int, error) {
	for want := someHeader; ; want *= 16 {
		seen, err := p.file.Peek(want)
		if err == bufio.ErrBufferFull {
			p.file = bufio.NewReaderSize(p.file, want)
			seen, err = p.file.Peek(want)
		}
		n, bad := checkThrift(seen)
		switch {
		case bad == nil:
			if err := thrift.Unmarshal(new(thrift.CompactProtocol), seen[:n], h); err != nil {
				return 0, err
			}
			_, err := p.file.Discard(n)
			return n, err
		case err != nil && err != io.EOF:
			return 0, err
		case err == io.EOF || want >= mostHeader:
			return 0, fmt.Errorf("its header: %w", bad)
		}
	}
}

func (p *pages) checkHeader(h *format.PageHeader) error {
	if h.CompressedPageSize < 0 || int64(h.CompressedPageSize) > p.left {
		return fmt.Errorf("it has %d bytes, where its column chunk has %d left", h.CompressedPageSize, p.left)
	}
	if h.CompressedPageSize > mostPage || h.UncompressedPageSize < 0 || h.UncompressedPageSize > mostPage {
		return fmt.Errorf("it has %d bytes and %d when decompressed, more than %d", h.CompressedPageSize, h.UncompressedPageSize, mostPage)
	}
	for _, values := range []int32{h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues} {
		if values < 0 || values > mostValues {
			return fmt.Errorf("it has %d values, where 0 to %d may be", values, mostValues)
		}
	}
	return nil
}

// decompress returns the page in body, decompressed and checked.
func (p *pages) decompress(h *format.PageHeader, body []byte) ([]byte, error) {
	levels := 0 // bytes before the values, which are not compressed
	codec := p.codec
	if v2 := &h.DataPageHeaderV2; h.Type == format.DataPageV2 {
		r, d := int64(v2.V.RepetitionLevelsByteLength), int64(v2.V.DefinitionLevelsByteLength)
		if r < 0 || d < 0 || r+d > int64(len(body)) || r+d > int64(h.UncompressedPageSize) {
			return nil, fmt.Errorf("it has %d and %d bytes of levels in %d bytes", r, d, len(body))
		}
		levels = int(r + d)
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V || len(body) == levels {
			codec = format.Uncompressed
		}
	}
	page := body
	if codec != format.Uncompressed {
		page = p.hold(int(h.UncompressedPageSize) + 1)[:h.UncompressedPageSize]
		copy(page, body[:levels])
		n, err := codecs[codec](p.inflaters, page[levels:], body[levels:])
		if err != nil {
			return nil, fmt.Errorf("it cannot be decompressed: %w", err)
		}
		page = page[:levels+n]
	}
	return p.check(h, page)
}
