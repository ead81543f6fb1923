package columns

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/linkforge/bulk/pipeline/profile"
)

// settleParams finds the columns of the parameters of link rules: those of Choice.Map, or else of
// the profile, or else those that have a known name.
func (t *Table) settleParams() error {
	t.Params = map[profile.Role]int{}
	for _, role := range paramRoles {
		if t.choice.Ends && !t.isEnd(role) {
			continue
		}
		i, err := t.settleColumn(role)
		if i < 0 && err == nil {
			i, err = t.namedParam(role)
		}
		if err != nil {
			return err
		}
		if i >= 0 && !t.IsKey(i) {
			t.Params[role] = i
		}
	}
	return nil
}

// isEnd reports whether a parameter says when a link ends or, in what bulk has exported, what it is.
func (t *Table) isEnd(role profile.Role) bool {
	switch role {
	case profile.Expires, profile.MaxUses:
		return true
	case profile.LinkType, profile.Owner:
		return t.Profile == bulkExport
	}
	return false
}

// HasEnds reports whether a column tells when links end.
func (t *Table) HasEnds() bool {
	_, expires := t.Params[profile.Expires]
	_, limit := t.Params[profile.MaxUses]
	return expires || limit
}

// namedParam finds the only column that is called like a parameter, or else the only one that has
// another known name of it; -1: there is none.
func (t *Table) namedParam(role profile.Role) (int, error) {
	var exact, others []int
	for i, name := range t.header {
		switch {
		case t.IsKey(i):
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
	do := fmt.Sprintf("Give the right one with Options.Map %s=COLUMN, by name or number", role)
	if t.Format == "rejects" {
		do = "Make a file of the rows of each source, without the columns that are blank in all of them, or g" + do[1:]
	}
	return 0, t.Usage(fmt.Sprintf("the columns %q and %q can both be %s. %s", t.Columns[found[0]], t.Columns[found[1]], role, do))
}

// HasParams reports whether a column has a parameter of link rules other than a reference.
func (t *Table) HasParams() bool {
	for role := range t.Params {
		if role != profile.Ref {
			return true
		}
	}
	return false
}

// MayLackParams reports whether the columns of parameters may be missing although they were not
// forgotten: objects in JSON have only the members that they need, and neither what bulk has
// exported nor its rejects are written by hand.
func (t *Table) MayLackParams() bool {
	known, _ := profile.Detect(t.header)
	return t.Blank || t.Format == "json" || t.Format == "rejects" || known != nil && known.Name == bulkExport
}

// bulkExport is the profile of what bulk export writes.
const bulkExport = "bulk"

// ParamsLike returns the flags that would make parameters of columns that look like them.
func (t *Table) ParamsLike() (flags []string) {
	for i, name := range t.header {
		role := profile.ParamLike(name)
		if _, has := t.Params[role]; role == "" || has || t.IsKey(i) || t.IsCode(i) {
			continue
		}
		flags = append(flags, t.mapFlag(role, i))
	}
	return flags
}

// mapFlag returns the flag that gives a column a role, as a shell takes it.
func (t *Table) mapFlag(role profile.Role, column int) string {
	name := t.Columns[column]
	if strings.ContainsAny(name, ",'") || t.Column(name) != column {
		name = strconv.Itoa(column + 1)
	}
	flag := string(role) + "=" + name
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }) {
		flag = "'" + flag + "'" // for a shell
	}
	return "Options.Map " + flag
}

// NoParams says that the input has no column of parameters, and what to do.
func (t *Table) NoParams() string {
	text := "link rules are asked for, but no column is known to have expiry, use limit, type or owner of links. "
	if like := t.ParamsLike(); len(like) > 0 {
		return text + "Perhaps it is " + strings.Join(like, " or ")
	}
	return text + "Give it with Options.Map, such as Options.Map expires_at=COLUMN, or give all rows the same, such as Config.Rules.ExpiresIn 90d"
}
