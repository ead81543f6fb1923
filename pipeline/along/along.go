// Package along says what goes along with the links of an input: what they were elsewhere
// (package attrs), and when they were created. Both are made of the carried cells of a row. It also
// asks package hygiene what the store cannot keep of them, and counts what the rows tell.
package along

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline/attrs"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/profile"
)

// An Along is that of an input. The zero value is nothing. It does not change.
type Along struct {
	columns map[string][]int // of the input, by attribute
	fields  []attrs.Field    // by name
	cells   [][]int          // of each: numbers of carried cells, of which the first that is not blank counts
	created []int            // likewise
	in      *columns.Table

	hygiene    hygiene.Columns
	hasDomains bool // columns may tell the domains of rows
}

// Words of the option --attrs that name no column.
const (
	None    = "none"
	Profile = "profile" // the columns of the roles below
)

// forms are those of the attributes that have a role.
var forms = map[profile.Role]attrs.Form{
	profile.Title: attrs.Text, profile.Tags: attrs.Tags, profile.CreatedAt: attrs.Time, profile.Clicks: attrs.Count,
	profile.Redirect: attrs.Redirect, profile.Mean: attrs.Mean,
}

// IsRole reports whether the columns of a role are attributes.
func IsRole(role profile.Role) bool {
	_, ok := forms[role]
	return ok
}

// Parse checks the option --attrs: none, or columns by name or number, among which may be profile.
func Parse(option string) (roles bool, columns []string, err error) {
	if option == None {
		return false, nil, nil
	}
	for word := range strings.SplitSeq(option, ",") {
		switch word {
		case "", None:
			return false, nil, fmt.Errorf("%q is not none, or a list of columns and profile", option)
		case Profile:
			roles = true
		default:
			columns = append(columns, word)
		}
	}
	return roles, columns, nil
}

// Find finds the columns of an input that go along, and notes which of the names it found. Names
// of columns that the input does not have are no error. Carried are the columns of Layout.Carried.
func Find(in *columns.Table, carried []int, roles bool, names []string, found map[string]bool) (a Along, err error) {
	of := map[string][]int{}
	if roles {
		for role := range forms {
			of[string(role)] = in.Roles[role]
		}
		of[string(profile.Redirect)] = slices.Concat(in.Roles[profile.Redirect], in.Roles[profile.Status])
		for _, c := range in.Members() {
			of[in.Member(c)] = []int{c}
		}
	}
	named := map[string]bool{}
	for _, name := range names {
		c := in.Column(name)
		if c < 0 {
			continue
		}
		if in.IsKey(c) {
			return a, &columns.UsageError{Input: in.Name, Msg: fmt.Sprintf("the column %q of Config.Attrs has the URLs or the workspaces, which the store has anyway", name)}
		}
		attribute := attribute(in, c)
		if other := of[attribute]; named[attribute] && other[0] != c {
			return a, &columns.UsageError{Input: in.Name, Msg: fmt.Sprintf("Config.Attrs has two columns for %s: %q and %q", attribute, in.Columns[other[0]], in.Columns[c])}
		}
		found[name], named[attribute] = true, true
		of[attribute] = []int{c}
	}
	return New(in, carried, of), nil
}

// attribute names the attribute that a column is: like its role, or else like the column.
func attribute(in *columns.Table, c int) string {
	roles := slices.Sorted(maps.Keys(forms))
	if i := slices.IndexFunc(roles, func(role profile.Role) bool { return slices.Contains(in.Roles[role], c) }); i >= 0 {
		return string(roles[i])
	}
	if i := slices.IndexFunc(roles, func(role profile.Role) bool { return profile.Fold(in.Columns[c]) == profile.Fold(string(role)) }); i >= 0 {
		return string(roles[i])
	}
	return in.Columns[c]
}

