// Package record is what the sort holds of a row, and how the stages read it.
//
// An accepted row is a record: everything that the mapping, a reject and the store need of
// it. [Start], [Finish], packed.AppendNullable and [AppendPlace] make one, in this order; [Decode]
// reads it. Its group in the sort is the number of its workspace ([Workspaces]), its key
// and its order are those of [Order]. Equal URLs come together there:
// extsort.Bucket.Runs, with KeySize, walks over them.
//
// A reject ([AppendReject]) and a row of a mapping in the order of the input ([Placed]) are
// sorted by place (extsort.NewByKey).
package record

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A Record is an accepted row. Its slices refer to the bytes of the sort:
//
//	url_key 16 | canonical length uint16 | canonical
//	| flags | original length uvarint, original (unless flagSame)
//	| hash of the first code 16, salt of that + 1 uvarint (only if flagFirst)
//	| parts of the identity as of packed.AppendCell, parameters as of rules.Params.Append (only if flagRules)
//	| legacy code as of packed.AppendCell, see Legacy.cell (only if flagLegacy)
//	| each carried cell as of packed.AppendNullable
//	| the URL in the input: how many bytes it has in common with Original uvarint, the rest as of packed.AppendCell
//	  (only of a campaign, or of a run that resolves URLs; Original is the URL of the variant, or the whole one)
//	| the domain of the row as of packed.AppendNullable (only if short URLs have it)
//	| number of its variant 4 (only if Variant)
//	| key of its place, byte offset + 1 | 1 byte: the lengths of these two
//
// The numbers of its place are little-endian. Key and offset are without the zero bytes at their
// end; their lengths have four bits each, that of the key the lower ones.
type Record struct {
	Canonical []byte
	Original  []byte // the cell of the input, not trimmed; or the URL that was made of it
	Place     Place
	flags     Flags
	first     []byte // the hash of the first code, and its salt + 1; nil: the url_key, and salt 0
	rest      []byte // from the parts of the identity on
}

const (
	// KeySize is the number of bytes of the url_key, with which each record begins. They
	// are all that tells its URL from others of its group and key.
	KeySize = 16
	// headSize is the number of bytes before the canonical URL.
	headSize = KeySize + 2
)

// Flags say what stood in the cells of a row.
type Flags byte

const (
	NullWorkspace Flags = 1 << (iota + 1) // the workspace was null, and a default stood in
	NoWorkspace                           // the workspace was empty, and a default stood in
	Variant       Flags = 1 << 7          // the place has a variant

	flagSame   Flags = 1      // original is byte for byte the canonical URL
	flagLegacy Flags = 1 << 3 // there is a legacy code
	flagLink   Flags = 1 << 4 // Legacy.Link
	flagRules  Flags = 1 << 5 // there are parts of the identity, perhaps none, and parameters
	flagFirst  Flags = 1 << 6 // the url_key does not make the first code
)

// A Legacy is what a row says of the code that its URL had elsewhere.
type Legacy struct {
	Code    []byte // nil: none; in a workspace that folds case, in lower case
	Written []byte // as the row has it; nil: as Code
	Link    bool   // the row says that the code is that of the link, not of an alias
}

// Start returns an emptied buffer to which the caller appends the canonical URL.
func Start(buf []byte) []byte {
	return append(buf[:0], make([]byte, headSize)...)
}

// StartedCanonical returns the canonical URL of a record that ends with it.
func StartedCanonical(rec []byte) []byte { return rec[headSize:] }

// A First is the first code that the URL of a record may have.
type First struct {
	Hash codegen.Hash // makes it
	Salt int          // -1: it may have none, and this is that of salt 0
}

// Finish fills in the head of a record that ends with the canonical URL, and appends the
// original. The hash is that of the URL at salt 0, whose bytes are the url_key. The caller
// appends the carried cells (packed.AppendNullable), and then the place.
func Finish(rec []byte, h codegen.Hash, original []byte, flags Flags) []byte {
	canonical := rec[headSize:]
	binary.BigEndian.PutUint64(rec, h.Hi)
	binary.BigEndian.PutUint64(rec[8:], h.Lo)
	binary.LittleEndian.PutUint16(rec[KeySize:], uint16(len(canonical)))
	if bytes.Equal(canonical, original) {
		return append(rec, byte(flags|flagSame))
	}
	rec = binary.AppendUvarint(append(rec, byte(flags)), uint64(len(original)))
	return append(rec, original...)
}

