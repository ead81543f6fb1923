package campaign

import (
	"bytes"
	"hash/maphash"

	"github.com/linkforge/bulk/canon"
)

// A Row makes the variants of one row after another. It is used by one goroutine, and allocates nothing
// once its buffers have grown.
type Row struct {
	p    *Plan
	head []byte // of the URL, up to the parameters
	mark byte   // stands before the first of them
	tail []byte // what follows the parameters
	// Tagged reports whether the row's own URL had a parameter of the plan.
	Tagged bool

	made   []made  // by value of the plan
	faults []fault // likewise
	row    uint32  // tells the row in hand from others
	madeIn []uint32
	text   []byte // of values, of texts before they are made
	cell   []byte
	wrong  bool // some value is

	names  interner
	seen   []uint64 // by id + 1: the last list in which it was
	list   uint64
	common walk
	own    walk
	sets   []int // that the row uses, unless all are used
	met    met

	set, block int // the block in hand, and the set to which it belongs, in sets; block -1: none yet
	number     int64
}

// NewRow returns a row of a plan.
func (p *Plan) NewRow() *Row {
	r := &Row{
		p: p, made: make([]made, len(p.values)), faults: make([]fault, len(p.values)), madeIn: make([]uint32, len(p.values)),
		names: interner{seed: maphash.MakeSeed(), first: p.ids}, seen: make([]uint64, p.ids+1),
	}
	for i := range p.values {
		r.made[i] = p.values[i].made
	}
	return r
}

// A fault is what is wrong with a value.
type fault byte

const (
	emptyCell fault = iota + 1
	notUTF8
	control
	outside
)

// Make makes the values of a row, of which cell returns the cells by their columns in an input, and cuts
// its URL. What url and cell return must not change as long as the row is in hand. The fault, which is
// nil if there are variants, says why there are none.
func (r *Row) Make(at Columns, url []byte, cell func(column int) []byte) *Fault {
	if r.row++; r.row == 0 {
		clear(r.madeIn)
		r.row = 1
	}
	r.text, r.wrong = r.text[:0], false
	r.names.reset()
	r.cut(url)
	if f := r.findSets(at, cell); f != nil {
		return f
	}
	r.makeAll(r.p.common, at, cell)
	for n := range r.setCount() {
		for _, v := range r.setAt(n).cells {
			r.makeValue(v, at, cell)
		}
	}
	if r.wrong {
		return r.first(at, cell)
	}
	r.common.start(r, r.p.common)
	r.Rewind()
	return nil
}

// cut finds what of a URL stays: pieces of its query that have the name of a parameter do not.
func (r *Row) cut(url []byte) {
	url = canon.Trim(url)
	r.tail = nil
	if i := bytes.IndexByte(url, '#'); i >= 0 {
		url, r.tail = url[:i], url[i:]
	}
	path, query, _ := bytes.Cut(url, []byte("?"))
	r.head, r.mark, r.Tagged = append(r.head[:0], path...), '?', false
	for len(query) > 0 {
		var piece []byte
		piece, query, _ = bytes.Cut(query, []byte("&"))
		switch {
		case len(piece) == 0:
		case r.p.replaced.Match(piece) != "":
			r.Tagged = true
		default:
			r.head = append(append(r.head, r.mark), piece...)
			r.mark = '&'
		}
	}
}

// findSets finds the sets that the row uses.
func (r *Row) findSets(at Columns, cell func(int) []byte) *Fault {
	r.sets = r.sets[:0]
	if r.p.use == nil {
		return nil
	}
	r.cell = r.cell[:0]
	for _, part := range r.p.use {
		r.cell = appendPart(r.cell, part, at, cell)
	}
	var bad string
	var ok bool
	if r.sets, bad, ok = r.p.usedSets(r.sets, r.cell); !ok {
		return &Fault{"use", "use: " + r.p.noSet(bad)}
	}
	return nil
}

func appendPart(dst []byte, p part, at Columns, cell func(int) []byte) []byte {
	if p.column < 0 {
		return append(dst, p.text...)
	}
	return append(dst, canon.Trim(cell(at[p.column]))...)
}

// setCount returns how many sets the row uses.
func (r *Row) setCount() int {
	if r.p.use == nil {
		return len(r.p.sets)
	}
	return len(r.sets)
}

// setAt returns one of them.
func (r *Row) setAt(n int) *setPlan {
	if r.p.use == nil {
		return &r.p.sets[n]
	}
	return &r.p.sets[r.sets[n]]
}

// blocks returns the blocks of one of the row's sets; without sets there is one block.
func (r *Row) blocks(n int) (first, last int) {
	if len(r.p.sets) == 0 {
		return 0, 1
	}
	s := r.setAt(n)
	return s.first, s.last
}

func (r *Row) makeAll(digits []digit, at Columns, cell func(int) []byte) {
	for i := range digits {
		if !digits[i].cells {
			continue
		}
		for _, v := range digits[i].values {
			r.makeValue(v, at, cell)
		}
	}
}

