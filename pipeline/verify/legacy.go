package verify

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/pipeline/terms"
)

// codes is what the manifest says of legacy codes.
type codes struct {
	own      report.Columns   // of the mapping
	added    []*report.Column // beside the plain ones
	conflict legacy.Conflict
	rules    legacy.Rules
	pattern  string
	reserved bool             // there was a list of reserved words, of which the manifest has only the digest
	inputs   []*columns.Table // described as the manifest does; nil: the input has no columns
	carried  [][]int          // for each input, by its columns: the carried column of the mapping; -1: none
}

// readCodes reads how legacy codes were dealt with, and calls bad with what no run writes.
func (r *run) readCodes(bad func(field string, expected, got any)) {
	m, c := r.manifest, &r.codes
	if (m.Legacy != nil) != (r.mode() != legacy.Off) {
		bad("legacy", "there if, and only if, options has legacy", m.Legacy != nil)
	}
	r.own = report.Columns(r.terms.Columns(r.spec.Counts, m.Rules != nil))
	r.added = r.own.Added()
	r.readMigration(bad)
	if r.mode() == legacy.Off && r.beyond() == nil && r.flags() == nil {
		return
	}
	for i := range m.Inputs {
		in := &m.Inputs[i]
		if len(in.Columns) == 0 {
			c.inputs, c.carried = append(c.inputs, nil), append(c.carried, nil)
			continue
		}
		var choice columns.Choice
		r.readAs(in, &choice)
		r.mapParams(&choice)
		s, err := columns.Describe(string(in.Name), in.Format, texts(in.Columns), choice)
		if err != nil {
			bad(fmt.Sprintf("inputs[%d].columns", i), "columns that options and profile name", err)
			continue
		}
		if r.mode() != legacy.Off && (in.CodeColumn == nil || s.Columns[s.Code] != string(*in.CodeColumn)) {
			bad(fmt.Sprintf("inputs[%d].code_column", i), "a column of codes, as options and profile have it", in.CodeColumn)
			continue
		}
		r.setRoles(s, in)
		r.setAlong(i, s, in)
		at := slices.Repeat([]int{-1}, len(s.Columns))
		for n, column := range r.columns.Find(s).Carried {
			if column >= 0 && r.terms.Carry {
				at[column] = n
			}
		}
		c.inputs, c.carried = append(c.inputs, s), append(c.carried, at)
	}
}

// readAs sets the options that say which columns of an input are taken for what.
func (r *run) readAs(in *manifest.Input, choice *columns.Choice) {
	if len(in.URLColumns) == 1 {
		choice.URLColumn = string(in.URLColumns[0])
	}
	if in.WorkspaceColumn != nil {
		choice.WorkspaceColumn = string(*in.WorkspaceColumn)
	}
	choice.Profile, choice.ByDomain = in.Profile, r.beyond().ByDomain()
	if r.mode() == legacy.Off {
		return
	}
	choice.Legacy, choice.Profile = true, cmp.Or(in.Profile, profile.None)
	if asked := cmp.Or(r.terms.CodeFrom, r.terms.Map["code"]); in.CodeColumn != nil && (asked != "" || in.Profile == "") {
		c := profile.ParseColumn(asked)
		c.Name = string(*in.CodeColumn)
		choice.CodeColumn = c.String()
	}
	if in.KindColumn != nil {
		choice.Map = map[string]string{string(profile.Kind): string(*in.KindColumn)}
	}
}

// input returns the description of an input; nil: there is none.
func (c *codes) input(i int) *columns.Table {
	if c.inputs == nil {
		return nil
	}
	return c.inputs[i]
}

// mode returns what became of legacy codes.
func (r *run) mode() legacy.Mode { return r.terms.Mode() }

// conflict returns what became of rows whose code belongs to another URL.
func (r *run) conflict() legacy.Conflict {
	if r.terms.Codes == nil {
		return ""
	}
	return r.terms.Codes.OnConflict
}

// beyond says what was looked at beyond code and URL; nil: nothing was.
func (r *run) beyond() *terms.Beyond { return r.terms.Beyond }

// flags say how parameters were read; nil: rows have none.
func (r *run) flags() *rules.Flags {
	if r.terms.Rules == nil {
		return nil
	}
	return &r.terms.Rules.Flags
}

// many reports whether a row of an input may have become several.
func (r *run) many(input int) bool {
	c := &r.codes
	return r.mode() != legacy.Off && c.inputs[input] != nil && c.inputs[input].ManyCodes()
}

