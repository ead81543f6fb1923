package pipeline

import (
	"context"

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

// number moves the counter, if the run was told to, and gives new URLs their numbers, which the store
// gives to the run.
func (j *job) number(ctx context.Context, session sink.Session, entry *sink.Run, settled *settle.Settlement) error {
	if err := j.moveCounter(ctx, session); err != nil {
		return err
	}
	if err := j.timeNumbering(ctx, settled, func(ctx context.Context, n int64) (numbers []sink.Range, err error) {
		entry.Numbers, err = session.Reserve(ctx, *entry, n)
		return entry.Numbers, err
	}); err != nil {
		return err
	}
	return j.readCounter(ctx, session)
}

// moveCounter moves the counter of the store to where the run was told to, if that is ahead.
func (j *job) moveCounter(ctx context.Context, session sink.Session) error {
	start := j.cfg.Scheme.CounterStart
	if start == 0 {
		return nil
	}
	was, err := session.MoveCounter(ctx, start)
	if err == nil {
		j.noteStart(max(was, 1))
	}
	return err
}

// noteStart notes whether the start of the counter moves it, whose next number is given. An attempt
// that was made again has moved it before.
func (j *job) noteStart(next int64) {
	if c := &j.result.Counter; !c.Moved {
		*c = manifest.Counter{Start: j.cfg.Scheme.CounterStart, Was: next, Moved: j.cfg.Scheme.CounterStart > next}
	}
}

// readCounter notes the last number that the store has given out.
func (j *job) readCounter(ctx context.Context, session sink.Session) error {
	if !j.cfg.Scheme.counts() {
		return nil
	}
	next, err := session.NextNumber(ctx)
	j.result.Counter.Last = max(next, 1) - 1
	return err
}

// numberDry gives new URLs the numbers that the store would give out now. Another run may take them
// first. Without a session there is no store.
func (j *job) numberDry(ctx context.Context, session sink.Session, settled *settle.Settlement) error {
	if session != nil {
		if err := j.readCounter(ctx, session); err != nil {
			return err
		}
	}
	next := j.result.Counter.Last + 1
	if start := j.cfg.Scheme.CounterStart; start > 0 {
		j.noteStart(next)
		j.result.Counter.Last = next - 1
		next = max(next, start)
	}
	return j.timeNumbering(ctx, settled, func(_ context.Context, n int64) ([]sink.Range, error) {
		return []sink.Range{{First: next, Last: next + n - 1}}, nil
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
