package record

import (
	"bytes"
	"cmp"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/packed"
)

// An Order is the order of the records of a workspace: by the first code that the URL may have, which is that of salt 0 unless it is blocked, canonical
// URL, parts of the identity, legacy code (none last; if codes are not kept, after the parameters),
// parameters, original URL, carried cells (null first; those of parameters, which may say the same in other words, last), source, row, variant. So rows of one identity come together, and those that want
// one code; and links come to the store in the order of its index.
//
// It is the one place that derives a code from a record, and the one that takes the key of
// the sort for the beginning of that code.
type Order struct {
	codegen.Maker
	Retries int    // highest salt
	Carried int    // cells of each record
	Params  []bool // of these, the cells that are parameters of link rules, which come after the others; nil: none
	Kept    bool   // legacy codes are kept: a row speaks for the link that has its code
}

// First returns the first code that a URL may have: of a key, which is the url_key.
func (o Order) First(key codegen.Hash, canonical, workspace, parts []byte) (f First) {
	if o.IsPlain() {
		return First{Hash: key}
	}
	f.Hash, f.Salt = o.Maker.First(key, canonical, workspace, parts, o.Retries)
	return f
}

// FirstOf returns the first code that the URL of a record may have.
func (o Order) FirstOf(rec []byte) First {
	if o.IsPlain() {
		return First{Hash: codegen.FromKey(Key(rec))}
	}
	return firstOf(rec)
}

// Key returns the key in the sort of a URL whose first code this hash makes.
func (o Order) Key(h codegen.Hash) uint64 { return o.Rank(h) }

// KeyOf returns the key in the sort of the URLs whose first code this is.
func (o Order) KeyOf(code []byte) uint64 { return o.RankOf(code) }

// KeyIsCode reports whether records of one key have one first code.
func (o Order) KeyIsCode() bool { return o.RankIsCode() }

// CodeKey returns a key for sorting by any codes, as legacy.CompareFolded orders them: the first
// eight bytes in lower case.
func CodeKey(code []byte) uint64 {
	var key [8]byte
	return packed.TextKey(legacy.Fold(key[:0], code[:min(len(code), len(key))]))
}

// AppendFirst appends the first code that the URL of a record may have.
func (o Order) AppendFirst(dst, rec []byte) []byte {
	return o.AppendCode(dst, o.FirstOf(rec).Hash)
}

// Compare orders the contents of records of one workspace and key. It is 0 for none but a
// record and itself.
func (o Order) Compare(a, b []byte) int {
	if !o.KeyIsCode() {
		var bufA, bufB [codegen.MaxLength]byte
		x, y := o.AppendFirst(bufA[:0], a), o.AppendFirst(bufB[:0], b)
		if c := bytes.Compare(x, y); c != 0 {
			return c
		}
	}
	x, y := Decode(a), Decode(b)
	if c := bytes.Compare(x.Canonical, y.Canonical); c != 0 {
		return c
	}
	if (x.flags|y.flags)&(flagLegacy|flagRules) != 0 {
		partsX, _, _ := x.cutRules()
		partsY, _, _ := y.cutRules()
		if c := bytes.Compare(partsX, partsY); c != 0 {
			return c
		}
		params := 0
		if !o.Kept {
			params = compareParams(&x, &y)
		}
		if c := cmp.Or(params, CompareCodes(x.Legacy().Code, y.Legacy().Code)); c != 0 {
			return c
		}
	}
	return o.compareRows(&x, &y)
}

// CompareRows orders records of one URL as Compare does, but not by their legacy codes.
func (o Order) CompareRows(a, b []byte) int {
	x, y := Decode(a), Decode(b)
	return o.compareRows(&x, &y)
}

// compareRows orders the rows of an identity. It uses the records up.
func (o Order) compareRows(x, y *Record) int {
	var params int
	if (x.flags|y.flags)&(flagLegacy|flagRules) != 0 {
		params = compareParams(x, y)
		_, x.rest = x.cutLegacy()
		_, y.rest = y.cutLegacy()
	}
	if c := cmp.Or(params, bytes.Compare(x.Original, y.Original)); c != 0 {
		return c
	}
	var same int // of cells of parameters
	for i := range o.Carried {
		var cx, cy []byte
		cx, x.rest = packed.CutNullable(x.rest)
		cy, y.rest = packed.CutNullable(y.rest)
		switch c := compareCells(cx, cy); {
		case c == 0:
		case o.Params == nil || !o.Params[i]:
			return c
		case same == 0:
			same = c
		}
	}
	return cmp.Or(same, cmp.Compare(x.Place.Key(), y.Place.Key()), cmp.Compare(x.Place.Variant, y.Place.Variant))
}

func compareParams(x, y *Record) int {
	_, paramsX, _ := x.cutRules()
	_, paramsY, _ := y.cutRules()
	return bytes.Compare(paramsX, paramsY)
}

// CompareCodes orders legacy codes, none last.
func CompareCodes(a, b []byte) int {
	if a == nil || b == nil {
		return -compareCells(a, b)
	}
	return bytes.Compare(a, b)
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
