// Package columnar opens Parquet and Arrow files whose content may be damaged or hostile.
//
// The libraries that decode these files believe what a file says. They allocate as many
// elements as a list claims to have, and as many values as a run claims to repeat. If the
// system refuses so much memory the process dies, and there is no error to return. So this
// package compares each size in a file with the bytes that are there and with the limits
// below, before a library sees it. What does not fit is an error.
//
// The Parquet library, parquet-go 0.32, also reads on past the end of a page that was cut
// short, into whatever lay in memory before: two readings of one file differ. So the pages of
// Parquet are decompressed here and checked before they are decoded: each page must have as
// many levels and values as its header says, no delta may be cut off, and the definition
// levels, not the header, say how many values are null. The remaining checks are left to the
// library.
//
// [OpenParquet] opens a Parquet file, [OpenArrow] an Arrow IPC file. [OpenArrowStream] opens
// an Arrow IPC stream, whose messages must first pass [CheckArrowMessage].
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
	mostNames    = 16 << 20  // bytes of the names of columns, each with the names of the groups around it; for Arrow, see description
	MostBatch    = 1<<32 - 1 // bytes of an Arrow record batch, compressed and decoded together
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

// readAt reads n bytes. If there are fewer the file was cut after its size was taken.
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

// Damage makes an error of p, which a decoder or this package panicked with on a damaged
// file. Go tells an index or a slice out of range from other runtime errors by words alone;
// they become words for people.
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
