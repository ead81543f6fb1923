package report

import (
	"errors"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/shorturl"
	"golang.org/x/sync/errgroup"
)

const (
	// groupBytes ends a row group or batch that has not reached its number of
	// rows, after the row with which its cells reach this size: that bounds
	// memory, whatever the input carried, and depends on the rows alone.
	groupBytes = 32 << 20
	// maxCells bounds the bytes of one column of a block. With groupBytes it
	// keeps 32-bit offsets and Parquet's pages within their range.
	maxCells = math.MaxInt32 - groupBytes
)

// columnNames are the names of all columns, unique and in UTF-8, as Parquet and Arrow
// demand.
func columnNames(opts MappingOptions) []string {
	names := opts.Names()
	carried := make([]string, len(opts.Carried))
	for i, name := range opts.Carried {
		carried[i] = validUTF8(name)
	}
	return slices.Concat(names, CarriedNames(names, carried))
}

// A group is the rows of a row group or a batch, where they lie.
type group struct {
	parts []part
	rows  int
	bytes int64 // of all cells
}

// A part is the rows [from, to) of a block.
type part struct {
	block    *columnBlock
	from, to int
}

func (g *group) add(p part) {
	g.parts = append(g.parts, p)
	g.rows += p.to - p.from
	g.bytes += p.block.bytes[p.to] - p.block.bytes[p.from]
}

// each visits the rows [from, to) of the group, in order.
func (g *group) each(from, to int, visit func(t *table, from, to int)) {
	for _, p := range g.parts {
		n := p.to - p.from
		if first, end := max(from, 0), min(to, n); first < end {
			visit(&p.block.table, p.from+first, p.from+end)
		}
		from, to = from-n, to-n
	}
}

// A columnMapping cuts the rows of blocks into groups of a constant size. While one group
// is gathered, goroutines encode the one before, so memory holds two groups and what they
// are encoded to, however many goroutines there are. What is written depends on the rows
// alone.
type columnMapping struct {
	encoder  groupEncoder
	rows     int // of a group
	workers  int
	gathered group
	encoding *encoding // nil: none
	blocks   sync.Pool
	full     atomic.Pointer[blockSize] // of the largest block so far; nil: none
	err      error
}

// A blockSize is how many rows a block has, and how many bytes each of its columns of
// cells. A new block with room for as many need not grow.
type blockSize struct {
	rows  int
	cells []int
}

func (t *table) blockSize() *blockSize {
	s := &blockSize{rows: t.len(), cells: make([]int, len(t.cells))}
	for i := range t.cells {
		s.cells[i] = len(t.cells[i].data)
	}
	return s
}

// grow makes room for s.
func (t *table) grow(s *blockSize) {
	for i := range t.cells {
		switch c, of := &t.cells[i], t.columns[i].cellType; {
		case of == numberCells:
			c.numbers = slices.Grow(c.numbers, s.rows)
		case of == saltCells:
			c.salts = slices.Grow(c.salts, s.rows)
		case s.cells[i] > 0:
			c.data, c.ends = slices.Grow(c.data, s.cells[i]), slices.Grow(c.ends, s.rows)
		}
	}
	t.outcome, t.bytes = slices.Grow(t.outcome, s.rows), slices.Grow(t.bytes, s.rows)
}

// A groupEncoder writes groups of rows in a columnar format.
type groupEncoder interface {
	// encode returns the work of encoding a group of at least one row, in pieces
	// that any goroutines do in any order, and what then writes the result. Only
	// one group is being encoded at a time.
	encode(g *group) (pieces []func() error, write func() error)
	close() error
}

// An encoding is a group whose pieces are being worked on.
type encoding struct {
	group
	work  errgroup.Group
	write func() error
}

func newColumnMapping(e groupEncoder, rows int, opts MappingOptions) *columnMapping {
	m := &columnMapping{encoder: e, rows: rows, workers: max(1, opts.Workers)}
	columns := opts.columns()
	m.blocks.New = func() any {
		b := &columnBlock{table: newTable(columns), own: len(columns) - len(opts.Carried), base: shorturl.NewBase(opts.BaseURL)}
		if full := m.full.Load(); full != nil {
			b.grow(full)
		}
		return b
	}
	return m
}

func (m *columnMapping) Block() Block { return m.blocks.Get().(*columnBlock) }

func (m *columnMapping) Write(b Block) error {
	block := b.(*columnBlock)
	if m.err == nil {
		m.err = block.check()
	}
	if block.len() == 0 {
		m.free(block)
		return m.err
	}
	if full := m.full.Load(); full == nil || full.rows < block.len() {
		m.full.Store(block.blockSize())
	}
	for from := 0; from < block.len() && m.err == nil; {
		to := m.fits(&block.table, from)
		m.gathered.add(part{block, from, to})
		if from = to; m.gathered.rows == m.rows || m.gathered.bytes >= groupBytes {
			m.flush()
		}
	}
	return m.err
}

// fits returns the end of the rows of t from from on that the group takes.
func (m *columnMapping) fits(t *table, from int) int {
	most := min(t.len()-from, m.rows-m.gathered.rows)
	limit := groupBytes - m.gathered.bytes + t.bytes[from]
	last := sort.Search(most, func(i int) bool { return t.bytes[from+i+1] >= limit })
	return from + min(most, last+1)
}

// flush begins to encode the group that was gathered.
func (m *columnMapping) flush() {
	m.finish()
	if m.gathered.rows == 0 || m.err != nil {
		return
	}
	e := &encoding{group: m.gathered}
	m.gathered = group{}
	var pieces []func() error
	pieces, e.write = m.encoder.encode(&e.group)
	var next atomic.Int64
	for range min(m.workers, len(pieces)) {
		e.work.Go(func() error {
			for i := next.Add(1) - 1; i < int64(len(pieces)); i = next.Add(1) - 1 {
				if err := pieces[i](); err != nil {
					return err
				}
			}
			return nil
		})
	}
	m.encoding = e
}

// finish waits for the group that is being encoded, and writes it.
func (m *columnMapping) finish() {
	e := m.encoding
	if e == nil {
		return
	}
	m.encoding = nil
	m.err = errors.Join(m.err, e.work.Wait())
	for _, p := range e.parts {
		if p.to == p.block.len() {
			m.free(p.block)
		}
	}
	if m.err == nil {
		m.err = e.write()
	}
}

func (m *columnMapping) free(b *columnBlock) {
	b.reset()
	m.blocks.Put(b)
}

func (m *columnMapping) Close() error {
	m.flush()
	m.finish()
	if m.err == nil {
		m.err = m.encoder.close()
	}
	return m.err
}

func (m *columnMapping) Abandon() {
	if m.encoding != nil {
		_ = m.encoding.work.Wait() // its error is of no interest
	}
}
