package diff

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/zeebo/xxh3"
)

// A row on its way through the sort: its key is a hash of the link, its content
//
//	canonical length uvarint, canonical | workspace length uvarint, workspace
//	| if legacy codes are compared: length uvarint, legacy code
//	| if identities are: length uvarint, parts of the identity
//	| source uint32 | row uint64 | values of a campaign as of variant 8 | side, outcome and change, 1 byte each
//	| code length uvarint, code | what of appendFields
//
// with numbers in big-endian order, so that the order of the bytes brings the
// rows of a link together, and of both sides those of one record of an input.
const (
	placeSize = 4 + 8 + 8
	tailSize  = placeSize + 3 // before the code
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
	if err := d.inGroups(ctx, rows, len(d.linkCells()), l.row, l.finish); err != nil {
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
			buf = d.appendCompared(buf[:0], side, source, r)
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
func (d *differ) appendCompared(dst []byte, side int, source uint32, r *report.Row) []byte {
	dst = d.appendLink(dst, r)
	if d.sameInputs {
		dst = appendPlace(dst, source, r.Row, d.variant(side, r))
	}
	dst = packed.AppendCell(append(dst, byte(r.Outcome), d.change(r)), r.Code)
	return d.appendFields(dst, side, r)
}

// appendLink appends the cells that begin a row, which say what link it is. With legacy codes there
// is one for each code of a URL.
func (d *differ) appendLink(dst []byte, r *report.Row) []byte {
	dst = packed.AppendCell(packed.AppendCell(dst, r.Canonical), r.Workspace)
	if d.legacy {
		dst = packed.AppendCell(dst, r.Legacy)
	}
	if d.parts {
		dst = packed.AppendCell(dst, r.Rules.Parts)
	}
	return dst
}

// linkCells are the names of the cells of appendLink.
func (d *differ) linkCells() []string {
	names := []string{"canonical_url", "workspace_id"}
	if d.legacy {
		names = append(names, "legacy_code")
	}
	if d.parts {
		names = append(names, "identity")
	}
	return names
}

// change is what is compared of the change of a row.
func (d *differ) change(r *report.Row) byte {
	if !d.rules {
		return byte(rules.NoChange)
	}
	return byte(r.Rules.Change)
}

// compared are the columns that are compared, by their names, beside code, outcome and change, and
// what tells of a difference.
var compared = map[string]Change{
	"kind": KindChanged, "link_code": KindChanged, "link_salt": KindChanged,
	"expires_at": ParamChanged, "max_uses": ParamChanged, "link_type": ParamChanged, "owner_id": ParamChanged,
}

// comparedFields are those that both mappings have.
func comparedFields(a, b report.Columns) (fields []*report.Column) {
	others := b.Added()
	for _, c := range a.Added() {
		if compared[c.Name] != "" && slices.Contains(others, c) {
			fields = append(fields, c)
		}
	}
	return fields
}

// variant returns a digest of the values that a variant of a campaign has: by these, not by its number, a row
// of one side is that of the other. 0: it has none.
func (d *differ) variant(side int, r *report.Row) (sum uint64) {
	plan := d.sides[side].terms.Campaign
	if plan == nil {
		return 0
	}
	var memory [256]byte
	buf := memory[:0]
	for n, name := range plan.Names() {
		if r.Values[n] != nil {
			buf = packed.AppendCell(append(buf, name...), r.Values[n])
		}
	}
	return xxh3.Hash(buf)
}

// appendFields appends the cells of fields, expiries as of operand.expiry.
func (d *differ) appendFields(dst []byte, side int, r *report.Row) []byte {
	for _, c := range d.fields {
		if c.Name == rules.ExpiresAt.String() {
			dst = packed.AppendCell(dst, d.sides[side].expiry(r))
			continue
		}
		var memory [64]byte
		dst = packed.AppendCell(dst, c.AppendText(memory[:0], r))
	}
	return dst
}

// readMapping visits all rows of one side, each with the key of its link.
func (d *differ) readMapping(ctx context.Context, side int, visit func(key uint64, source uint32, r *report.Row)) (_ *sources, err error) {
	m, err := readback.OpenMapping(ctx, d.sides[side].mapping.Name, readback.Options{FS: d.sides[side].parts, ExcelSafe: d.sides[side].excelSafe, LinksOnly: !d.legacy && !d.rules && !d.parts && d.sides[side].terms.Campaign == nil, Columns: d.sides[side].columns()})
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
	rec := d.appendLink(make([]byte, 0, 256), r) // on the stack
	rec = append(appendPlace(rec, source, r.Row, d.variant(side, r)), byte(side), byte(r.Outcome), d.change(r))
	rec = d.appendFields(packed.AppendCell(rec, r.Code), side, r)
	copy(w.Reserve(0, key, len(rec)), rec)
}

// linkDiff compares rows as they come in order.
type linkDiff struct {
	*differ
	sources *sources        // of A
	codes   *extsort.Writer // of links that differ
	places  *extsort.Writer // of rows that only one side has with the link

	held [2]struct { // of the link in hand
		rows   int
		became // of the row with the least outcome
		code   []byte
		fields []byte // of appendFields
	}
	place  [placeSize]byte // of the last row of A
	became                 // of that row
	alone  bool            // it has met no row of B
}

// became is what became of a row.
type became struct {
	outcome outcome.Outcome
	change  rules.Change
}

// row takes the next row of a link, as records begin with it.
func (l *linkDiff) row(link, rest []byte) error {
	side, is := rest[placeSize], became{outcome.Outcome(rest[placeSize+1]), rules.Change(rest[placeSize+2])}
	code, fields := packed.CutCell(rest[tailSize:])
	h := &l.held[side]
	if h.rows == 0 || is.outcome < h.outcome {
		h.became, h.code = is, append(h.code[:0], code...)
		h.fields = append(h.fields[:0], fields...)
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
		l.place, l.became, l.alone = place, is, true
	case !met:
		filePlace(l.places, 1, place, link)
	default:
		source, row := cutPlace(rest)
		return l.becameAnother(link, code, l.became, is, l.sources.names[source], row)
	}
	return nil
}

// becameAnother tells of another outcome or change of a row, or of a link if the row is 0.
func (l *linkDiff) becameAnother(link, code []byte, a, b became, source string, row int64) error {
	for _, c := range [][3]string{{"outcome", a.outcome.String(), b.outcome.String()}, {"change", a.change.String(), b.change.String()}} {
		if c[1] == c[2] {
			continue
		}
		d := difference(link, OutcomeChanged, c[0], c[1], c[2])
		d.Code, d.Source, d.Row = manifest.Text(code), manifest.Text(source), row
		if err := l.emit(d); err != nil {
			return err
		}
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
	default:
		if err := l.fieldsChanged(link, a.fields, b.fields, b.code); err != nil {
			return err
		}
		if !l.sameInputs {
			if err := l.becameAnother(link, b.code, a.became, b.became, "", 0); err != nil {
				return err
			}
		}
	}
	if d != nil {
		for side, rows := range []int{inA, inB} {
			if rows > 0 {
				fileCode(l.codes, side, link, l.held[side].code)
			}
		}
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

// fieldsChanged tells of a code that both sides have for the link: its kind is another, the link of
// its URL, or a parameter.
func (l *linkDiff) fieldsChanged(link, a, b, code []byte) error {
	if bytes.Equal(a, b) {
		return nil
	}
	for _, f := range l.fields {
		var was, is []byte
		was, a = packed.CutCell(a)
		is, b = packed.CutCell(b)
		if f.Name == rules.ExpiresAt.String() {
			was, is = l.sides[0].reckon(was), l.sides[1].reckon(is)
		}
		if bytes.Equal(was, is) {
			continue
		}
		d := difference(link, compared[f.Name], f.Name, string(was), string(is))
		d.Code = manifest.Text(code)
		if err := l.emit(d); err != nil {
			return err
		}
	}
	return nil
}

// difference describes one of a link.
func difference(link []byte, change Change, field, a, b string) *Difference {
	canonical, rest := packed.CutCell(link)
	workspace, _ := packed.CutCell(rest)
	return &Difference{Change: change, Workspace: manifest.Text(workspace), Canonical: manifest.Text(canonical),
		Field: field, A: manifest.Text(a), B: manifest.Text(b)}
}

// fileCode files the code of a link that differs:
//
//	code length uvarint, code | workspace length uvarint, workspace | side, 1 byte
//	| cells of the link, as they begin a row
func fileCode(w *extsort.Writer, side int, link, code []byte) {
	_, rest := packed.CutCell(link)
	workspace, _ := packed.CutCell(rest)
	rec := packed.AppendCell(packed.AppendCell(nil, code), workspace)
	key := xxh3.Hash(rec)
	rec = append(append(rec, byte(side)), link...)
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

// moves looks for codes that are another URL's on the other side, or another identity's of the URL.
type moves struct {
	*differ
	pair // links, as fileCode writes them
}

// finish reports the code in hand if it moved.
func (m *moves) finish(slot []byte) error {
	a, b, both := m.end()
	if !both {
		return nil
	}
	field, from, to := m.another(a, b)
	if field != "canonical_url" && field != "identity" {
		return nil
	}
	d := difference(a, Moved, field, from, to)
	code, _ := packed.CutCell(slot)
	d.Canonical, d.Code = "", manifest.Text(code)
	return m.emit(d)
}

// another tells in what a link is another one than that of the other side: the first of its cells
// that differs counts, but the workspace only after the URL.
func (d *differ) another(a, b []byte) (field, was, is string) {
	for _, name := range d.linkCells() {
		var x, y []byte
		x, a = packed.CutCell(a)
		y, b = packed.CutCell(b)
		if !bytes.Equal(x, y) {
			return name, strings.TrimPrefix(string(x), "|"), strings.TrimPrefix(string(y), "|")
		}
	}
	return "", "", ""
}

// filePlace files a row that only one side has with its link:
//
//	place length uvarint, place | side, 1 byte | cells of the link, as they begin a row
func filePlace(w *extsort.Writer, side int, place [placeSize]byte, link []byte) {
	rec := append(append(packed.AppendCell(nil, place[:]), byte(side)), link...)
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
	field, was, is := r.another(a, b)
	d := difference(b, RowRemapped, field, was, is)
	place, _ := packed.CutCell(row)
	source, number := cutPlace(place)
	d.Source, d.Row = manifest.Text(r.sources.names[source]), number
	return r.emit(d)
}
