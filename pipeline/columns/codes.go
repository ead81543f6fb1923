package columns

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/profile"
)

// settleProfile finds the profile, unless the format told it.
func (t *Table) settleProfile() {
	switch {
	case t.Known != nil:
	case t.choice.named():
		t.Known = profile.Named(t.choice.Profile)
	case t.choice.detects():
		p, strange := profile.Detect(t.header)
		if t.Known = p; strange != nil {
			t.Known = nil
			t.doubt = fmt.Sprintf("has the columns of the profile %s, but also %.60q, where URLs or codes may be. "+
				"Choose with Options.Profile, or give the columns with Options.Map", p.Name, strange)
		}
	}
	if t.Known != nil {
		t.Profile = t.Known.Name
	}
}

// A codeColumn is a column from which codes are cut.
type codeColumn struct {
	column int // in Table.Columns
	profile.Column
}

// columnsOf returns the columns of a header that have a role.
func columnsOf(p *profile.Profile, role profile.Role, header []string) (found []codeColumn) {
	for _, c := range p.Of(role) {
		if i := slices.Index(header, c.Name); i >= 0 { // rather than another one that is spelled alike
			found = append(found, codeColumn{i, c})
			continue
		}
		for i, name := range header {
			if !c.Is(name) {
				continue
			}
			if found = append(found, codeColumn{i, c}); !c.Many() {
				break
			}
		}
	}
	return found
}

// known returns the columns that have a role by the profile.
func (t *Table) known(role profile.Role) []codeColumn {
	if t.Known == nil {
		return nil
	}
	return columnsOf(t.Known, role, t.header)
}

// lacks says that the file has no column that has a role by the profile.
func (t *Table) lacks(role profile.Role, what string) string {
	var names []string
	for _, c := range t.Known.Of(role) {
		names = append(names, fmt.Sprintf("%q", c.Name))
	}
	return fmt.Sprintf("has no column %s, where the profile %s has its %s", strings.Join(names, " or "), t.Profile, what)
}

const (
	giveCodes = ". Give it with Options.CodeColumn, by name or number; path(COLUMN) takes codes from the paths of URLs"
	noCodes   = "no column has a known name for codes" + giveCodes
)

// settleColumn finds the only column of a role; -1: there is none.
func (t *Table) settleColumn(role profile.Role) (int, error) {
	if want, option := t.choice.asked(role); want != "" {
		return t.column(want, option)
	}
	if found := t.known(role); len(found) > 0 {
		return found[0].column, nil
	}
	return -1, nil
}

// settleByCode finds the columns of codes by which rows are known, and those of URLs beside them. Of
// several in a rejects file, a row has a code in one at most.
func (t *Table) settleByCode() (found bool, err error) {
	if !t.choice.ByCode || t.choice.CodeColumn == NoColumn {
		return false, nil
	}
	given, err := t.settleGivenCodes()
	if err != nil {
		return false, err
	}
	if !given {
		for _, i := range namedColumns(t.header, profile.IsCodeName) {
			t.codes = append(t.codes, codeColumn{column: i})
		}
	}
	switch n := len(t.codes); {
	case n > 1 && t.Format != "rejects":
		return false, t.Usage("more than one column has a known name for codes" + giveCodes)
	case n > 0:
		t.Code, t.URLs = t.codes[0].column, nil
		for _, c := range t.codes {
			t.URLs = append(t.URLs, c.column)
		}
		return true, t.settleBeside()
	case t.choice.URLColumn == NoColumn:
		return false, t.Usage(noCodes)
	case t.choice.key() == "" && len(t.Columns) > 1 && len(namedColumns(t.header, profile.IsURLName)) == 0:
		return false, t.Usage("no column has a known name for URLs or codes. Give it with Options.URLColumn or Options.CodeColumn, by name (by number, if the file has no header)")
	}
	return false, nil
}

// settleBeside finds the columns of URLs beside those of codes.
func (t *Table) settleBeside() error {
	if t.choice.URLColumn == NoColumn {
		return nil
	}
	if want, option := t.choice.asked(profile.URL); want != "" {
		i, err := t.column(want, option)
		if err == nil && t.IsCode(i) {
			err = t.Usage(fmt.Sprintf("%s %q has the codes", option, want))
		}
		t.Beside = []int{i}
		return err
	}
	t.Beside = slices.DeleteFunc(namedColumns(t.header, profile.IsURLName), t.IsCode)
	if len(t.Beside) > 1 && t.Format != "rejects" {
		return t.Usage("more than one column has a known URL name. Give the right one with Options.URLColumn, by name or number; with Options.URLColumn none only the codes count")
	}
	return nil
}