// FinishWith is Finish for a row that may have a legacy code, or parameters and, in its hash, parts
// of its identity: old and with may be nil. The first code need not be that of the hash.
func FinishWith(rec []byte, h codegen.Hash, original []byte, flags Flags, first First, old *Legacy, with *Rules) []byte {
	if first != (First{Hash: h}) {
		flags |= flagFirst
	}
	if with != nil {
		flags |= flagRules
	}
	if old != nil && old.Link {
		flags |= flagLink
	}
	if old != nil && old.Code != nil {
		flags |= flagLegacy
	}
	rec = Finish(rec, h, original, flags)
	if flags&flagFirst != 0 {
		key := first.Hash.Key()
		rec = binary.AppendUvarint(append(rec, key[:]...), uint64(first.Salt+1))
	}
	if with != nil {
		rec = with.Params.Append(packed.AppendCell(rec, with.Parts))
	}
	if flags&flagLegacy != 0 {
		rec = packed.AppendCell(rec, old.cell())
	}
	return rec
}

// cell is what a record has of a legacy code: the code and, if it was written in another way, a byte 0
// and what was written. No code that is accepted has such a byte.
func (l *Legacy) cell() []byte {
	if l.Written == nil || bytes.Equal(l.Written, l.Code) {
		return l.Code
	}
	return append(append(bytes.Clone(l.Code), 0), l.Written...)
}

// Rules are the parameters of a row.
type Rules struct {
	Parts  []byte // of the identity, as of rules.Identity.AppendParts
	Params rules.Params
}

// Plain reports whether there are none.
func (r *Rules) Plain() bool {
	p := &r.Params
	return len(r.Parts) == 0 && p.Expiry.When == rules.Never && p.Limit == 0 && p.Type == rules.NoType && len(p.Owner) == 0
}

// Rules makes with the parameters of the row, without Ref; the zero value if the run has none.
func (r *Record) Rules(with *Rules) {
	if r.flags&flagRules == 0 {
		*with = Rules{}
		return
	}
	var rest []byte
	with.Parts, rest = packed.CutCell(r.rest)
	with.Params.Cut(rest)
}

// cutRules returns the parts of the identity and the encoded parameters, and what follows them.
func (r *Record) cutRules() (parts, params, rest []byte) {
	if r.flags&flagRules == 0 {
		return nil, nil, r.rest
	}
	parts, rest = packed.CutCell(r.rest)
	params, rest = rules.Split(rest)
	return parts, params, rest
}

// AppendPlace appends where the row comes from, which ends the record. If it has a variant, so have
// the flags of the record.
func AppendPlace(rec []byte, p Place) []byte {
	if p.Variant != 0 {
		rec = binary.LittleEndian.AppendUint32(rec, uint32(p.Variant))
	}
	rec, key := appendShort(rec, p.Key())
	rec, offset := appendShort(rec, uint64(p.Offset+1))
	return append(rec, byte(key|offset<<4))
}

// MoveTo appends a record of a row that comes from another place than this one, and is otherwise the same.
// Neither has a variant.
func MoveTo(dst, rec []byte, p Place) []byte {
	end := len(rec) - 1
	lengths := int(rec[end])
	return AppendPlace(append(dst, rec[:end-lengths&15-lengths>>4]...), p)
}

// appendShort appends v in as few bytes as it needs, and returns their number.
func appendShort(rec []byte, v uint64) ([]byte, int) {
	n := (bits.Len64(v) + 7) / 8
	return binary.LittleEndian.AppendUint64(rec, v)[:len(rec)+n], n
}

// placeOf returns where the row of a record comes from. Eight bytes can be read for either
// number, however short it is: there are always more of the record before it.
func placeOf(rec []byte, flags Flags) (p Place) {
	end := len(rec) - 1
	lengths := uint(rec[end])
	offset := binary.LittleEndian.Uint64(rec[end-8:]) >> (64 - 8*(lengths>>4))
	end -= int(lengths >> 4)
	key := binary.LittleEndian.Uint64(rec[end-8:]) >> (64 - 8*(lengths&15))
	p = PlaceOf(key, int64(offset)-1)
	if flags&Variant != 0 {
		end -= int(lengths & 15)
		p.Variant = int(binary.LittleEndian.Uint32(rec[end-4:]))
	}
	return p
}

// A Place is the provenance of a row.
type Place struct {
	Source int   // index of the input in the order of names, below 2^20
	Row    int64 // its record, from 1, below MaxRow
	Offset int64 // byte offset of the record; -1: the format has none
	// Variant is the number among the rows that one row of the input became, from 1, below 2^32; 0: it
	// became one. It is no part of the key.
	Variant int
}