// anyMany reports whether a row of any input may have become several.
func (c *codes) anyMany() bool {
	return slices.ContainsFunc(c.inputs, func(in *columns.Table) bool { return in != nil && in.ManyCodes() })
}

// same reports whether two codes are one.
func (r *run) same(a, b []byte) bool {
	return legacy.Same(a, b, r.terms.Fold())
}

// owns reports whether a row has its own legacy code. Any other has that of the link of its URL.
func (r *run) owns(l *readback.MappingRow) bool { return l.Legacy != nil && r.same(l.Legacy, l.Code) }

// told is what the rows say of legacy codes. The manifest has it, too.
type told struct {
	aliases, conflicts, withoutCode int64
	perhaps                         int64 // conflicts: rows that are rejected because of link rules, and may have lost their code before
	damaged                         record.Damaged
	along                           along.Told
	unsure                          bool // of along: the mapping does not have all cells of a row
}

// code counts a row that has a legacy code, or none.
func (t *told) code(code []byte, at record.Place) {
	if code == nil {
		t.withoutCode++
		return
	}
	t.damaged.Add(code, at)
}

func (t *told) merge(o *told) {
	t.aliases, t.conflicts, t.withoutCode = t.aliases+o.aliases, t.conflicts+o.conflicts, t.withoutCode+o.withoutCode
	t.perhaps += o.perhaps
	t.damaged.Merge(&o.damaged.Noted)
	t.along.Merge(&o.along)
	t.unsure = t.unsure || o.unsure
}

// addTold adds what a checker was told.
func (v *verifier) addTold(t *told) {
	v.telling.Lock()
	defer v.telling.Unlock()
	v.told.merge(t)
}

// verifyTold compares what the rows say of legacy codes with what the manifest does.
func (v *verifier) verifyTold() {
	m, t := v.run.manifest, &v.told
	damaged := int64(0)
	if d := m.Legacy.Damaged; d != nil {
		damaged = d.Rows
		here := m.Inputs[t.damaged.First.Source].Name
		if t.damaged.Rows > 0 && (d.Example.Source != here || d.Example.Row != t.damaged.First.Row || !legacy.Damaged([]byte(d.Example.Code))) {
			v.wrong(BadCount, "legacy.damaged.example", fmt.Sprint(here, " ", t.damaged.First.Row), fmt.Sprint(d.Example.Source, " ", d.Example.Row, " ", d.Example.Code))
		}
	}
	conflicts := min(max(t.conflicts, m.Legacy.Conflicts), t.conflicts+t.perhaps)
	for _, c := range []struct {
		field    string
		got, has int64
	}{
		{"aliases", t.aliases, m.Legacy.Aliases}, {"conflicts", conflicts, m.Legacy.Conflicts},
		{"without_code", t.withoutCode, m.Legacy.WithoutCode}, {"damaged", t.damaged.Rows, damaged},
	} {
		if c.got != c.has {
			v.wrong(BadCount, "legacy."+c.field, c.got, c.has)
		}
	}
}

// links returns how many links the run created, by its manifest.
func (r *run) links() int64 {
	if n := r.manifest.LinksCreated; n != nil {
		return *n
	}
	return r.manifest.Counts.Created
}

// bareCreated returns how many links the run created that no row has, by its manifest.
func (r *run) bareCreated() int64 { return r.links() - r.manifest.Counts.Created }

// verifyLinks checks how many links the run created: one for each row that says so, and one for
// each URL whose link no row shows, unless the store had that before.
func (v *verifier) verifyLinks() {
	n, least := v.run.links(), v.run.manifest.Counts.Created
	switch most := least + v.bare; {
	case v.run.mode() == legacy.Off && v.run.manifest.LinksCreated != nil, v.run.mode() != legacy.Off && v.run.manifest.LinksCreated == nil:
		v.wrong(BadManifest, "links_created", "there if, and only if, options has legacy", v.run.manifest.LinksCreated != nil)
	case n < least || n > most:
		v.wrong(BadCount, "links_created", fmt.Sprintf("%d to %d", least, most), n)
	}
}

// verifyTwins compares the twins with those of the manifest.
func (v *verifier) verifyTwins(t *legacy.Twins) {
	var has manifest.CaseTwins
	found := manifest.TwinsOf(t.Groups, t.Examples)
	if c := v.run.manifest.Legacy.CaseTwins; c != nil {
		has = *c
	}
	if !reflect.DeepEqual(has, found) {
		v.wrong(BadCount, "legacy.case_twins", found, has)
	}
}
