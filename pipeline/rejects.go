package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
)

// A rejectWriter files rejects for one goroutine, in a sorter of their own, which orders
// them by place.
type rejectWriter struct {
	sorted *extsort.Writer
	buf    []byte
}

func (w *rejectWriter) file(at place, rej outcome.Reject) {
	w.buf = appendReject(w.buf[:0], at.offset, rej)
	copy(w.sorted.Reserve(0, at.key(), len(w.buf)), w.buf)
}

func (r *run) newRejectSorter() *extsort.Sorter {
	return r.newPlaceSorter(r.budget.rejects, 2)
}

// newPlaceSorter returns a sorter of rows by their place, all in one group.
func (r *run) newPlaceSorter(memory int64, loads int) *extsort.Sorter {
	return extsort.New(extsort.Config{
		CompareGroups: func(_, _ uint32) int { return 0 },
		Compare:       bytes.Compare, // of one row with itself, in the sampling; no two have one key
		Memory:        memory, Loads: loads, TempDir: r.cfg.TempDir, FS: r.cfg.fs, Room: r.needRoom,
	})
}

// appendReject encodes what the key of a reject does not tell:
//
//	byte offset + 1 uvarint | reason, detail, raw and each cell as a cell of a record
func appendReject(dst []byte, offset int64, rej outcome.Reject) []byte {
	dst = binary.AppendUvarint(dst, uint64(offset+1))
	dst = appendCell(dst, []byte(rej.Reason))
	dst = appendCell(dst, []byte(rej.Detail))
	dst = appendCell(dst, rej.Raw)
	for _, cell := range rej.Cells {
		dst = appendCell(dst, cell)
	}
	return dst
}

// writeRejects writes all rejects in order: those of the intake and the rows
// whose URL found no code.
func (r *run) writeRejects(ctx context.Context) (_ manifest.FileSum, err error) {
	file, err := r.folder.Create(manifest.RejectsName)
	if err != nil {
		return manifest.FileSum{}, err
	}
	w := report.NewRejects(file, r.inputs.columns)
	late := r.newRejectSorter()
	defer func() { err = errors.Join(err, r.closeSorter(late)) }()
	if err := r.rejectExhausted(ctx, late); err != nil {
		return manifest.FileSum{}, err
	}
	rows := int64(0)
	var failed error
	for key, rec := range merge(contents(ctx, r.rejects, &failed), contents(ctx, late, &failed)) {
		if err := w.Append(r.decodeReject(key, rec)); err != nil {
			return manifest.FileSum{}, err
		}
		rows++
	}
	if failed != nil {
		return manifest.FileSum{}, failed
	}
	return closeReport(w, file, rows)
}

// contents yields the keys and contents of a sorter in order, each valid until the next.
// It stops at an error, or at the end of the context, and leaves it in err.
func contents(ctx context.Context, s *extsort.Sorter, err *error) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		e := s.InOrder(ctx, 1, func(_ int, b *extsort.Bucket) error {
			defer b.Release()
			for i := range b.Len() {
				if !yield(b.Key(i), b.Record(i)) {
					return errors.New("the rest is not wanted")
				}
			}
			return nil
		})
		*err = cmp.Or(*err, e) // which the other sequence may have set meanwhile
	}
}

// merge merges two sequences of ascending keys.
func merge(a, b iter.Seq2[uint64, []byte]) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		keyB, recB, more := next()
		for keyA, recA := range a {
			for ; more && keyB < keyA; keyB, recB, more = next() {
				if !yield(keyB, recB) {
					return
				}
			}
			if !yield(keyA, recA) {
				return
			}
		}
		for ; more && yield(keyB, recB); keyB, recB, more = next() {
		}
	}
}

func (r *run) decodeReject(key uint64, rec []byte) *outcome.Reject {
	offset, n := binary.Uvarint(rec)
	reason, rest := cutCell(rec[n:])
	detail, rest := cutCell(rest)
	raw, rest := cutCell(rest)
	rej := &outcome.Reject{
		Source: r.inputs.list[key>>rowBits].Name, Row: int64(key & (1<<rowBits - 1)), Offset: int64(offset) - 1,
		Reason: string(reason), Detail: string(detail), Raw: raw,
	}
	for len(rest) > 0 {
		var cell []byte
		cell, rest = cutCell(rest)
		rej.Cells = append(rej.Cells, cell)
	}
	return rej
}

// rejectExhausted makes rejects of all rows whose URL found no code.
func (r *run) rejectExhausted(ctx context.Context, late *extsort.Sorter) error {
	w := &rejectWriter{sorted: late.NewWriter()}
	var at loadedBucket
	defer at.release()
	for i := range r.settled.outcomes {
		if r.settled.failed == 0 || r.settled.outcomes[i] == nil && !r.settled.heads[i].known {
			continue
		}
		b, err := at.load(ctx, r.records, i)
		if err != nil {
			return err
		}
		for first, end := range urlsOf(b) {
			if r.settled.decision(i, first, hashOf(b.Record(first))).outcome != exhausted {
				continue
			}
			for j := first; j < end; j++ {
				w.file(r.rejectRecord(r.workspaceName(b.Group(j)), decode(b.Record(j))))
			}
		}
	}
	return late.Finish(ctx)
}

// rejectRecord makes a reject of a record, with the cells that the input had.
func (r *run) rejectRecord(workspace []byte, rec record) (place, outcome.Reject) {
	carried := rec.carried(nil, len(r.inputs.carried))
	in := r.inputs.list[rec.place.source]
	return rec.place, outcome.Reject{
		Reason: outcome.CodeSpaceExhausted,
		Detail: fmt.Sprintf("all %d codes of this URL have other owners", r.cfg.MaxRetries+1),
		Cells:  in.all(nil, rec.original, originalWorkspace(workspace, rec.flags), func(c int) []byte { return carried[c] }),
	}
}

func originalWorkspace(workspace []byte, flags byte) []byte {
	switch {
	case flags&flagNullWS != 0:
		return nil
	case flags&flagNoWS != 0:
		return []byte{}
	}
	return workspace
}
