package diff

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/zeebo/xxh3"
)

// A row on its way through the sort: its key is a hash of the link, its content
//
//	canonical length uvarint, canonical | workspace length uvarint, workspace
//	| source uint32 | row uint64 | side, 1 byte | outcome, 1 byte | code
//
// with numbers in big-endian order, so that the order of the bytes brings the
// rows of a link together, and of both sides those of one record of an input.
const (
	placeSize = 4 + 8
	tailSize  = placeSize + 2 // before the code
)

// mappings compares the mappings: rows and links, then codes that moved. If a code moved, the
// links of both its URLs differ. So only codes of links that differ are looked at.
//
// Each link falls into a cell by a hash. A adds to the cell and B subtracts, so that the cell
// is 0 if their rows agree, with a chance of 2^-64 to be wrong. A first reading finds the
// cells that differ; a second one sorts the rows that fall into them. If the manifests show
// that most links differ, there is only the second reading.
func (d *differ) mappings(ctx context.Context) (err error) {
	var cells []atomic.Uint64 // nil: all differ
	if !d.mostDiffer() {
		cells = make([]atomic.Uint64, 1<<cellBits)
		same, err := d.addUp(ctx, cells)
		if err != nil || same {
			return err
		}
	}
	rows, codes := d.newSorter(6), d.newSorter(2)
	defer func() { err = errors.Join(err, rows.Close(), codes.Close()) }()
	var tables [2]*sources
	if err := d.both(ctx, rows, func(ctx context.Context, side int, w *extsort.Writer) (err error) {
		tables[side], err = d.readMapping(ctx, side, func(key uint64, source uint32, r *report.Row) {
			if cells == nil || cells[key>>(64-cellBits)].Load() != 0 {
				fileRow(w, side, key, source, r)
			}
		})
		return err
	}); err != nil {
		return err
	}
	l := &linkDiff{differ: d, sources: tables[0], codes: codes.NewWriter()}
	if err := d.inGroups(ctx, rows, 2, l.row, l.finish); err != nil {
		return err
	}
	if err := codes.Finish(ctx); err != nil {
		return err
	}
	m := &moves{differ: d}
	return d.inGroups(ctx, codes, 2, m.code, m.finish)
}

const cellBits = 20 // bits of their number

// addUp adds the rows of A to the cells and subtracts those of B, and reports whether all
// cells are 0.
func (d *differ) addUp(ctx context.Context, cells []atomic.Uint64) (same bool, err error) {
	seed := maphash.MakeSeed()
	if err := d.bothSides(ctx, func(ctx context.Context, side int) error {
		var buf []byte
		_, err := d.readMapping(ctx, side, func(key uint64, source uint32, r *report.Row) {
			buf = d.appendCompared(buf[:0], source, r)
			sum := maphash.Bytes(seed, buf)
			if side == 1 {
				sum = -sum
			}
			cells[key>>(64-cellBits)].Add(sum)
		})
		return err
	}); err != nil {
		return false, err
	}
	for i := range cells {
		if cells[i].Load() != 0 {
			return false, nil
		}
	}
	return true, nil
}

// mostDiffer reports whether by the manifests most links have another outcome.
func (d *differ) mostDiffer() bool {
	a, b := d.sides[0].manifest, d.sides[1].manifest
	if a == nil || b == nil {
		return false
	}
	differ := max(a.Counts.Created-b.Counts.Created, b.Counts.Created-a.Counts.Created)
	return 2*differ > a.Counts.Created+a.Counts.Existing
}

// appendCompared appends what is compared of a row; its place only if the inputs are the
// same.
func (d *differ) appendCompared(dst []byte, source uint32, r *report.Row) []byte {
	dst = extsort.AppendCell(extsort.AppendCell(dst, r.Workspace), r.Canonical)
	if d.sameInputs {
		dst = appendPlace(dst, source, r.Row)
	}
	return append(append(dst, byte(r.Outcome)), r.Code...)
}

