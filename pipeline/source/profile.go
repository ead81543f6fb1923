package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

func checkMap(m map[string]string) error {
	for role := range m {
		switch profile.Role(role) {
		case profile.URL, profile.Code, profile.Workspace, profile.Kind:
		default:
			return fmt.Errorf("%q is not url, code, workspace or kind", role)
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
	if want != "" {
		return want, "--" + string(role) + "-column"
	}
	return o.Map[string(role)], "--map " + string(role)
}

// HasWorkspaces says whether a file may have a column of workspaces.
func (o *Options) HasWorkspaces() bool {
	return o.WorkspaceColumn != "" || o.Map[string(profile.Workspace)] != "" || o.named() || o.Legacy && o.Profile != profile.None
}

// profiles says whether a file may be taken for what p describes.
func (o *Options) profiles(p *profile.Profile) bool {
	if o.named() {
		return o.Profile == p.Name
	}
	return o.Profile != profile.None && (o.Legacy || len(o.Map) > 0)
}

// isExport says whether a first record has the columns of the profile that is given, or of any if
// one is to be detected.
func (in *Input) isExport(cells []string) bool {
	if in.opts.named() {
		return len(columnsOf(profile.Named(in.opts.Profile), profile.URL, cells)) > 0
	}
	if !in.opts.Legacy || in.opts.Profile == profile.None {
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
	case in.opts.Legacy && in.opts.Profile != profile.None:
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
		if i := slices.IndexFunc(header, func(name string) bool { return profile.Fold(name) == profile.Fold(c.Name) }); i >= 0 {
			found = append(found, codeColumn{i, c})
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

// settleCodes finds the columns of codes.
func (in *Input) settleCodes() error {
	if want, option := in.opts.asked(profile.Code); want != "" {
		c := profile.ParseColumn(want)
		i, err := in.column(c.Name, option)
		if err != nil {
			return err
		}
		in.codes = []codeColumn{{i, c}}
	} else if in.profile != nil {
		for _, c := range in.known(profile.Code) {
			if c.List || len(in.codes) == 0 {
				in.codes = append(in.codes, c)
			}
		}
		if in.codes == nil {
			return in.usage(in.lacks(profile.Code, "codes") + giveCodes)
		}
	} else if in.doubt != "" {
		return in.usage(in.doubt)
	} else {
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

// Codes appends the legacy codes of row i of a batch, without repeats: that of Code first, then
// those of lists in their order. A blank cell has none. The codes are parts of cells, except those
// of lists.
func (in *Input) Codes(dst [][]byte, cells Cells, i int) [][]byte {
	return in.CodesOf(dst, func(c int) []byte { return cells.Cell(c, i) })
}

// CodesOf does what Codes does, for a row whose cells are given by their column.
func (in *Input) CodesOf(dst [][]byte, cellOf func(c int) []byte) [][]byte {
	first := len(dst)
	for _, c := range in.codes {
		cell := cellOf(c.column)
		switch {
		case len(cell) == 0 || in.profile != nil && in.profile.Null && string(cell) == "null":
		case !c.List:
			dst = addCode(dst, first, c.Cut.Of(cell))
		default:
			for _, element := range profile.Cells(cell) {
				dst = addCode(dst, first, c.Cut.Of(element))
			}
		}
	}
	return dst
}

// Mapped returns the columns that have a role in the run, by their names in Columns: those of URLs
// and codes, that of the workspace, that of kinds.
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
	return list
}

// addCode appends a code unless it is empty or in dst[first:].
func addCode(dst [][]byte, first int, code []byte) [][]byte {
	if len(code) == 0 || slices.ContainsFunc(dst[first:], func(other []byte) bool { return bytes.Equal(other, code) }) {
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
func (in *Input) VariantCells(code []byte) map[int][]byte {
	cells := make(map[int][]byte, len(in.codes))
	for i, c := range in.codes {
		var list []string
		if i == 0 {
			cells[c.column] = c.Cut.Cell(nil, code)
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
