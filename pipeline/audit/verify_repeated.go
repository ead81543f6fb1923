package audit

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/linkforge/bulk/pipeline/report"
)

// account accounts for a row of the inputs. Of two accounts of one row either may
// come first here, so which is one too many is left to verifyRepeated.
func (v *verifier) account(source int, row int64) {
	if !v.seen[source].add(row) {
		v.repeated[source].add(row)
		v.twice.Store(true)
	}
}

// repeats tells of the rows of a run, visited in the order of the mapping and then
// of the rejects, which are accounted for again.
type repeats struct {
	*verifier
	met []*rowSet
}

func (v *verifier) newRepeats() *repeats {
	r := &repeats{verifier: v}
	for _, set := range v.repeated {
		r.met = append(r.met, newRowSet(set.records))
	}
	return r
}

func (r *repeats) again(source int, row int64) bool {
	return r.repeated[source].has(row) && !r.met[source].add(row)
}

// verifyRepeated finds the rows that are accounted for again.
func (v *verifier) verifyRepeated(ctx context.Context) error {
	if !v.twice.Load() {
		return nil
	}
	repeats := v.newRepeats()
	check := func(file string, number int64, source int, name string, row int64) {
		if repeats.again(source, row) {
			v.fault(file, number).wrong(RowRepeated, "row", "", name+" "+strconv.FormatInt(row, 10))
		}
	}
	if err := v.eachLink(ctx, func(l *link) { check(v.mapping, l.Number, l.source, l.Source, l.Row.Row) }); err != nil {
		return err
	}
	return v.eachReject(ctx, func(number int64, source int, r *report.Reject) {
		check(report.RejectsName, number, source, r.Source, r.Row)
	})
}

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
func (v *verifier) eachReject(ctx context.Context, visit func(number int64, source int, r *report.Reject)) error {
	if slices.Contains(v.unread, report.RejectsName) {
		return nil
	}
	r, err := report.OpenRejects(v.path(report.RejectsName))
	if err != nil {
		return v.unknown(err)
	}
	defer r.Close()
	sources := v.inputNumbers()
	_, _, err = eachRow(ctx, r.Next, unreadable, func(number int64, rej *report.Reject) {
		if source, ok := sources[rej.Source]; ok && isRow(rej.Row) {
			visit(number, source, rej)
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
