package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/linkforge/bulk/pipeline/profile"
)

// ParseMap parses Options.Map from a list such as code=path(old_url),url=2.
func ParseMap(text string) (map[string]string, error) {
	m := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		role, column, ok := strings.Cut(part, "=")
		switch {
		case !ok || column == "":
			return nil, fmt.Errorf("%q is not ROLE=COLUMN (give a column that has a comma in its name by its number)", part)
		case m[role] != "":
			return nil, fmt.Errorf("%q is given twice", role)
		}
		m[role] = column
	}
	return m, checkMap(m)
}

// mapped are the roles that Options.Map may have: first those that each run uses.
var mapped = []profile.Role{profile.URL, profile.Code, profile.Workspace, profile.Kind,
	profile.Domain, profile.Title, profile.Tags, profile.CreatedAt, profile.Clicks, profile.Password, profile.Archived, profile.Regex, profile.Targets}

// extraRoles are the roles of Input.Roles: those of Options.Map, and some that only profiles know.
var extraRoles = slices.Concat(mapped[4:], []profile.Role{profile.Expires, profile.Enabled, profile.Stored, profile.IP})

// paramRoles are the roles of Input.Params.
var paramRoles = []profile.Role{profile.Expires, profile.MaxUses, profile.LinkType, profile.Owner, profile.Ref}

// settleParams finds the columns of the parameters of link rules: those of Options.Map, or else of
// the profile, or else those that have a known name.
func (in *Input) settleParams() error {
	in.Params = map[profile.Role]int{}
	for _, role := range paramRoles {
		i, err := in.settleColumn(role)
		if i < 0 && err == nil {
			i, err = in.namedParam(role)
		}
		if err != nil {
			return err
		}
		if i >= 0 && !in.IsKey(i) {
			in.Params[role] = i
		}
	}
	return nil
}

// namedParam finds the only column that is called like a parameter, or else the only one that has
// another known name of it; -1: there is none.
func (in *Input) namedParam(role profile.Role) (int, error) {
	var exact, others []int
	for i, name := range in.header {
		switch {
		case in.IsKey(i):
		case name == string(role):
			exact = append(exact, i)
		case profile.ParamOf(name) == role:
			others = append(others, i)
		}
	}
	found := exact
	if len(found) == 0 {
		found = others
	}
	switch {
	case len(found) == 0:
		return -1, nil
	case len(found) == 1:
		return found[0], nil
	}
	do := fmt.Sprintf("Give the right one with --map %s=COLUMN, by name or number", role)
	if in.Format == "rejects" {
		do = "Make a file of the rows of each source, without the columns that are blank in all of them, or g" + do[1:]
	}
	return 0, in.usage(fmt.Sprintf("the columns %q and %q can both be %s. %s", in.Columns[found[0]], in.Columns[found[1]], role, do))
}

// HasParams reports whether a column has a parameter of link rules other than a reference.
func (in *Input) HasParams() bool {
	for role := range in.Params {
		if role != profile.Ref {
			return true
		}
	}
	return false
}

// MayLackParams reports whether the columns of parameters may be missing although they were not
// forgotten: objects in JSON have only the members that they need, and neither what bulk has
// exported nor its rejects are written by hand.
func (in *Input) MayLackParams() bool {
	known, _ := profile.Detect(in.header)
	return in.Blank || in.Format == "json" || in.Format == "rejects" || known != nil && known.Name == bulkExport
}

// bulkExport is the profile of what bulk export writes.
const bulkExport = "bulk"

// ParamsLike returns the flags that would make parameters of columns that look like them.
func (in *Input) ParamsLike() (flags []string) {
	for i, name := range in.header {
		role := profile.ParamLike(name)
		if _, has := in.Params[role]; role == "" || has || in.IsKey(i) || in.IsCode(i) {
			continue
		}
		if name = in.Columns[i]; strings.ContainsAny(name, ",'") || in.Column(name) != i {
			name = strconv.Itoa(i + 1)
		}
		flag := string(role) + "=" + name
		if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }) {
			flag = "'" + flag + "'" // for a shell
		}
		flags = append(flags, "--map "+flag)
	}
	return flags
}

