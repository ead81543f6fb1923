package verify

import (
	"bytes"
	"context"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A stretch is a block of the mapping on its way to a worker, and the row before it; nil:
// there is none.
type stretch struct {
	rows interface {
		Len() int
		Row(i int, r *readback.MappingRow) (faults []*readback.CellError)
	}
	block  readback.Block // the rows of a mapping that is in the order of the sort
	sorted sortedRows     // those of another
	before *readback.MappingRow
}

// A rowReader fills in the rows of a stretch; at the end the error is io.EOF.
type rowReader func(s *stretch) error

// A mappingCheck checks every row of the mapping.
type mappingCheck struct {
	findings *findings
	run      *run
	reports  *reports
	books    *books
	sorts    *sorters
	seed     maphash.Seed // of links that the run created
	sums     *sums        // nil: the inputs are not read again
	joins    bool         // only the inputs tell what rows say of their links
	workers  int
}

// mapped is what the rows of a mapping say together.
type mapped struct {
	rows    int64
	told    told
	bare    int64  // URLs of which no row is the link; only if legacy codes are kept
	created uint64 // sum of all links that the run created
	sum     uint64 // of all rows, as of rowHasher; 0: the inputs are not read again
	mixed   bool   // they are not in order
}

// check checks them in the order of the sort, and fills in what they say together.
func (c *mappingCheck) check(ctx context.Context, to *mapped) error {
	m, err := openReport(ctx, c.reports, c.run.mapping, true, readback.OpenMapping)
	if m == nil || err != nil {
		return err
	}
	defer m.Close()
	if m.Format.FileName() != c.run.mapping { // the reader goes by the content
		c.findings.fault(c.run.mapping, 0).wrong(Damaged, "", "the format of its name", string(m.Format))
	}
	c.findings.checkColumns(c.run.mapping, m.Carried, c.carriedNames(m))
	var urls *urlChecker
	if c.run.codes.mode.Keeps() {
		urls = c.newURLChecker(m)
	}
	rows, done, err := c.rows(ctx, m, urls)
	if err != nil {
		return err
	}
	defer done()
	checkers := make([]*rowChecker, c.workers)
	for i := range checkers {
		checkers[i] = c.newChecker(m)
	}
	if err := c.eachStretch(ctx, rows, func(worker int, s *stretch) { checkers[worker].check(s) }); err != nil {
		return err
	}
	if urls != nil {
		urls.end()
		to.bare = urls.urls
	}
	if c.sorts.numbered != nil && !c.reports.broken.Load() {
		if err := verifyNumbers(ctx, c.sorts.numbered, c.run, c.findings); err != nil {
			return err
		}
	}
	c.count(checkers, to)
	return nil
}

// rows returns what reads the rows in the order of the sort, and passes them to urls, unless it is nil.
// Done is called at the end.
func (c *mappingCheck) rows(ctx context.Context, m *readback.Mapping, urls *urlChecker) (rows rowReader, done func(), err error) {
	rows = func(s *stretch) error {
		s.rows = &s.block
		err := m.Read(&s.block)
		if err == nil && urls != nil && c.run.order == report.SortOrder {
			urls.addAll(&s.block)
		}
		return err
	}
	if c.run.order == report.SortOrder {
		return rows, func() {}, nil
	}
	sorted, err := c.sortMapping(ctx, m, rows)
	if err != nil {
		return nil, nil, err
	}
	sorted.urls = urls
	return sorted.read, func() { sorted.rows.Close() }, nil
}

// newChecker returns a checker for one worker.
func (c *mappingCheck) newChecker(m *readback.Mapping) *rowChecker {
	rows, groups, cells := newDeriver(c.run, m.Text), newGrouper(c.sorts.groups), newCellChecker(c.run)
	w := &rowChecker{findings: c.findings, run: c.run, books: c.books, order: orderOf(c.run, m), at: newWindow(rows),
		codes: newCodeChecker(c.run, rows.codes, c.findings), cells: cells, told: cells.told,
		claims: newClaimer(c.run, rows.codes, groups, c.sorts.claims), wanted: newWantWriter(c.run, groups, c.seed, c.sorts.stored),
		numbers: newNumberWriter(groups, c.sorts.numbered), tally: tally{digest: report.RowDigest{Columns: c.run.codes.own}}}
	if p := c.run.terms.Campaign; p != nil {
		w.variants = &variantChecker{run: c.run, plan: p, row: p.NewRow(), to: c.sorts.newVariantWriter()}
	}
	if !c.joins {
		w.held = newHeldWriter(c.run, groups, c.sorts.held)
	}
	if c.sums != nil {
		w.sums = c.sums.newHasher()
	}
	return w
}

// eachStretch lets workers visit all rows.
func (c *mappingCheck) eachStretch(ctx context.Context, rows rowReader, visit func(worker int, s *stretch)) error {
	return inBlocks(ctx, c.workers, func(s *stretch, send func(*stretch) (*stretch, error)) error {
		return c.readRows(rows, s, send)
	}, visit)
}

// count adds up what the workers have counted and digested.
func (c *mappingCheck) count(checkers []*rowChecker, to *mapped) {
	counted := map[string]int64{}
	digest := report.RowDigest{Columns: c.run.codes.own}
	var changes rules.ChangeCounts
	for _, w := range checkers {
		changes.Merge(&w.tally.changes)
		for o, n := range w.tally.outcomes {
			counted[outcome.Outcome(o).String()] += n
			to.rows += n
		}
		digest.Merge(&w.tally.digest)
		to.mixed = to.mixed || w.tally.mixed
		to.told.merge(w.told)
		if w.wanted != nil {
			to.created += w.wanted.created
		}
		if w.sums != nil {
			to.sum += w.sums.total
		}
	}
	c.reports.checkCounts(c.run.mapping, to.rows, counted)
	if c.run.ruling.ruled {
		c.verifyChanges(&changes)
	}
	files, _ := c.run.manifest.Reports()
	if want := files[0].RowDigest; want != "" && want != digest.Sum() {
		c.findings.fault(c.run.mapping, 0).wrong(RowDigest, "", want, digest.Sum())
	}
}

// verifyChanges compares the changes of all rows with those of the manifest.
func (c *mappingCheck) verifyChanges(rows *rules.ChangeCounts) {
	changes := rows.ByName()
	if !maps.Equal(changes, c.run.manifest.Rules.Changes) {
		c.findings.wrong(BadCount, "rules.changes", reasonsText(changes), reasonsText(c.run.manifest.Rules.Changes))
	}
}

// readRows cuts the mapping into stretches, of which the first goes into s.
func (c *mappingCheck) readRows(rows rowReader, s *stretch, send func(*stretch) (*stretch, error)) error {
	var before *readback.MappingRow
	for {
		err := rows(s)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			_, err = c.reports.damaged(c.run.mapping, err)
			return err
		}
		last := new(readback.MappingRow)
		s.rows.Row(s.rows.Len()-1, last)
		keep(last)
		s.before, before = before, last
		if s, err = send(s); err != nil {
			return err
		}
	}
}

// keep copies the cells of a row, which lie in a block.
func keep(r *readback.MappingRow) {
	r.Source = strings.Clone(r.Source)
	for _, cell := range [...]*[]byte{&r.Workspace, &r.Original, &r.Canonical, &r.Code, &r.ShortURL} {
		*cell = bytes.Clone(*cell)
	}
	for _, c := range report.All() {
		if c.Text != nil {
			cell := c.Text(&r.Row)
			*cell = bytes.Clone(*cell)
		}
	}
	r.Values = slices.Clone(r.Values)
	for i := range r.Values {
		r.Values[i] = bytes.Clone(r.Values[i])
	}
	r.Carried = slices.Clone(r.Carried)
	for i := range r.Carried {
		r.Carried[i] = bytes.Clone(r.Carried[i])
	}
}

// carriedNames returns the names that the carried columns must have.
func (c *mappingCheck) carriedNames(m *readback.Mapping) []string {
	if !c.run.terms.Carry {
		return nil
	}
	names := report.CarriedNames(c.run.codes.own.Names(), c.run.columns.Carried)
	for i, name := range names {
		names[i] = m.Text(name)
	}
	if m.Format == report.CSV {
		return names
	}
	return report.CarriedNames(c.run.codes.own.Names(), names)
}
