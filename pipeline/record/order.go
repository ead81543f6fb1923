package record

import (
	"bytes"
	"cmp"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/extsort"
)

// An Order is the order of the records of a workspace: by the code of salt 0, canonical
// URL, original URL, carried cells (null first), source, row. So equal URLs come together,
// and those that want one code; and links come to the store in the order of its index.
//
// It is the one place that derives a code from a record, and the one that takes the key of
// the sort for the beginning of that code.
type Order struct {
	codegen.Scheme
	Carried int // cells of each record
}

// Key returns the key in the sort of a URL with this hash at salt 0.
func (o Order) Key(h codegen.Hash) uint64 { return o.Rank(h) }

// KeyOf returns the key in the sort of the URLs that have this code at salt 0.
func (o Order) KeyOf(code []byte) uint64 { return o.RankOf(code) }

// KeyIsCode reports whether records of one key have one code at salt 0.
func (o Order) KeyIsCode() bool { return o.RankIsCode() }

// AppendCode0 appends the code of salt 0 of a record's URL.
func (o Order) AppendCode0(dst, rec []byte) []byte {
	return o.AppendCode(dst, codegen.FromKey(Key(rec)))
}

// Compare orders the contents of records of one workspace and key. It is 0 for none but a
// record and itself.
func (o Order) Compare(a, b []byte) int {
	if !o.KeyIsCode() {
		var bufA, bufB [codegen.MaxLength]byte
		if c := bytes.Compare(o.AppendCode0(bufA[:0], a), o.AppendCode0(bufB[:0], b)); c != 0 {
			return c
		}
	}
	x, y := Decode(a), Decode(b)
	if c := bytes.Compare(x.Canonical, y.Canonical); c != 0 {
		return c
	}
	if c := bytes.Compare(x.Original, y.Original); c != 0 {
		return c
	}
	for range o.Carried {
		var cx, cy []byte
		cx, x.rest = extsort.CutNullable(x.rest)
		cy, y.rest = extsort.CutNullable(y.rest)
		if c := compareCells(cx, cy); c != 0 {
			return c
		}
	}
	return cmp.Compare(x.Place.Key(), y.Place.Key())
}

func compareCells(a, b []byte) int {
	switch {
	case a == nil && b != nil:
		return -1
	case a != nil && b == nil:
		return 1
	}
	return bytes.Compare(a, b)
}