// makeValue makes a value that is not constant, unless the row has it already.
func (r *Row) makeValue(n int, at Columns, cell func(int) []byte) {
	v := &r.p.values[n]
	if v.constant || r.madeIn[n] == r.row {
		return
	}
	r.madeIn[n], r.faults[n] = r.row, 0
	r.cell = r.cell[:0]
	var empty bool
	for _, part := range v.parts {
		before := len(r.cell)
		r.cell = appendPart(r.cell, part, at, cell)
		empty = empty || len(r.cell) == before
	}
	allow := r.p.allow[v.param]
	if empty {
		if r.made[n] = (made{id: lacking}); len(v.parts) > 1 {
			r.fault(n, emptyCell)
		} else if allow != nil && !allow.has(nil) {
			r.fault(n, outside)
		}
		return
	}
	start := len(r.text)
	var err error
	switch r.text, err = r.p.how.make(r.text, r.cell); err {
	case errNotUTF8:
		r.fault(n, notUTF8)
		return
	case errControl:
		r.fault(n, control)
		return
	}
	end := len(r.text)
	m := made{value: r.text[start:end:end]}
	if allow != nil && !allow.has(m.value) {
		r.fault(n, outside)
	}
	r.text = appendPiece(r.text, r.p.names[v.param], m.value)
	m.piece = r.text[end:len(r.text):len(r.text)]
	if known, ok := r.p.constants[v.param][string(m.value)]; ok {
		m.id = known
	} else {
		m.id = r.names.id(v.param, m.value)
	}
	r.made[n] = m
}

func (r *Row) fault(n int, f fault) { r.faults[n], r.wrong = f, true }

// Rewind begins with the first variant again.
func (r *Row) Rewind() {
	r.set, r.block = 0, -1
	r.met.reset()
}

// Next goes on to the next variant, in the order of their numbers; false: there is none.
func (r *Row) Next() bool {
	if r.block >= 0 && r.common.advance() {
		r.number = r.own.number*r.common.size + r.common.number
		return true
	}
	for r.nextOwn() {
		if r.p.disjoint || r.setCount() == 1 && !r.manyBlocks() || r.met.add(r) {
			r.common.rewind()
			r.number = r.own.number*r.common.size + r.common.number
			return true
		}
	}
	return false
}

func (r *Row) manyBlocks() bool {
	first, last := r.blocks(0)
	return last-first > 1
}

// nextOwn goes on to the next combination of a block.
func (r *Row) nextOwn() bool {
	switch {
	case r.block < 0:
		r.block, _ = r.blocks(0)
	case r.own.advance():
		return true
	default:
		r.block++
		if _, last := r.blocks(r.set); r.block == last {
			if r.set++; r.set >= r.setCount() {
				r.block--
				r.set--
				return false
			}
			r.block, _ = r.blocks(r.set)
		}
	}
	r.own.start(r, r.p.blocks[r.block].own)
	return true
}

// Number returns that of the variant in hand.
func (r *Row) Number() int64 { return r.p.blocks[r.block].first + r.number + 1 }

// AppendURL appends the URL of the variant in hand.
func (r *Row) AppendURL(dst []byte) []byte {
	dst = append(dst, r.head...)
	mark := r.mark
	own := len(r.own.digits)
	for _, d := range r.p.blocks[r.block].order {
		var m *made
		if int(d) < own {
			m = &r.made[r.own.value(int(d))]
		} else {
			m = &r.made[r.common.value(int(d)-own)]
		}
		if m.id == lacking {
			continue
		}
		dst = append(append(dst, mark), m.piece...)
		mark = '&'
	}
	return append(dst, r.tail...)
}

// AppendExtremes appends a URL that is no shorter than that of any variant, and the URL of a variant
// that lacks all parameters, if there is one. What canon says of these two it says of one variant or
// all: the others differ from the first in values that are shorter.
func (r *Row) AppendExtremes(longest, bare []byte) (_, _ []byte, hasBare bool) {
	block, most := 0, -1
	for n := range max(r.setCount(), 1) {
		first, last := r.blocks(n)
		for b := first; b < last; b++ {
			size, without := r.extent(r.p.blocks[b].own)
			if hasBare = hasBare || without; size > most {
				block, most = b, size
			}
		}
	}
	_, without := r.extent(r.p.common)
	if hasBare = hasBare && without; hasBare {
		bare = append(append(bare, r.head...), r.tail...)
	}
	longest = append(longest, r.head...)
	mark := r.mark
	for _, digits := range [2][]digit{r.p.blocks[block].own, r.p.common} {
		for i := range digits {
			if piece := r.longest(&digits[i]); len(piece) > 0 {
				longest = append(append(longest, mark), piece...)
				mark = '&'
			}
		}
	}
	return append(longest, r.tail...), bare, hasBare
}

// extent returns how long digits can be, and whether they can be lacking.
func (r *Row) extent(digits []digit) (size int, bare bool) {
	bare = true
	for i := range digits {
		d := &digits[i]
		if n := len(r.longest(d)); n > 0 {
			size += 1 + n
		}
		lacks := false
		if d.cells {
			for _, v := range d.values {
				lacks = lacks || r.made[v].id == lacking
			}
		}
		bare = bare && lacks
	}
	return size, bare
}

// longest returns the longest piece of a digit; nil: it is lacking.
func (r *Row) longest(d *digit) (piece []byte) {
	for _, v := range d.values {
		if p := r.made[v].piece; len(p) > len(piece) {
			piece = p
		}
	}
	return piece
}

// Value returns the value that the variant in hand has of a parameter; nil: it lacks it.
func (r *Row) Value(param int) []byte {
	for _, w := range [2]*walk{&r.own, &r.common} {
		for d := range w.digits {
			if w.digits[d].param == param {
				return r.made[w.value(d)].value
			}
		}
	}
	return nil
}