// readMapping visits all rows of one side, each with the key of its link.
func (d *differ) readMapping(ctx context.Context, side int, visit func(key uint64, source uint32, r *report.Row)) (_ *sources, err error) {
	m, err := readback.OpenMapping(ctx, d.sides[side].mapping.Name, readback.Options{ExcelSafe: d.sides[side].excelSafe, LinksOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	table := d.newSources(side, m.Text)
	for r, err := range m.Rows() {
		if err != nil {
			return nil, err
		}
		visit(xxh3.HashSeed(r.Canonical, xxh3.Hash(r.Workspace)), table.id(r.Source), &r.Row)
	}
	return table, nil
}

func fileRow(w *extsort.Writer, side int, key uint64, source uint32, r *report.Row) {
	rec := extsort.AppendCell(extsort.AppendCell(make([]byte, 0, 256), r.Canonical), r.Workspace) // on the stack
	rec = append(appendPlace(rec, source, r.Row), byte(side), byte(r.Outcome))
	rec = append(rec, r.Code...)
	copy(w.Reserve(0, key, len(rec)), rec)
}

// linkDiff compares rows as they come in order.
type linkDiff struct {
	*differ
	sources *sources        // of A
	codes   *extsort.Writer // of links that differ

	held [2]struct { // of the link in hand
		known   bool
		outcome outcome.Outcome // the least of its rows
		code    []byte
	}
	place    [placeSize]byte // of the last row of A
	outcome  outcome.Outcome // of that row
	rowKnown bool
}

// row takes the next row of a link, as records begin with it.
func (l *linkDiff) row(link, rest []byte) error {
	side, outcome, code := rest[placeSize], outcome.Outcome(rest[placeSize+1]), rest[tailSize:]
	if h := &l.held[side]; !h.known || outcome < h.outcome {
		h.known, h.outcome, h.code = true, outcome, append(h.code[:0], code...)
	}
	if !l.sameInputs {
		return nil
	}
	if side == 0 {
		l.place, l.outcome, l.rowKnown = [placeSize]byte(rest), outcome, true
		return nil
	}
	if l.rowKnown && l.place == [placeSize]byte(rest) && l.outcome != outcome {
		d := difference(link, OutcomeChanged, "outcome", l.outcome.String(), outcome.String())
		d.Code = manifest.Text(code)
		d.Source, d.Row = manifest.Text(l.sources.names[binary.BigEndian.Uint32(rest)]), int64(binary.BigEndian.Uint64(rest[4:]))
		return l.emit(d)
	}
	return nil
}

// finish compares the link in hand.
func (l *linkDiff) finish(link []byte) error {
	a, b := &l.held[0], &l.held[1]
	var d *Difference
	switch {
	case !a.known:
		d = difference(link, Added, "short_code", "", string(b.code))
	case !b.known:
		d = difference(link, Removed, "short_code", string(a.code), "")
	case !bytes.Equal(a.code, b.code):
		d = difference(link, Remapped, "short_code", string(a.code), string(b.code))
	case a.outcome != b.outcome && !l.sameInputs:
		d = difference(link, OutcomeChanged, "outcome", a.outcome.String(), b.outcome.String())
		d.Code = manifest.Text(b.code)
	}
	if d != nil && d.Change != OutcomeChanged {
		for side := range l.held {
			if h := &l.held[side]; h.known {
				fileCode(l.codes, side, d, h.code)
			}
		}
	}
	l.held[0].known, l.held[1].known, l.rowKnown = false, false, false
	if d == nil {
		return nil
	}
	return l.emit(d)
}

// difference describes one of a link.
func difference(link []byte, change Change, field, a, b string) *Difference {
	canonical, rest := extsort.CutCell(link)
	workspace, _ := extsort.CutCell(rest)
	return &Difference{Change: change, Workspace: manifest.Text(workspace), Canonical: manifest.Text(canonical),
		Field: field, A: manifest.Text(a), B: manifest.Text(b)}
}

// fileCode files the code of a link that differs:
//
//	code length uvarint, code | workspace length uvarint, workspace | side, 1 byte | canonical
func fileCode(w *extsort.Writer, side int, d *Difference, code []byte) {
	rec := extsort.AppendCell(extsort.AppendCell(nil, code), string(d.Workspace))
	key := xxh3.Hash(rec)
	rec = append(append(rec, byte(side)), d.Canonical...)
	copy(w.Reserve(0, key, len(rec)), rec)
}

// moves looks for codes that are another URL's on the other side.
type moves struct {
	*differ
	url [2][]byte // of the code in hand
}

// code takes the next record of fileCode.
func (m *moves) code(_, rest []byte) error {
	if url := &m.url[rest[0]]; *url == nil {
		*url = bytes.Clone(rest[1:])
	}
	return nil
}

// finish reports the code in hand if it moved.
func (m *moves) finish(slot []byte) error {
	a, b := m.url[0], m.url[1]
	m.url = [2][]byte{}
	if a == nil || b == nil {
		return nil
	}
	code, rest := extsort.CutCell(slot)
	workspace, _ := extsort.CutCell(rest)
	return m.emit(&Difference{Change: Moved, Workspace: manifest.Text(workspace), Code: manifest.Text(code),
		Field: "canonical_url", A: manifest.Text(a), B: manifest.Text(b)})
}
