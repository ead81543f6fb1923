// Package profile knows the files that link shorteners export: by which names of columns each can
// be told from others, which of them have the URL and the code, and how a code is cut out of its
// cell. It is a table, and knows no files.
package profile

import (
	"slices"
	"strings"
)

// A Role is what the cells of a column are.
type Role string

// The roles. Of several columns of one role the first cell that is not blank counts, unless another
// rule stands here. The host of a cell out of which Path cuts a code is the domain of that code.
const (
	URL       Role = "url"       // the long URL
	Code      Role = "code"      // the legacy code; of several columns the first that is there, and lists
	Workspace Role = "workspace" // of bulk
	Kind      Role = "kind"      // link or alias, as bulk exports them

	Domain    Role = "domain" // see DomainOf
	Title     Role = "title"
	Tags      Role = "tags" // see TagsOf
	CreatedAt Role = "created_at"
	Clicks    Role = "clicks"
	Mean      Role = "avg_redirect_ms" // how long a redirect took on average, in milliseconds
	Password  Role = "password"        // IsSet in any column: the link asks for it
	Archived  Role = "archived"        // IsOver in any column: the link is dead
	Enabled   Role = "enabled"         // IsFalse in any column: the link is dead
	Expires   Role = "expires_at"
	Regex     Role = "regex"   // IsTrue in any column: the code is a pattern
	Targets   Role = "targets" // IsSet in any column: further URLs, chosen by country or device
	IP        Role = "ip"
	Stored    Role = "stored_at"     // when bulk itself stored the link
	Starts    Role = "starts_at"     // the link does not work before that
	Redirect  Role = "redirect_code" // see ParseRedirect
	Status    Role = "status"        // see LifeOf

	// Parameters of link rules (package rules), beside Expires.
	MaxUses  Role = "max_uses"
	LinkType Role = "link_type"
	Owner    Role = "owner_id"
	Ref      Role = "ref"
)

// Personal reports whether the cells are personal data.
func (r Role) Personal() bool { return r == IP }

// A Learned says from where a profile is known.
type Learned string

const (
	Seen       Learned = "seen in a real file"
	Read       Learned = "read in the program"
	Documented Learned = "documented by the maker"
	Told       Learned = "told by others"
)

// A Profile describes an export. Names of columns are as the export writes them, and are compared
// by Fold; a member of an object in JSON is named by its path, with dots.
type Profile struct {
	Name, Product string
	Learned       []Learned
	Header        []string // columns by which it is found. An element may be names joined by |, of which one is there
	Optional      []string // columns that it may have besides these
	Without       []string // columns that it never has, by which it is told from exports of bulk
	Alone         bool     // it has no other columns: those of Header are common
	Columns       []Column // those that have a role

	Format   string   // it is known by its format (source.Input.Format), not by a header; "": by the header
	Document string   // member of a JSON object that is the array of records, with dots a member of its members; "": none. The array alone is recognized, too
	Beside   []string // other members of that object; one of them tells it from others
	Batch    bool     // a TSV is from mysql --batch: without quotes, \t \n \\ \0 are escapes
	Null     bool     // the text null is a blank cell
	Tags     string   // what separates the tags of a cell (see TagsOf)
	Members  bool     // a column that is not known is an attribute of the link
	Every    bool     // each column of codes may have one; otherwise the first that is there has them

	known map[string]bool // all names, folded
}

// A Column is one that has a role.
type Column struct {
	Role Role
	Name string // NAME.* are all members of the object NAME
	Cut  Cut    // of a code
	List bool   // each cell is a JSON array of further codes of its row
}

// Many reports whether the name stands for several columns.
func (c Column) Many() bool { return strings.HasSuffix(c.Name, ".*") }

// Is reports whether this is the name of the column or, of NAME.*, of one of the columns.
func (c Column) Is(name string) bool {
	name, own := Fold(name), Fold(c.Name)
	return name == own || c.Many() && strings.HasPrefix(name, own[:len(own)-1])
}

// None and Auto are no profiles, but may be given instead of the name of one.
const (
	None = "none"
	Auto = "auto"
)

// All returns the profiles. They belong to this package.
func All() []*Profile { return table }

// Names returns the names of all profiles.
func Names() (names []string) {
	for _, p := range table {
		names = append(names, p.Name)
	}
	return names
}

// Named returns the profile of a name, or nil.
func Named(name string) *Profile {
	if i := slices.IndexFunc(table, func(p *Profile) bool { return p.Name == name }); i >= 0 {
		return table[i]
	}
	return nil
}

// Detect returns the profile of a file with this header, or nil. It is the one with the most
// names in Header of those that fit; if two have the most, none. Strange are the columns with a
// known name for URLs or codes that the profile does not know: the codes could be there instead.
func Detect(header []string) (best *Profile, strange []string) {
	times := make(map[string]int, len(header))
	for _, name := range header {
		times[Fold(name)]++
	}
	tie := false
	for _, p := range table {
		switch {
		case p.Format != "" || !p.fits(times):
		case best == nil || len(p.Header) > len(best.Header):
			best, tie = p, false
		case len(p.Header) == len(best.Header):
			tie = true
		}
	}
	if best == nil || tie {
		return nil, nil
	}
	for _, name := range header {
		if (IsURLName(name) || IsCodeName(name)) && !best.known[Fold(name)] {
			strange = append(strange, name)
		}
	}
	return best, strange
}

// Knows reports whether the export has a column of this name, which it may lack.
func (p *Profile) Knows(name string) bool { return p.known[Fold(name)] }

// fits reports whether a header has all columns by which p is found, each once. It has names, which
// are folded, so many times.
func (p *Profile) fits(times map[string]int) bool {
	for _, names := range p.Header {
		if !slices.ContainsFunc(strings.Split(names, "|"), func(name string) bool { return times[Fold(name)] == 1 }) {
			return false
		}
	}
	for name := range times {
		if p.Alone && !p.known[name] {
			return false
		}
	}
	return !slices.ContainsFunc(p.Without, func(name string) bool { return times[Fold(name)] > 0 })
}

// Of returns the columns of a role.
func (p *Profile) Of(role Role) (columns []Column) {
	for _, c := range p.Columns {
		if c.Role == role {
			columns = append(columns, c)
		}
	}
	return columns
}
