package emit

import (
	"cmp"
	"context"

	"github.com/linkforge/bulk/pipeline/claim"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/intake"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/settle"
)

// Rejects writes all rejects in the order of their places, and returns how many they are, and
// the first, without its cells: those of the intake, and rows whose URL was rejected when it
// was settled, which go through the given sorter by place. A reject is valid during the call.
func Rejects(ctx context.Context, rows *intake.Rows, s *settle.Settlement, late *extsort.Sorter, write func(*outcome.Reject) error) (n int64, first outcome.Reject, err error) {
	if err := FileLate(ctx, rows, s, late); err != nil {
		return 0, first, err
	}
	a, b := rows.Rejects.Cursor(ctx, 1), late.Cursor(ctx, 1)
	defer a.Close()
	defer b.Close()
	for moreA, moreB := a.Next(), b.Next(); moreA || moreB; n++ {
		c, more := a, &moreA
		if !moreA || moreB && b.Key() < a.Key() {
			c, more = b, &moreB
		}
		if err := cmp.Or(a.Err(), b.Err()); err != nil { // or the rest of the other would be written
			return n, first, err
		}
		place, rej := record.DecodeReject(c.Key(), c.Record())
		rej.Source = rows.List[place.Source].Name
		if n == 0 {
			first = outcome.Reject{Source: rej.Source, Row: rej.Row, Reason: rej.Reason, Detail: rej.Detail}
		}
		if err := write(rej); err != nil {
			return n, first, err
		}
		*more = c.Next()
	}
	return n, first, cmp.Or(a.Err(), b.Err())
}

// LateRows returns how many rows of the inputs have variants that were rejected when they were settled.
// The sorter is as of Rejects.
func LateRows(ctx context.Context, rows *intake.Rows, s *settle.Settlement, late *extsort.Sorter) (n int64, err error) {
	if err := FileLate(ctx, rows, s, late); err != nil {
		return 0, err
	}
	c := late.Cursor(ctx, 1)
	defer c.Close()
	var last uint64
	for c.Next() {
		if key := c.Key(); n == 0 || key != last {
			n, last = n+1, key
		}
	}
	return n, c.Err()
}

// FileLate makes rejects of all rows whose URL was rejected when it was settled, with the
// cells that the input had.
func FileLate(ctx context.Context, rows *intake.Rows, s *settle.Settlement, late *extsort.Sorter) error {
	w := late.NewWriter()
	var buf []byte
	file := func(d *settle.Decision, workspace, rec []byte) {
		r := record.Decode(rec)
		in := rows.List[r.Place.Source]
		old := r.Legacy()
		carried, url := r.Carried(nil, len(rows.Carried)), r.Original
		rej := outcome.Reject{Reason: d.Reason, Detail: d.Detail}
		if rows.KeepURLs() {
			_, url = r.InputURL(carried[:0], len(rows.Carried), nil)
		}
		if rows.Campaign != nil {
			rej.Variant, rej.Detail = r.Place.Variant, outcome.VariantDetail(r.Place.Variant, d.Detail)
		}
		rej.Cells = in.Layout.Append(nil, url, r.WorkspaceCell(workspace), in.Variant(r.Place, &old, func(c int) []byte { return carried[c] }))
		buf = record.AppendReject(buf[:0], r.Place, &rej)
		copy(w.Reserve(0, r.Place.Key(), len(buf)), buf)
	}
	claims := s.Claims()
	var verdicts *claim.Reader
	if claims != nil {
		verdicts = claims.Reader()
		defer verdicts.Close()
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
		for first, end := range b.Runs(record.KeySize) {
			d := s.Decide(i, first, b.Group(first), b.Record(first))
			for j := first; j < end; j++ {
				d := d
				r, _ := s.Result(i, j)
				if claims != nil {
					switch row := s.Row(i, j); {
					case row.Lost() && r.Reason == rules.Accepted:
						if d, err = taken(ctx, verdicts, b, j); err != nil {
							b.Release()
							return err
						}
					case row.Lost(), row.Won():
						d = settle.Decision{}
					}
				}
				if d.Reason == "" && r.Reason != rules.Accepted {
					d.Reason, d.Detail = r.Reason.String(), r.Detail()
				}
				if d.Reason != "" {
					file(&d, rows.Workspaces.Name(b.Group(j)), b.Record(j))
				}
			}
		}
		b.Release()
	}
	return late.Finish(ctx)
}

// taken rejects a row because another URL has its code.
func taken(ctx context.Context, verdicts *claim.Reader, b *extsort.Bucket, i int) (settle.Decision, error) {
	rec := b.Record(i)
	code := record.LegacyCode(rec)
	owner, err := verdicts.Owner(ctx, b.Group(i), b.Key(i), record.Key(rec), code)
	return settle.Decision{Reason: outcome.CodeTaken, Detail: outcome.CodeTakenDetail(code, owner, record.Canonical(rec))}, err
}