// NoParams says that the input has no column of parameters, and what to do.
func (in *Input) NoParams() string {
	text := "link rules are asked for, but no column is known to have expiry, use limit, type or owner of links. "
	if like := in.ParamsLike(); len(like) > 0 {
		return text + "Perhaps it is " + strings.Join(like, " or ")
	}
	return text + "Give it with --map, such as --map expires_at=COLUMN, or give all rows the same, such as --expires-in 90d"
}

// Usage makes a usage error that lists the columns.
func (in *Input) Usage(msg string) error { return in.usage(msg) }

// MapRoles returns the names of the roles that Options.Map may have.
func MapRoles() (names []string) {
	for _, role := range slices.Concat(mapped, paramRoles) {
		names = append(names, string(role))
	}
	return names
}

// MapsExtra reports whether Options.Map has a role of Input.Roles that is no parameter.
func (o *Options) MapsExtra() bool { return o.maps(mapped[4:]) }

// MapsParams reports whether Options.Map has a role of Input.Params.
func (o *Options) MapsParams() bool { return o.maps(paramRoles) }

func (o *Options) maps(roles []profile.Role) bool {
	return slices.ContainsFunc(roles, func(role profile.Role) bool { return o.Map[string(role)] != "" })
}

func checkMap(m map[string]string) error {
	for role := range m {
		if !slices.Contains(MapRoles(), role) {
			return fmt.Errorf("%q is not one of %s", role, strings.Join(MapRoles(), ", "))
		}
	}
	return nil
}

// checkProfile checks the options that have to do with profiles.
func (o *Options) checkProfile() error {
	if o.named() && profile.Named(o.Profile) == nil {
		return fmt.Errorf("there is no profile %q; see bulk profiles", o.Profile)
	}
	return checkMap(o.Map)
}

// named says whether a profile is given by its name.
func (o *Options) named() bool {
	return o.Profile != "" && o.Profile != profile.Auto && o.Profile != profile.None
}

// detects says whether the profile of a file is detected, unless it is given by its name.
func (o *Options) detects() bool { return (o.Legacy || o.Roles) && o.Profile != profile.None }

// asked returns the column that the options give for a role, and by what; "": none.
func (o *Options) asked(role profile.Role) (want, option string) {
	switch role {
	case profile.URL:
		want = o.URLColumn
	case profile.Workspace:
		want = o.WorkspaceColumn
	case profile.Code:
		want = o.CodeColumn
	}
	if o.ByCode && want == NoColumn {
		return "", ""
	}
	if want != "" {
		return want, "--" + string(role) + "-column"
	}
	return o.Map[string(role)], "--map " + string(role)
}

// key returns the name or number of the column by which rows are known, if the options give it.
func (o *Options) key() string {
	want, _ := o.asked(profile.URL)
	if want == "" && o.ByCode {
		code, _ := o.asked(profile.Code)
		want = profile.ParseColumn(code).Name
	}
	return want
}

// HasWorkspaces says whether a file may have a column of workspaces.
func (o *Options) HasWorkspaces() bool {
	return o.WorkspaceColumn != "" || o.Map[string(profile.Workspace)] != "" || o.named() || o.detects()
}

// profiles says whether a file may be taken for what p describes.
func (o *Options) profiles(p *profile.Profile) bool {
	if o.named() {
		return o.Profile == p.Name
	}
	return o.Profile != profile.None && (o.Legacy || o.Roles || len(o.Map) > 0)
}

// isExport says whether a first record has the columns of the profile that is given, or of any if
// one is to be detected.
func (in *Input) isExport(cells []string) bool {
	if in.opts.named() {
		return len(columnsOf(profile.Named(in.opts.Profile), profile.URL, cells)) > 0
	}
	if !in.opts.detects() {
		return false
	}
	p, _ := profile.Detect(cells)
	return p != nil
}

// settleProfile finds the profile, unless the format told it.
func (in *Input) settleProfile() {
	switch {
	case in.profile != nil:
	case in.opts.named():
		in.profile = profile.Named(in.opts.Profile)
	case in.opts.detects():
		p, strange := profile.Detect(in.header)
		if in.profile = p; strange != nil {
			in.profile = nil
			in.doubt = fmt.Sprintf("has the columns of the profile %s, but also %.60q, where URLs or codes may be. "+
				"Choose with --profile, or give the columns with --map", p.Name, strange)
		}
	}
	if in.profile != nil {
		in.Profile = in.profile.Name
	}
}

