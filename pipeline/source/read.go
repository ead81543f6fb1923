package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/fsys"
)

// Read reads the input with at most so many workers at once. It can be called once. Workers have
// numbers from 0 on. Each calls emit with one batch after the other; emit may use a batch until
// it returns. A single worker reads the batches in order.
//
// Read returns the error of emit unchanged, and context.Cause(ctx) if ctx has ended. Any other
// error names the input and the first place in it that cannot be read; if that is a row of
// rejects with two URLs it is a *[UsageError]. Read closes the input.
func (in *Input) Read(ctx context.Context, workers int, emit func(worker int, b *Batch) error) (err error) {
	if in.started {
		return fmt.Errorf("read %s: it was read or closed before", in.Name)
	}
	in.started = true
	in.least = in.leastFields()
	in.others = in.Among != nil && !slices.Equal(in.Among, in.Columns)
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
	in.drain = sync.OnceValue(in.src.drain)
	if in.direct() && in.opts.digests() {
		go in.drain()
	}
	if in.Limit > 0 {
		in.sums = sha256.New()
		workers = 1 // the records must be the first ones
	}
	r := &reading{in: in, ctx: ctx, workers: in.Workers(workers), emit: emit, schema: in.schema()}
	if err = in.read(r); err == nil {
		err = in.finish()
	}
	return in.explain(ctx, err)
}

// Workers returns how many of at most so many workers would have something to do for the size of
// this input; at least one.
func (in *Input) Workers(most int) int {
	most = max(most, 1)
	if in.total >= 0 {
		most = int(min(int64(most), in.total/int64(in.opts.Block)+1))
	}
	return most
}

// A reading is shared by the workers of a Read.
type reading struct {
	in      *Input
	ctx     context.Context
	cancel  context.CancelCauseFunc // ends ctx, with the error of emit; set by share
	workers int
	emit    func(worker int, b *Batch) error
	schema  *arrow.Schema
}

// share calls work in each worker, with a batcher of its own. If one fails it returns what
// ended the context first: an error of emit or of a worker.
func (r *reading) share(work func(*batcher) error) error {
	outer := r.ctx
	r.ctx, r.cancel = context.WithCancelCause(outer)
	if w := r.in.src; !r.in.direct() { // workers wait for an Arrow stream
		w.ctx = r.ctx
		defer func() { w.ctx = outer }()
	}
	errs := make([]error, r.workers)
	do := func(worker int) { errs[worker] = work(newBatcher(r, worker)) }
	var others sync.WaitGroup
	defer others.Wait()
	defer r.cancel(nil) // also if emit panics
	for worker := 1; worker < r.workers; worker++ {
		others.Go(func() { do(worker) })
	}
	do(0)
	others.Wait()
	if err := cmp.Or(errs...); err == nil || r.ctx.Err() == nil {
		return err
	}
	return context.Cause(r.ctx)
}

// A ReadError is what is wrong with an input that cannot be read, or not to its end.
type ReadError struct {
	Input string // as it was named
	After int64  // records before the place; -1: the input could not be opened
	Err   error

	near string // says where that is in a text
}

func (e *ReadError) Error() string {
	if e.After < 0 {
		return fmt.Sprintf("open %s: %v", e.Input, e.Err)
	}
	return fmt.Sprintf("read %s after record %d%s: %v", e.Input, e.After, e.near, e.Err)
}

func (e *ReadError) Unwrap() error { return e.Err }

// finish reads the rest of the stream and sets the digest.
func (in *Input) finish() error {
	if in.cut {
		in.sums.Sum(in.sum[:0])
		return nil
	}
	var err error
	if !in.direct() || in.opts.digests() {
		err = in.drain()
	}
	if err == nil && in.info != nil {
		err = in.unchanged(in.file)
	}
	if err != nil {
		return &ReadError{After: in.Records(), Err: err}
	}
	if hash := in.src.digest.hash; hash != nil {
		hash.Sum(in.sum[:0])
	}
	in.size = in.src.digest.n.Load()
	in.done.Store(in.size)
	return nil
}

// explain adds the input and the place to an error.
func (in *Input) explain(ctx context.Context, err error) error {
	e, ok := errors.AsType[*ReadError](err)
	if !ok {
		return err
	}
	usage, _ := errors.AsType[*columns.UsageError](e.Err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case usage != nil:
		return usage
	case in.Format != "parquet" && in.Format != "arrow" && e.near == "":
		e.near = fmt.Sprintf(" (near byte %d)", in.src.offset())
	}
	e.Input = in.Name
	return e
}

// direct says whether the format reads the file itself, with random access. Its stream is then
// read only for the digest.
func (in *Input) direct() bool { return in.randomAccess && in.info != nil && in.Compression == "" }

// A random is an input with random access. It counts the bytes that are read.
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

// random returns the decompressed bytes with random access: the file itself, or a copy of the
// stream in a temporary file without a name.
func (in *Input) random() (random, error) {
	in.randomAccess = true
	if in.direct() {
		return random{in.file, in.info.Size(), &in.done}, nil
	}
	if in.spool == nil {
		f, err := in.opts.FS.Temp(in.opts.TempDir)
		if err != nil {
			return random{}, fmt.Errorf("make a temporary file: %w", err)
		}
		in.spool = f
		if _, err := io.Copy(f, in.src); err != nil {
			return random{}, fmt.Errorf("copy to a temporary file: %w", fsys.Cause(err))
		}
	}
	info, err := in.spool.Stat()
	if err != nil {
		return random{}, err
	}
	return random{in.spool, info.Size(), new(atomic.Int64)}, nil
}
