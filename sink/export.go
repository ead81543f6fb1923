package sink

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// A Form says how a column of links becomes the text of a cell.
type Form int

const (
	Text    Form = iota // as it is
	UUID                // in hexadecimal with hyphens
	Time                // RFC 3339 in UTC, with microseconds
	Integer             // decimal
	Float               // decimal, the shortest that reads as the same number
	JSON                // as [AppendJSON] writes it
)

// A Column of an export.
type Column struct {
	Name     string
	Form     Form
	Nullable bool
	since    int    // version of the tables
	sql      string // of its value
}

// Columns are columns of an export in its order.
type Columns []Column

// AllColumns are the columns that tables of a version have. The kind of a link is link.
func AllColumns(version int) (out Columns) {
	kind := "coalesce(kind, 'link')"
	if version < 2 {
		kind = "'link'"
	}
	for _, c := range []Column{
		{"workspace_id", Text, false, 1, ""}, {"short_code", Text, false, 1, ""}, {"kind", Text, false, 1, kind},
		{"canonical_url", Text, false, 1, ""}, {"original_url", Text, true, 1, ""}, {"url_key", UUID, false, 1, ""},
		{"base_key", UUID, true, 2, ""}, {"attrs", JSON, true, 2, ""}, {"expires_at", Time, true, 2, ""}, {"max_uses", Integer, true, 2, ""},
		{"access_count", Integer, true, 2, ""}, {"avg_redirect_ms", Float, true, 2, ""}, {"link_type", Text, true, 2, ""},
		{"owner_id", Text, true, 2, ""}, {"ref", Text, true, 2, ""}, {"status", Text, true, 2, ""}, {"marked_at", Time, true, 2, ""},
		{"run_id", Integer, false, 1, ""}, {"created_at", Time, false, 1, ""}, {"updated_at", Time, false, 1, ""},
		{"changed_run", Integer, true, 2, ""}, {"change", Text, true, 2, ""},
	} {
		if c.since <= version {
			c.sql = cmp.Or(c.sql, c.Name)
			out = append(out, c)
		}
	}
	return out
}

// Names are the names of the columns.
func (cs Columns) Names() (names []string) {
	for _, c := range cs {
		names = append(names, c.Name)
	}
	return names
}

// Select is what to select for the columns.
func (cs Columns) Select() string {
	list := make([]string, len(cs))
	for i, c := range cs {
		list[i] = c.sql
	}
	return strings.Join(list, ", ")
}

// SelectCounts is what to select to find out which columns an export has: for each a number,
// which is above 0 if it is one of them.
func (cs Columns) SelectCounts() string {
	list := make([]string, len(cs))
	for i, c := range cs {
		if list[i] = "count(*) + 1"; c.Nullable {
			list[i] = "count(" + c.Name + ")"
		}
	}
	return strings.Join(list, ", ")
}

// Cells makes the row that a store hands to the visitor of Export. Each method but Reset adds a
// cell.
type Cells struct {
	Row [][]byte
	buf []byte
}

// Reset begins a new row.
func (c *Cells) Reset() { c.Row, c.buf = c.Row[:0], c.buf[:0] }

// cell adds what was appended to the buffer from a place on. (If the buffer moves later, the
// cell stays where it is.)
func (c *Cells) cell(from int) { c.Row = append(c.Row, c.buf[from:len(c.buf):len(c.buf)]) }

// Null adds NULL.
func (c *Cells) Null() { c.Row = append(c.Row, nil) }

// Text adds the bytes themselves, which are not nil.
func (c *Cells) Text(b []byte) { c.Row = append(c.Row, b) }

// UUID adds 16 bytes.
func (c *Cells) UUID(b Key) {
	from := len(c.buf)
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			c.buf = append(c.buf, '-')
		}
		c.buf = hex.AppendEncode(c.buf, part)
	}
	c.cell(from)
}

// Time adds a time.
func (c *Cells) Time(t time.Time) {
	from := len(c.buf)
	c.buf = t.UTC().AppendFormat(c.buf, "2006-01-02T15:04:05.000000Z")
	c.cell(from)
}

// Integer adds an integer.
func (c *Cells) Integer(n int64) {
	from := len(c.buf)
	c.buf = strconv.AppendInt(c.buf, n, 10)
	c.cell(from)
}

// Float adds a number.
func (c *Cells) Float(f float64) {
	from := len(c.buf)
	c.buf = strconv.AppendFloat(c.buf, f, 'f', -1, 64)
	c.cell(from)
}

// JSON adds a document.
func (c *Cells) JSON(b []byte) {
	from := len(c.buf)
	c.buf = AppendJSON(c.buf, b)
	c.cell(from)
}
