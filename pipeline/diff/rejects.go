package diff

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/zeebo/xxh3"
)

// A reject on its way through the sort is
//
//	identity length uvarint, identity | source uint32 | row uint64 | 0 8 | side, 1 byte | reason
//
// with numbers in big-endian order. Its identity is source and row where the
// inputs are the same, and otherwise its content: the cells that are not empty,
// by names of their columns, and the raw line.

// rejects compares the rejects of two runs.
func (d *differ) rejects(ctx context.Context) (err error) {
	sorted := d.newSorter(8)
	defer func() { err = errors.Join(err, sorted.Close()) }()
	r := &rejectDiff{differ: d, counts: map[string]int{}}
	if err := d.both(ctx, sorted, func(ctx context.Context, side int, w *extsort.Writer) (err error) {
		r.sources[side], err = d.readRejects(ctx, side, w)
		return err
	}); err != nil {
		return err
	}
	return d.inGroups(ctx, sorted, 1, r.reject, r.finish)
}

// readRejects files all rejects of one side.
func (d *differ) readRejects(ctx context.Context, side int, w *extsort.Writer) (_ *sources, err error) {
	r, err := readback.OpenRejects(ctx, d.sides[side].rejects.Name, readback.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	table := d.newSources(side, func(name string) string { return name })
	columns := make([]int, len(r.Columns))
	for i := range columns {
		columns[i] = i
	}
	slices.SortStableFunc(columns, func(a, b int) int { return strings.Compare(r.Columns[a], r.Columns[b]) })
	var identity, rec []byte
	for rej, err := range r.Rows() {
		if err != nil {
			return nil, err
		}
		place := appendPlace(nil, table.id(rej.Source), rej.Row, 0)
		identity = append(identity[:0], place...)
		key := record.Place{Source: int(binary.BigEndian.Uint32(place)), Row: rej.Row}.Key() // in the order of the file
		if !d.sameInputs {
			identity = appendContent(identity[:0], r.Columns, columns, rej)
			key = xxh3.Hash(identity)
		}
		rec = append(packed.AppendCell(rec[:0], identity), place...)
		rec = append(append(rec, byte(side)), rej.Reason...)
		copy(w.Reserve(0, key, len(rec)), rec)
	}
	return table, nil
}

func appendPlace(dst []byte, source uint32, row int64, variant uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(dst, source), uint64(row)), variant)
}

// cutPlace returns the row that appendPlace appended.
func cutPlace(b []byte) (source uint32, row int64) {
	return binary.BigEndian.Uint32(b), int64(binary.BigEndian.Uint64(b[4:]))
}

// appendContent appends what a reject holds, whatever the order of the columns.
func appendContent(dst []byte, names []string, columns []int, rej *outcome.Reject) []byte {
	for _, i := range columns {
		if cell := rej.Cells[i]; len(cell) > 0 {
			dst = packed.AppendCell(packed.AppendCell(dst, names[i]), cell)
		}
	}
	return append(append(dst, 0), rej.Raw...)
}

// rejectDiff compares rejects as they come in order. Of one identity there may
// be many, so they are counted by reason.
type rejectDiff struct {
	*differ
	sources [2]*sources
	counts  map[string]int // by reason: of A, less those of B
	first   [2]Difference  // of a side: says where its first one is
}

// reject takes the next record.
func (r *rejectDiff) reject(_, rest []byte) error {
	side, reason := rest[placeSize], string(rest[placeSize+1:])
	if first := &r.first[side]; first.Row == 0 {
		source, row := cutPlace(rest)
		*first = Difference{Change: RejectChanged, Field: "reason", Source: manifest.Text(r.sources[side].names[source]), Row: row}
	}
	r.counts[reason] += 1 - 2*int(side)
	return nil
}

// finish reports what the two sides do not have in common of the identity in
// hand, in pairs as long as there are some.
func (r *rejectDiff) finish([]byte) error {
	missing := manifest.Text("")
	if r.sameInputs {
		missing = Accepted
	}
	reasons := slices.Sorted(maps.Keys(r.counts))
	for {
		a := slices.IndexFunc(reasons, func(reason string) bool { return r.counts[reason] > 0 })
		b := slices.IndexFunc(reasons, func(reason string) bool { return r.counts[reason] < 0 })
		if a < 0 && b < 0 {
			clear(r.counts)
			r.first = [2]Difference{}
			return nil
		}
		d := r.first[0]
		if a < 0 {
			d = r.first[1]
		}
		d.A, d.B = missing, missing
		if a >= 0 {
			d.A = manifest.Text(reasons[a])
			r.counts[reasons[a]]--
		}
		if b >= 0 {
			d.B = manifest.Text(reasons[b])
			r.counts[reasons[b]]++
		}
		if err := r.emit(&d); err != nil {
			return err
		}
	}
}
