package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/source"
)

// intake reads every input and puts each row, as a record or as a reject, into
// the sorter it belongs to. The worker that reads a stretch of an input also
// canonicalizes and hashes it, while it is in its processor's cache. A small
// input has one worker, so that several are read at once.
func (r *run) intake(ctx context.Context) error {
	r.cfg.Status.TotalBytes.Store(r.inputs.size)
	r.cfg.Status.enter(StageRead)
	if err := r.readAll(ctx); err != nil {
		return err
	}
	r.workspaces.freeze()
	if err := r.records.Finish(ctx); err != nil {
		return err
	}
	return r.rejects.Finish(ctx)
}

// readAll has the workers read the inputs in their order, several at a time. The error is
// that of the first input that has one.
func (r *run) readAll(ctx context.Context) error {
	free := make(chan *worker, r.cfg.Workers)
	for range r.cfg.Workers {
		free <- r.newWorker()
	}
	var reading sync.WaitGroup
	var failed atomic.Bool
	errs := make([]error, len(r.inputs.list))
	left := r.cfg.Limit
	for i, in := range r.inputs.list {
		if in.Limit = left; r.cfg.Limit > 0 && left == 0 {
			break
		}
		workers := make([]*worker, in.Workers(r.cfg.Workers))
		for n := range workers {
			workers[n] = <-free
		}
		if failed.Load() {
			break // no error of an input that follows would be the first
		}
		in.opened = true
		reading.Go(func() {
			if errs[i] = r.readInput(ctx, i, workers); errs[i] != nil {
				failed.Store(true)
			}
			for _, w := range workers {
				free <- w
			}
		})
		if r.cfg.Limit > 0 {
			reading.Wait()
			left -= in.Records()
		}
	}
	reading.Wait()
	return cmp.Or(errs...)
}

// readInput has workers read an input.
func (r *run) readInput(ctx context.Context, i int, workers []*worker) error {
	in := r.inputs.list[i]
	err := in.Read(ctx, len(workers), func(n int, b *source.Batch) error {
		r.cfg.Status.Read.Add(b.Record.NumRows() + int64(len(b.Errors)))
		r.progress(in)
		w := workers[n]
		w.batch(i, b)
		return cmp.Or(w.records.Err(), w.rejects.sorted.Err(), r.checkRoom())
	})
	r.progress(in)
	r.timings.busy.Add(int64(in.Busy()))
	return err
}

// progress counts the bytes of an input that were read since it was last called.
func (r *run) progress(in *input) {
	in.counting.Lock()
	defer in.counting.Unlock()
	now, _ := in.Progress()
	r.cfg.Status.Bytes.Add(now - in.counted)
	in.counted = now
}

// A worker canonicalizes, hashes and files rows for one goroutine.
type worker struct {
	run        *run
	records    *extsort.Writer
	rejects    rejectWriter
	workspaces workspaceCache
	hasher     *codegen.Hasher
	counted    map[string]int64 // rejects by reason
	cells      [][]byte         // of a reject
	buf        []byte           // of the record
	columns    []*array.Binary
}

func (r *run) newWorker() *worker {
	w := &worker{
		run: r, records: r.records.NewWriter(), rejects: rejectWriter{sorted: r.rejects.NewWriter()},
		workspaces: workspaceCache{all: r.workspaces, ids: map[string]uint32{}},
		hasher:     codegen.NewHasher(),
		counted:    map[string]int64{},
	}
	r.workers = append(r.workers, w)
	return w
}

// batch does the rows of a batch of an input, known by its number.
func (w *worker) batch(number int, b *source.Batch) {
	in := w.run.inputs.list[number]
	w.columns = w.columns[:0]
	for _, column := range b.Record.Columns() {
		w.columns = append(w.columns, column.(*array.Binary))
	}
	for i := range b.Rows {
		at := place{number, b.Rows[i], b.Offsets[i]}
		if reason, detail := w.row(in, i, at); reason != "" {
			w.cells = in.all(w.cells[:0], w.url(in, i), w.cell(in.Workspace, i), func(c int) []byte { return w.cell(in.carried[c], i) })
			w.reject(at, outcome.Reject{Reason: reason, Detail: detail, Cells: w.cells})
		}
	}
	for _, e := range b.Errors {
		at := place{number, e.Row, e.Offset}
		w.reject(at, outcome.Reject{Reason: string(e.Reason), Detail: e.Detail, Raw: e.Raw})
	}
}

func (w *worker) reject(at place, rej outcome.Reject) {
	w.counted[rej.Reason]++
	w.run.cfg.Status.Rejected.Add(1)
	w.rejects.file(at, rej)
}

// row files one row, or says why it is rejected.
func (w *worker) row(in *input, i int, at place) (reason, detail string) {
	original := w.url(in, i)
	if len(original) == 0 {
		return outcome.MissingURL, outcome.MissingURLDetail
	}
	rec, err := w.run.cfg.Profile.Append(startRecord(w.buf), original)
	w.buf = rec
	if err != nil {
		reason := err.(canon.Reason)
		return string(reason), canon.Detail(original, reason)
	}
	workspace, flags := w.workspace(in, i)
	group, err := w.workspaces.lookup(workspace)
	if err != nil {
		return outcome.BadWorkspace, fmt.Sprintf("%v: %.64q", err, workspace)
	}
	h := w.hasher.Sum(rec[recordHead:], workspace, 0)
	rec = finishRecord(rec, h, original, flags)
	for _, c := range in.carried {
		rec = appendCell(rec, w.cell(c, i))
	}
	rec = appendPlace(rec, at)
	copy(w.records.Reserve(group, w.run.scheme.Rank(h), len(rec)), rec)
	w.buf = rec
	return "", ""
}

// cell returns the bytes of a cell; nil for null and for a column that is absent.
func (w *worker) cell(column, i int) []byte {
	if column == absent || w.columns[column].IsNull(i) {
		return nil
	}
	cell := w.columns[column].Value(i)
	if cell == nil {
		return []byte{}
	}
	return cell
}

func (w *worker) url(in *input, i int) []byte {
	for _, c := range in.URLs {
		if cell := w.cell(c, i); len(cell) > 0 {
			return cell
		}
	}
	return nil
}

// workspace returns that of a row, with flags that say what its cell was.
func (w *worker) workspace(in *input, i int) ([]byte, byte) {
	cell := w.cell(in.Workspace, i)
	switch {
	case len(cell) > 0:
		return cell, 0
	case cell == nil:
		return w.run.workspace, flagNullWS
	}
	return w.run.workspace, flagNoWS
}
