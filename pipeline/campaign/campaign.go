// Package campaign makes several links of each row: every combination of the parameters that a user
// gives is a variant, a row with the same cells whose URL has the parameters in it. README.md beside
// this package is its law. It is pure: it knows texts and cells, and neither files nor stores.
//
// [Parse] makes a [Plan] of flags and the text of a file, [ParseText] one of what a manifest has. It is
// the same for all inputs; [Plan.Bind] finds in an input the columns that its placeholders name. A
// [Row] makes the variants of one row after another:
//
//	fault := row.Make(columns, url, cell) // each distinct value is made and checked once
//	for row.Next() {
//		url = row.AppendURL(url[:0])
//	}
//
// The values of a variant stand in its URL, so nobody needs to store them ([Plan.Values]).
package campaign

import (
	"regexp"
	"slices"
	"strings"

	"github.com/linkforge/bulk/canon"
)

const (
	// DefaultMost is the most combinations, if nobody says how many there may be.
	DefaultMost = 10_000
	// MaxMost is the most combinations that somebody can ask for.
	MaxMost = 1_000_000
	// MaxFile is the most bytes of a file.
	MaxFile = 1 << 20

	maxNames = 64 // parameters
	maxName  = 64 // bytes of the name of one
)

// A Plan is what is asked for. It does not change; safe for concurrent use.
type Plan struct {
	names    []string // of the parameters, in the order of their bytes
	columns  []string // that placeholders name, in the order in which they are met
	columnAt map[string]int
	values   []value // all different texts of each parameter
	common   []digit // of the key parameters
	sets     []setPlan
	blocks   []block // of the sets one after the other; without sets there is one
	count    int64   // combinations
	use      []part  // nil: all sets
	byName   map[string]int

	how       how
	allow     []*vocabulary   // by parameter; nil: none
	constants []map[string]id // by parameter: final values that constants have
	ids       id              // how many of these there are
	disjoint  bool            // no combinations of two blocks have the same values, whatever the cells are
	replaced  canon.StripParams
	asked     spec
}

// An id stands for a value of a parameter, in a row.
type id int32

const lacking id = -1

// how says how values are made.
type how struct {
	lower bool
	space string // what a run of blanks becomes; "": it stays
}

// A part of a text is text, or stands for the cell of a column.
type part struct {
	text   string
	column int // in Plan.columns; -1: text
}

// A value is one of a parameter as it is given.
type value struct {
	param    int
	text     string // trimmed
	parts    []part
	constant bool
	made     made // if it is constant
}

// A made value is one of a row.
type made struct {
	value []byte // nil: it is lacking
	piece []byte // name=value, as it stands in a URL
	id    id
}

// A digit is a parameter of a block, with its values.
type digit struct {
	param  int
	values []int // in Plan.values
	cells  bool  // some are not constant
	kept   []int // indexes in values, without those that equal an earlier one; if none has cells
}

// A block is the combinations of an entry of a set, with each of them those of the key parameters.
type block struct {
	own   []digit
	first int64  // its first number, less 1
	count int64  // of the combinations of own
	order []int8 // digits in the order of their names: below len(own) own, else common
}

// A setPlan is a set.
type setPlan struct {
	name        string
	first, last int   // blocks
	cells       []int // values that are not constant, in Plan.values
}

// Names returns the names of the parameters, in the order of their bytes.
func (p *Plan) Names() []string { return p.names }

// Combinations returns how many there are, those of sets that nobody uses and equal ones counted.
func (p *Plan) Combinations() int64 { return p.count }

// Memory returns about how many bytes the plan takes, its file while it is read among them, with so many rows and
// tallies of it. It is a whole number of MiB: that of a plan of less than a thousand values is 0.
func (p *Plan) Memory(rows int) int64 {
	const each, ofRow = 450, 100 // bytes of a value, measured
	return int64(len(p.values)) * int64(each+ofRow*rows) >> 20 << 20
}

// Columns returns the columns that placeholders name.
func (p *Plan) Columns() []string { return p.columns }

// A Set is a set of values that go together.
type Set struct {
	Name         string
	Combinations int64
}

// Sets returns the sets in the order of their names' bytes.
func (p *Plan) Sets() (sets []Set) {
	for i := range p.sets {
		s := Set{Name: p.sets[i].name}
		for n := p.sets[i].first; n < p.sets[i].last; n++ {
			s.Combinations += p.sizeOf(n)
		}
		sets = append(sets, s)
	}
	return sets
}

// sizeOf returns how many combinations a block has.
func (p *Plan) sizeOf(block int) int64 { return p.blocks[block].count * product(p.common) }

// Replaces returns the names of the parameters as patterns: pieces of a URL that have one are dropped.
func (p *Plan) Replaces() canon.StripParams { return p.replaced }

// Stripped returns a parameter that patterns would strip again; "": none.
func (p *Plan) Stripped(patterns canon.StripParams) string {
	for _, name := range p.names {
		if patterns.Match([]byte(name)) != "" {
			return name
		}
	}
	return ""
}

// known are the parameters of which others may be a misspelling.
var known = []string{"utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "utm_id"}

// A Misspelling is a parameter that is one letter off a known one.
type Misspelling struct{ Name, Known string }

// Misspelled returns the parameters that are likely to be a mistake.
func (p *Plan) Misspelled() (list []Misspelling) {
	for _, name := range p.names {
		low := strings.ToLower(name)
		if !strings.HasPrefix(low, "utm_") || slices.Contains(known, low) {
			continue
		}
		if meant := near(low, known); meant != "" {
			list = append(list, Misspelling{name, meant})
		}
	}
	return list
}

// near returns the first of the names that is one letter off; "": none is.
func near(name string, names []string) string {
	i := slices.IndexFunc(names, func(other string) bool { return oneOff([]rune(name), []rune(other)) })
	if i < 0 {
		return ""
	}
	return names[i]
}

// didYouMean asks whether one of the names is meant; it ends a sentence.
func didYouMean(name string, names []string) string {
	if meant := near(name, names); meant != "" {
		return ", did you mean " + meant + "?"
	}
	return "."
}

// oneOff reports whether two names differ by one letter, which is added, missing or another, or by two
// neighbours that are swapped.
func oneOff(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := 0
	for n < len(a) && a[n] == b[n] {
		n++
	}
	switch len(b) - len(a) {
	case 1:
		return slices.Equal(a[n:], b[n+1:])
	case 0:
		return n < len(a) && (slices.Equal(a[n+1:], b[n+1:]) ||
			n+1 < len(a) && a[n] == b[n+1] && a[n+1] == b[n] && slices.Equal(a[n+2:], b[n+2:]))
	}
	return false
}

// A vocabulary is the values that a parameter may have.
type vocabulary struct {
	values  map[string]bool // as they are made
	listed  []string        // for people
	pattern *regexp.Regexp  // nil: values
	text    string          // of the pattern
}

func (v *vocabulary) has(value []byte) bool {
	if v.pattern != nil {
		return v.pattern.Match(value)
	}
	return v.values[string(value)]
}

// String says what may stand there, for people.
func (v *vocabulary) String() string {
	if v.pattern != nil {
		return "the pattern is " + v.text
	}
	return "allowed: " + some(v.listed)
}

// some lists names, but not too many.
func some(names []string) string {
	const most = 30
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", …"
}
