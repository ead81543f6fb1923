package record

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A Placed is a row of a mapping in the order of the input:
//
//	workspace uvarint | 1 byte: outcome, change, placedNumber, placedAlias, placedLink
//	| 2 (salt + 1), and 1 if something is shown, uvarint | code as of packed.AppendNullable
//	| with that: what is shown, as of packed.AppendCell
//	| with placedNumber: number uvarint
//	| with placedLink: link salt + 1 uvarint | link code as of packed.AppendNullable
//	| its record
type Placed struct {
	Workspace uint32
	Outcome   outcome.Outcome
	Salt      int // -1: none gives the code
	Code      []byte
	Number    int64 // 0: none
	Alias     bool
	Change    rules.Change
	LinkCode  []byte // nil: the mapping has none
	LinkSalt  int    // -1: none gives the link code; without that it does not count, and is read as -1
	Shown     []byte // of its link, as of package settle; nil: what the record says
	Record    []byte
}

// The bits beside the outcome.
const (
	placedOutcome = 3
	changeShift   = 2
	placedChange  = 7 << changeShift
	placedNumber  = 1 << 5
	placedAlias   = 1 << 6
	placedLink    = 1 << 7
)

// A sortWriter takes records of n bytes, which the caller fills in.
type sortWriter interface {
	Reserve(group uint32, key uint64, n int) []byte
}

// File adds the row to a sorter (extsort.NewByKey), under the key of the place. It returns buf, which
// it uses and may have grown.
func (p *Placed) File(w sortWriter, place Place, buf []byte) []byte {
	head := binary.AppendUvarint(buf[:0], uint64(p.Workspace))
	as := byte(p.Outcome) | byte(p.Change)<<changeShift
	if p.Number > 0 {
		as |= placedNumber
	}
	if p.Alias {
		as |= placedAlias
	}
	if p.LinkCode != nil {
		as |= placedLink
	}
	salt := uint64(p.Salt+1) << 1
	if p.Shown != nil {
		salt |= 1
	}
	head = packed.AppendNullable(binary.AppendUvarint(append(head, as), salt), p.Code)
	if p.Shown != nil {
		head = packed.AppendCell(head, p.Shown)
	}
	if p.Number > 0 {
		head = binary.AppendUvarint(head, uint64(p.Number))
	}
	if p.LinkCode != nil {
		head = binary.AppendUvarint(head, uint64(p.LinkSalt+1))
		head = packed.AppendNullable(head, p.LinkCode)
	}
	to := w.Reserve(0, place.Key(), len(head)+len(p.Record))
	copy(to[copy(to, head):], p.Record)
	return head
}

// DecodePlaced reads a row that File wrote. The result refers to rec.
func DecodePlaced(rec []byte) (p Placed) {
	workspace, n := binary.Uvarint(rec)
	as, rec := rec[n], rec[n+1:]
	p.Workspace, p.Outcome, p.Alias = uint32(workspace), outcome.Outcome(as&placedOutcome), as&placedAlias != 0
	p.Change = rules.Change(as & placedChange >> changeShift)
	salt, n := binary.Uvarint(rec)
	p.Salt, p.LinkSalt = int(salt>>1)-1, -1
	p.Code, p.Record = packed.CutNullable(rec[n:])
	if salt&1 != 0 {
		p.Shown, p.Record = packed.CutCell(p.Record)
	}
	if as&placedNumber != 0 {
		number, n := binary.Uvarint(p.Record)
		p.Number, p.Record = int64(number), p.Record[n:]
	}
	if as&placedLink != 0 {
		salt, n = binary.Uvarint(p.Record)
		p.LinkSalt = int(salt) - 1
		p.LinkCode, p.Record = packed.CutNullable(p.Record[n:])
	}
	return p
}

// CompareVariants orders rows of one place that File wrote, by the number of their variant.
func CompareVariants(a, b []byte) int {
	x, y := DecodePlaced(a), DecodePlaced(b)
	return cmp.Or(cmp.Compare(Decode(x.Record).Place.Variant, Decode(y.Record).Place.Variant), bytes.Compare(a, b))
}

// AppendReject encodes what the key of a reject does not tell:
//
//	byte offset + 1 uvarint | 0 and the number of its variant 4 (only if it has one) | reason, detail, raw and each cell as of packed.AppendNullable
//
// Source, Row and Offset of the reject do not count: place tells them.
func AppendReject(dst []byte, place Place, rej *outcome.Reject) []byte {
	dst = binary.AppendUvarint(dst, uint64(place.Offset+1))
	if rej.Variant > 0 {
		dst = binary.BigEndian.AppendUint32(append(dst, 0), uint32(rej.Variant))
	}
	dst = packed.AppendNullable(dst, []byte(rej.Reason))
	dst = packed.AppendNullable(dst, []byte(rej.Detail))
	dst = packed.AppendNullable(dst, rej.Raw)
	for _, cell := range rej.Cells {
		dst = packed.AppendNullable(dst, cell)
	}
	return dst
}

// DecodeReject reads a reject that AppendReject wrote, all but the name of its source. The
// result refers to rec.
func DecodeReject(key uint64, rec []byte) (Place, *outcome.Reject) {
	offset, n := binary.Uvarint(rec)
	place := PlaceOf(key, int64(offset)-1)
	rec = rec[n:]
	var variant int
	if rec[0] == 0 { // no reason is null
		variant, rec = int(binary.BigEndian.Uint32(rec[1:])), rec[5:]
	}
	reason, rest := packed.CutNullable(rec)
	detail, rest := packed.CutNullable(rest)
	raw, rest := packed.CutNullable(rest)
	rej := &outcome.Reject{Row: place.Row, Offset: place.Offset, Reason: string(reason), Detail: string(detail), Raw: raw, Variant: variant}
	for len(rest) > 0 {
		var cell []byte
		cell, rest = packed.CutNullable(rest)
		rej.Cells = append(rej.Cells, cell)
	}
	return place, rej
}
