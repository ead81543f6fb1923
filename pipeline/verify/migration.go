package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/sink"
)

// migration is what the manifest says of what links were beyond code and URL.
type migration struct {
	along []*along.Along // of each input; nil: it has no columns
}

// readMigration reads it, and calls bad with what no run writes.
func (r *run) readMigration(bad func(field string, expected, got any)) {
	m := r.manifest
	if (r.beyond() != nil) != (m.Migration != nil) {
		bad("migration", "there if, and only if, options has hygiene", m.Migration != nil)
	}
	if r.beyond() != nil {
		r.along = make([]*along.Along, len(m.Inputs))
	}
}

// setRoles gives an input the roles of its columns that the manifest has.
func (r *run) setRoles(in *columns.Table, m *manifest.Input) {
	if r.beyond() == nil {
		return
	}
	roles := map[profile.Role][]int{}
	for role, names := range m.Roles {
		roles[profile.Role(role)] = numbers(in, names)
	}
	in.SetRoles(roles, numbers(in, m.LeftOut))
}

// setAlong sets what goes along with the links of input i.
func (r *run) setAlong(i int, in *columns.Table, m *manifest.Input) {
	if r.beyond() == nil {
		return
	}
	attributes := map[string][]int{}
	for attribute, names := range m.Attrs {
		attributes[attribute] = numbers(in, names)
	}
	a := along.New(in, r.columns.Find(in).Carried, attributes)
	r.along[i] = &a
}

// numbers returns the numbers of columns.
func numbers(in *columns.Table, names manifest.Columns) (list []int) {
	for _, name := range names {
		if c := slices.Index(in.Columns, string(name)); c >= 0 {
			list = append(list, c)
		}
	}
	return list
}

// verifyMigration compares what the rows say beyond code and URL with what the manifest does, if the
// mapping has all columns.
func (v *verifier) verifyMigration() {
	m, t := v.run.manifest.Migration, &v.told.along
	if !v.run.terms.Carry || v.told.unsure {
		return
	}
	if want := manifest.DomainsOf(t.Domains); !reflect.DeepEqual(want, m.Domains) {
		v.wrong(BadCount, "migration.domains", domainsText(want), domainsText(m.Domains))
	}
	for kind := range hygiene.Kind(hygiene.KindCount) {
		want, got := t.Warned[kind].Rows, m.Hygiene[kind.String()]
		if v.run.beyond().Policy[kind] == hygiene.Reject {
			want = v.run.manifest.Reasons[kind.String()]
		}
		if got.Rows != want {
			v.wrong(BadCount, "migration.hygiene."+kind.String(), want, got.Rows)
		}
	}
	for _, c := range []struct {
		field string
		got   int64
		has   *manifest.Noted
	}{{"no_time", t.NoTime.Rows, m.NoTime}, {"no_expiry", t.NoExpiry.Rows, m.NoExpiry}} {
		has := int64(0)
		if c.has != nil {
			has = c.has.Rows
		}
		if c.got != has {
			v.wrong(BadCount, "migration."+c.field, c.got, has)
		}
	}
}

// domainsText lists domains for a finding.
func domainsText(d *manifest.Domains) string {
	if d == nil {
		return "none"
	}
	return fmt.Sprintf("%d, more %t, rows %v", d.Count, d.More, d.Rows)
}

// workspaceOf returns the workspace of a row that has this cell of the workspace column, and a
// code of this domain.
func (r *run) workspaceOf(cell, domain []byte) []byte {
	switch {
	case r.beyond().ByDomain():
		return legacy.AppendWorkspace(nil, r.workspace, domain)
	case len(cell) > 0:
		return cell
	}
	return r.workspace
}

// cellOf returns how to get the cells of a row of the mapping by the columns of its input, and
// whether all that were asked for are in the mapping.
func (w *checker) cellOf(r *link, in *columns.Table) (cell func(column int) []byte, sure *bool) {
	sure = new(bool)
	*sure = true
	return func(c int) []byte {
		switch n := w.run.carried[r.source][c]; {
		case n >= 0 && n < len(r.Carried):
			return r.Carried[n]
		case len(in.URLs) == 1 && c == in.URLs[0]:
			return r.Original
		}
		*sure = false
		return nil
	}, sure
}

