package verify

import (
	"slices"

	"github.com/linkforge/bulk/pipeline/along"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/profile"
)

// migration is what the manifest says of what links were beyond code and URL.
type migration struct {
	along []*along.Along // of each input; nil: it has no columns
}

// readMigration reads it, and calls bad with what no run writes.
func (r *run) readMigration(bad func(field string, expected, got any)) {
	m := r.manifest
	if (r.terms.Beyond != nil) != (m.Migration != nil) {
		bad("migration", "there if, and only if, options has hygiene", m.Migration != nil)
	}
	if r.terms.Beyond != nil {
		r.migration.along = make([]*along.Along, len(m.Inputs))
	}
}

// setRoles gives an input the roles of its columns that the manifest has.
func (r *run) setRoles(in *columns.Table, m *manifest.Input) {
	if r.terms.Beyond == nil {
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
	if r.terms.Beyond == nil {
		return
	}
	attributes := map[string][]int{}
	for attribute, names := range m.Attrs {
		attributes[attribute] = numbers(in, names)
	}
	a := along.New(in, r.columns.Find(in).Carried, attributes)
	r.migration.along[i] = &a
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

// workspaceOf returns the workspace of a row that has this cell of the workspace column, and a
// code of this domain.
func (r *run) workspaceOf(cell, domain []byte) []byte {
	switch {
	case r.terms.Beyond.ByDomain():
		return legacy.AppendWorkspace(nil, r.workspace, domain)
	case len(cell) > 0:
		return cell
	}
	return r.workspace
}
