// Package columns says which column of an input is what: that of the URLs, of workspaces, of legacy
// codes, of what links were elsewhere (roles), of the parameters of link rules; all others are carried.
// It is told by a [Choice], by the profile of a program whose export the input is (package profile),
// or by the usual names in the header. It is pure: it knows names, and neither files nor bytes.
package columns

import (
	"fmt"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/profile"
)

// A Table is the columns of an input. It does not change once it is settled.
type Table struct {
	Name      string                 // of the input, as given; "-" is standard input
	Format    string                 // of the input: "csv", "text", "json", "beacon", "parquet", "arrow", "rejects"
	Columns   []string               // unique, in file order; without the provenance columns of a rejects file
	Skipped   []string               // names of columns that are left out because they may have several values a row
	Blank     bool                   // a CSV or JSON without a record; its one column is made up
	URLs      []int                  // index of the URL column in Columns; of several the first cell that is not empty is the URL. A rejects file has at most one in a row. See also Choice.ByCode
	Beside    []int                  // with Choice.ByCode, indexes of the columns of URLs beside those of codes; of several the first cell that is not empty counts
	Workspace int                    // index of the workspace column in Columns; -1: none
	Known     *profile.Profile       // in force; nil: none
	Profile   string                 // its name; "": none
	Code      int                    // index of the first column of codes in Columns; -1: none. See CodesOf and CodeColumns
	Kind      int                    // index of the column of kinds (profile.Kind); -1: none
	Roles     map[profile.Role][]int // columns of extra roles; nil: they are not wanted
	Params    map[profile.Role]int   // columns of the parameters of link rules; nil: they are not wanted
	LeftOut   []int                  // columns that are not carried, since they have personal data

	// What an error tells of a text without a header.
	NoHeader     bool     // it has none
	SaidNoHeader bool     // the user says so
	First        []string // the first record that can be split; it may be the header
	Before       string   // why the first record of all cannot be split; "": it can

	choice  Choice
	header  []string     // the names of Columns as they are in the input
	codes   []codeColumn // of which Code is the first
	domains []int        // columns of Roles that have the domain
	given   []byte       // Choice.DefaultDomain
	doubt   string       // why a profile that would fit is not in force; "": there is none
}

// New returns the columns of an input that has none yet.
func New(name string, choice Choice) Table {
	return Table{Name: name, Workspace: -1, Code: -1, Kind: -1, choice: choice}
}

// Describe returns the columns of an input of a format, of which those of URLs, codes and so on are
// found as when it is opened.
func Describe(name, format string, header []string, choice Choice) (*Table, error) {
	if err := CheckWidth(name, len(header), MaxColumns); err != nil {
		return nil, err
	}
	t := New(name, choice)
	t.Format = format
	t.SetNames(header)
	return &t, t.Settle()
}

// Choice returns that which the columns were found by.
func (t *Table) Choice() *Choice { return &t.choice }

// Header returns the names of Columns as they are in the input.
func (t *Table) Header() []string { return t.header }

// A UsageError says that an input cannot be read as the options ask: a column is ambiguous or
// missing, or a file is given twice. Nothing was processed.
type UsageError struct {
	Input string // name of the input, as given
	Msg   string
}

func (e *UsageError) Error() string { return e.Input + ": " + e.Msg }

// MaxColumns is how many columns an input may have. It bounds the memory that a hostile header
// takes.
const MaxColumns = 1 << 14

// CheckWidth refuses more columns of an input than there may be.
func CheckWidth(name string, n, most int) error {
	if n > most {
		return &UsageError{name, fmt.Sprintf("has %d columns, more than %d", n, most)}
	}
	return nil
}

// SetNames sets the columns by the cells of a header.
func (t *Table) SetNames(header []string) { t.header, t.Columns = header, unique(header) }

// unique makes column names of header cells: bytes that are not UTF-8 become %XX, an empty
// name becomes column_N, the second column of a name becomes name_2.
func unique(cells []string) []string {
	names := make([]string, len(cells))
	taken := make(map[string]bool)
	for i, name := range cells {
		if names[i] = Escaped(name); names[i] == "" {
			names[i] = fmt.Sprint("column_", i+1)
		}
		taken[names[i]] = true
	}
	seen := make(map[string]bool)
	last := make(map[string]int) // the last number that was tried for a name; lower ones are taken
	for i, name := range names {
		for n := max(last[name]+1, 2); seen[names[i]]; n++ {
			if try := fmt.Sprint(name, "_", n); !taken[try] {
				names[i] = try
			}
			last[name] = n
		}
		seen[names[i]], taken[names[i]] = true, true
	}
	return names
}

// Escaped returns a name as reports write it. A Choice may have it, too.
func Escaped(name string) string { return string(canon.EscapeInvalid([]byte(name))) }
