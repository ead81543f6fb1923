package diff

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"strconv"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/zeebo/xxh3"
)

// A row on its way through the sort: its key is a hash of the link, its content
//
//	canonical length uvarint, canonical | workspace length uvarint, workspace
//	| if legacy codes are compared: length uvarint, legacy code
//	| source uint32 | row uint64 | side, 1 byte | outcome, 1 byte | code
//	| if legacy codes are compared: a zero byte, and what of appendKind
//
// with numbers in big-endian order, so that the order of the bytes brings the
// rows of a link together, and of both sides those of one record of an input.
const (
	placeSize = 4 + 8
	tailSize  = placeSize + 2 // before the code
)

// mappings compares the mappings: rows and links, then codes that moved, then rows that have
// another link. If a code moved, the links of both its URLs differ. So only codes of links
// that differ are looked at; and only rows that have no counterpart at their link.
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
	rows, codes, places := d.newSorter(5), d.newSorter(2), d.newSorter(1)
	defer func() { err = errors.Join(err, rows.Close(), codes.Close(), places.Close()) }()
	var tables [2]*sources
	if err := d.both(ctx, rows, func(ctx context.Context, side int, w *extsort.Writer) (err error) {
		tables[side], err = d.readMapping(ctx, side, func(key uint64, source uint32, r *report.Row) {
			if cells == nil || cells[key>>(64-cellBits)].Load() != 0 {
				d.fileRow(w, side, key, source, r)
			}
		})
		return err
	}); err != nil {
		return err
	}
	l := &linkDiff{differ: d, sources: tables[0], codes: codes.NewWriter(), places: places.NewWriter()}
	if err := d.inGroups(ctx, rows, d.linkCells(), l.row, l.finish); err != nil {
		return err
	}
	if err := errors.Join(codes.Finish(ctx), places.Finish(ctx)); err != nil {
		return err
	}
	m := &moves{differ: d}
	if err := d.inGroups(ctx, codes, 2, m.take, m.finish); err != nil {
		return err
	}
	r := &remaps{differ: d, sources: tables[0]}
	return d.inGroups(ctx, places, 1, r.take, r.finish)
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
	if d.legacy {
		dst = extsort.AppendCell(d.appendKind(dst, r), r.Legacy)
	}
	return append(append(dst, byte(r.Outcome)), r.Code...)
}

// linkCells is the number of cells that begin a row, which say what link it is: with legacy codes
// there is one for each code of a URL.
func (d *differ) linkCells() int {
	if d.legacy {
		return 3
	}
	return 2
}

// appendKind appends what is compared of the kind of a row, as far as both mappings have it:
//
//	kind | 0 | salt of the link's code | 0 | the link's code
func (d *differ) appendKind(dst []byte, r *report.Row) []byte {
	if d.kinds {
		dst = append(dst, r.Kind()...)
	}
	dst = append(dst, 0)
	if d.links && r.LinkSalt >= 0 {
		dst = strconv.AppendInt(dst, int64(r.LinkSalt), 10)
	}
	dst = append(dst, 0)
	if d.links {
		dst = append(dst, r.LinkCode...)
	}
	return dst
}