// CutsPaths reports whether codes are cut out of URLs.
func (t *Table) CutsPaths() bool {
	return slices.ContainsFunc(t.codes, func(c codeColumn) bool { return c.Cut.HasPath() })
}

// settleGivenCodes takes the columns of codes that the choice gives, if it does.
func (t *Table) settleGivenCodes() (given bool, err error) {
	list, option := t.choice.GivenCodes()
	for _, want := range list {
		c := profile.ParseColumn(want)
		i, err := t.column(c.Name, option)
		if err == nil && t.IsCode(i) {
			err = t.Usage(fmt.Sprintf("%s: the column %q is given twice", option, t.Columns[i]))
		}
		if err != nil {
			return true, err
		}
		t.codes = append(t.codes, codeColumn{i, c})
	}
	return len(list) > 0, nil
}

// settleCodes finds the columns of codes.
func (t *Table) settleCodes() error {
	given, err := t.settleGivenCodes()
	switch {
	case err != nil:
		return err
	case given:
	case t.Known != nil:
		for _, c := range t.known(profile.Code) {
			if c.List || len(t.codes) == 0 || t.Known.Every {
				t.codes = append(t.codes, c)
			}
		}
		if t.codes == nil {
			return t.Usage(t.lacks(profile.Code, "codes") + giveCodes)
		}
	case t.doubt != "":
		return t.Usage(t.doubt)
	default:
		found := slices.DeleteFunc(namedColumns(t.header, profile.IsCodeName), t.IsKey)
		switch len(found) {
		case 0:
			return t.Usage(noCodes)
		case 1:
			t.codes = []codeColumn{{column: found[0]}}
		default:
			return t.Usage("more than one column has a known name for codes" + giveCodes)
		}
	}
	t.Code = t.codes[0].column
	return nil
}

// settleRoles finds the columns of the extra roles, and which columns are left out.
func (t *Table) settleRoles() error {
	roles := map[profile.Role][]int{}
	for _, role := range extraRoles {
		if want, option := t.choice.asked(role); want != "" {
			i, err := t.column(want, option)
			if err != nil {
				return err
			}
			roles[role] = []int{i}
			continue
		}
		for _, c := range t.known(role) {
			roles[role] = append(roles[role], c.column)
		}
	}
	t.addJudged(roles)
	if t.choice.Map[string(profile.CreatedAt)] != "" { // it counts first
		delete(roles, profile.Stored)
	}
	var left []int
	for role, columns := range roles {
		for _, c := range columns {
			if role.Personal() && !t.IsKey(c) && !t.IsCode(c) && !slices.ContainsFunc(t.choice.Along, func(name string) bool { return t.Column(name) == c }) {
				left = append(left, c)
			}
		}
	}
	t.SetRoles(roles, left)
	return nil
}

// addJudged adds to the columns that tell what the store cannot keep of a link, or when it ends, those
// that are known to do so whoever wrote them.
func (t *Table) addJudged(roles map[profile.Role][]int) {
	has := map[int]bool{}
	for _, columns := range roles {
		for _, c := range columns {
			has[c] = true
		}
	}
	for c, name := range t.header {
		role := profile.RoleOf(name)
		switch role {
		case profile.Password, profile.Archived, profile.Enabled, profile.Regex, profile.Targets, profile.Starts, profile.Expires, profile.MaxUses, profile.Redirect:
			if want, _ := t.choice.asked(role); want == "" && !has[c] && !t.IsKey(c) && !t.IsCode(c) {
				roles[role] = append(roles[role], c)
			}
		}
		if profile.IsStatus(name) && !has[c] && !t.IsKey(c) && !t.IsCode(c) {
			roles[profile.Status] = append(roles[profile.Status], c)
		}
	}
	if len(roles[profile.MaxUses]) > 0 && len(roles[profile.Clicks]) == 0 { // who has reached the limit
		for c, name := range t.header {
			if profile.RoleOf(name) == profile.Clicks && !has[c] && !t.IsKey(c) && !t.IsCode(c) {
				roles[profile.Clicks] = append(roles[profile.Clicks], c)
			}
		}
	}
}

