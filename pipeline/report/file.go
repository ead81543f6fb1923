package report

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

const (
	// smallWrite is the size in bytes from which a piece is written as it is
	// rather than gathered with others.
	smallWrite = 64 << 10
	// syncStep is how much is written before the disk is told to begin with it,
	// so that little is left for the sync at the end.
	syncStep = 16 << 20
)

// A File is a file of a [Folder]. It counts and digests what it is given, and
// gathers small pieces. It is for one goroutine at a time. Its first error is
// final: every later call returns it.
type File struct {
	folder *Folder
	name   string
	path   string // for messages

	h       fsys.File // nil before the first byte and after the last
	small   []byte
	digest  hash.Hash
	size    int64
	started int64 // what the disk was told to begin with
	synced  time.Duration
	closed  bool
	err     error
}

func newFile(f *Folder, name string) *File {
	return &File{folder: f, name: name, path: filepath.Join(f.out, name), digest: sha256.New()}
}

// Write implements io.Writer. It does not keep p.
func (w *File) Write(p []byte) (int, error) {
	if w.closed && w.err == nil {
		return 0, w.fail("write", fs.ErrClosed)
	}
	if len(p) < smallWrite && w.err == nil {
		w.small = append(w.small, p...)
		if len(w.small) >= smallWrite {
			w.flush()
		}
		return len(p), w.err
	}
	w.flush()
	w.put(p)
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *File) flush() {
	w.put(w.small)
	w.small = w.small[:0]
}

// put writes a piece and digests it meanwhile: each takes about as long as the
// other, and both know the bytes only until they return.
func (w *File) put(p []byte) {
	if len(p) == 0 || w.err != nil {
		return
	}
	if w.h == nil {
		h, err := w.folder.fs.Create(filepath.Join(w.folder.inner, w.name))
		if err != nil {
			w.fail("create", err)
			return
		}
		w.h = h
	}
	digested := make(chan struct{})
	go func() {
		w.digest.Write(p)
		close(digested)
	}()
	_, err := w.h.Write(p)
	<-digested
	if err != nil {
		w.fail("write", err)
		return
	}
	w.size += int64(len(p))
	if w.size-w.started >= syncStep {
		w.h.StartSync(w.started, w.size-w.started)
		w.started = w.size
	}
}

// Close writes what was gathered, syncs the file and closes it. A file without
// a byte is not created. Further calls return what the first did.
func (w *File) Close() error {
	if w.closed {
		return w.err
	}
	w.flush()
	w.closed = true
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

// Name is the name of the file in its folder.
func (w *File) Name() string { return w.name }

// SHA256 is the digest of all that was written, in hexadecimal, once the file
// is closed.
func (w *File) SHA256() string { return hex.EncodeToString(w.digest.Sum(nil)) }

// Size is the number of bytes written so far.
func (w *File) Size() int64 { return w.size + int64(len(w.small)) }

// SyncTime is how long Close waited for the disk.
func (w *File) SyncTime() time.Duration { return w.synced }

// fail records an error. Errors after the first are joined to it.
func (w *File) fail(operation string, err error) error {
	w.err = errors.Join(w.err, fmt.Errorf("%s %s: %w", operation, w.path, fsys.Cause(err)))
	return w.err
}

// settled is nil if the file is closed and whole, or was never begun.
func (w *File) settled() error {
	if !w.closed && w.Size() > 0 {
		return fmt.Errorf("commit %s: file is not closed", w.path)
	}
	return w.err
}

// discard closes the file, whose content nobody wants any more.
func (w *File) discard() error {
	w.closed = true
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
