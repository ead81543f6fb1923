package audit

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/linkforge/bulk/pipeline/report"
)

// eachLink visits the rows of the mapping once more that are of an input, as far as
// they can be read.
func (v *verifier) eachLink(ctx context.Context, visit func(l *link)) error {
	if v.mapping == "" || slices.Contains(v.unread, v.mapping) {
		return nil
	}
	m, err := report.OpenMapping(v.path(v.mapping))
	if err != nil {
		return v.unknown(err)
	}
	defer m.Close()
	w, l, b := v.newChecker(m), new(link), new(report.MappingBlock)
	for {
		err := m.Read(b)
		for i := range b.Len() {
			b.Row(i, &l.MappingRow)
			if w.resolve(l); l.source >= 0 && isRow(l.Row.Row) && !isFaulty(b, l.Number) {
				visit(l)
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return v.unknown(err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// eachReject visits the rejects once more that are rows of an input, as far as they
// can be read.
func (v *verifier) eachReject(ctx context.Context, visit func(source int, r *report.Reject)) error {
	if slices.Contains(v.unread, report.RejectsName) {
		return nil
	}
	r, err := report.OpenRejects(v.path(report.RejectsName))
	if err != nil {
		return v.unknown(err)
	}
	defer r.Close()
	sources := v.inputNumbers()
	_, _, err = eachRow(ctx, r.Next, unreadable, func(_ int64, rej *report.Reject) {
		if source, ok := sources[rej.Source]; ok && isRow(rej.Row) {
			visit(source, rej)
		}
	})
	return v.unknown(err)
}

// isRow reports whether an input can have a row of this number.
func isRow(row int64) bool { return row > 0 && row < mostRecords }

// unknown returns an error, unless it is of a file that is known to be damaged.
func (v *verifier) unknown(err error) error {
	if damage := (*report.DamageError)(nil); v.broken.Load() && errors.As(err, &damage) {
		return nil
	}
	return err
}