// Unused returns the columns that are known to say something of a link and that nothing uses, as flags
// that would use them. If none says when a link ends, those that may do so are among them.
func (t *Table) Unused() (flags []string) {
	if t.Format == "rejects" {
		return nil
	}
	used := map[int]bool{t.Workspace: true, t.Kind: true}
	for _, columns := range t.Roles {
		for _, c := range columns {
			used[c] = true
		}
	}
	for _, c := range t.Params {
		used[c] = true
	}
	_, ends := t.Params[profile.Expires]
	ends = ends || len(t.Roles[profile.Expires]) > 0
	for c, name := range t.header {
		role := profile.RoleOf(name)
		if role == "" && !ends && profile.ParamLike(name) == profile.Expires {
			role = profile.Expires
		}
		if role != "" && role != profile.Ref && !used[c] && !t.IsKey(c) && !t.IsCode(c) && (t.Known == nil || !t.Known.Knows(name)) {
			flags = append(flags, t.mapFlag(role, c))
		}
	}
	return flags
}

// LooksLike returns the program whose export the input seems to be, if nobody has asked for its codes;
// nil: none.
func (t *Table) LooksLike() *profile.Profile {
	if t.choice.Legacy || t.choice.Roles || t.choice.Profile != "" || len(t.choice.Map) > 0 || t.Format == "rejects" {
		return nil
	}
	p, _ := profile.Detect(t.header)
	return p
}

// SetRoles sets Roles and LeftOut, in place of what was found out.
func (t *Table) SetRoles(roles map[profile.Role][]int, leftOut []int) {
	t.Roles, t.LeftOut, t.domains, t.given = roles, leftOut, roles[profile.Domain], []byte(t.choice.DefaultDomain)
}

// Column returns the column that an option with this text means; -1: none, or more than one.
func (t *Table) Column(text string) int {
	if i, err := t.column(text, ""); err == nil {
		return i
	}
	return -1
}

// Members returns the columns of which each is an attribute of its own, by the profile: those that
// it does not know.
func (t *Table) Members() (columns []int) {
	if t.Known == nil || !t.Known.Members {
		return nil
	}
	for c, name := range t.header {
		if !t.Known.Knows(name) && t.IsCarried(c) {
			columns = append(columns, c)
		}
	}
	return columns
}

// Member returns the name of the attribute that a column of Members is.
func (t *Table) Member(c int) string {
	if rest, ok := strings.CutPrefix(t.Columns[c], "attrs_"); ok && t.Known.Knows(rest) {
		return rest
	}
	return t.Columns[c]
}

// HasDomains reports whether the columns, or Choice.DefaultDomain, may tell the domains of rows.
func (t *Table) HasDomains() bool {
	return len(t.domains) > 0 || len(t.given) > 0 || t.Roles != nil && slices.ContainsFunc(t.codes, func(c codeColumn) bool { return c.Cut.HasPath() })
}

// A Code is a legacy code of a row.
type Code struct {
	Text   []byte
	Domain []byte // that it belongs to, in lower case; nil: not known, or Choice.Roles is not set
	Given  bool   // no cell tells Domain: it is Choice.DefaultDomain
	Slash  bool   // with Choice.ByCode: Text ends with a slash of a URL, and the code may be what is before it
}

// CodesOf appends the legacy codes of a row whose cells are given by their column, without repeats:
// that of Code first, then those of further columns and of lists in their order. A blank cell has none.
// The texts are parts of cells, except those of lists.
func (t *Table) CodesOf(dst []Code, cellOf func(c int) []byte) []Code {
	first, domain := len(dst), t.domain(cellOf)
	for _, c := range t.codes {
		cell := cellOf(c.column)
		switch {
		case t.IsBlank(cell):
		case !c.List:
			dst = t.addCode(dst, first, &c, cell, domain)
		default:
			for _, element := range profile.Cells(cell) {
				dst = t.addCode(dst, first, &c, element, domain)
			}
		}
	}
	return dst
}

// NoCode is the code of a row that has none: it tells the domain of the row.
func (t *Table) NoCode(cellOf func(c int) []byte) Code {
	code := Code{Domain: t.domain(cellOf)}
	t.giveDomain(&code)
	return code
}

// giveDomain gives a code the default domain, if it has none.
func (t *Table) giveDomain(c *Code) {
	if len(c.Domain) == 0 && len(t.given) > 0 {
		c.Domain, c.Given = t.given, true
	}
}

