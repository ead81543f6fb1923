package verify

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
)

// ruling is what the manifest says of link rules.
type ruling struct {
	ruled   bool         // rows were held against links
	flags   *rules.Flags // how parameters were read; nil: rows have none
	table   rules.Terms
	params  [][rules.ColumnCount]int // for each input, its columns of parameters; -1: none
	inOrder []int                    // carried columns of the mapping, in the order in which the sort compares them
}

// ruleOptions are options that a run has only with link rules.
var ruleOptions = []string{"identity", "on_drift", "revive", "temporary_ttl", "expires_at", "expires_in", "max_uses", "link_type", "owner"}

// readRules reads how rows were held against links, and calls bad with what no run writes.
func (r *run) readRules(bad func(field string, expected, got any)) {
	m := r.manifest
	r.ruled, r.table.AsOf = m.Rules != nil, m.AsOf.Unix()
	if !manifest.Option[bool](m.Options, "rules") {
		for _, name := range ruleOptions {
			if got := m.Options[name]; got != nil {
				bad("options."+name, "there only if options has rules", got)
			}
		}
		return
	}
	if !r.ruled {
		bad("rules", "there if options has rules", "nothing")
	}
	text := func(name string) string { return string(manifest.Option[manifest.Text](m.Options, name)) }
	check := func(name, expected string, ok bool) {
		if !ok {
			bad("options."+name, expected, m.Options[name])
		}
	}
	f := new(rules.Flags)
	var err error
	f.Identity, err = rules.ParseIdentity(text("identity"))
	check("identity", "url, params or row", err == nil)
	r.table.OnDrift, err = rules.ParseOnDrift(text("on_drift"))
	check("on_drift", "keep, update or reject", err == nil)
	r.table.Revive, err = rules.ParseRevivals(text("revive"))
	check("revive", "ended, all or none", err == nil)
	f.TemporaryTTL = lifeOf(text("temporary_ttl"))
	check("temporary_ttl", "a time in whole seconds", f.TemporaryTTL > 0)
	f.ExpiresIn = lifeOf(text("expires_in"))
	check("expires_in", "a time in whole seconds", m.Options["expires_in"] == nil || f.ExpiresIn > 0)
	f.Expiry, _ = rules.ParseExpiry([]byte(text("expires_at")))
	check("expires_at", "a time in UTC", f.Expiry.String() == text("expires_at"))
	f.Limit = manifest.Option[int64](m.Options, "max_uses")
	check("max_uses", "1 or more", m.Options["max_uses"] == nil || f.Limit > 0)
	f.Type = rules.TypeOf(text("link_type"))
	check("link_type", "PERMANENT or TEMPORARY", f.Type.String() == text("link_type"))
	f.Owner = []byte(text("owner"))
	check("owner", "UTF-8 without U+0000", (&rules.Flags{Owner: f.Owner}).Check() == nil)
	r.flags = f
}

// hasParts reports whether identities may have parts.
func (r *run) hasParts() bool { return r.flags != nil && r.flags.Identity != rules.ByURL }

// lifeOf returns how long a link lives, as a manifest has it; 0: no run writes this.
func lifeOf(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 || d.String() != text {
		return 0
	}
	return d
}

// mapParams tells which columns have parameters, as the run was told.
func (r *run) mapParams(opts *source.Options) {
	if opts.Rules = r.flags != nil; !opts.Rules {
		return
	}
	columns := map[string]string{}
	maps.Copy(columns, opts.Map)
	for c := range rules.Column(rules.ColumnCount) {
		if column := manifest.Option[manifest.Text](r.manifest.Options, "map_"+c.String()); column != "" {
			columns[c.String()] = string(column)
		}
	}
	opts.Map = columns
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
			if last[n] == isLast && r.carry {
				r.inOrder = append(r.inOrder, n)
			}
		}
	}
}

// readParams reads the parameters of a row of an input, whose cells are given by their column, or
// says why a run rejects it.
func (r *run) readParams(input int, row int64, cell func(column int) []byte) (p rules.Params, reason, detail string) {
	if r.flags == nil {
		return p, "", ""
	}
	var cells rules.Cells
	at, in := &r.params[input], &r.manifest.Inputs[input]
	for c, column := range at {
		if column >= 0 {
			cells[c] = cell(column)
		}
	}
	p, bad, ok := r.flags.Parse(&cells)
	if !ok {
		return p, rules.BadParameter, bad.Detail(string(in.Columns[at[bad]]), cells[bad])
	}
	if r.flags.Identity == rules.ByRow && len(p.Ref) == 0 {
		p.Ref = rules.AppendRef(nil, nil, string(in.Name), row)
	}
	return p, "", ""
}

