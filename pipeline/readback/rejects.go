package readback

import (
	"context"
	"errors"
	"iter"

	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/report"
)

// Rejects reads rejects.csv.
type Rejects struct {
	Columns []string // of the inputs, as report.CarriedNames made them unique
	*file
	reject outcome.Reject
}

// OpenRejects opens a rejects file. The caller closes it.
func OpenRejects(ctx context.Context, path string, opts Options) (*Rejects, error) {
	opts.ExcelSafe = false // rejects never are
	own := report.RejectColumns()
	lead := len(own) - 1
	f, err := open(ctx, path, "rejects file", own[:lead], opts)
	if err != nil {
		return nil, err
	}
	last := len(f.columns) - 1
	if last < lead || f.columns[last] != own[lead] {
		return nil, errors.Join(&DamageError{File: path, Err: errors.New("its last column is not named " + own[lead])}, f.Close())
	}
	return &Rejects{Columns: f.columns[lead:last], file: f}, nil
}

// Rows yields the rejects, each valid until the one after, until an error ends the reading.
func (r *Rejects) Rows() iter.Seq2[*outcome.Reject, error] { return rowsOf(r.read) }

func (r *Rejects) read() (*outcome.Reject, error) {
	i, err := r.next()
	if err != nil {
		return nil, err
	}
	b, rej := &r.batch, &r.reject
	if rej.Row, err = b.number(i, 1, 0); err != nil {
		return nil, err
	}
	if rej.Offset, err = b.number(i, 2, -1); err != nil {
		return nil, err
	}
	rej.Source, rej.Reason, rej.Detail = string(b.cell(i, 0)), string(b.cell(i, 3)), string(b.cell(i, 4))
	rej.Cells = rej.Cells[:0]
	for c := range r.Columns {
		rej.Cells = append(rej.Cells, b.cell(i, 5+c))
	}
	rej.Raw = b.cell(i, len(b.columns)-1)
	return rej, nil
}

// Collisions reads collisions.csv.
type Collisions struct {
	*file
	collision report.Collision
}

// OpenCollisions opens a collisions file. The caller closes it.
func OpenCollisions(ctx context.Context, path string, opts Options) (*Collisions, error) {
	f, err := open(ctx, path, "collisions file", report.CollisionColumns(opts.Parts), opts)
	if err != nil {
		return nil, err
	}
	return &Collisions{file: f}, nil
}

// Rows yields the lines, each valid until the one after, until an error ends the reading.
// Of a code that nobody holds the owner is nil.
func (r *Collisions) Rows() iter.Seq2[*report.Collision, error] { return rowsOf(r.read) }

func (r *Collisions) read() (*report.Collision, error) {
	i, err := r.next()
	if err != nil {
		return nil, err
	}
	b := &r.batch
	salt, err := b.number(i, 2, 0)
	if err != nil {
		return nil, err
	}
	r.collision = report.Collision{Workspace: b.text(i, 0), Canonical: b.text(i, 1), Salt: int(salt), Code: b.text(i, 3), Owner: b.text(i, 4)}
	if len(r.collision.Owner) == 0 {
		r.collision.Owner = nil
	}
	if b.file.opts.Parts {
		r.collision.Parts = b.text(i, 5)
	}
	return &r.collision, nil
}
