package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// Read reads the input, once, and hands its records to emit in batches, in
// order; emit takes ownership of the batch. It returns the error of emit as it
// is, context.Cause(ctx) where ctx ended, and otherwise one that names the
// input and the place. The input is closed at the end.
func (in *Input) Read(ctx context.Context, emit func(*Batch) error) (err error) {
	if in.started {
		return fmt.Errorf("read %s: it was read before", in.Name)
	}
	in.started = true
	defer func() {
		if e := in.Close(); err == nil {
			err = e
		}
	}()
	if in.info != nil {
		in.done.Store(0)
		if err := in.open(ctx); err != nil {
			return err
		}
	}
	in.src.ctx = ctx
	if in.direct() {
		in.drained = make(chan struct{})
		go func(w *window) {
			defer close(in.drained)
			in.drain = w.skip(-1)
		}(in.src)
	}
	b := newBatcher(ctx, in, emit)
	if err = in.read(b); err == nil {
		err = in.finish(b)
	}
	return in.explain(ctx, err)
}

// finish reads what is left of the stream and settles the digest.
func (in *Input) finish(b *batcher) error {
	if in.cut {
		b.sums.Sum(in.sum[:0])
		return nil
	}
	if in.drained == nil {
		in.drain = in.src.skip(-1)
	} else {
		<-in.drained
	}
	if in.drain != nil {
		return in.drain
	}
	if in.info != nil {
		if err := in.unchanged(in.file); err != nil {
			return err
		}
	}
	in.src.digest.hash.Sum(in.sum[:0])
	in.done.Store(in.src.digest.n.Load())
	return nil
}

// foreign says that err is not about the input.
func (b *batcher) foreign(err error) bool {
	var own *emitError
	return b.ctx.Err() != nil || errors.As(err, &own)
}

func (in *Input) explain(ctx context.Context, err error) error {
	var own *emitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own.error
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case in.Format != "parquet" && in.Format != "arrow":
		return fmt.Errorf("read %s after record %d (near byte %d): %w", in.Name, in.records, in.src.offset(), err)
	}
	return fmt.Errorf("read %s after record %d: %w", in.Name, in.records, err)
}

// direct says that the input is read at random where it lies, so that its stream
// serves the digest alone.
func (in *Input) direct() bool { return in.anyhow && in.info != nil && in.Compression == "" }

// A random is an input that can be read anywhere. It counts what is read.
type random struct {
	io.ReaderAt
	size int64
	n    *atomic.Int64
}

func (r random) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	r.n.Add(int64(n))
	return n, err
}

// random returns the decompressed bytes for reading at random: the file itself,
// or a copy of the stream in a temporary file that has no name.
func (in *Input) random() (random, error) {
	in.anyhow = true
	if in.direct() {
		return random{in.file, in.info.Size(), &in.done}, nil
	}
	if in.spool == nil {
		f, err := os.CreateTemp(in.opts.TempDir, "bulk-*")
		if err != nil {
			return random{}, err
		}
		in.spool = f
		if err := os.Remove(f.Name()); err != nil {
			return random{}, err
		}
		if _, err := io.Copy(f, in.src); err != nil {
			return random{}, fmt.Errorf("copy to a temporary file: %w", err)
		}
	}
	size, err := in.spool.Seek(0, io.SeekEnd)
	return random{in.spool, size, new(atomic.Int64)}, err
}
