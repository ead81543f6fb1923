package rules

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/profile"
)

// A Type says whether a link is meant to last.
type Type uint8

// The types.
const (
	NoType Type = iota // counts as Permanent, but claims nothing
	Permanent
	Temporary
)

var types = [...]string{"", "PERMANENT", "TEMPORARY"}

// String returns the type as the store has it; "" for NoType.
func (t Type) String() string { return types[t] }

// TypeOf returns the type of a text in the store. Any that is not known counts as NoType.
func TypeOf(text string) Type {
	t, _ := parse[Type](text, types[:])
	return t
}

// A When says how the Seconds of an Expiry are meant.
type When uint8

// The kinds of expiries, in the order of rows.
const (
	Never    When = iota // no expiry
	At                   // Unix time
	Reckoned             // seconds after as_of
)

// An Expiry is the first second at which a link is dead. The zero value is none.
type Expiry struct {
	When    When
	Seconds int64
}

// Reckon returns the expiry as it is at an as_of in Unix time: none is Reckoned any more.
func (e Expiry) Reckon(asOf int64) Expiry {
	if e.When == Reckoned {
		return Expiry{At, asOf + e.Seconds}
	}
	return e
}

// past reports whether an expiry that is not Reckoned is not after a time.
func (e Expiry) past(at int64) bool { return e.When == At && e.Seconds <= at }

// Append appends the expiry as the hash input has it: RFC 3339, in UTC and with Z; if it is
// Reckoned + and its seconds; nothing if there is none.
func (e Expiry) Append(dst []byte) []byte {
	switch e.When {
	case At:
		return time.Unix(e.Seconds, 0).UTC().AppendFormat(dst, time.RFC3339)
	case Reckoned:
		return strconv.AppendInt(append(dst, '+'), e.Seconds, 10)
	}
	return dst
}

// String returns what Append appends.
func (e Expiry) String() string { return string(e.Append(nil)) }

// Params are the parameters of a row as they were read, with the flags in place of empty cells.
// The slices belong to whoever called [Flags.Parse] or [Params.Cut].
type Params struct {
	Expiry Expiry
	Limit  int64 // 0: none
	Type   Type
	Owner  []byte // empty: none
	Ref    []byte // ByRow, as of AppendRef; otherwise nil: the reference is a carried cell like others
}

// Over reports whether the row is over at an as_of in Unix time: it has expired.
func (p *Params) Over(asOf int64) bool { return p.Expiry.past(asOf) }

// A Column is a parameter that a row can have.
type Column uint8

// The columns.
const (
	ExpiresAt Column = iota
	MaxUses
	LinkType
	OwnerID
	Ref
	ColumnCount = iota // of columns
)

var columns = [...]string{"expires_at", "max_uses", "link_type", "owner_id", "ref"}

// String returns the name of the column.
func (c Column) String() string { return columns[c] }

// Cells are the cells of a row, by Column; empty: none.
type Cells [ColumnCount][]byte

// Cells returns what the mapping shows of a link that has these parameters, all but the reference.
// The cells are valid until buf, which it empties and may grow, is used again.
func (p *Params) Cells(buf []byte, asOf int64) (cells Cells, _ []byte) {
	buf = p.Expiry.Reckon(asOf).Append(buf[:0])
	if n := len(buf); n > 0 {
		cells[ExpiresAt] = buf[:n:n]
	}
	if p.Limit != 0 {
		n := len(buf)
		buf = strconv.AppendInt(buf, max(p.Limit, 0), 10)
		cells[MaxUses] = buf[n:]
	}
	if p.Type != NoType {
		cells[LinkType] = []byte(p.Type.String())
	}
	if len(p.Owner) > 0 {
		cells[OwnerID] = p.Owner
	}
	return cells, buf
}

// DefaultTemporaryTTL is how long the link of a TEMPORARY row lives unless the run says otherwise.
const DefaultTemporaryTTL = 8 * time.Hour

// Flags say how a run reads parameters, and what stands in for empty cells: nothing, if they are
// the zero value, but DefaultTemporaryTTL.
type Flags struct {
	Identity     Identity
	Expiry       Expiry        // --expires-at; not Reckoned
	ExpiresIn    time.Duration // of rows without an expiry; 0: none
	TemporaryTTL time.Duration // of TEMPORARY rows without an expiry, if ExpiresIn is 0; 0: DefaultTemporaryTTL
	Limit        int64         // 0: none
	Type         Type
	Owner        []byte
}

// Check reports a value that no row may have. Durations are whole seconds.
func (f *Flags) Check() error {
	for _, v := range []time.Duration{f.ExpiresIn, f.TemporaryTTL} {
		if v < 0 || v%time.Second != 0 {
			return fmt.Errorf("%s is not a number of seconds above 0", v)
		}
	}
	switch {
	case f.Expiry.When == Reckoned:
		return fmt.Errorf("the expiry %s is not a time", f.Expiry)
	case f.Limit < 0:
		return fmt.Errorf("the use limit %d is negative", f.Limit)
	case !isText(f.Owner):
		return fmt.Errorf("%s", OwnerID.Detail(OwnerID.String(), f.Owner))
	}
	return nil
}

