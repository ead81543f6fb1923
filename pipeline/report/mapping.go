package report

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/rules"
)

// A Format is that of the mapping, and the extension of its file.
type Format string

// The formats of the mapping.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
	Arrow   Format = "arrow" // IPC file
)

// ParseFormat checks the name of a format.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case CSV, Parquet, Arrow:
		return f, nil
	}
	return "", fmt.Errorf("unknown report format %q: want csv, parquet or arrow", name)
}

// FileName returns the name of a mapping of the format.
func (f Format) FileName() string { return "mapping." + string(f) }

// An Order is that of the rows of the mapping.
type Order string

// The orders of the mapping.
const (
	SortOrder  Order = "sort"  // by workspace, code at salt 0, canonical and original URL, carried cells, source, row
	InputOrder Order = "input" // by source, in the order of names, and row
)

// ParseOrder checks the name of an order.
func ParseOrder(name string) (Order, error) {
	switch o := Order(name); o {
	case SortOrder, InputOrder:
		return o, nil
	}
	return "", fmt.Errorf("unknown report order %q: want sort or input", name)
}

// MappingOptions say what a mapping holds.
type MappingOptions struct {
	Carried   []string // names of the carried columns, already made unique by CarriedNames
	BaseURL   string   // short_url is BaseURL + "/" + code, with one slash, and {workspace} stands for the workspace; "": blank or null
	ExcelSafe bool     // CSV only: a cell that a spreadsheet would run gets an apostrophe
	Workers   int      // goroutines that encode row groups or batches, of CSV none; 0: one
	Columns
}

// Columns say which columns of its own a mapping has beside those that all have.
type Columns struct {
	Numbers bool        // of the numbers that codes were made from
	Legacy  legacy.Mode // of legacy codes; Off: none
	Rules   bool        // of link rules
	Parts   bool        // of what is hashed of identities beside workspace and URL; only with Rules
	Ref     bool        // of the references of identities; only with Rules
}

// A Base is what stands before the code in short_url.
type Base struct {
	before, after []byte
	workspace     bool // the workspace stands between the two
}

// workspaceMark stands for the workspace in a base URL.
const workspaceMark = "{workspace}"

// NewBase returns the base of MappingOptions.BaseURL; nil: there is no short_url.
func NewBase(url string) *Base {
	if url == "" {
		return nil
	}
	b := &Base{}
	before, after, found := strings.Cut(strings.TrimRight(url, "/")+"/", workspaceMark)
	b.before, b.after, b.workspace = []byte(before), []byte(after), found
	return b
}

// Append appends it for a link of a workspace. Bytes that no URL has become %XX.
func (b *Base) Append(dst, workspace []byte) []byte {
	dst = append(dst, b.before...)
	if b.workspace {
		for _, c := range workspace {
			switch {
			case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', strings.IndexByte("-._~:/", c) >= 0:
				dst = append(dst, c)
			default:
				dst = fmt.Appendf(dst, "%%%02X", c)
			}
		}
	}
	return append(dst, b.after...)
}

// Names returns the mapping's own columns; the carried ones follow. After salt comes number, if the
// scheme has a counter. Then a mode of legacy codes has legacy_code, before it kind if it keeps codes,
// and Both then link_code and link_salt. Link rules have perhaps parts, then expires_at, max_uses, link_type, owner_id, perhaps ref, and change.
func (o Columns) Names() []string {
	var names []string
	for _, c := range o.own() {
		names = append(names, c.name())
	}
	return names
}

// A column is what a column of the mapping holds. Up to saltColumn it is also its number.
type column int

const (
	sourceColumn column = iota
	rowColumn
	workspaceColumn
	originalColumn
	canonicalColumn
	codeColumn
	shortURLColumn
	outcomeColumn
	saltColumn
	plainColumns // how many these are, and the number of the first that follows
)

const (
	numberColumn column = plainColumns + iota
	kindColumn
	legacyColumn
	linkCodeColumn
	linkSaltColumn
	partsColumn
	expiresColumn // this and the next four as in package rules
	maxUsesColumn
	typeColumn
	ownerColumn
	refColumn
	changeColumn
	carriedColumn
)

