package columnar

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// inflaters decompress pages. A page gets no more room than its header says it needs. Decoders
// and memory are kept for later pages.
type inflaters struct{ gzip, zstd, brotli, memory sync.Pool }

var errLonger = errors.New("it is longer than it says")

// codecs are the supported ways to compress a page. Each decompresses src into dst and returns
// the number of bytes. A file that uses another, in a column that is read, is not opened.
var codecs = map[format.CompressionCodec]func(f *inflaters, dst, src []byte) (int, error){
	format.Snappy: inflateSnappy,
	format.Lz4Raw: func(_ *inflaters, dst, src []byte) (int, error) { return lz4.UncompressBlock(src, dst) },
	format.Zstd:   (*inflaters).inflateZstd,
	format.Gzip: func(f *inflaters, dst, src []byte) (int, error) {
		return inflateStream[gzip.Reader](&f.gzip, dst, src)
	},
	format.Brotli: func(f *inflaters, dst, src []byte) (int, error) {
		return inflateStream[brotli.Reader](&f.brotli, dst, src)
	},
}

func inflateSnappy(_ *inflaters, dst, src []byte) (int, error) {
	n, err := snappy.DecodedLen(src)
	if err == nil && n > len(dst) {
		err = errLonger
	}
	if err == nil {
		_, err = snappy.Decode(dst, src)
	}
	return n, err
}

func (f *inflaters) inflateZstd(dst, src []byte) (int, error) {
	z, _ := f.zstd.Get().(*zstd.Decoder)
	if z == nil {
		var err error
		if z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true)); err != nil {
			return 0, err
		}
	}
	defer f.zstd.Put(z)
	out, err := z.DecodeAll(src, dst[:0:len(dst)])
	return len(out), err
}

// inflateStream decompresses src with a decoder of the pool. The result must fit into dst,
// which has room for one byte more.
func inflateStream[T any, R interface {
	*T
	io.Reader
	Reset(io.Reader) error
}](pool *sync.Pool, dst, src []byte) (n int, err error) {
	r, _ := pool.Get().(R)
	if r == nil {
		r = new(T)
	}
	defer pool.Put(r)
	if err := r.Reset(bytes.NewReader(src)); err != nil {
		return 0, err
	}
	for err == nil && n <= len(dst) {
		var m int
		m, err = r.Read(dst[n : len(dst)+1])
		n += m
	}
	switch {
	case n > len(dst):
		return 0, errLonger
	case err != io.EOF:
		return 0, err
	}
	return n, nil
}