// Parse returns the parameters of a row. If ok is false the row is rejected as BadParameter: the
// cell of the column bad cannot be read (see [Column.Detail]). The result refers to the cells. ByRow
// its Ref is the cell, which the caller replaces by what [AppendRef] makes of it.
func (f *Flags) Parse(cells *Cells) (p Params, bad Column, ok bool) {
	p = Params{Expiry: f.Expiry, Limit: f.Limit, Type: f.Type, Owner: f.Owner}
	if cell := bytes.TrimSpace(cells[ExpiresAt]); !profile.IsNoTime(cell) {
		if p.Expiry, ok = ParseExpiry(cell); !ok {
			return p, ExpiresAt, false
		}
	}
	if cell := bytes.TrimSpace(cells[MaxUses]); profile.IsSet(cell) {
		var buf [20]byte // data frames make 100.0 of 100 where a cell of the column is blank
		if p.Limit, ok = ParseLimit(profile.AppendNumber(buf[:0], cell)); !ok {
			return p, MaxUses, false
		}
	}
	if cell := bytes.TrimSpace(cells[LinkType]); len(cell) > 0 {
		if p.Type, ok = ParseType(cell); !ok {
			return p, LinkType, false
		}
	}
	if cell := cells[OwnerID]; len(cell) > 0 {
		if p.Owner = cell; !isText(cell) {
			return p, OwnerID, false
		}
	}
	if f.Identity == ByRow {
		if p.Ref = cells[Ref]; !isText(p.Ref) {
			return p, Ref, false
		}
	}
	if p.Expiry.When == Never {
		p.Expiry = f.reckoned(p.Type)
	}
	return p, 0, true
}

// reckoned returns the expiry of a row that has none.
func (f *Flags) reckoned(t Type) Expiry {
	in := f.ExpiresIn
	switch {
	case in == 0 && t != Temporary:
		return Expiry{}
	case in == 0:
		in = f.TemporaryTTL
	}
	if in == 0 {
		in = DefaultTemporaryTTL
	}
	return Expiry{Reckoned, int64(in / time.Second)}
}

// ParseExpiry reads a time as [profile.ParseTime] does, such as one of RFC 3339, a date or Unix
// seconds. A fraction of a second is dropped.
func ParseExpiry(cell []byte) (Expiry, bool) {
	if s, ok := parseUTC(cell); ok {
		return Expiry{At, s}, true
	}
	if t, ok := profile.ParseTime(cell); ok {
		return Expiry{At, t.Unix()}, true
	}
	return Expiry{}, false
}

// IsNone reports whether a cell of expiry or limit is not empty, but a word for none as programs write
// it: null, never, 0, 0001-01-01T00:00:00Z.
func IsNone(c Column, cell []byte) bool {
	return len(bytes.TrimSpace(cell)) > 0 && (c == ExpiresAt && profile.IsNoTime(cell) || c == MaxUses && !profile.IsSet(cell))
}

// IsDate reports whether an expiry that can be read is a date without a time, so that it is 00:00 UTC
// of that day.
func IsDate(cell []byte) bool {
	return len(bytes.TrimSpace(cell)) == len(time.DateOnly) && bytes.Count(cell, []byte("-")) == 2
}

// ParseLimit reads a whole number of 1 or more, in decimal, that fits into 63 bits.
func ParseLimit(cell []byte) (int64, bool) {
	var n int64
	for _, b := range cell {
		digit := int64(b - '0')
		if b < '0' || b > '9' || n > (1<<63-1-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, n > 0
}

// ParseType reads PERMANENT or TEMPORARY, in any case.
func ParseType(cell []byte) (Type, bool) {
	for t := Permanent; t <= Temporary; t++ {
		if len(cell) == len(types[t]) && bytes.EqualFold(cell, []byte(types[t])) {
			return t, true
		}
	}
	return NoType, false
}

// isText reports whether a store can hold a text: it is UTF-8 without U+0000, which PostgreSQL
// refuses.
func isText(cell []byte) bool { return bytes.IndexByte(cell, 0) < 0 && utf8.Valid(cell) }

// wanted says what the cell of a column must be.
var wanted = [ColumnCount]string{
	"a time such as 2026-01-31T18:00:00Z, 2026-01-31 or 1769882400", "a whole number of 1 or more", "PERMANENT or TEMPORARY",
	"UTF-8 without U+0000", "UTF-8 without U+0000",
}

// Detail tells a person why a cell of the column, under the name that it has in the input, is a
// BadParameter.
func (c Column) Detail(name string, cell []byte) string {
	return fmt.Sprintf("%s: %.64q is not %s", name, cell, wanted[c])
}
