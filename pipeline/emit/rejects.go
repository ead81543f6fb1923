package emit

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/settle"
)

// Rejects writes all rejects in the order of their places, and returns how many they are:
// those of the intake, and rows whose URL was rejected when it was settled, which go through
// the given sorter by place.
func Rejects(ctx context.Context, rows *intake.Rows, s *settle.Settlement, late *extsort.Sorter, to *report.Rejects) (n int64, err error) {
	if err := fileLate(ctx, rows, s, late); err != nil {
		return 0, err
	}
	var failed error
	for key, rec := range merge(contents(ctx, rows.Rejects, &failed), contents(ctx, late, &failed)) {
		place, rej := record.DecodeReject(key, rec)
		rej.Source = rows.List[place.Source].Name
		if err := to.Append(rej); err != nil {
			return n, err
		}
		n++
	}
	return n, failed
}

// fileLate makes rejects of all rows whose URL was rejected when it was settled, with the
// cells that the input had.
func fileLate(ctx context.Context, rows *intake.Rows, s *settle.Settlement, late *extsort.Sorter) error {
	w := late.NewWriter()
	var buf []byte
	file := func(d *settle.Decision, workspace, rec []byte) {
		r := record.Decode(rec)
		carried := r.Carried(nil, len(rows.Carried))
		buf = record.AppendReject(buf[:0], r.Place, &outcome.Reject{Reason: d.Reason, Detail: d.Detail,
			Cells: rows.List[r.Place.Source].Cells(nil, r.Original, r.WorkspaceCell(workspace), func(c int) []byte { return carried[c] }),
		})
		copy(w.Reserve(0, r.Place.Key(), len(buf)), buf)
	}
	for i := range rows.Records.Buckets() {
		if !s.MayReject(i) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b, err := rows.Records.Load(i)
		if err != nil {
			return err
		}
		for first, end := range record.URLs(b) {
			if d := s.Decide(i, first, record.Key(b.Record(first))); d.Reason != "" {
				for j := first; j < end; j++ {
					file(&d, rows.Workspaces.Name(b.Group(j)), b.Record(j))
				}
			}
		}
		b.Release()
	}
	return late.Finish(ctx)
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