// readMapping visits all rows of one side, each with the key of its link.
func (d *differ) readMapping(ctx context.Context, side int, visit func(key uint64, source uint32, r *report.Row)) (_ *sources, err error) {
	m, err := readback.OpenMapping(ctx, d.sides[side].mapping.Name, readback.Options{ExcelSafe: d.sides[side].excelSafe, LinksOnly: !d.legacy, Columns: d.sides[side].columns()})
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

func (d *differ) fileRow(w *extsort.Writer, side int, key uint64, source uint32, r *report.Row) {
	rec := extsort.AppendCell(extsort.AppendCell(make([]byte, 0, 256), r.Canonical), r.Workspace) // on the stack
	if d.legacy {
		rec = extsort.AppendCell(rec, r.Legacy)
	}
	rec = append(appendPlace(rec, source, r.Row), byte(side), byte(r.Outcome))
	rec = append(rec, r.Code...)
	if d.legacy {
		rec = d.appendKind(append(rec, 0), r)
	}
	copy(w.Reserve(0, key, len(rec)), rec)
}

// linkDiff compares rows as they come in order.
type linkDiff struct {
	*differ
	sources *sources        // of A
	codes   *extsort.Writer // of links that differ
	places  *extsort.Writer // of rows that only one side has with the link

	held [2]struct { // of the link in hand
		rows    int
		outcome outcome.Outcome // the least of its rows
		code    []byte
		kind    []byte // of appendKind; empty unless legacy codes are compared
	}
	place   [placeSize]byte // of the last row of A
	outcome outcome.Outcome // of that row
	alone   bool            // it has met no row of B
}

// row takes the next row of a link, as records begin with it.
func (l *linkDiff) row(link, rest []byte) error {
	side, outcome, code := rest[placeSize], outcome.Outcome(rest[placeSize+1]), rest[tailSize:]
	var kind []byte
	if l.legacy {
		code, kind, _ = bytes.Cut(code, []byte{0})
	}
	h := &l.held[side]
	if h.rows == 0 || outcome < h.outcome {
		h.outcome, h.code = outcome, append(h.code[:0], code...)
		h.kind = append(h.kind[:0], kind...)
	}
	h.rows++
	if !l.sameInputs {
		return nil
	}
	place := [placeSize]byte(rest)
	met := side == 1 && l.alone && l.place == place
	if l.alone && !met {
		filePlace(l.places, 0, l.place, link)
	}
	l.alone = false
	switch {
	case side == 0:
		l.place, l.outcome, l.alone = place, outcome, true
	case !met:
		filePlace(l.places, 1, place, link)
	case l.outcome != outcome:
		d := difference(link, OutcomeChanged, "outcome", l.outcome.String(), outcome.String())
		d.Code = manifest.Text(code)
		source, row := cutPlace(rest)
		d.Source, d.Row = manifest.Text(l.sources.names[source]), row
		return l.emit(d)
	}
	return nil
}

// finish compares the link in hand.
func (l *linkDiff) finish(link []byte) error {
	if l.alone {
		filePlace(l.places, 0, l.place, link)
	}
	a, b := &l.held[0], &l.held[1]
	inA, inB := a.rows, b.rows
	l.alone, a.rows, b.rows = false, 0, 0
	var d *Difference
	switch {
	case inA == 0:
		d = difference(link, Added, "short_code", "", string(b.code))
	case inB == 0:
		d = difference(link, Removed, "short_code", string(a.code), "")
	case !bytes.Equal(a.code, b.code):
		d = difference(link, Remapped, "short_code", string(a.code), string(b.code))
	case !bytes.Equal(a.kind, b.kind):
		if err := l.kindChanged(link, a.kind, b.kind, b.code); err != nil {
			return err
		}
	case a.outcome != b.outcome && !l.sameInputs:
		d = difference(link, OutcomeChanged, "outcome", a.outcome.String(), b.outcome.String())
		d.Code = manifest.Text(b.code)
	}
	if d != nil && d.Change != OutcomeChanged {
		for side, rows := range []int{inA, inB} {
			if rows > 0 {
				fileCode(l.codes, side, d, l.held[side].code)
			}
		}
	}
	if d != nil {
		if err := l.emit(d); err != nil {
			return err
		}
	}
	if l.sameInputs || inA == 0 || inB == 0 || inA == inB {
		return nil
	}
	d = difference(link, RowAdded, "rows", strconv.Itoa(inA), strconv.Itoa(inB))
	if d.Code = manifest.Text(b.code); inB < inA {
		d.Change = RowRemoved
	}
	return l.emit(d)
}

// kindChanged tells of a code that both sides have for the URL: its kind is another, or the link
// of the URL.
func (l *linkDiff) kindChanged(link, a, b, code []byte) error {
	fields := []string{"kind", "link_salt", "link_code"}
	was, is := bytes.SplitN(a, []byte{0}, len(fields)), bytes.SplitN(b, []byte{0}, len(fields))
	for _, i := range []int{0, 2, 1} {
		if bytes.Equal(was[i], is[i]) {
			continue
		}
		d := difference(link, KindChanged, fields[i], string(was[i]), string(is[i]))
		d.Code = manifest.Text(code)
		if err := l.emit(d); err != nil {
			return err
		}
	}
	return nil
}

// legacyCode returns the legacy code of a link; "": it has none.
func (d *differ) legacyCode(link []byte) string {
	if !d.legacy {
		return ""
	}
	_, rest := extsort.CutCell(link)
	_, rest = extsort.CutCell(rest)
	code, _ := extsort.CutCell(rest)
	return string(code)
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

// A pair is what both sides have for the code or row in hand; nil: a side has nothing.
type pair [2][]byte

// take takes the next record of fileCode or filePlace, after what it is sorted by. Of several
// of one side the first counts.
func (p *pair) take(_, rest []byte) error {
	if side := &p[rest[0]]; *side == nil {
		*side = bytes.Clone(rest[1:])
	}
	return nil
}

// end returns the pair and empties it.
func (p *pair) end() (a, b []byte, both bool) {
	a, b = p[0], p[1]
	*p = pair{}
	return a, b, a != nil && b != nil
}

// moves looks for codes that are another URL's on the other side.
type moves struct {
	*differ
	pair // URLs
}

// finish reports the code in hand if it moved.
func (m *moves) finish(slot []byte) error {
	a, b, both := m.end()
	if !both {
		return nil
	}
	code, rest := extsort.CutCell(slot)
	workspace, _ := extsort.CutCell(rest)
	return m.emit(&Difference{Change: Moved, Workspace: manifest.Text(workspace), Code: manifest.Text(code),
		Field: "canonical_url", A: manifest.Text(a), B: manifest.Text(b)})
}

// filePlace files a row that only one side has with its link:
//
//	place length uvarint, place | side, 1 byte | canonical and workspace, as they begin a row
func filePlace(w *extsort.Writer, side int, place [placeSize]byte, link []byte) {
	rec := append(append(extsort.AppendCell(nil, place[:]), byte(side)), link...)
	source, row := cutPlace(place[:])
	copy(w.Reserve(0, record.Place{Source: int(source), Row: row}.Key(), len(rec)), rec)
}

// remaps looks for rows that have a link on both sides: it is another one.
type remaps struct {
	*differ
	sources *sources // of A
	pair             // links, as filePlace writes them
}

// finish reports the row in hand if it was remapped. If only one side has it, the other one
// has rejected it.
func (r *remaps) finish(row []byte) error {
	a, b, both := r.end()
	if !both {
		return nil
	}
	was, is := difference(a, RowRemapped, "", "", ""), difference(b, RowRemapped, "canonical_url", "", "")
	if is.A, is.B = was.Canonical, is.Canonical; is.A == is.B {
		is.Field, is.A, is.B = "workspace_id", was.Workspace, is.Workspace
	}
	if is.A == is.B {
		is.Field, is.A, is.B = "legacy_code", manifest.Text(r.legacyCode(a)), manifest.Text(r.legacyCode(b))
	}
	place, _ := extsort.CutCell(row)
	source, number := cutPlace(place)
	is.Source, is.Row = manifest.Text(r.sources.names[source]), number
	return r.emit(is)
}