// A codeColumn is a column from which codes are cut.
type codeColumn struct {
	column int // in Input.Columns
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
func (in *Input) known(role profile.Role) []codeColumn {
	if in.profile == nil {
		return nil
	}
	return columnsOf(in.profile, role, in.header)
}

// lacks says that the file has no column that has a role by the profile.
func (in *Input) lacks(role profile.Role, what string) string {
	var names []string
	for _, c := range in.profile.Of(role) {
		names = append(names, fmt.Sprintf("%q", c.Name))
	}
	return fmt.Sprintf("has no column %s, where the profile %s has its %s", strings.Join(names, " or "), in.Profile, what)
}

const (
	giveCodes = ". Give it with --code-column, by name or number; path(COLUMN) takes codes from the paths of URLs"
	noCodes   = "no column has a known name for codes" + giveCodes
)

// settleColumn finds the only column of a role; -1: there is none.
func (in *Input) settleColumn(role profile.Role) (int, error) {
	if want, option := in.opts.asked(role); want != "" {
		return in.column(want, option)
	}
	if found := in.known(role); len(found) > 0 {
		return found[0].column, nil
	}
	return -1, nil
}

// settleByCode finds the columns of codes by which rows are known, and those of URLs beside them. Of
// several in a rejects file, a row has a code in one at most.
func (in *Input) settleByCode() (found bool, err error) {
	if !in.opts.ByCode || in.opts.CodeColumn == NoColumn {
		return false, nil
	}
	given, err := in.settleGivenCodes()
	if err != nil {
		return false, err
	}
	if !given {
		for _, i := range namedColumns(in.header, profile.IsCodeName) {
			in.codes = append(in.codes, codeColumn{column: i})
		}
	}
	switch n := len(in.codes); {
	case n > 1 && in.Format != "rejects":
		return false, in.usage("more than one column has a known name for codes" + giveCodes)
	case n > 0:
		in.Code, in.URLs = in.codes[0].column, nil
		for _, c := range in.codes {
			in.URLs = append(in.URLs, c.column)
		}
		return true, in.settleBeside()
	case in.opts.URLColumn == NoColumn:
		return false, in.usage(noCodes)
	case in.opts.key() == "" && len(in.Columns) > 1 && len(namedColumns(in.header, profile.IsURLName)) == 0:
		return false, in.usage("no column has a known name for URLs or codes. Give it with --url-column or --code-column, by name (by number, if the file has no header)")
	}
	return false, nil
}

// settleBeside finds the columns of URLs beside those of codes.
func (in *Input) settleBeside() error {
	if in.opts.URLColumn == NoColumn {
		return nil
	}
	if want, option := in.opts.asked(profile.URL); want != "" {
		i, err := in.column(want, option)
		if err == nil && in.IsCode(i) {
			err = in.usage(fmt.Sprintf("%s %q has the codes", option, want))
		}
		in.Beside = []int{i}
		return err
	}
	in.Beside = slices.DeleteFunc(namedColumns(in.header, profile.IsURLName), in.IsCode)
	if len(in.Beside) > 1 && in.Format != "rejects" {
		return in.usage("more than one column has a known URL name. Give the right one with --url-column, by name or number; with --url-column none only the codes count")
	}
	return nil
}

// CutsPaths reports whether codes are cut out of URLs.
func (in *Input) CutsPaths() bool {
	return slices.ContainsFunc(in.codes, func(c codeColumn) bool { return c.Cut == profile.Path })
}

// settleGivenCodes takes the column of codes that the options give, if they do.
func (in *Input) settleGivenCodes() (given bool, err error) {
	want, option := in.opts.asked(profile.Code)
	if want == "" {
		return false, nil
	}
	c := profile.ParseColumn(want)
	i, err := in.column(c.Name, option)
	in.codes = []codeColumn{{i, c}}
	return true, err
}

// settleCodes finds the columns of codes.
func (in *Input) settleCodes() error {
	given, err := in.settleGivenCodes()
	switch {
	case err != nil:
		return err
	case given:
	case in.profile != nil:
		for _, c := range in.known(profile.Code) {
			if c.List || len(in.codes) == 0 {
				in.codes = append(in.codes, c)
			}
		}
		if in.codes == nil {
			return in.usage(in.lacks(profile.Code, "codes") + giveCodes)
		}
	case in.doubt != "":
		return in.usage(in.doubt)
	default:
		found := slices.DeleteFunc(namedColumns(in.header, profile.IsCodeName), in.IsKey)
		switch len(found) {
		case 0:
			return in.usage(noCodes)
		case 1:
			in.codes = []codeColumn{{column: found[0]}}
		default:
			return in.usage("more than one column has a known name for codes" + giveCodes)
		}
	}
	in.Code = in.codes[0].column
	return nil
}

// settleRoles finds the columns of the extra roles, and which columns are left out.
func (in *Input) settleRoles() error {
	roles := map[profile.Role][]int{}
	for _, role := range extraRoles {
		if want, option := in.opts.asked(role); want != "" {
			i, err := in.column(want, option)
			if err != nil {
				return err
			}
			roles[role] = []int{i}
			continue
		}
		for _, c := range in.known(role) {
			roles[role] = append(roles[role], c.column)
		}
	}
	if in.opts.Map[string(profile.CreatedAt)] != "" { // it counts first
		delete(roles, profile.Stored)
	}
	var left []int
	for role, columns := range roles {
		for _, c := range columns {
			if role.Personal() && !in.IsKey(c) && !in.IsCode(c) && !slices.ContainsFunc(in.opts.Along, func(name string) bool { return in.Column(name) == c }) {
				left = append(left, c)
			}
		}
	}
	in.SetRoles(roles, left)
	return nil
}

// SetRoles sets Roles and LeftOut, in place of what was found out.
func (in *Input) SetRoles(roles map[profile.Role][]int, leftOut []int) {
	in.Roles, in.LeftOut, in.domains = roles, leftOut, roles[profile.Domain]
}

// Column returns the column that an option with this text means; -1: none, or more than one.
func (in *Input) Column(text string) int {
	if i, err := in.column(text, ""); err == nil {
		return i
	}
	return -1
}

// Members returns the columns of which each is an attribute of its own, by the profile: those that
// it does not know.
func (in *Input) Members() (columns []int) {
	if in.profile == nil || !in.profile.Members {
		return nil
	}
	for c, name := range in.header {
		if !in.profile.Knows(name) && in.IsCarried(c) {
			columns = append(columns, c)
		}
	}
	return columns
}

// Member returns the name of the attribute that a column of Members is.
func (in *Input) Member(c int) string {
	if rest, ok := strings.CutPrefix(in.Columns[c], "attrs_"); ok && in.profile.Knows(rest) {
		return rest
	}
	return in.Columns[c]
}

// HasDomains reports whether the columns may tell the domains of rows.
func (in *Input) HasDomains() bool {
	return len(in.domains) > 0 || in.Roles != nil && slices.ContainsFunc(in.codes, func(c codeColumn) bool { return c.Cut == profile.Path })
}

// A Code is a legacy code of a row.
type Code struct {
	Text   []byte
	Domain []byte // that it belongs to, in lower case; nil: not known, or Options.Roles is not set
}

// Codes appends the legacy codes of row i of a batch, without repeats: that of Code first, then
// those of lists in their order. A blank cell has none. The texts are parts of cells, except those
// of lists.
func (in *Input) Codes(dst []Code, cells Cells, i int) []Code {
	return in.CodesOf(dst, func(c int) []byte { return cells.Cell(c, i) })
}

// CodesOf does what Codes does, for a row whose cells are given by their column.
func (in *Input) CodesOf(dst []Code, cellOf func(c int) []byte) []Code {
	first, domain := len(dst), in.Domain(cellOf)
	for _, c := range in.codes {
		cell := cellOf(c.column)
		switch {
		case in.IsBlank(cell):
		case !c.List:
			dst = in.addCode(dst, first, &c, cell, domain)
		default:
			for _, element := range profile.Cells(cell) {
				dst = in.addCode(dst, first, &c, element, domain)
			}
		}
	}
	return dst
}

// Domain returns the domain of a row as its column of domains has it, in lower case; empty: it is
// blank; nil: there is no such column.
func (in *Input) Domain(cellOf func(c int) []byte) []byte {
	if len(in.domains) == 0 {
		return nil
	}
	for _, c := range in.domains {
		if cell := cellOf(c); !in.IsBlank(cell) {
			return profile.DomainOf(cell)
		}
	}
	return []byte{}
}

// IsBlank reports whether a cell has nothing: in some exports null is written as a text.
func (in *Input) IsBlank(cell []byte) bool {
	return len(cell) == 0 || in.profile != nil && in.profile.Null && string(cell) == "null"
}

// Mapped returns the columns that have a role in the run, by their names in Columns: those of URLs
// and codes, that of the workspace, that of kinds, those of Roles, those of Params.
func (in *Input) Mapped() (list []profile.Column) {
	add := func(i int, c profile.Column, role profile.Role) {
		if i >= 0 {
			c.Name, c.Role = in.Columns[i], role
			list = append(list, c)
		}
	}
	for _, i := range in.URLs {
		add(i, profile.Column{}, profile.URL)
	}
	for _, c := range in.codes {
		add(c.column, c.Column, profile.Code)
	}
	add(in.Workspace, profile.Column{}, profile.Workspace)
	add(in.Kind, profile.Column{}, profile.Kind)
	for _, role := range extraRoles {
		for _, i := range in.Roles[role] {
			add(i, profile.Column{}, role)
		}
	}
	for _, role := range paramRoles {
		if i, ok := in.Params[role]; ok && !slices.Contains(in.Roles[role], i) {
			add(i, profile.Column{}, role)
		}
	}
	return list
}

// addCode appends the code in a cell of a column, unless it is empty or in dst[first:]. Without a
// column of domains, the domain is the host of the cell.
func (in *Input) addCode(dst []Code, first int, c *codeColumn, cell, domain []byte) []Code {
	if in.opts.ByCode && c.Cut == profile.Path {
		cell = bytes.TrimSpace(cell) // as around any URL; a run keeps what it is given
	}
	code := Code{c.Cut.Of(cell), domain}
	if domain == nil && in.Roles != nil && c.Cut == profile.Path {
		code.Domain = profile.HostOf(cell)
	}
	if len(code.Text) == 0 || slices.ContainsFunc(dst[first:], func(other Code) bool {
		return bytes.Equal(other.Text, code.Text) && (!in.opts.ByDomain || bytes.Equal(other.Domain, code.Domain))
	}) {
		return dst
	}
	return append(dst, code)
}

// ManyCodes reports whether a row may have several codes.
func (in *Input) ManyCodes() bool {
	return len(in.codes) > 1 || slices.ContainsFunc(in.codes, func(c codeColumn) bool { return c.List })
}

// Describe returns an input of a format that has these columns, and finds those of URLs, codes
// and so on as Open does. It cannot be read.
func Describe(name, format string, columns []string, opts Options) (*Input, error) {
	in := &Input{Name: name, Format: format, Workspace: -1, Code: -1, Kind: -1, opts: opts}
	return in, in.setColumns(columns)
}

// IsCode reports whether codes are taken from column c. It is a carried column nevertheless.
func (in *Input) IsCode(c int) bool {
	return slices.ContainsFunc(in.codes, func(code codeColumn) bool { return code.column == c })
}

// VariantCells returns, by the columns of codes, the cells of a row that has only this one of the
// codes of a row: if they are read again in place of those of the row, Codes gives just this code.
func (in *Input) VariantCells(code Code) map[int][]byte {
	cells := make(map[int][]byte, len(in.codes))
	for i, c := range in.codes {
		var list []string
		if i == 0 {
			var host []byte
			if c.Cut == profile.Path {
				host = bytes.Clone(code.Domain)
			}
			cells[c.column] = c.Cut.Cell(host, code.Text)
			list = []string{string(cells[c.column])}
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
