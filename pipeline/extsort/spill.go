package extsort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// The spill file is a sequence of extents, in any order. An extent holds chunks
// of one range (see writer.go for their layout), one after another:
//
//	magic "bkx1" | length uint32 | CRC-32C uint32 | zero uint32 | chunks
//
// in little-endian order; the length and the checksum are of the chunks. Where
// each extent is, the sorter knows. The file has no name: nothing is left of it
// once the process has ended, however it did.
const (
	extentHeader = 16
	extentMagic  = "bkx1"
	extentMax    = 1 << 20 // bytes, but for a single chunk that is larger
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged is a spill file that is not what was written.
var errDamaged = errors.New("the spill file is damaged")

// An extent is a place in the spill file, header included.
type extent struct {
	offset int64
	size   int
}

// spill is the file, which is made when it is needed.
type spill struct {
	fs   fsys.FS
	dir  string
	once sync.Once
	file fsys.File
	err  error
	size atomic.Int64
}

// open makes the file.
func (p *spill) open() error {
	p.once.Do(func() { p.file, p.err = p.fs.Temp(p.dir) })
	return p.err
}

func (p *spill) close() error {
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	if err != nil {
		err = fmt.Errorf("close the spill file: %w", fsys.Cause(err))
	}
	return err
}

// write appends an extent of these chunks. Safe for concurrent use.
func (p *spill) write(chunks [][]byte) (extent, error) {
	if err := p.open(); err != nil {
		return extent{}, fmt.Errorf("make the spill file: %w", err)
	}
	length, sum := 0, uint32(0)
	for _, chunk := range chunks {
		length += len(chunk)
		sum = crc32.Update(sum, castagnoli, chunk)
	}
	head := make([]byte, 0, extentHeader)
	head = append(head, extentMagic...)
	head = binary.LittleEndian.AppendUint32(head, uint32(length))
	head = binary.LittleEndian.AppendUint32(head, sum)
	head = binary.LittleEndian.AppendUint32(head, 0)
	e := extent{p.size.Add(int64(extentHeader+length)) - int64(extentHeader+length), extentHeader + length}
	at := e.offset
	for _, piece := range append([][]byte{head}, chunks...) {
		if _, err := p.file.WriteAt(piece, at); err != nil {
			return e, fmt.Errorf("write the spill file in %s: %w", p.folder(), fsys.Cause(err))
		}
		at += int64(len(piece))
	}
	return e, nil
}

func (p *spill) folder() string {
	if p.dir == "" {
		return os.TempDir()
	}
	return p.dir
}

// read reads an extent into buf, which has its size, and returns the chunks.
func (p *spill) read(e extent, buf []byte) ([]byte, error) {
	if _, err := p.file.ReadAt(buf[:e.size], e.offset); err != nil {
		return nil, fmt.Errorf("%w: read at %d: %w", errDamaged, e.offset, fsys.Cause(err))
	}
	chunks := buf[extentHeader:e.size]
	if string(buf[:4]) != extentMagic || int(binary.LittleEndian.Uint32(buf[4:])) != len(chunks) ||
		binary.LittleEndian.Uint32(buf[8:]) != crc32.Checksum(chunks, castagnoli) {
		return nil, fmt.Errorf("%w: extent at %d", errDamaged, e.offset)
	}
	return chunks, nil
}
