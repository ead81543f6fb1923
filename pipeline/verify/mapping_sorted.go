package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
)

// Layout of a row of a mapping that is not in the order of the sort, on its way
// there: the group is the workspace, the key the first 8 bytes of the code at salt 0 (of the canonical
// URL if that code is not known, and an empty text in its place); the content, in which text is a length and bytes, nullable text has the length
// + 1 (0: null), and lengths and numbers are uvarints,
//
//	text code at salt 0 | text canonical | text of what else the identity is made of, and of the parameters
//	| outcome, 1 byte | number in the mapping
//	| salt + 1 | row | text source
//	| nullable workspace, original, code, short URL, each carried cell
//	| the columns that not all mappings have, as of report.Column.Append
//	| for each fault: text column, text found
//
// The third text is, if there are parameters, the parts of the identity and 0; if legacy codes are kept, 0,
// legacy code, 0, or 1 if there is none; if there are parameters, what rules.Params.Append writes. So the rows that the
// sort tells apart by nothing but their cells and places come together, those that are not
// duplicates before duplicates.
func (w *rowSorter) appendRow(dst []byte, l *link, faults []*readback.CellError) []byte {
	dst = packed.AppendCell(dst, l.code0)
	dst = packed.AppendCell(dst, l.Canonical)
	dst = packed.AppendCell(dst, w.appendRest(w.text[:0], l))
	dst = append(dst, byte(l.Outcome))
	dst = binary.AppendUvarint(dst, uint64(l.Number))
	dst = binary.AppendUvarint(dst, uint64(l.Salt+1))
	dst = binary.AppendUvarint(dst, uint64(l.Row.Row))
	dst = packed.AppendCell(dst, l.Source)
	for _, cell := range [...][]byte{l.Workspace, l.Original, l.Code, l.ShortURL} {
		dst = packed.AppendNullable(dst, cell)
	}
	for _, cell := range l.Carried {
		dst = packed.AppendNullable(dst, cell)
	}
	for _, c := range w.run.codes.added {
		dst = c.Append(dst, &l.Row)
	}
	for _, f := range faults {
		dst = packed.AppendCell(packed.AppendCell(dst, f.Column), f.Found)
	}
	return dst
}

// appendRest appends the third text.
func (w *rowSorter) appendRest(dst []byte, l *link) []byte {
	ruled := w.run.ruling.flags != nil
	if ruled {
		dst = append(append(dst, l.parts...), 0)
	}
	switch {
	case !w.run.codes.mode.Keeps():
	case l.Legacy == nil:
		dst = append(dst, 1)
	default:
		dst = append(append(append(dst, 0), w.run.codes.asKept(l.Legacy)...), 0)
	}
	if ruled {
		dst = l.params.Append(dst)
	}
	w.text = dst
	return dst
}

func compareRows(a, b []byte) int {
	for range 3 {
		var textA, textB []byte
		textA, a = packed.CutCell(a)
		textB, b = packed.CutCell(b)
		if c := bytes.Compare(textA, textB); c != 0 {
			return c
		}
	}
	numberA, _ := binary.Uvarint(a[1:])
	numberB, _ := binary.Uvarint(b[1:])
	isDuplicate := func(as byte) int { return btoi(outcome.Outcome(as) == outcome.Duplicate) }
	return cmp.Or(cmp.Compare(isDuplicate(a[0]), isDuplicate(b[0])), cmp.Compare(numberA, numberB))
}

// sortMapping checks that the mapping is in the order of the input, and returns its rows in
// the order of the sort, as far as their cells tell.
func (c *mappingCheck) sortMapping(ctx context.Context, m *readback.Mapping, rows rowReader) (*sortedReader, error) {
	c.sorts.sorted = c.sorts.new(compareRows)
	workers := make([]*rowSorter, c.workers)
	for i := range workers {
		workers[i] = &rowSorter{findings: c.findings, run: c.run, groups: newGrouper(c.sorts.groups), at: newWindow(newDeriver(c.run, m.Text)), to: c.sorts.sorted.NewWriter()}
	}
	if err := c.eachStretch(ctx, rows, func(worker int, s *stretch) { workers[worker].sort(s) }); err != nil {
		return nil, err
	}
	if err := c.sorts.sorted.Finish(ctx); err != nil {
		return nil, err
	}
	return newSortedReader(ctx, c.sorts.sorted, m, c.run, c.findings), nil
}

// A rowSorter puts rows of the mapping into the sort, for one goroutine.
type rowSorter struct {
	findings *findings
	run      *run
	groups   *grouper
	at       window
	to       *extsort.Writer
	buf      []byte
	text     []byte
}

// sort puts the rows of a stretch into the sort, and checks that each comes after the one
// before.
func (w *rowSorter) sort(s *stretch) {
	w.at.begin(s)
	for i := range s.rows.Len() {
		faults := w.at.load(s, i)
		r, old := w.at.row, w.at.old
		rec := w.appendRow(w.buf[:0], r, faults)
		copy(w.to.Reserve(w.groups.id(r.Workspace), sortKey(r), len(rec)), rec)
		w.buf = rec
		if old.known && cmp.Or(cmp.Compare(old.source, r.source), cmp.Compare(old.Row.Row, r.Row.Row)) > 0 {
			r.at(w.findings, w.run.mapping).wrong(BadOrder, "row", "after the row before", fmt.Sprint(r.Source, " ", r.Row.Row))
		}
		w.at.next()
	}
}

// sortKey is the key of a row in the sort.
func sortKey(l *link) uint64 {
	if len(l.code0) > 0 {
		return packed.TextKey(l.code0)
	}
	return urlSortKey(l.Canonical)
}