const (
	rowBits = 43 // of a key
	// MaxRow is more than the number of any row.
	MaxRow = 1 << rowBits
)

// Key orders rows by source and row.
func (p Place) Key() uint64 { return uint64(p.Source)<<rowBits | uint64(p.Row) }

// PlaceOf returns the place that has this key.
func PlaceOf(key uint64, offset int64) Place {
	return Place{Source: int(key >> rowBits), Row: int64(key & (MaxRow - 1)), Offset: offset}
}

// Key returns the url_key of a record's URL.
func Key(rec []byte) [KeySize]byte { return [KeySize]byte(rec) }

// Canonical returns the canonical URL of a record.
func Canonical(rec []byte) []byte {
	n := int(binary.LittleEndian.Uint16(rec[KeySize:]))
	return rec[headSize : headSize+n : headSize+n]
}

// Decode splits a record. The result refers to rec.
func Decode(rec []byte) (r Record) {
	r = decode(rec)
	r.Place = placeOf(rec, r.flags)
	return r
}

// CutRules is Record.Rules of a record.
func CutRules(rec []byte, with *Rules) {
	r := decode(rec)
	r.Rules(with)
}

// HasParams reports whether a record has the parameters that rules.Params.Append appended. A record of
// a run without parameters has none: what stands in their place is a legacy code or a carried cell.
func HasParams(rec, params []byte) bool {
	r := decode(rec)
	if r.flags&flagRules == 0 {
		return false
	}
	_, rest := packed.CutCell(r.rest)
	return bytes.HasPrefix(rest, params)
}

// decode is Decode without the place.
func decode(rec []byte) (r Record) {
	r.Canonical = Canonical(rec)
	rec = rec[headSize+len(r.Canonical):]
	r.flags, rec = Flags(rec[0]), rec[1:]
	r.Original = r.Canonical
	if !r.IsCanonical() {
		n, size := binary.Uvarint(rec)
		r.Original, rec = rec[size:size+int(n)], rec[size+int(n):]
	}
	if r.flags&flagFirst != 0 {
		_, size := binary.Uvarint(rec[KeySize:])
		r.first, rec = rec[:KeySize+size], rec[KeySize+size:]
	}
	r.rest = rec
	return r
}

// firstOf returns the first code that the URL of a record may have.
func firstOf(rec []byte) First {
	r := decode(rec)
	if r.first == nil {
		return First{Hash: codegen.FromKey(Key(rec))}
	}
	salt, _ := binary.Uvarint(r.first[KeySize:])
	return First{codegen.FromKey([KeySize]byte(r.first)), int(salt) - 1}
}

// Legacy returns what the row says of a legacy code.
func (r *Record) Legacy() (old Legacy) {
	old, _ = r.cutLegacy()
	return old
}

// LegacyCode returns the legacy code of a record; nil: none.
func LegacyCode(rec []byte) []byte {
	r := Decode(rec)
	return r.Legacy().Code
}

// cutLegacy returns that, and what follows it: the carried cells.
func (r *Record) cutLegacy() (old Legacy, rest []byte) {
	old.Link = r.flags&flagLink != 0
	_, _, rest = r.cutRules()
	if r.flags&flagLegacy == 0 {
		return old, rest
	}
	old.Code, rest = packed.CutCell(rest)
	old.Written = old.Code
	if n := bytes.IndexByte(old.Code, 0); n >= 0 {
		old.Code, old.Written = old.Code[:n:n], old.Code[n+1:]
	}
	return old, rest
}

// IsCanonical reports whether the original is byte for byte the canonical URL.
func (r *Record) IsCanonical() bool { return r.flags&flagSame != 0 }

// Carried appends the n carried cells to cells.
func (r *Record) Carried(cells [][]byte, n int) [][]byte {
	cells, _ = r.cutCarried(cells, n)
	return cells
}

// cutCarried is Carried, and returns what follows the cells.
func (r *Record) cutCarried(cells [][]byte, n int) (_ [][]byte, rest []byte) {
	_, rest = r.cutLegacy()
	for range n {
		var cell []byte
		cell, rest = packed.CutNullable(rest)
		cells = append(cells, cell)
	}
	return cells, rest
}

// AppendInput appends to a record the URL that the input has in place of Original.
func AppendInput(rec, original, input []byte) []byte {
	n, most := 0, min(len(original), len(input))
	for n < most && original[n] == input[n] {
		n++
	}
	return packed.AppendCell(binary.AppendUvarint(rec, uint64(n)), input[n:])
}