// New returns what goes along if the columns of each attribute are known.
func New(in *columns.Table, carried []int, of map[string][]int) Along {
	numbers := func(columns []int) (cells []int) {
		for _, c := range columns {
			if n := slices.Index(carried, c); n >= 0 {
				cells = append(cells, n)
			}
		}
		return cells
	}
	separator := ""
	if p := profile.Named(in.Profile); p != nil {
		separator = p.Tags
	}
	a := Along{columns: map[string][]int{}, created: numbers(createdColumns(in)), in: in, hasDomains: in.HasDomains(), hygiene: hygiene.Columns{
		Password: in.Roles[profile.Password], Archived: in.Roles[profile.Archived], Enabled: in.Roles[profile.Enabled],
		Regex: in.Roles[profile.Regex], Targets: in.Roles[profile.Targets], Expires: in.Roles[profile.Expires],
		Domains: in.HasDomains(), Starts: in.Roles[profile.Starts], Limits: in.Roles[profile.MaxUses], Clicks: in.Roles[profile.Clicks],
		Redirects: in.Roles[profile.Redirect], Status: in.Roles[profile.Status],
	}}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if cells := numbers(of[name]); len(cells) > 0 {
			a.columns[name] = of[name]
			a.fields = append(a.fields, attrs.Field{Name: name, Form: forms[profile.Role(name)], Separator: separator})
			a.cells = append(a.cells, cells)
		}
	}
	return a
}

// createdColumns are the columns that say when a link was created: bulk's own, or else that of the
// system that the link comes from.
func createdColumns(in *columns.Table) []int {
	return slices.Concat(in.Roles[profile.Stored], in.Roles[profile.CreatedAt])
}

// badCreated returns the cell that is to say when a row's link was created, if it does not say so in
// a way that is understood; nil: there is none.
func (a *Along) badCreated(cell func(column int) []byte) []byte {
	text := firstOf(a.in, createdColumns(a.in), cell)
	if _, ok := profile.ParseTime(text); ok {
		return nil
	}
	return text
}

// firstOf returns the first cell that is not blank; nil: there is none.
func firstOf(in *columns.Table, numbers []int, cell func(n int) []byte) []byte {
	for _, n := range numbers {
		if cell := cell(n); !in.IsBlank(cell) {
			return cell
		}
	}
	return nil
}

// Columns returns the columns of each attribute.
func (a *Along) Columns() map[string][]int { return a.columns }

// Hygiene returns the columns that package hygiene looks at.
func (a *Along) Hygiene() *hygiene.Columns { return &a.hygiene }

// Seen returns the kinds that the columns of the input, or the rules, tell.
func (a *Along) Seen(rules *hygiene.Rules) hygiene.Set { return rules.Seen(&a.hygiene) }

// HasCreated reports whether a column tells when links were created.
func (a *Along) HasCreated() bool { return len(a.created) > 0 }

// AppendAttrs appends the attributes of a row's link, of which the carried cells are given; nothing
// if it has none.
func (a *Along) AppendAttrs(dst []byte, carried [][]byte) []byte {
	return attrs.Append(dst, a.fields, func(n int) []byte {
		cell := firstOf(a.in, a.cells[n], func(c int) []byte { return carried[c] })
		if string(cell) == "0" && a.fields[n].Form == attrs.Count && a.isUses(n, carried) {
			return nil // of a link that nobody has counted uses of
		}
		return cell
	})
}

// isUses reports whether the cell of a field is that of the uses that bulk exports.
func (a *Along) isUses(field int, carried [][]byte) bool {
	for i, c := range a.columns[a.fields[field].Name] {
		if i < len(a.cells[field]) && !a.in.IsBlank(carried[a.cells[field][i]]) {
			return a.in.Profile == "bulk" && a.in.Columns[c] == "access_count"
		}
	}
	return false
}

// Created returns when a row's link was created, of which the carried cells are given, in whole
// microseconds; zero: they do not tell.
func (a *Along) Created(carried [][]byte) time.Time {
	at, _ := profile.ParseTime(firstOf(a.in, a.created, func(c int) []byte { return carried[c] }))
	return at.Truncate(time.Microsecond)
}