// domain returns the domain of a row as its column of domains has it, in lower case; empty: it is
// blank; nil: there is no such column.
func (t *Table) domain(cellOf func(c int) []byte) []byte {
	if len(t.domains) == 0 {
		return nil
	}
	for _, c := range t.domains {
		if cell := cellOf(c); !t.IsBlank(cell) {
			return profile.DomainOf(cell)
		}
	}
	return []byte{}
}

// IsBlank reports whether a cell has nothing: in some exports null is written as a text.
func (t *Table) IsBlank(cell []byte) bool {
	return len(cell) == 0 || t.Known != nil && t.Known.Null && string(cell) == "null"
}

// Mapped returns the columns that have a role in the run, by their names in Columns: those of URLs
// and codes, that of the workspace, that of kinds, those of Roles, those of Params.
func (t *Table) Mapped() (list []profile.Column) {
	add := func(i int, c profile.Column, role profile.Role) {
		if i >= 0 {
			c.Name, c.Role = t.Columns[i], role
			list = append(list, c)
		}
	}
	for _, i := range t.URLs {
		add(i, profile.Column{}, profile.URL)
	}
	for _, c := range t.codes {
		add(c.column, c.Column, profile.Code)
	}
	add(t.Workspace, profile.Column{}, profile.Workspace)
	add(t.Kind, profile.Column{}, profile.Kind)
	for _, role := range extraRoles {
		for _, i := range t.Roles[role] {
			add(i, profile.Column{}, role)
		}
	}
	for _, role := range paramRoles {
		if i, ok := t.Params[role]; ok && !slices.Contains(t.Roles[role], i) {
			add(i, profile.Column{}, role)
		}
	}
	return list
}

// addCode appends the code in a cell of a column, unless it is empty or in dst[first:]. Without a
// column of domains, the domain is the host of the cell.
func (t *Table) addCode(dst []Code, first int, c *codeColumn, cell, domain []byte) []Code {
	if t.choice.ByCode && c.Cut.HasPath() {
		cell = bytes.TrimSpace(cell) // as around any URL; a run keeps what it is given
	}
	code := Code{Text: c.Cut.Of(cell), Domain: domain}
	if path := profile.PathOf(cell); t.choice.ByCode && c.Cut == profile.Path && bytes.HasSuffix(path, []byte("/")) {
		code.Text, code.Slash = codegen.FromPath(path), true // a link may have just this code
	}
	if domain == nil && t.Roles != nil && c.Cut.HasPath() {
		code.Domain = profile.HostOf(cell)
	}
	t.giveDomain(&code)
	if len(code.Text) == 0 || slices.ContainsFunc(dst[first:], func(other Code) bool {
		return bytes.Equal(other.Text, code.Text) && (!t.choice.ByDomain || bytes.Equal(other.Domain, code.Domain))
	}) {
		return dst
	}
	return append(dst, code)
}

// ManyCodes reports whether a row may have several codes.
func (t *Table) ManyCodes() bool {
	return len(t.codes) > 1 || slices.ContainsFunc(t.codes, func(c codeColumn) bool { return c.List })
}

// CodeColumns returns the columns from which codes are taken, the first one first.
func (t *Table) CodeColumns() (list []int) {
	for _, c := range t.codes {
		list = append(list, c.column)
	}
	return list
}

// Names reports whether the cells of column c are names: codes, owners or workspaces. A number there
// means its value (profile.AppendNumber).
func (t *Table) Names(c int) bool {
	owner, ok := t.Params[profile.Owner]
	return c == t.Workspace || t.IsCode(c) || ok && c == owner
}

// IsCode reports whether codes are taken from column c. It is a carried column nevertheless.
func (t *Table) IsCode(c int) bool {
	return slices.ContainsFunc(t.codes, func(code codeColumn) bool { return code.column == c })
}

// VariantCells returns, by the columns of codes, the cells of a row that has only this one of the
// codes of a row: if they are read again in place of those of the row, CodesOf gives just this code.
func (t *Table) VariantCells(code Code) map[int][]byte {
	cells := make(map[int][]byte, len(t.codes))
	for i, c := range t.codes {
		var list []string
		if i == 0 {
			cells[c.column] = c.Cut.Cell(code.Domain, code.Text)
			list = []string{string(cells[c.column])}
		} else {
			cells[c.column] = []byte{}
		}
		if c.List {
			cells[c.column] = []byte("[]")
			if list != nil {
				cells[c.column], _ = json.Marshal(list) // strings have JSON
			}
		}
	}
	return cells
}
