package columns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/profile"
)

// A Choice says which columns are wanted. The zero value finds those of URLs by the usual names.
type Choice struct {
	URLColumn       string            // name, or 1-based number; "": that of the profile, or by the usual names
	WorkspaceColumn string            // name, or 1-based number; "": that of the profile
	CodeColumn      string            // name, or 1-based number, which may stand in path(…) and so on (see profile.ParseColumn); "": of the profile, or by the usual names
	Legacy          bool              // codes are wanted. Without it Code and Kind are -1
	ByCode          bool              // rows are known by their codes, if there is a column of codes: Code is set, URLs are the columns of codes, and Beside those of URLs. NoColumn in URLColumn or CodeColumn: such columns do not count. Not with Legacy
	Profile         string            // name of a profile; "none"; "" or "auto": that which is detected, if Legacy
	Map             map[string]string // column by role (MapRoles), as the three above; they count first, the profile last. Those of several columns of codes are joined by commas
	Codes           []string          // columns of codes in place of CodeColumn and Map; nil: as these say; not for a run
	Rules           bool              // columns of parameters are wanted: Table.Params
	Ends            bool              // of these only expiry and use limit are wanted, and in exports of bulk type and owner
	Roles           bool              // columns of extra roles are wanted: Table.Roles
	Along           []string          // columns with personal data that are not left out, by name or number; there may be others here
	DefaultDomain   string            // of rows whose cells tell none, as profile.DomainOf returns it; "": none
	ByDomain        bool              // equal codes of several domains are several codes of a row
	UniqueNames     bool              // the columns above are names of Table.Columns, not of the header; not for a run
	FirstURL        bool              // if two cells of a rejects row may be its URL, take the first, as earlier versions did
}

// NoColumn is the URLColumn or CodeColumn of Choice.ByCode that says that there is none.
const NoColumn = "none"

// ParseMap parses Choice.Map from a list such as code=path(old_url),url=2. The code may be given more
// than once.
func ParseMap(text string) (map[string]string, error) {
	m := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		role, column, ok := strings.Cut(part, "=")
		switch {
		case !ok || column == "":
			return nil, fmt.Errorf("%q is not ROLE=COLUMN (give a column that has a comma in its name by its number)", part)
		case m[role] != "" && role == string(profile.Code):
			column = m[role] + "," + column
		case m[role] != "":
			return nil, fmt.Errorf("%q is given twice", role)
		}
		if role == "active" {
			role = string(profile.Enabled)
		}
		m[role] = column
	}
	return m, checkMap(m)
}

// mapped are the roles that Choice.Map may have: first those that each run uses.
var mapped = []profile.Role{profile.URL, profile.Code, profile.Workspace, profile.Kind,
	profile.Domain, profile.Title, profile.Tags, profile.CreatedAt, profile.Clicks, profile.Password, profile.Archived, profile.Enabled, profile.Regex, profile.Targets,
	profile.Starts, profile.Redirect}

// extraRoles are the roles of Table.Roles: those of Choice.Map, and some that only profiles know.
var extraRoles = slices.Concat(mapped[4:], []profile.Role{profile.Status, profile.Expires, profile.MaxUses, profile.Mean, profile.Stored, profile.IP})

// paramRoles are the roles of Table.Params.
var paramRoles = []profile.Role{profile.Expires, profile.MaxUses, profile.LinkType, profile.Owner, profile.Ref}

// MapRoles returns the names of the roles that Choice.Map may have.
func MapRoles() (names []string) {
	for _, role := range slices.Concat(mapped, paramRoles) {
		names = append(names, string(role))
	}
	return names
}

// MapsExtra reports whether Choice.Map has a role of Table.Roles that is no parameter.
func (c *Choice) MapsExtra() bool { return c.maps(mapped[4:]) }

// MapsAny reports whether Choice.Map has a role that is one of some.
func (c *Choice) MapsAny(is func(profile.Role) bool) bool {
	return slices.ContainsFunc(mapped, func(role profile.Role) bool { return is(role) && c.Map[string(role)] != "" })
}

// MapsParams reports whether Choice.Map has a role of Table.Params.
func (c *Choice) MapsParams() bool { return c.maps(paramRoles) }

