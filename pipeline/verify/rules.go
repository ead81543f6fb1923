package verify

import (
	"maps"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/rules"
)

// ruling is what the manifest says of link rules.
type ruling struct {
	ruled   bool         // rows were held against links
	flags   *rules.Flags // how parameters were read; nil: rows have none
	table   rules.Terms
	params  [][rules.ColumnCount]int // for each input, its columns of parameters; -1: none
	inOrder []int                    // carried columns of the mapping, in the order in which the sort compares them
}

// readRules reads how rows were held against links, and calls bad with what no run writes.
func (r *run) readRules(bad func(field string, expected, got any)) {
	m := r.manifest
	r.ruling.ruled, r.ruling.table.AsOf = m.Rules != nil, m.AsOf.Unix()
	told := r.terms.Rules
	if told == nil {
		return
	}
	r.ruling.flags, r.ruling.table.OnDrift, r.ruling.table.Revive = &told.Flags, told.OnDrift, told.Revive
	if !r.ruling.ruled {
		bad("rules", "there if options has rules", "nothing")
	}
}

// mapParams tells which columns have parameters, as the run was told.
func (r *run) mapParams(choice *columns.Choice) {
	if r.ruling.flags == nil {
		return
	}
	choice.Ends = r.terms.Rules.Ends
	choice.Rules = !choice.Ends
	columns := map[string]string{}
	maps.Copy(columns, choice.Map)
	for c := range rules.Column(rules.ColumnCount) {
		if column := r.terms.Map[c.String()]; column != "" {
			columns[c.String()] = column
		}
	}
	choice.Map = columns
}

// findParams finds the columns of parameters of an input, and of the mapping those that the sort
// compares last, since their cells may say the same in other words.
func (r *run) findParams() {
	last := map[int]bool{}
	for i, in := range r.codes.inputs {
		var at [rules.ColumnCount]int
		for c := range rules.Column(rules.ColumnCount) {
			at[c] = -1
			if in == nil {
				continue
			}
			if column, ok := in.Params[profile.Role(c.String())]; ok {
				at[c] = column
				if c != rules.Ref {
					last[r.codes.carried[i][column]] = true
				}
			}
		}
		r.ruling.params = append(r.ruling.params, at)
	}
	for _, isLast := range []bool{false, true} {
		for n := range r.columns.Carried {
			if last[n] == isLast && r.terms.Carry {
				r.ruling.inOrder = append(r.ruling.inOrder, n)
			}
		}
	}
}
