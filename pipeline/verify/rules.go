package verify

import (
	"bytes"
	"cmp"
	"maps"
	"time"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// ruling is what the manifest says of link rules.
type ruling struct {
	ruled   bool // rows were held against links
	table   rules.Terms
	params  [][rules.ColumnCount]int // for each input, its columns of parameters; -1: none
	inOrder []int                    // carried columns of the mapping, in the order in which the sort compares them
}

// readRules reads how rows were held against links, and calls bad with what no run writes.
func (r *run) readRules(bad func(field string, expected, got any)) {
	m := r.manifest
	r.ruled, r.table.AsOf = m.Rules != nil, m.AsOf.Unix()
	told := r.terms.Rules
	if told == nil {
		return
	}
	r.table.OnDrift, r.table.Revive = told.OnDrift, told.Revive
	if !r.ruled {
		bad("rules", "there if options has rules", "nothing")
	}
}

// mapParams tells which columns have parameters, as the run was told.
func (r *run) mapParams(choice *columns.Choice) {
	if r.flags() == nil {
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
	for i, in := range r.inputs {
		var at [rules.ColumnCount]int
		for c := range rules.Column(rules.ColumnCount) {
			at[c] = -1
			if in == nil {
				continue
			}
			if column, ok := in.Params[profile.Role(c.String())]; ok {
				at[c] = column
				if c != rules.Ref {
					last[r.carried[i][column]] = true
				}
			}
		}
		r.params = append(r.params, at)
	}
	for _, isLast := range []bool{false, true} {
		for n := range r.columns.Carried {
			if last[n] == isLast && r.terms.Carry {
				r.inOrder = append(r.inOrder, n)
			}
		}
	}
}

// identify fills in the parts of the identity of a row, and the parameters that the row gives, if the
// mapping has all of its cells.
func (w *checker) identify(l *link) {
	l.parts, l.params, l.said, l.refusal = l.Rules.Parts, rules.Params{}, w.run.flags() == nil, ""
	if w.run.flags() == nil || l.source < 0 || w.run.inputs[l.source] == nil {
		return
	}
	cell, all := w.cellOf(l, w.run.inputs[l.source])
	row := judge.Row{Number: l.Row.Row, Cell: cell}
	refusal, _ := w.run.judge.Params(&w.run.judged[l.source], &row)
	if l.said = *all; l.said {
		l.params, l.refusal = row.Params, refusal
	}
}

// checkParams checks the cells of link rules of the row in hand by themselves, and against what the row
// gives. What its link has is checked with the other rows of the link.
func (w *checker) checkParams(r *link) {
	if r.refusal != "" {
		w.found(BadOutcome, "outcome", "rejected: "+r.refusal, r.Outcome.String())
	}
	if r.said && r.refusal == "" && w.run.flags() != nil {
		w.text = w.run.flags().Identity.AppendParts(w.text[:0], &r.params)
		if !bytes.Equal(w.text, r.parts) {
			w.found(BadParameter, "parts", string(w.text), string(r.parts))
		}
	}
	if w.run.own.Ref {
		w.text = rules.ByRow.AppendParts(w.text[:0], &rules.Params{Ref: r.Rules.Cells[rules.Ref]})
		if !bytes.Equal(w.text, r.parts) {
			w.found(BadParameter, rules.Ref.String(), string(r.parts), string(w.text))
		}
	}
	l := linkOf(&r.Rules.Cells)
	want, text := l.Cells(w.text)
	w.text = text
	for c, got := range r.Rules.Cells[:rules.Ref] {
		if !bytes.Equal(want[c], got) {
			w.found(BadParameter, rules.Column(c).String(), cmp.Or(string(want[c]), "a value that a link can have"), string(got))
		}
	}
}

// linkOf returns a link that has what the mapping shows.
func linkOf(cells *rules.Cells) rules.Link {
	l := rules.Link{Type: rules.TypeOf(string(cells[rules.LinkType])), Owner: cells[rules.OwnerID]}
	if t, err := time.Parse(time.RFC3339, string(cells[rules.ExpiresAt])); err == nil {
		l.Expiry = rules.Expiry{When: rules.At, Seconds: t.Unix()}
	}
	switch limit := string(cells[rules.MaxUses]); limit {
	case "":
	case "0": // of a link that is used up
		l.Limit = -1
	default:
		l.Limit, _ = rules.ParseLimit([]byte(limit))
	}
	return l
}

// verifyChanges compares the changes of all rows with those of the manifest.
func (v *verifier) verifyChanges(rows *rules.ChangeCounts) {
	changes := rows.ByName()
	if !maps.Equal(changes, v.run.manifest.Rules.Changes) {
		v.wrong(BadCount, "rules.changes", reasonsText(changes), reasonsText(v.run.manifest.Rules.Changes))
	}
}

// appendParams appends what the store has of a link whose run was held against links: its url_key,
// and the cells of its parameters, each as of packed.AppendNullable.
func appendParams(dst []byte, key sink.Key, cells *rules.Cells) []byte {
	dst = packed.AppendNullable(dst, key[:])
	for _, cell := range cells {
		if len(cell) == 0 {
			cell = nil
		}
		dst = packed.AppendNullable(dst, cell)
	}
	return dst
}

// storedCells returns the cells of the parameters of a link, as the mapping shows them.
func storedCells(r sink.Rules) (cells rules.Cells) {
	l := rules.Link{Limit: r.MaxUses, Type: rules.TypeOf(string(r.Type)), Owner: r.Owner}
	if !r.Expires.IsZero() {
		l.Expiry = rules.Expiry{When: rules.At, Seconds: r.Expires.Unix()}
	}
	cells, _ = l.Cells(nil)
	cells[rules.Ref] = r.Ref
	return cells
}
