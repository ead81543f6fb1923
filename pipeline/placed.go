package pipeline

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"golang.org/x/sync/errgroup"
)

// A row of a mapping in the order of the input goes through a sorter of its own,
// under the key of a reject. Its content is
//
//	workspace uvarint | outcome, 1 byte | salt + 1 uvarint | code as a cell of a record | its record

// place files the row in hand, of which rec is the record and r what it decodes to.
func (f *formatter) place(workspace uint32, rec []byte, r *record) {
	head := binary.AppendUvarint(f.buf[:0], uint64(workspace))
	head = append(head, byte(f.row.Outcome))
	head = binary.AppendUvarint(head, uint64(f.row.Salt+1))
	head = appendCell(head, f.row.Code)
	f.buf = head
	to := f.placed.Reserve(0, r.place.key(), len(head)+len(rec))
	copy(to[copy(to, head):], rec)
}

// decodePlaced fills in a row that was placed.
func (f *formatter) decodePlaced(placed []byte) record {
	workspace, n := binary.Uvarint(placed)
	f.row.Workspace = f.run.workspaceName(uint32(workspace))
	f.row.Outcome = outcome.Outcome(placed[n])
	salt, m := binary.Uvarint(placed[n+1:])
	f.row.Salt = int(salt) - 1
	code, rec := cutCell(placed[n+1+m:])
	f.row.Code = code
	return decode(rec)
}

// emitPlaced writes the mapping in the order of the input.
func (r *run) emitPlaced(ctx context.Context, out *written, placed *extsort.Sorter) error {
	g, ctx := errgroup.WithContext(ctx)
	order := r.inPieces(ctx, g, placed, func(pieces <-chan *piece) error {
		f := formatter{run: r}
		for p := range pieces {
			start := time.Now()
			p.block = out.mapping.Block()
			f.walk(p, func(i int) (next int) {
				rec := f.decodePlaced(p.bucket.Record(i))
				f.add(p, &rec)
				return i + 1
			})
			r.timings.worked(start)
			close(p.done)
		}
		out.digested(&f.digest)
		return nil
	})
	g.Go(func() error { return r.writePieces(ctx, out, order, nil) })
	return g.Wait()
}
