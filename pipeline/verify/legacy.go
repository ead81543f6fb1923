package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
)

// codes is what the manifest says of legacy codes.
type codes struct {
	mode     legacy.Mode
	own      report.Columns   // of the mapping
	added    []*report.Column // beside the plain ones
	conflict legacy.Conflict
	fold     bool             // the workspaces fold case: their codes are in ASCII lower case
	reserved bool             // there was a list of reserved words, of which the manifest has only the digest
	inputs   []*columns.Table // described as the manifest does; nil: the input has no columns
	carried  [][]int          // for each input, by its columns: the carried column of the mapping; -1: none
}

// readCodes reads how legacy codes were dealt with, and calls bad with what no run writes.
func (r *run) readCodes(bad func(field string, expected, got any)) {
	m, c := r.manifest, &r.codes
	c.fold = r.terms.Fold
	if told := r.terms.Codes; told != nil {
		c.mode, c.conflict, c.reserved = told.Mode, told.OnConflict, told.ReservedSHA256 != ""
	}
	if (m.Legacy != nil) != (c.mode != legacy.Off) {
		bad("legacy", "there if, and only if, options has legacy", m.Legacy != nil)
	}
	r.codes.own = report.ColumnsOf(r.terms, r.coding.spec.Counts, m.Rules != nil)
	r.codes.added = r.codes.own.Added()
	r.readMigration(bad)
	if c.mode == legacy.Off && r.terms.Beyond == nil && r.ruling.flags == nil && r.terms.Campaign == nil {
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
		if asked, _ := r.asked().GivenCodes(); c.mode != legacy.Off && (in.CodeColumn == nil || s.Columns[s.Code] != string(*in.CodeColumn) || len(asked) > 1 && len(in.CodeColumns) != len(asked)) {
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
	choice.Profile, choice.ByDomain = in.Profile, r.terms.Beyond.ByDomain()
	if b := r.terms.Beyond; b != nil {
		choice.DefaultDomain = b.DefaultDomain
	}
	if r.codes.mode == legacy.Off {
		return
	}
	choice.Legacy, choice.Profile = true, cmp.Or(in.Profile, profile.None)
	given, _ := r.asked().GivenCodes()
	names := in.CodeColumns
	if len(names) == 0 && in.CodeColumn != nil {
		names = manifest.Columns{*in.CodeColumn}
	}
	if len(given) > 0 || in.Profile == "" {
		for i, name := range names {
			var c profile.Column
			if i < len(given) {
				c = profile.ParseColumn(given[i])
			}
			c.Name = string(name)
			choice.Codes = append(choice.Codes, c.String())
		}
	}
	if in.KindColumn != nil {
		choice.Map = map[string]string{string(profile.Kind): string(*in.KindColumn)}
	}
}

// asked returns what the run was told about columns of codes.
func (r *run) asked() *columns.Choice {
	return &columns.Choice{CodeColumn: r.terms.CodeFrom, Map: r.terms.Map}
}

// input returns the description of an input; nil: there is none.
func (c *codes) input(i int) *columns.Table {
	if c.inputs == nil {
		return nil
	}
	return c.inputs[i]
}

// many reports whether a row of an input may have become several.
func (c *codes) many(input int) bool {
	return c.mode != legacy.Off && c.inputs[input] != nil && c.inputs[input].ManyCodes()
}

// anyMany reports whether a row of any input may have become several.
func (c *codes) anyMany() bool {
	return slices.ContainsFunc(c.inputs, func(in *columns.Table) bool { return in != nil && in.ManyCodes() })
}

// asKept returns a legacy code as the workspaces of the run have it; nil: none.
func (c *codes) asKept(code []byte) []byte {
	if !c.fold || code == nil {
		return code
	}
	return legacy.Fold(make([]byte, 0, len(code)), code)
}

// owns reports whether a row has its own legacy code. Any other has that of the link of its URL.
func (c *codes) owns(r *readback.MappingRow) bool {
	return r.Legacy != nil && bytes.Equal(c.asKept(r.Legacy), r.Code)
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
