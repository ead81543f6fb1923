package survey

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/terms"
	"golang.org/x/sync/errgroup"
)

// Read surveys the mapping of a run, whose manifest lies in dir; nil: the run has no mapping. A mapping
// that has other numbers of rows than the manifest says is an error.
func Read(ctx context.Context, dir string, m *manifest.Manifest) (*Survey, error) {
	told, _ := terms.Parse(m) // an option that no run has counts as none
	path, opts := readback.Of(dir, m, told)
	if path == "" {
		return nil, nil
	}
	rows, err := readback.OpenMapping(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	s := newSurvey(opts.Campaign)
	err = errors.Join(s.read(ctx, rows, opts.Campaign != nil), rows.Close())
	if err == nil {
		err = s.check(path, &m.Counts)
	}
	return s, err
}

// read counts all rows.
func (s *Survey) read(ctx context.Context, rows *readback.Mapping, expanded bool) error {
	const ahead = 4
	free, full := make(chan *readback.Block, ahead), make(chan *readback.Block, ahead)
	for range ahead {
		free <- new(readback.Block)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(full)
		for {
			var b *readback.Block
			select {
			case b = <-free:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := rows.Read(b); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			full <- b // which has room for all
		}
	})
	g.Go(func() error {
		var row readback.MappingRow
		for b := range full {
			for i := range b.Len() {
				if faults := b.Row(i, &row); len(faults) > 0 {
					return faults[0]
				}
				s.add(&row, expanded)
			}
			free <- b
		}
		return nil
	})
	return g.Wait()
}

// check compares the rows with the counts of the manifest.
func (s *Survey) check(file string, c *manifest.Counts) error {
	for o, want := range [outcome.Count]int64{outcome.Created: c.Created, outcome.Existing: c.Existing, outcome.Duplicate: c.Duplicate} {
		if got := s.Rows[o]; got != want {
			return fmt.Errorf("%s: it has %d rows that are %s, and the manifest says %d: bulk verify shows what was changed", file, got, outcome.Outcome(o), want)
		}
	}
	return nil
}