// shown returns the cells that a mapping, or a new link, has of parameters. They are valid until
// buf, which it empties and may grow, is used again.
func (r *run) shown(buf []byte, p *rules.Params) (cells rules.Cells, _ []byte) {
	buf = p.Expiry.Reckon(r.table.AsOf).Append(buf[:0])
	cells[rules.ExpiresAt] = buf
	if p.Limit > 0 {
		buf = strconv.AppendInt(buf, p.Limit, 10)
		cells[rules.MaxUses] = buf[len(cells[rules.ExpiresAt]):]
	}
	cells[rules.LinkType], cells[rules.OwnerID], cells[rules.Ref] = []byte(p.Type.String()), p.Owner, p.Ref
	return cells, buf
}

// identify fills in the parameters of a row, and the parts of its identity.
func (w *checker) identify(l *link) {
	l.parts, l.unsure, l.refusal = l.parts[:0], false, ""
	if w.run.flags == nil {
		return
	}
	sure := false
	if l.source >= 0 && w.run.inputs[l.source] != nil {
		cell, all := w.cellOf(l, w.run.inputs[l.source])
		l.params, l.refusal, _ = w.run.readParams(l.source, l.Row.Row, cell)
		sure = *all && l.refusal == ""
	}
	if !sure {
		w.guess(l)
	}
	l.parts = w.run.flags.Identity.AppendParts(l.parts, &l.params)
	if l.unsure && w.run.flags.Identity == rules.ByParams {
		w.chooseParts(l)
	}
}

// guess reads the parameters of a row from what the mapping shows of them. That does not tell a
// reckoned expiry from the same time in a cell.
func (w *checker) guess(l *link) {
	cells := &l.Rules.Cells
	l.params, _, _ = w.run.flags.Parse(cells)
	without, _, _ := w.run.flags.Parse(&rules.Cells{rules.LinkType: cells[rules.LinkType]})
	if without.Expiry.When == rules.Reckoned && without.Expiry.Reckon(w.run.table.AsOf) == l.params.Expiry {
		l.params.Expiry, l.unsure = without.Expiry, true
	}
}

// chooseParts finds out from the code of a row which of the two its expiry is.
func (w *checker) chooseParts(l *link) {
	if !w.run.hashes() { // nothing tells: rows of one code are one identity
		l.parts = append(append(l.parts, "|="...), l.Code...)
		return
	}
	isCode := func() bool {
		salt := w.run.maker.SaltOf(l.Canonical, slices.Concat(l.Workspace, l.parts), l.Code, w.run.mostSalt)
		return salt >= 0 && salt == l.Salt
	}
	if l.unsure = !isCode(); !l.unsure {
		return
	}
	reckoned := l.params
	l.params.Expiry = reckoned.Expiry.Reckon(w.run.table.AsOf)
	l.parts = w.run.flags.Identity.AppendParts(l.parts[:0], &l.params)
	if l.unsure = !isCode(); l.unsure {
		l.params = reckoned
		l.parts = w.run.flags.Identity.AppendParts(l.parts[:0], &l.params)
	}
}

// checkParams checks that the mapping shows the parameters of the row in hand.
func (w *checker) checkParams(r *link) {
	if r.refusal != "" {
		w.found(BadOutcome, "outcome", "rejected: "+r.refusal, r.Outcome.String())
	}
	var want rules.Cells
	want, w.text = w.run.shown(w.text, &r.params)
	for c, got := range r.Rules.Cells {
		if !bytes.Equal(want[c], got) {
			w.found(BadParameter, rules.Column(c).String(), string(want[c]), string(got))
		}
	}
}

// verifyChanges compares the changes of all rows with those of the manifest.
func (v *verifier) verifyChanges(rows *rules.ChangeCounts) {
	changes := rows.ByName()
	if !maps.Equal(changes, v.run.manifest.Rules.Changes) {
		v.wrong(BadCount, "rules.changes", reasonsText(changes), reasonsText(v.run.manifest.Rules.Changes))
	}
}

// tellsParams reports whether the mapping tells what parameters links have. With legacy codes it does
// not tell it of a link that no row has.
func (r *run) tellsParams() bool { return r.ruled && !r.mode.Keeps() }

// appendParams appends what the store has of a link whose run was held against links: its url_key,
// and the cells of its parameters, each as of extsort.AppendNullable.
func appendParams(dst []byte, key sink.Key, cells *rules.Cells) []byte {
	dst = extsort.AppendNullable(dst, key[:])
	for _, cell := range cells {
		if len(cell) == 0 {
			cell = nil
		}
		dst = extsort.AppendNullable(dst, cell)
	}
	return dst
}

// storedCells returns the cells of the parameters of a link, as run.shown does.
func storedCells(r sink.Rules) (cells rules.Cells) {
	if !r.Expires.IsZero() {
		cells[rules.ExpiresAt] = r.Expires.UTC().AppendFormat(nil, time.RFC3339Nano)
	}
	if r.MaxUses != 0 {
		cells[rules.MaxUses] = strconv.AppendInt(nil, r.MaxUses, 10)
	}
	cells[rules.LinkType], cells[rules.OwnerID], cells[rules.Ref] = r.Type, r.Owner, r.Ref
	return cells
}
