package remove

import (
	"context"
	"strconv"

	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
)

// Columns returns the columns of the mapping of a delete. Those that the inputs carry follow.
func Columns() []string {
	return []string{"source", "row", "workspace_id", "input", "canonical_url", "short_codes", "outcome", "change"}
}

// WriteAccepted writes the accepted rows in the order of the inputs, under Columns, and counts them.
// Mark was called before.
func (r *Rows) WriteAccepted(ctx context.Context, to report.Export) (rows [outcome.Count]int64, err error) {
	at := r.accepted.Cursor(ctx, 1)
	defer at.Close()
	var number []byte
	var cells [][]byte
	for at.Next() {
		place, a := record.PlaceOf(at.Key(), 0), decodeAccepted(at.Record())
		number = strconv.AppendInt(number[:0], place.Row, 10)
		cells = append(cells[:0], []byte(r.List[place.Source].Name), number, []byte(r.cfg.Workspace), a.input, a.canonical, a.codes,
			[]byte(a.outcome.String()), []byte(a.change.String()))
		if err := to.Append(appendCarried(cells, a.carried, len(r.Carried))); err != nil {
			return rows, err
		}
		rows[a.outcome]++
	}
	return rows, at.Err()
}

// WriteRejects writes the rejects in the order of the inputs, and counts them. Mark was called
// before.
func (r *Rows) WriteRejects(ctx context.Context, to *report.Rejects) (rows int64, err error) {
	at := r.rejects.Cursor(ctx, 1)
	defer at.Close()
	for ; at.Next(); rows++ {
		place, reject := record.DecodeReject(at.Key(), at.Record())
		reject.Source = r.List[place.Source].Name
		if err := to.Append(reject); err != nil {
			return rows, err
		}
	}
	return rows, at.Err()
}