// sortedRows are rows as appendRow wrote them, one after the other.
type sortedRows struct {
	file    string
	added   []*report.Column
	carried int
	data    []byte
	ends    []int // of each row in data
}

// Len returns the number of rows.
func (s *sortedRows) Len() int { return len(s.ends) }

// Row does what that of readback.Block does.
func (s *sortedRows) Row(i int, r *readback.MappingRow) (faults []*readback.CellError) {
	start := 0
	if i > 0 {
		start = s.ends[i-1]
	}
	return s.decode(s.data[start:s.ends[i]], r)
}

// The size of sortedRows: in rows and, past the row with which it is reached, in bytes.
const (
	mostRows  = 1 << 12
	mostBytes = 1 << 20
)

// A sortedReader reads the rows that were sorted.
type sortedReader struct {
	findings *findings
	at       window // its old row is the first of the URL
	order    rowOrder
	layout   sortedRows
	rows     *extsort.Cursor
	group    uint32      // of the old row
	class    []byte      // of the old row, the three texts
	urls     *urlChecker // nil: no legacy codes are kept
}

func newSortedReader(ctx context.Context, sorted *extsort.Sorter, m *readback.Mapping, run *run, found *findings) *sortedReader {
	return &sortedReader{findings: found, at: newWindow(newDeriver(run, m.Text)), order: orderOf(run, m),
		layout: sortedRows{file: run.mapping, added: run.codes.added, carried: len(m.Carried)}, rows: sorted.Cursor(ctx, 0)}
}

// read is a rowReader. It also checks that of rows that the sort tells apart by nothing but their
// cells and places no duplicate comes before one that is none.
func (s *sortedReader) read(to *stretch) error {
	rows := &to.sorted
	to.rows = rows
	*rows = sortedRows{s.layout.file, s.layout.added, s.layout.carried, rows.data[:0], rows.ends[:0]}
	for rows.Len() < mostRows && len(rows.data) < mostBytes {
		rec, err := s.load()
		if err != nil {
			if rows.Len() > 0 {
				err = eof(err)
			}
			return err
		}
		rows.data = append(rows.data, rec...)
		rows.ends = append(rows.ends, len(rows.data))
		faults := s.layout.decode(rec, &s.at.row.MappingRow)
		if s.urls != nil && len(faults) == 0 {
			s.urls.add(&s.at.row.MappingRow)
		}
		s.check(s.rows.Group(), rec)
	}
	return nil
}

// next returns the next row as readback.Mapping.Next does.
func (s *sortedReader) next() (*readback.MappingRow, error) {
	rec, err := s.load()
	if err != nil {
		return nil, err
	}
	if faults := s.layout.decode(rec, &s.at.row.MappingRow); len(faults) > 0 {
		return nil, faults[0]
	}
	return &s.at.row.MappingRow, nil
}

// load returns the next record, valid until the next call. At the end the error is
// io.EOF.
func (s *sortedReader) load() ([]byte, error) {
	if s.rows.Last() {
		keep(&s.at.old.MappingRow)
	}
	if !s.rows.Next() {
		return nil, cmp.Or(s.rows.Err(), io.EOF)
	}
	return s.rows.Record(), nil
}

// decode fills in a row, as appendRow wrote it, and returns its faults. The row lies in rec.
func (s *sortedRows) decode(rec []byte, r *readback.MappingRow) (faults []*readback.CellError) {
	number := func() int {
		n, size := binary.Uvarint(rec)
		rec = rec[size:]
		return int(n)
	}
	var source []byte
	_, rec = packed.CutCell(rec)
	r.Canonical, rec = packed.CutCell(rec)
	_, rec = packed.CutCell(rec)
	r.Outcome, rec = outcome.Outcome(rec[0]), rec[1:]
	r.Number = int64(number())
	r.Salt = number() - 1
	r.Row.Row = int64(number())
	source, rec = packed.CutCell(rec)
	r.Source = unsafe.String(unsafe.SliceData(source), len(source))
	for _, cell := range [...]*[]byte{&r.Workspace, &r.Original, &r.Code, &r.ShortURL} {
		*cell, rec = packed.CutNullable(rec)
	}
	r.Carried = r.Carried[:0]
	for range s.carried {
		var cell []byte
		cell, rec = packed.CutNullable(rec)
		r.Carried = append(r.Carried, cell)
	}
	for _, c := range s.added {
		rec = c.Cut(rec, &r.Row)
	}
	for len(rec) > 0 {
		var column, found []byte
		column, rec = packed.CutCell(rec)
		found, rec = packed.CutCell(rec)
		faults = append(faults, &readback.CellError{File: s.file, Row: r.Number, Column: string(column), Found: string(found)})
	}
	return faults
}

// check compares the row in hand, whose record is given, with the first that has the same texts.
func (s *sortedReader) check(group uint32, rec []byte) {
	w, rest := &s.at, rec
	for range 3 {
		_, rest = packed.CutCell(rest)
	}
	class := rec[:len(rec)-len(rest)]
	if !w.old.known || group != s.group || !bytes.Equal(class, s.class) {
		w.row, w.old, s.group = w.old, w.row, group
		w.old.known, s.class = true, append(s.class[:0], class...)
		return
	}
	for _, l := range []*link{w.old, w.row} {
		l.source = w.rows.sources.of(l.Source)
		w.rows.identify(l)
	}
	if w.old.Outcome != outcome.Duplicate && w.row.Outcome == outcome.Duplicate && s.order.same(w.old, w.row) > 0 {
		w.row.at(s.findings, s.layout.file).wrong(BadOutcome, "outcome", fmt.Sprint("not that of row ", w.old.Number, ", which it comes before in the sort"), w.row.Outcome.String())
	}
}
