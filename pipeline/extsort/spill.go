package extsort

import (
	"cmp"
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
//	magic "bkx1" | length uint32 | CRC-32C uint32 | zero uint32 | chunks | padding
//
// in little-endian order; the length and the checksum are of the chunks, and the
// padding is to a multiple of fsys.BlockAlign. If heads are wanted, an extent of
// one chunk follows: the same records, each with no more than the first bytes of
// its content. Where each extent is, the sorter knows. The file has no name:
// nothing is left of it once the process has ended, however it did.
const (
	extentHeader = 16
	extentMagic  = "bkx1"
	extentMax    = 1 << 20 // bytes; a single chunk may be larger
	spillBlocks  = 4       // that are filled or written at once
	directExtent = 1 << 18 // large enough for the disk, without the page cache
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged is a spill file that is not what was written.
var errDamaged = errors.New("the spill file is damaged")

// An extent is a place in the spill file, header and padding included.
type extent struct {
	offset int64
	size   int
}

// spill is the file, which is made when it is needed. What is given to it is
// written while the giver goes on; its first error is final. Large extents go past
// the page cache, if the file system can do that: the copy costs more than the disk.
type spill struct {
	fs      fsys.FS
	dir     string
	direct  atomic.Bool // extents will be large
	once    sync.Once
	file    fsys.File
	size    atomic.Int64
	blocks  chan []byte // memory that nothing is written from; nil: not made yet
	writing sync.WaitGroup
	failed  atomic.Pointer[error]
}

func newSpill(fs fsys.FS, dir string) *spill {
	p := &spill{fs: fs, dir: dir, blocks: make(chan []byte, spillBlocks)}
	for range spillBlocks {
		p.blocks <- nil
	}
	return p
}

// err returns the first error so far.
func (p *spill) err() error {
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *spill) fail(doing string, err error) {
	err = fmt.Errorf("%s the spill file in %s: %w", doing, cmp.Or(p.dir, os.TempDir()), fsys.Cause(err))
	p.failed.CompareAndSwap(nil, &err)
}

// open makes the file.
func (p *spill) open() {
	file, err := p.fs.Temp(p.dir)
	if err != nil {
		p.fail("make", err)
		return
	}
	file.Direct(p.direct.Load())
	p.file = file
}

// wait waits until all is written, and returns the first error.
func (p *spill) wait() error {
	p.writing.Wait()
	return p.err()
}

// close waits until all is written, and gives the file back.
func (p *spill) close() error {
	p.writing.Wait()
	if p.file == nil {
		return nil
	}
	if err := p.file.Close(); err != nil {
		return fmt.Errorf("close the spill file: %w", fsys.Cause(err))
	}
	return nil
}

// write begins to write an extent of these chunks and, if head is not 0, one of the
// heads of their records. The chunks may be used again. Safe for concurrent use.
func (p *spill) write(chunks [][]byte, head int) (records, heads extent) {
	if p.once.Do(p.open); p.err() != nil {
		return extent{}, extent{}
	}
	length := 0
	for _, chunk := range chunks {
		length += len(chunk)
	}
	block := <-p.blocks
	if need := 2 * (extentHeader + length + fsys.BlockAlign); cap(block) < need {
		block = fsys.NewBlock(need)
	}
	block = block[:extentHeader]
	for _, chunk := range chunks {
		block = append(block, chunk...)
	}
	block = seal(block, 0)
	records.size = len(block)
	if head > 0 {
		block = block[:records.size+extentHeader]
		each(block[extentHeader:][:length], func(h header, content []byte) {
			n, at := min(len(content), head), len(block)
			block = block[:at+recordSize(n)]
			copy(putRecord(block[at:], h, n), content)
		})
		block = seal(block, records.size)
		heads.size = len(block) - records.size
	}
	records.offset = p.size.Add(int64(len(block))) - int64(len(block))
	heads.offset = records.offset + int64(records.size)
	p.writing.Go(func() {
		if _, err := p.file.WriteAt(block, records.offset); err != nil {
			p.fail("write", err)
		}
		if cap(block) > 4*extentMax {
			block = nil // one large record is no reason to keep its room
		}
		p.blocks <- block
	})
	return records, heads
}

// seal completes the extent that a block ends with.
func seal(block []byte, start int) []byte {
	head, body := block[start:], block[start+extentHeader:]
	copy(head, extentMagic)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[8:], crc32.Checksum(body, castagnoli))
	binary.LittleEndian.PutUint32(head[12:], 0)
	end := len(block)
	block = block[:end+-end&(fsys.BlockAlign-1)]
	clear(block[end:])
	return block
}

// read reads an extent into buf, which has its size and the alignment of a block,
// and returns the chunks.
func (p *spill) read(e extent, buf []byte) ([]byte, error) {
	if err := p.err(); err != nil {
		return nil, err
	}
	buf = buf[:e.size]
	if _, err := p.file.ReadAt(buf, e.offset); err != nil {
		return nil, fmt.Errorf("%w: read at %d: %w", errDamaged, e.offset, fsys.Cause(err))
	}
	length := int(binary.LittleEndian.Uint32(buf[4:]))
	if string(buf[:4]) != extentMagic || length > e.size-extentHeader ||
		binary.LittleEndian.Uint32(buf[8:]) != crc32.Checksum(buf[extentHeader:][:length], castagnoli) {
		return nil, fmt.Errorf("%w: extent at %d", errDamaged, e.offset)
	}
	return buf[extentHeader:][:length:length], nil
}