func (c column) name() string {
	return [...]string{sourceColumn: "source", rowColumn: "row", workspaceColumn: "workspace_id",
		originalColumn: "original_url", canonicalColumn: "canonical_url", codeColumn: "short_code",
		shortURLColumn: "short_url", outcomeColumn: "outcome", saltColumn: "salt",
		numberColumn: "number", kindColumn: "kind", legacyColumn: "legacy_code", linkCodeColumn: "link_code", linkSaltColumn: "link_salt", partsColumn: "parts",
		expiresColumn: "expires_at", maxUsesColumn: "max_uses", typeColumn: "link_type", ownerColumn: "owner_id", refColumn: "ref", changeColumn: "change"}[c]
}

// cell returns the cell of a column of link rules; nil: null.
func (r *Rules) cell(c column) []byte {
	switch {
	case c == partsColumn:
		return r.Parts
	case c < changeColumn:
		return r.Cells[c-expiresColumn]
	case r.Change == rules.NoChange:
		return nil
	}
	return bytesOf(r.Change.String())
}

// own returns the mapping's own columns by number.
func (o Columns) own() (columns []column) {
	for c := range plainColumns {
		columns = append(columns, c)
	}
	if o.Numbers {
		columns = append(columns, numberColumn)
	}
	switch o.Legacy {
	case legacy.Map:
		columns = append(columns, legacyColumn)
	case legacy.Keep:
		columns = append(columns, kindColumn, legacyColumn)
	case legacy.Both:
		columns = append(columns, kindColumn, legacyColumn, linkCodeColumn, linkSaltColumn)
	}
	if o.Rules {
		if o.Parts {
			columns = append(columns, partsColumn)
		}
		columns = append(columns, expiresColumn, maxUsesColumn, typeColumn, ownerColumn)
		if o.Ref {
			columns = append(columns, refColumn)
		}
		columns = append(columns, changeColumn)
	}
	return columns
}

// columns returns all columns by number.
func (o *MappingOptions) columns() []column {
	return append(o.own(), slices.Repeat([]column{carriedColumn}, len(o.Carried))...)
}

// CarriedNames makes the input's column names unique beside those that are
// taken: a name that is taken, or that an earlier column has, gets the prefix
// in_ until it is free.
func CarriedNames(taken, columns []string) []string {
	used := make(map[string]bool, len(taken)+len(columns)) // there may be very many
	for _, name := range taken {
		used[name] = true
	}
	names := make([]string, len(columns))
	for i, name := range columns {
		for used[name] {
			name = "in_" + name
		}
		names[i], used[name] = name, true
	}
	return names
}

// nullable reports whether a column may have nulls.
func (c column) nullable() bool {
	return c == originalColumn || c == shortURLColumn || c == saltColumn || c == numberColumn || c > kindColumn
}

// isText reports whether a column is text in UTF-8. The others are numbers, or bytes of the
// input.
func (c column) isText() bool {
	return c != rowColumn && c != originalColumn && c != numberColumn && !c.isSalt() && c != carriedColumn
}

// isSalt reports whether a column holds salts.
func (c column) isSalt() bool { return c == saltColumn || c == linkSaltColumn }

// NewMapping returns a writer for a mapping. Nothing is written before the
// first Write, or Close, which writes a file of no rows too.
func NewMapping(w io.Writer, f Format, opts MappingOptions) (Mapping, error) {
	m := &closable{}
	var err error
	switch f {
	case CSV:
		m.Mapping = newCSVMapping(w, opts)
	case Parquet:
		m.Mapping = newParquetMapping(w, opts)
	case Arrow:
		m.Mapping, err = newArrowMapping(w, opts)
	default:
		_, err = ParseFormat(string(f))
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// A closable is a mapping of any format, which is closed once.
type closable struct {
	Mapping
	closed bool
	err    error // of Close
}

func (m *closable) Write(b Block) error {
	if m.closed {
		return fs.ErrClosed
	}
	return m.Mapping.Write(b)
}

func (m *closable) Close() error {
	if !m.closed {
		m.closed, m.err = true, m.Mapping.Close()
	}
	return m.err
}
