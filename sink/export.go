package sink

import (
	"cmp"
	"encoding/hex"
	"slices"
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
	JSON                // as [AppendJSON] writes it, or in columns of its members
)

// A Column of an export.
type Column struct {
	Name     string
	Form     Form
	Nullable bool
	sql      string   // of its value
	split    bool     // its members are columns
	members  []string // in byte order
	whole    bool     // it is a column, too
}

// Columns are columns of an export in its order.
type Columns []Column

// AllColumns are the columns that the table of links has. The kind of a link is link.
func AllColumns() (out Columns) {
	for _, c := range []struct {
		name     string
		form     Form
		nullable bool
		sql      string
	}{
		{"workspace_id", Text, false, ""}, {"short_code", Text, false, ""}, {"kind", Text, false, "coalesce(kind, 'link')"},
		{"canonical_url", Text, false, ""}, {"original_url", Text, true, ""}, {"url_key", UUID, false, ""},
		{"base_key", UUID, true, ""}, {"attrs", JSON, true, ""}, {"expires_at", Time, true, ""}, {"max_uses", Integer, true, ""},
		{"access_count", Integer, true, ""}, {"avg_redirect_ms", Float, true, ""}, {"link_type", Text, true, ""},
		{"owner_id", Text, true, ""}, {"ref", Text, true, ""}, {"status", Text, true, ""}, {"marked_at", Time, true, ""},
		{"run_id", Integer, false, ""}, {"created_at", Time, false, ""}, {"updated_at", Time, false, ""},
		{"changed_run", Integer, true, ""}, {"change", Text, true, ""},
	} {
		out = append(out, Column{Name: c.name, Form: c.form, Nullable: c.nullable, sql: cmp.Or(c.sql, c.name)})
	}
	return out
}

// Names are the names of the columns.
func (cs Columns) Names() (names []string) {
	for _, c := range cs {
		if !c.split || c.whole {
			names = append(names, c.Name)
		}
		for _, member := range c.members {
			names = append(names, c.ofMember(member))
		}
	}
	return names
}

// ofMember is the name of the column of a member. It is not that of any other column.
func (c *Column) ofMember(member string) string {
	name, table := member, AllColumns().Names()
	for slices.Contains(table, name) || name != member && slices.Contains(c.members, name) {
		name = "attrs_" + name
	}
	return name
}

// MaxMembers is how many members of attrs are columns of an export.
const MaxMembers = 200

// Split makes columns of the members of attrs, if that is one of the columns. The function finds
// the names of the members, all or MaxMembers + 1 of them in any order, and whether there are
// attrs that are no object.
func (cs Columns) Split(find func() (members []string, others bool, err error)) (Columns, error) {
	i := slices.IndexFunc(cs, func(c Column) bool { return c.Form == JSON })
	if i < 0 {
		return cs, nil
	}
	members, others, err := find()
	if len(members) <= MaxMembers && !slices.ContainsFunc(members, func(name string) bool { return name == "" || strings.Contains(name, "\x00") }) {
		slices.Sort(members)
		cs[i].split, cs[i].members, cs[i].whole = true, members, others
	}
	return cs, err
}

// Members adds the names of the members of attrs to a set, until it has more than MaxMembers.
// It reports whether attrs are an object.
func Members(attrs []byte, names map[string]bool) (object bool) {
	v, _ := decodeJSON(attrs)
	members, object := v.(map[string]any)
	for name := range members {
		if len(names) <= MaxMembers {
			names[name] = true
		}
	}
	return object
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

// JSON adds a document, which may be nil, as all the cells that the column has become.
func (c *Cells) JSON(b []byte, column *Column) {
	var members map[string]any
	object := false
	if column.split && b != nil {
		v, _ := decodeJSON(b)
		members, object = v.(map[string]any)
	}
	switch from := len(c.buf); {
	case column.split && !column.whole:
	case b == nil || object:
		c.Null()
	default:
		c.buf = AppendJSON(c.buf, b)
		c.cell(from)
	}
	for _, name := range column.members {
		c.member(members[name])
	}
}

// member adds a value that was decoded.
func (c *Cells) member(v any) {
	switch v := v.(type) {
	case nil:
		c.Null()
	case string:
		c.Text([]byte(v))
	default:
		from := len(c.buf)
		c.buf = encodeJSON(c.buf, v)
		c.cell(from)
	}
}
