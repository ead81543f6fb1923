package outdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// A block doubles from firstBlock to fileBlock, so that a small file does not pay for
// a large one; fileBlock bytes of a file are written at once. At most maxPending
// blocks are full and not yet both written and digested.
const (
	firstBlock = 1 << 14
	fileBlock  = 1 << 20
	maxPending = 4
)

// A File is a file of a [Dir]. It gathers what it is given into blocks; those
// that are full are written and digested while the next ones fill, so that neither
// waits for the other. It is for one goroutine at a time. Its first error is final:
// every later call that meets it returns it.
//
// Blocks go past the page cache, if the file system can do that: a run reads no
// output again and waits for the disk at its end, so the copy would only cost
// time, and the cache of whatever else runs there.
type File struct {
	dir  *Dir
	name string
	path string // for messages

	block   []byte     // what was given last; nil before the first byte
	given   int64      // bytes in all
	pending []*pending // the oldest first
	spare   [][]byte   // for the next blocks
	err     error

	// For the goroutines of the pending blocks, one after the other.
	h      fsys.File // nil before the first byte and after the last
	direct bool      // past the page cache
	digest hash.Hash

	synced time.Duration
	closed bool
}

// A pending block is being written and digested, each after the block before it.
type pending struct {
	block             []byte
	written, digested chan struct{} // closed when that is done
	err               error         // of writing it or one before it
}

func newFile(f *Dir, name string) *File {
	return &File{dir: f, name: name, path: filepath.Join(f.out, name), digest: sha256.New()}
}

// Write implements io.Writer. It does not keep p.
func (w *File) Write(p []byte) (int, error) {
	if w.closed {
		if w.err == nil {
			w.fail("write", fs.ErrClosed)
		}
		return 0, w.err
	}
	n := len(p)
	w.given += int64(n)
	for len(p) > 0 {
		if len(w.block) == cap(w.block) {
			w.block = append(fsys.NewBlock(min(max(firstBlock, 2*cap(w.block)), fileBlock)), w.block...)
		}
		free := w.block[len(w.block):cap(w.block)]
		copied := copy(free, p)
		w.block, p = w.block[:len(w.block)+copied], p[copied:]
		if len(w.block) == fileBlock {
			if err := w.writeBlock(); err != nil {
				return n - len(p), err
			}
		}
	}
	return n, nil
}

// writeBlock begins to write the full block.
func (w *File) writeBlock() error {
	if len(w.pending) == maxPending {
		w.awaitOldest()
	}
	if w.err != nil {
		w.await()
		return w.err
	}
	w.begin()
	if last := len(w.spare) - 1; last >= 0 {
		w.block, w.spare = w.spare[last], w.spare[:last]
	} else {
		w.block = fsys.NewBlock(fileBlock)
	}
	return nil
}

// begin makes the block a pending one.
func (w *File) begin() {
	var before *pending
	if n := len(w.pending); n > 0 {
		before = w.pending[n-1]
	}
	p := &pending{block: w.block, written: make(chan struct{}), digested: make(chan struct{})}
	w.pending = append(w.pending, p)
	go func() {
		defer close(p.digested)
		if before != nil {
			<-before.digested
		}
		w.digest.Write(p.block)
	}()
	go func() {
		defer close(p.written)
		if before != nil {
			<-before.written
			p.err = before.err
		}
		if p.err == nil {
			p.err = w.put(p.block)
		}
	}()
}

// awaitOldest waits for the oldest pending block.
func (w *File) awaitOldest() {
	p := w.pending[0]
	<-p.written
	<-p.digested
	w.err = p.err
	w.pending = append(w.pending[:0], w.pending[1:]...)
	w.spare = append(w.spare, p.block[:0])
}

// await waits for all pending blocks.
func (w *File) await() {
	for len(w.pending) > 0 {
		w.awaitOldest()
	}
}

// put writes a block.
func (w *File) put(block []byte) error {
	if w.h == nil {
		h, err := w.dir.fs.Create(filepath.Join(w.dir.inner, w.name))
		if err != nil {
			return w.failed("create", err)
		}
		w.h = h
	}
	if direct := len(block) == fileBlock; direct != w.direct {
		w.direct = direct
		w.h.Direct(direct)
	}
	if _, err := w.h.Write(block); err != nil {
		return w.failed("write", err)
	}
	return nil
}

// Close writes what was gathered, syncs the file and closes it. A file without
// a byte is not created. Further calls return what the first did.
func (w *File) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	if len(w.block) > 0 && w.err == nil {
		w.begin()
	}
	w.await()
	w.block, w.spare = nil, nil
	if w.h == nil {
		return w.err
	}
	if w.err == nil {
		start := time.Now()
		if err := w.h.Sync(); err != nil {
			w.fail("sync", err)
		}
		w.synced = time.Since(start)
	}
	if err := w.h.Close(); err != nil {
		w.fail("close", err)
	}
	w.h = nil
	return w.err
}

// Name is the name of the file in its directory.
func (w *File) Name() string { return w.name }

// SHA256 is the digest of all that was written, in hexadecimal, once the file
// is closed.
func (w *File) SHA256() string { return hex.EncodeToString(w.digest.Sum(nil)) }

// Size is the number of bytes given so far.
func (w *File) Size() int64 { return w.given }

// SyncTime is how long Close waited for the disk.
func (w *File) SyncTime() time.Duration { return w.synced }

// fail records an error. Errors after the first are joined to it.
func (w *File) fail(operation string, err error) {
	w.err = errors.Join(w.err, w.failed(operation, err))
}

func (w *File) failed(operation string, err error) error {
	return fmt.Errorf("%s %s: %w", operation, w.path, fsys.Cause(err))
}

// settled is nil if the file is closed and whole, or was never begun.
func (w *File) settled() error {
	if !w.closed && w.Size() > 0 {
		return fmt.Errorf("commit %s: file is not closed", w.path)
	}
	return w.err
}

// discard closes the file, which will be removed.
func (w *File) discard() error {
	w.closed = true
	w.await()
	if w.h == nil {
		return nil
	}
	err := w.h.Close()
	w.h = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", w.path, fsys.Cause(err))
	}
	return nil
}