// checkMigration checks that a row of the mapping, whose codes are in w.own, was accepted rightly,
// and that it is in the workspace of its domain.
func (w *checker) checkMigration(r *link, in *columns.Table, cell func(column int) []byte, sure *bool) {
	code := columns.Code{Text: r.Legacy}
	if codes := w.own; len(codes) > 0 {
		i := slices.IndexFunc(codes, func(c columns.Code) bool {
			return bytes.Equal(c.Text, r.Legacy) && (!w.run.beyond().ByDomain() || bytes.Equal(w.run.workspaceOf(nil, c.Domain), r.Workspace))
		})
		code = codes[max(i, 0)]
	} else {
		code.Domain = in.Domain(cell)
	}
	row := judge.Row{Original: r.Original, Code: code.Text, Domain: code.Domain, Cell: cell}
	reason, _ := w.run.judge.Cells(&w.run.judged[r.source], &row)
	if reason == "" {
		reason, _ = w.run.judge.URL(&row, r.Canonical)
	}
	w.told.along.Add(w.run.along[r.source], w.run.beyond(), &along.Row{At: record.Place{Source: r.source, Row: r.Row.Row}, Original: r.Original, Domain: code.Domain, Found: row.Found, Cell: cell})
	w.told.unsure = w.told.unsure || !*sure
	switch want := w.run.workspaceOf(nil, code.Domain); {
	case !*sure:
	case reason != "":
		w.found(BadOutcome, "outcome", "rejected: "+reason, r.Outcome.String())
	case w.run.beyond().ByDomain() && !bytes.Equal(want, r.Workspace):
		w.found(BadWorkspace, "workspace_id", string(want), string(r.Workspace))
	}
}

// storedAs appends what the store must have of the link of this row after the run. What is no parameter
// counts only if the run has created or revived it.
func (r *run) storedAs(dst []byte, l *link) []byte {
	var attributes []byte
	created := r.manifest.AsOf
	if r.tellsAlong() && l.source >= 0 && r.inputs[l.source] != nil {
		a := r.along[l.source]
		attributes = a.AppendAttrs(nil, l.Carried)
		if at := a.Created(l.Carried); r.beyond().KeepCreated && !at.IsZero() {
			created = at
		}
	}
	dst = appendBeyond(dst, r.originalOf(l), attributes, created)
	if !r.ruled {
		return dst
	}
	return appendParams(dst, r.toldKey(l.hash.Key()), &l.Rules.Cells)
}

// hasAs appends what the store has of a link, as far as the mapping tells what it must have.
func (r *run) hasAs(dst []byte, l *sink.Stored) []byte {
	attributes, created := l.Attrs, l.Created
	if !r.tellsAlong() {
		if attributes = nil; r.beyond() != nil && r.beyond().KeepCreated {
			created = r.manifest.AsOf
		}
	}
	dst = appendBeyond(dst, l.Original, attributes, created)
	if !r.ruled {
		return dst
	}
	cells := storedCells(rulesOf(l))
	return appendParams(dst, r.toldKey(l.Key), &cells)
}

// toldKey returns the url_key of a link; zero if the row may be that of an alias, whose key its hash
// does not make.
func (r *run) toldKey(key sink.Key) sink.Key {
	if r.mode().Keeps() {
		return sink.Key{}
	}
	return key
}

// tellsAlong reports whether the mapping tells what goes along with links.
func (r *run) tellsAlong() bool { return r.beyond() != nil && r.terms.Carry }

// appendBeyond appends what the store has of a link beside URL and code:
//
//	creation time in microseconds of Unix time, 8 bytes
//	| original and attributes, each as of packed.AppendNullable
//	| what appendParams appends, if the run tells it
func appendBeyond(dst, original, attributes []byte, created time.Time) []byte {
	if len(attributes) == 0 {
		attributes = nil
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(created.UnixMicro()))
	return packed.AppendNullable(packed.AppendNullable(dst, original), attributes)
}

// beyondColumns are the columns of appendBeyond and appendParams after the first.
var beyondColumns = []string{"original_url", "attrs", "url_key", "expires_at", "max_uses", "link_type", "owner_id", "ref"}

// compareBeyond makes findings of what differs between the two, in columns that count.
func compareBeyond(here spot, want, got []byte, counts func(column string, want []byte) bool) {
	if a, b := want[:8], got[:8]; counts("created_at", a) && !bytes.Equal(a, b) {
		here.wrong(StoreDiffers, "created_at", microTime(a), microTime(b))
	}
	want, got = want[8:], got[8:]
	for i := 0; len(want) > 0; i++ {
		var a, b []byte
		a, want = packed.CutNullable(want)
		b, got = packed.CutNullable(got)
		if column := beyondColumns[i]; counts(column, a) && !bytes.Equal(a, b) {
			if column == "url_key" {
				a, b = hex.AppendEncode(nil, a), hex.AppendEncode(nil, b)
			}
			here.wrong(StoreDiffers, column, string(a), string(b))
		}
	}
}

func microTime(micro []byte) string {
	return timeText(time.UnixMicro(int64(binary.BigEndian.Uint64(micro))).UTC())
}
