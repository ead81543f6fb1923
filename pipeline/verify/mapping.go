package verify

import (
	"bytes"
	"context"
	"io"
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

// verifyMapping checks every row of the mapping, in the order of the sort.
func (v *verifier) verifyMapping(ctx context.Context) error {
	m, err := openReport(ctx, v, v.run.mapping, true, readback.OpenMapping)
	if m == nil || err != nil {
		return err
	}
	defer m.Close()
	if m.Format.FileName() != v.run.mapping { // the reader goes by the content
		v.fault(v.run.mapping, 0).wrong(Damaged, "", "the format of its name", string(m.Format))
	}
	v.checkColumns(v.run.mapping, m.Carried, v.carriedNames(m))
	var urls *urlChecker
	if v.run.mode().Keeps() {
		urls = v.newURLChecker(m)
	}
	rows := func(s *stretch) error {
		s.rows = &s.block
		err := m.Read(&s.block)
		if err == nil && urls != nil && v.run.order == report.SortOrder {
			urls.addAll(&s.block)
		}
		return err
	}
	if v.run.order == report.InputOrder {
		sorted, err := v.sortMapping(ctx, m, rows)
		if err != nil {
			return err
		}
		defer sorted.rows.Close()
		sorted.urls = urls
		rows = sorted.read
	}
	checkers, err := v.eachStretch(ctx, m, rows, (*checker).check)
	if err != nil {
		return err
	}
	if urls != nil {
		urls.end()
		v.bare = urls.urls
	}
	if v.numbered != nil && !v.broken.Load() {
		if err := v.verifyNumbers(ctx); err != nil {
			return err
		}
	}
	v.countRows(checkers)
	return nil
}

// eachStretch lets workers visit all rows, each with a checker that has all writers.
func (v *verifier) eachStretch(ctx context.Context, m *readback.Mapping, rows rowReader, visit func(*checker, *stretch)) ([]*checker, error) {
	checkers := make([]*checker, v.cfg.Workers)
	for i := range checkers {
		w := v.newChecker(m)
		w.claims = v.claims.NewWriter()
		if v.stored != nil {
			w.wanted = v.stored.NewWriter()
		}
		if v.held != nil {
			w.held = v.held.NewWriter()
		}
		if v.numbered != nil {
			w.numbers = v.numbered.NewWriter()
		}
		if v.inputs != nil {
			w.sums = v.newRowHasher()
		}
		if v.sorted != nil {
			w.filed = v.sorted.NewWriter()
		}
		checkers[i] = w
	}
	err := inBlocks(ctx, len(checkers), func(s *stretch, send func(*stretch) (*stretch, error)) error {
		return v.readRows(rows, s, send)
	}, func(worker int, s *stretch) { visit(checkers[worker], s) })
	return checkers, err
}

// countRows adds up what the workers have counted and digested.
func (v *verifier) countRows(checkers []*checker) {
	counted := map[string]int64{}
	digest := report.RowDigest{Columns: v.run.own}
	var changes rules.ChangeCounts
	for _, w := range checkers {
		changes.Merge(&w.changes)
		for o, n := range w.outcomes {
			counted[outcome.Outcome(o).String()] += n
			v.result.Rows += n
		}
		digest.Merge(&w.digest)
		v.addTold(&w.told)
		v.created.Add(w.created)
		if w.sums != nil {
			v.runTotal.Add(w.sums.total)
		}
	}
	v.verifyCounts(v.run.mapping, v.result.Rows, counted)
	if v.run.ruled {
		v.verifyChanges(&changes)
	}
	if want := v.run.manifest.Files[0].RowDigest; want != "" && want != digest.Sum() {
		v.fault(v.run.mapping, 0).wrong(RowDigest, "", want, digest.Sum())
	}
}

// readRows cuts the mapping into stretches, of which the first goes into s.
func (v *verifier) readRows(rows rowReader, s *stretch, send func(*stretch) (*stretch, error)) error {
	var before *readback.MappingRow
	for {
		err := rows(s)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			_, err = v.damaged(v.run.mapping, err)
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
	r.Carried = slices.Clone(r.Carried)
	for i := range r.Carried {
		r.Carried[i] = bytes.Clone(r.Carried[i])
	}
}

// carriedNames returns the names that the carried columns must have.
func (v *verifier) carriedNames(m *readback.Mapping) []string {
	if !v.run.terms.Carry {
		return nil
	}
	names := report.CarriedNames(v.run.own.Names(), v.run.columns.Carried)
	for i, name := range names {
		names[i] = m.Text(name)
	}
	if m.Format == report.CSV {
		return names
	}
	return report.CarriedNames(v.run.own.Names(), names)
}

func (v *verifier) checkColumns(file string, got, want []string) {
	if !slices.Equal(got, want) {
		v.fault(file, 0).wrong(BadColumns, "", strings.Join(want, ","), strings.Join(got, ","))
	}
}
