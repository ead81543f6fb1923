package pipeline

import (
	"context"
	"fmt"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/settle"
	"github.com/linkforge/bulk/sink"
)

// counts reports whether codes are made from numbers.
func (s Scheme) counts() bool {
	_, spec := s.withDefaults()
	return spec.Counts
}

// counter is what makes codes from numbers, of which the run has some already; nil: they are made
// from hashes.
func (j *job) counter(have []sink.Range) *settle.Counter {
	if !j.cfg.Scheme.counts() {
		return nil
	}
	c := &settle.Counter{Words: j.cfg.Scheme.Words, Have: have, URLs: j.sorter(j.budget.urls, j.cfg.Workers+1), Sorts: j.sorter(j.budget.codes, 3)}
	for range j.cfg.Workers {
		_, counter, _ := j.cfg.Scheme.Make(j.cfg.CodeLength) // validate has the error
		c.Codes = append(c.Codes, counter)
	}
	return c
}

// mayCount refuses a run that shall begin the counter, if the store has given out numbers: before
// it stands in the store.
func (j *job) mayCount(ctx context.Context, session sink.Session, entry sink.Run, settled *settle.Settlement) error {
	if j.cfg.Scheme.CounterStart == 0 || len(entry.Numbers) > 0 || settled.ToLoad() == 0 {
		return nil
	}
	_, err := j.nextNumber(ctx, session)
	return err
}

// nextNumber returns the number that the store gives out next.
func (j *job) nextNumber(ctx context.Context, session sink.Session) (next int64, err error) {
	if session != nil {
		if next, err = session.NextNumber(ctx); err != nil {
			return 0, err
		}
	}
	if next, err = sink.FirstNumber(next, j.cfg.Scheme.CounterStart); err != nil {
		return 0, &UsageError{fmt.Errorf("Config.Scheme.CounterStart: %w", err)}
	}
	return next, nil
}

// number gives new URLs their numbers, which the store gives to the run.
func (j *job) number(ctx context.Context, session sink.Session, entry *sink.Run, settled *settle.Settlement) error {
	return j.timeNumbering(ctx, settled, func(ctx context.Context, n int64) (numbers []sink.Range, err error) {
		entry.Numbers, err = session.Reserve(ctx, *entry, n, j.cfg.Scheme.CounterStart)
		return entry.Numbers, err
	})
}

// numberDry gives them the numbers that the store would give out now. Another run may take them
// first.
func (j *job) numberDry(ctx context.Context, session sink.Session, settled *settle.Settlement) error {
	return j.timeNumbering(ctx, settled, func(ctx context.Context, n int64) ([]sink.Range, error) {
		next, err := j.nextNumber(ctx, session)
		return []sink.Range{{First: next, Last: next + n - 1}}, err
	})
}

// timeNumbering does the stage that gives new URLs their numbers, which reserve returns, if the scheme
// has a counter.
func (j *job) timeNumbering(ctx context.Context, settled *settle.Settlement, reserve func(ctx context.Context, n int64) ([]sink.Range, error)) error {
	if !j.cfg.Scheme.counts() {
		return nil
	}
	return j.meter.time("number", func(s *manifest.Stage) (err error) {
		s.Rows, err = settled.Number(ctx, reserve)
		return err
	})
}
