// Package columnar stands between Parquet and Arrow files and their decoders,
// which believe what a file says of itself: they allocate as many elements as a
// list claims to have, and as many values as a run claims to stand for. A process
// that is refused such memory dies, and there is no error to return. So whatever
// asks for memory is measured first, against the bytes that it lies in and the
// limits below; what does not fit is an error.
//
// [OpenArrow] and [CheckArrowMessage] look at the metadata of Arrow, and an
// [ArrowReader] bounds what its decoder takes for a record batch. [OpenParquet]
// opens a Parquet file whose pages it decompresses and checks itself on their way
// to the decoder.
package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// Limits of what is read.
const (
	MostMetadata = 256 << 20 // bytes of the description of a file, and of an Arrow message
	mostPage     = 256 << 20 // bytes of a Parquet page, decompressed
	mostValues   = 1 << 26   // values of a Parquet page
	mostNames    = 16 << 20  // bytes of the names of columns, each with those of the groups it lies in; for Arrow, see description
	MostBatch    = 1<<32 - 1 // bytes of an Arrow record batch, as it lies and decoded together
)

var errLength = errors.New("its metadata are cut off, or a length in them is wrong")

// footer returns the metadata at the end of a file, which is followed by its
// length in 4 bytes and a magic word.
func footer(r io.ReaderAt, size int64, magic string) ([]byte, error) {
	end := size - int64(4+len(magic))
	if end < int64(len(magic)) {
		return nil, errors.New("the file is too short to be whole")
	}
	tail, err := readAt(r, 4+len(magic), end)
	if err != nil {
		return nil, err
	}
	if string(tail[4:]) != magic {
		return nil, fmt.Errorf("the file does not end with %s: it is not whole", magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > end || n > MostMetadata {
		return nil, fmt.Errorf("metadata of %d bytes in a file of %d", n, size)
	}
	return readAt(r, int(n), end-n)
}

// readAt reads n bytes, which the file had when its size was taken.
func readAt(r io.ReaderAt, n int, at int64) ([]byte, error) {
	b := make([]byte, n)
	read, err := r.ReadAt(b, at)
	if read == n {
		return b, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

// Damage makes an error of what a decoder panics with on a damaged file. Go's words for
// an index or a slice out of range, which it tells from its other runtime errors by
// these words alone, become ours.
func Damage(p any) error {
	err, ok := p.(error)
	if _, own := p.(runtime.Error); own && strings.Contains(err.Error(), "out of range") {
		return errors.New("an index or offset points outside of its values")
	}
	if !ok {
		err = fmt.Errorf("%v", p)
	}
	return err
}

// damaged makes an error of the panic with which an access past the end of some
// metadata ends.
func damaged(err *error) {
	switch p := recover().(type) {
	case nil:
	case runtime.Error:
		*err = errors.New("its metadata point outside of themselves")
	default:
		panic(p)
	}
}