func (c *Choice) maps(roles []profile.Role) bool {
	return slices.ContainsFunc(roles, func(role profile.Role) bool { return c.Map[string(role)] != "" })
}

func checkMap(m map[string]string) error {
	for role := range m {
		if !slices.Contains(MapRoles(), role) {
			return fmt.Errorf("%q is not one of %s", role, strings.Join(MapRoles(), ", "))
		}
	}
	return nil
}

// Check checks all that does not depend on an input.
func (c *Choice) Check() error {
	if c.named() && profile.Named(c.Profile) == nil {
		return fmt.Errorf("there is no profile %q; see bulk profiles", c.Profile)
	}
	return checkMap(c.Map)
}

// named says whether a profile is given by its name.
func (c *Choice) named() bool {
	return c.Profile != "" && c.Profile != profile.Auto && c.Profile != profile.None
}

// detects says whether the profile of a file is detected, unless it is given by its name.
func (c *Choice) detects() bool { return (c.Legacy || c.Roles) && c.Profile != profile.None }

// asked returns the column that the choice gives for a role, and by what; "": none.
func (c *Choice) asked(role profile.Role) (want, option string) {
	switch role {
	case profile.URL:
		want, option = c.URLColumn, "Options.URLColumn"
	case profile.Workspace:
		want, option = c.WorkspaceColumn, "Options.WorkspaceColumn"
	case profile.Code:
		want, option = c.CodeColumn, "Options.CodeColumn"
	}
	if c.ByCode && want == NoColumn {
		return "", ""
	}
	if want != "" {
		return want, option
	}
	return c.Map[string(role)], "Options.Map " + string(role)
}

// GivenCodes returns the columns of codes that the choice gives, as profile.ParseColumn takes them, and
// by what; nil: none.
func (c *Choice) GivenCodes() (list []string, option string) {
	want, option := c.asked(profile.Code)
	switch {
	case c.Codes != nil:
		return c.Codes, option
	case want == "":
		return nil, ""
	case want == c.CodeColumn:
		return []string{want}, option
	}
	return strings.Split(want, ","), option
}

// key returns the name or number of the column by which rows are known, if the choice gives it.
func (c *Choice) key() string {
	want, _ := c.asked(profile.URL)
	if want == "" && c.ByCode {
		code, _ := c.asked(profile.Code)
		want = profile.ParseColumn(code).Name
	}
	return want
}

// HasWorkspaces says whether a file may have a column of workspaces.
func (c *Choice) HasWorkspaces() bool {
	return c.WorkspaceColumn != "" || c.Map[string(profile.Workspace)] != "" || c.named() || c.detects()
}

// MayBe says whether a file may be taken for what p describes.
func (c *Choice) MayBe(p *profile.Profile) bool {
	if c.named() {
		return c.Profile == p.Name
	}
	return c.Profile != profile.None && (c.Legacy || c.Roles || len(c.Map) > 0)
}

// isExport says whether a first record has the columns of the profile that is given, or of any if
// one is to be detected.
func (c *Choice) isExport(cells []string) bool {
	if c.named() {
		return len(columnsOf(profile.Named(c.Profile), profile.URL, cells)) > 0
	}
	if !c.detects() {
		return false
	}
	p, _ := profile.Detect(cells)
	return p != nil
}

// IsHeader says whether a first record is a header: it has a name for URLs, or for codes by which
// rows are known, or those of a profile, and no URL.
func (c *Choice) IsHeader(cells []string) bool {
	named := false
	want := c.key()
	for _, cell := range cells {
		if HasURL(cell) {
			return false
		}
		named = named || profile.IsURLName(cell) || c.ByCode && profile.IsCodeName(cell)
		if strings.Trim(want, "0123456789") != "" { // it is a name
			named = named || profile.Fold(cell) == profile.Fold(want) || Escaped(cell) == want
		}
	}
	return named || c.isExport(cells)
}

// HasURL says whether a cell begins as a URL does.
func HasURL[T string | []byte](cell T) bool {
	return len(cell) >= 7 && strings.EqualFold(string(cell[:7]), "http://") ||
		len(cell) >= 8 && strings.EqualFold(string(cell[:8]), "https://")
}