// InputURL is Carried of a record to which AppendInput was applied, and appends the URL that the input has to url.
func (r *Record) InputURL(cells [][]byte, n int, url []byte) (carried [][]byte, _ []byte) {
	cells, rest := r.cutCarried(cells, n)
	common, size := binary.Uvarint(rest)
	own, _ := packed.CutCell(rest[size:])
	return cells, append(append(url, r.Original[:common]...), own...)
}

// Domain returns the domain of the row, in a run whose short URLs have it. It follows n carried cells and
// perhaps what AppendInput appended.
func (r *Record) Domain(n int, input bool) (domain []byte) {
	_, rest := r.cutLegacy()
	for range n {
		_, rest = packed.CutNullable(rest)
	}
	if input {
		_, size := binary.Uvarint(rest)
		_, rest = packed.CutCell(rest[size:])
	}
	domain, _ = packed.CutNullable(rest)
	return domain
}

// WorkspaceCell returns what stood in the cell of the row's workspace, whose name is given:
// nil where it was null.
func (r *Record) WorkspaceCell(name []byte) []byte {
	switch {
	case r.flags&NullWorkspace != 0:
		return nil
	case r.flags&NoWorkspace != 0:
		return []byte{}
	}
	return name
}

// Noted counts rows that something is to be said of.
type Noted struct {
	Rows  int64
	First Place  // of such a row, if there is one
	Text  string // of that row: what is said of it
}

// Note counts a row.
func (n *Noted) Note(text []byte, at Place) {
	if n.Rows++; n.Rows == 1 || at.Key() < n.First.Key() {
		n.First, n.Text = at, string(text)
	}
}

// Merge takes what another has counted.
func (n *Noted) Merge(o *Noted) {
	if o.Rows > 0 && (n.Rows == 0 || o.First.Key() < n.First.Key()) {
		n.First, n.Text = o.First, o.Text
	}
	n.Rows += o.Rows
}

// Damaged counts rows whose legacy code a spreadsheet has rewritten (legacy.Damaged) or, if all codes of
// the input are like that, a data frame (legacy.IsFloat). It counts those with escapes, too.
type Damaged struct {
	Noted
	floats  map[int]*Noted // by input; of those that have another code as well they do not count
	others  map[int]bool   // inputs that have another code
	last    int            // the last one that was noted there, plus one
	escaped map[int]*Noted // by input: codes with an escape (codegen.HasEscape)
}

// Add takes the code of a row; nil: it has none.
func (d *Damaged) Add(code []byte, at Place) {
	switch {
	case code == nil:
		return
	case legacy.IsFloat(code):
		if !d.others[at.Source] {
			notedOf(&d.floats, at.Source).Note(code, at)
		}
		return
	case legacy.Damaged(code):
		d.Note(code, at)
	case codegen.HasEscape(code):
		notedOf(&d.escaped, at.Source).Note(code, at)
	}
	if d.last != at.Source+1 {
		d.other(at.Source)
		d.last = at.Source + 1
	}
}

// notedOf returns what is noted of an input.
func notedOf(inputs *map[int]*Noted, source int) *Noted {
	if *inputs == nil {
		*inputs = map[int]*Noted{}
	}
	if (*inputs)[source] == nil {
		(*inputs)[source] = new(Noted)
	}
	return (*inputs)[source]
}

// other notes that not all codes of an input are like those of a data frame.
func (d *Damaged) other(source int) {
	if d.others == nil {
		d.others = map[int]bool{}
	}
	d.others[source] = true
	delete(d.floats, source)
}

// Merge takes what another has counted.
func (d *Damaged) Merge(o *Damaged) {
	d.Noted.Merge(&o.Noted)
	for source, n := range o.floats {
		notedOf(&d.floats, source).Merge(n)
	}
	for source, n := range o.escaped {
		notedOf(&d.escaped, source).Merge(n)
	}
	for source := range o.others {
		d.other(source)
	}
	for source := range d.others {
		delete(d.floats, source)
	}
}

// All returns what was counted, once all codes were taken.
func (d *Damaged) All() Noted {
	all := d.Noted
	for _, n := range d.floats {
		all.Merge(n)
	}
	return all
}

// Escaped returns the codes with an escape of the inputs whose codes are not cut out of paths: there an
// escape is decoded, and what is left is part of the code.
func (d *Damaged) Escaped(cutsPaths func(source int) bool) (all Noted) {
	for source, n := range d.escaped {
		if !cutsPaths(source) {
			all.Merge(n)
		}
	}
	return all
}
