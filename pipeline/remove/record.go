package remove

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A row is a record of the sort. Its slices refer to the bytes of the sort:
//
//	canonical URL or code | 0 | key of its place, big-endian | byte offset + 1 uvarint
//	| canonical URL beside the code as of packed.AppendCell
//	| the cell as of packed.AppendNullable | each carried cell likewise
//
// Neither a canonical URL nor a code has a zero byte. So the order of the bytes is that of the URLs
// or codes and, of equal ones, that of the places. The group is byURL or byCode. The key is the
// beginning of the url_key, which stores have an index of, or the packed.TextKey of the code.
type row struct {
	text, url, input, carried []byte // no url: any
	at                        record.Place
}

const (
	byURL uint32 = iota
	byCode
)

func newTextSorter(cfg extsort.Config) *extsort.Sorter {
	cfg.CompareGroups, cfg.Compare = cmp.Compare[uint32], bytes.Compare
	return extsort.New(cfg)
}

// appendRecord appends a record without its carried cells.
func appendRecord(dst, text []byte, at record.Place, url, input []byte) []byte {
	dst = append(append(dst, text...), 0)
	dst = binary.BigEndian.AppendUint64(dst, at.Key())
	dst = binary.AppendUvarint(dst, uint64(at.Offset+1))
	return packed.AppendNullable(packed.AppendCell(dst, url), input)
}

func decode(rec []byte) (r row) {
	r.text, rec, _ = bytes.Cut(rec, []byte{0})
	offset, n := binary.Uvarint(rec[8:])
	r.at = record.PlaceOf(binary.BigEndian.Uint64(rec), int64(offset)-1)
	r.url, rec = packed.CutCell(rec[8+n:])
	r.input, r.carried = packed.CutNullable(rec)
	return r
}

// accepted is what became of an accepted row. It is sorted by place:
//
//	1 byte: outcome | 1 byte: change | the cell as of packed.AppendNullable
//	| canonical URL, codes as of packed.AppendCell | each carried cell as of packed.AppendNullable
type accepted struct {
	outcome                 outcome.Outcome
	change                  rules.Change
	input, canonical, codes []byte
	carried                 []byte
}

func (a *accepted) append(dst []byte) []byte {
	dst = packed.AppendNullable(append(dst, byte(a.outcome), byte(a.change)), a.input)
	return append(packed.AppendCell(packed.AppendCell(dst, a.canonical), a.codes), a.carried...)
}

func decodeAccepted(rec []byte) (a accepted) {
	a.outcome, a.change = outcome.Outcome(rec[0]), rules.Change(rec[1])
	a.input, rec = packed.CutNullable(rec[2:])
	a.canonical, rec = packed.CutCell(rec)
	a.codes, a.carried = packed.CutCell(rec)
	return a
}

// appendCarried appends the n cells of carried.
func appendCarried(cells [][]byte, carried []byte, n int) [][]byte {
	for range n {
		var cell []byte
		cell, carried = packed.CutNullable(carried)
		cells = append(cells, cell)
	}
	return cells
}
