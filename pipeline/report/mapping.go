package report

import (
	"fmt"
	"io"
	"io/fs"
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
	BaseURL   string   // of short_url, as of package shorturl; "": blank or null
	ExcelSafe bool     // CSV only: a cell that a spreadsheet would run gets an apostrophe
	Workers   int      // goroutines that encode row groups or batches, of CSV none; 0: one
	Columns
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
