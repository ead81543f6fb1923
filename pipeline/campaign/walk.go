package campaign

import (
	"bytes"
	"hash/maphash"
)

// A walk goes over the combinations of digits, without those that equal an earlier one.
type walk struct {
	digits []digit
	kept   [][]int // by digit: indexes of its values
	own    [][]int // buffers of kept
	at     []int   // by digit: an index in kept
	number int64   // of the combination, from 0, equal ones counted
	size   int64   // combinations, equal ones counted
}

// start begins with the first combination.
func (w *walk) start(r *Row, digits []digit) {
	w.digits, w.size = digits, product(digits)
	for len(w.at) < len(digits) {
		w.at, w.kept, w.own = append(w.at, 0), append(w.kept, nil), append(w.own, nil)
	}
	for d := range digits {
		if w.kept[d] = digits[d].kept; digits[d].cells {
			w.own[d] = r.distinct(w.own[d][:0], &digits[d])
			w.kept[d] = w.own[d]
		}
	}
	w.rewind()
}

func (w *walk) rewind() {
	clear(w.at)
	w.number = 0
}

// advance goes on to the next combination.
func (w *walk) advance() bool {
	d := len(w.digits) - 1
	for ; d >= 0; d-- {
		if w.at[d]++; w.at[d] < len(w.kept[d]) {
			break
		}
		w.at[d] = 0
	}
	if d < 0 {
		return false
	}
	w.number = 0
	for i := range w.digits {
		w.number = w.number*int64(len(w.digits[i].values)) + int64(w.kept[i][w.at[i]])
	}
	return true
}

// value returns a value of the combination, in Plan.values.
func (w *walk) value(d int) int { return w.digits[d].values[w.kept[d][w.at[d]]] }

// distinct appends the values of a digit that equal no earlier one.
func (r *Row) distinct(kept []int, d *digit) []int {
	r.list++
	for i, v := range d.values {
		n := int(r.made[v].id) + 1
		for n >= len(r.seen) {
			r.seen = append(r.seen, 0)
		}
		if r.seen[n] != r.list {
			r.seen[n] = r.list
			kept = append(kept, i)
		}
	}
	return kept
}

// An interner gives an id to each value that is no constant.
type interner struct {
	seed  maphash.Seed
	first id
	names []named
	table []slot // as many as a power of two
	row   uint32
}

// A named is a value of a parameter that has an id.
type named struct {
	param int
	value []byte
}

// A slot of a table is empty if it is of another row.
type slot struct{ row, n uint32 }

func (t *interner) reset() {
	if t.row++; t.row == 0 {
		clear(t.table)
		t.row = 1
	}
	t.names = t.names[:0]
}

// id returns the id of a value, which must not change.
func (t *interner) id(param int, value []byte) id {
	if 2*len(t.names) >= len(t.table) {
		t.grow()
	}
	for i := t.slotOf(param, value); ; i++ {
		s := &t.table[i&uint64(len(t.table)-1)]
		if s.row != t.row {
			*s = slot{t.row, uint32(len(t.names))}
			t.names = append(t.names, named{param, value})
			return t.first + id(s.n)
		}
		if known := &t.names[s.n]; known.param == param && bytes.Equal(known.value, value) {
			return t.first + id(s.n)
		}
	}
}

func (t *interner) slotOf(param int, value []byte) uint64 {
	return maphash.Bytes(t.seed, value) + uint64(param)*0x9e3779b97f4a7c15>>32
}

func (t *interner) grow() {
	t.table = make([]slot, max(16, 2*len(t.table)))
	for n, name := range t.names {
		i := t.slotOf(name.param, name.value)
		for t.table[i&uint64(len(t.table)-1)].row == t.row {
			i++
		}
		t.table[i&uint64(len(t.table)-1)] = slot{t.row, uint32(n)}
	}
}

// met are the combinations of sets that a row has had.
type met struct {
	table []combination // as many as a power of two
	row   uint32
	n     int
}

// A combination is one that a row has had. What is of another row is empty.
type combination struct {
	row, hash    uint32
	block, combo int32
}

func (m *met) reset() {
	if m.row++; m.row == 0 {
		clear(m.table)
		m.row = 1
	}
	m.n = 0
}

// add adds the combination in hand; false: there was one with the same values.
func (m *met) add(r *Row) bool {
	if 2*m.n >= len(m.table) {
		m.grow()
	}
	var h uint64
	for d := range r.own.digits {
		h += mix(r.own.digits[d].param, r.made[r.own.value(d)].id)
	}
	h ^= h >> 32
	for i := uint32(h); ; i++ {
		s := &m.table[i&uint32(len(m.table)-1)]
		if s.row != m.row {
			s.row, s.hash, s.block, s.combo = m.row, uint32(h), int32(r.block), int32(r.own.number)
			m.n++
			return true
		}
		if s.hash == uint32(h) && r.equals(int(s.block), int64(s.combo)) {
			return false
		}
	}
}

func (m *met) grow() {
	old := m.table
	m.table = make([]combination, max(64, 2*len(old)))
	for _, s := range old {
		if s.row != m.row {
			continue
		}
		i := s.hash
		for m.table[i&uint32(len(m.table)-1)].row == m.row {
			i++
		}
		m.table[i&uint32(len(m.table)-1)] = s
	}
}

// equals reports whether a combination of a block has the values of that in hand.
func (r *Row) equals(block int, combo int64) bool {
	other := r.p.blocks[block].own
	i, j := len(r.own.digits)-1, len(other)-1
	for i >= 0 || j >= 0 {
		mine, its := lacking, lacking
		last := -1
		if i >= 0 {
			last = r.own.digits[i].param
		}
		if j >= 0 {
			last = max(last, other[j].param)
		}
		if i >= 0 && r.own.digits[i].param == last {
			mine = r.made[r.own.value(i)].id
			i--
		}
		if j >= 0 && other[j].param == last {
			n := int64(len(other[j].values))
			its = r.made[other[j].values[combo%n]].id
			combo /= n
			j--
		}
		if mine != its {
			return false
		}
	}
	return true
}
