package source

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/columnar"
)

// cells returns the next cell of a column; false: it is null. The cell is valid until the next
// call.
type cells func() ([]byte, bool, error)

// A table is a row group or a record batch: a part of an input whose rows lie in columns. One
// worker at a time takes the next rows.
type table struct {
	mu    sync.Mutex
	name  string
	rows  int64
	cols  []cells      // nil: the column is unread
	ended func() error // checks that its columns have no more rows
	close func()
	first int64        // records before it; it is set if some of them are not read
	left  atomic.Int64 // rows that no worker has taken; 0 after an error
}

// read takes as many rows as b has room for. If a row cannot be read b has the rows before it, and
// no worker reads the rest.
func (t *table) read(b *batcher) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.left.Load()
	if b.base = t.first + t.rows - left; left == 0 {
		return nil // another worker was first
	}
	err := b.in.safely(func() error {
		err := t.take(b, left)
		if err == nil && b.n == left {
			err = t.ended()
		}
		return err
	})
	if err != nil {
		t.left.Store(0)
		return err
	}
	left -= b.n
	t.left.Store(left)
	switch {
	case left == 0:
		t.close()
	case b.limited():
		b.in.cut = true
	}
	return nil
}

// take appends up to n rows to b, as many as it has room for.
func (t *table) take(b *batcher, n int64) error {
	at := 0
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Errorf("column %q: %w", b.in.Columns[at], columnar.Damage(p)))
		}
	}()
	for ; n > 0 && !b.full(); n-- {
		size, blank := 0, b.in.Unread == nil && !b.in.opts.report
		for i, next := range t.cols {
			if at = i; next == nil {
				continue
			}
			cell, ok, err := next()
			switch {
			case err != nil:
				return fmt.Errorf("column %q: %w", b.in.Columns[i], err)
			case size+len(cell) > mostRecord:
				return fmt.Errorf("column %q brings its row to over %d bytes", b.in.Columns[i], mostRecord)
			case !ok:
				b.null(i)
			default:
				b.cols[i].append(cell)
				size += len(cell)
				blank = blank && isBlank(cell)
			}
		}
		if blank {
			b.blank(-1)
			continue
		}
		b.row(-1, size+8*len(t.cols)) // rows of nulls have a size too
	}
	return nil
}

// sampling returns how far it is from one of so many tables that is read to the next, and how many of its
// rows are read. Of a stream, whose number of tables is not known (0), all are.
func (in *Input) sampling(tables int) (step int, rows int64) {
	const least, most = 16, 128 // rows of a table, and tables
	all := in.opts.Sample
	switch {
	case all == 0:
		return 1, math.MaxInt64
	case tables == 0:
		return 1, least
	}
	step = tables/min(most, all/least+1) + 1
	return step, int64(max(least, all/(tables/step+1)))
}

// shorten leaves out all rows of a table but so many.
func (t *table) shorten(rows int64) {
	if t.rows > rows {
		t.rows, t.ended = rows, func() error { return nil }
	}
}

// tableWorkers is how many workers share a table. One of them takes rows at a time, which is that
// much faster than what emit does with the rows.
const tableWorkers = 4

// tables are the tables of an input. All workers read them.
type tables struct {
	in   *Input
	mu   sync.Mutex
	open []*table               // one for each tableWorkers workers; nil: none yet
	next func() (*table, error) // opens the next table; nil: there is none
	rows int64                  // up to the end of the last table that was opened
	err  *ReadError             // the first in the input
}

// readTables reads the tables that next opens, until it returns nil. At most so many are open at
// once.
func (r *reading) readTables(most int, next func() (*table, error)) error {
	s := &tables{in: r.in, next: next, open: make([]*table, min(max(most, 1), (r.workers+tableWorkers-1)/tableWorkers))}
	defer func() {
		for _, t := range s.open {
			if t != nil && t.left.Load() > 0 {
				t.close()
			}
		}
	}()
	if err := r.share(s.work); err != nil || s.err == nil {
		return err
	}
	return s.err
}

func (s *tables) work(b *batcher) error {
	for !s.in.cut {
		t := s.choose(b.worker)
		if t == nil {
			return nil
		}
		if err := t.read(b); err != nil {
			s.mu.Lock()
			s.failed(t, b.base+b.n, err)
			s.mu.Unlock()
			b.reset()
		}
		if err := b.flush(); err != nil {
			return err
		}
	}
	return nil
}

// choose returns a table with rows left, which may be that of other workers; nil: there is none.
// Tables after the first known error are not read.
func (s *tables) choose(worker int) *table {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := worker % len(s.open)
	for s.next != nil && (s.open[mine] == nil || s.open[mine].left.Load() == 0) {
		t, err := s.next()
		if t == nil {
			s.next = nil
			break
		}
		t.first = max(t.first, s.rows)
		if err != nil {
			s.failed(t, t.first, err)
			break
		}
		t.left.Store(t.rows)
		s.rows = t.first + t.rows
		s.open[mine] = t
		if t.rows == 0 {
			t.close()
		}
	}
	for i := range s.open {
		t := s.open[(mine+i)%len(s.open)]
		if t != nil && t.left.Load() > 0 && (s.err == nil || t.first <= s.err.After) {
			return t
		}
	}
	return nil
}

// failed notes what is wrong with a table, after so many records of the input.
func (s *tables) failed(t *table, after int64, err error) {
	s.next = nil
	if s.err == nil || after < s.err.After {
		s.err = &ReadError{After: after, Err: fmt.Errorf("%s: %w", t.name, err)}
	}
}

// safely makes an error of a panic: the decoders of Parquet and Arrow panic on some damage.
func (in *Input) safely(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it is damaged: %w", columnar.Damage(p))
		}
	}()
	return f()
}
