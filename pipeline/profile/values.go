package profile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// TagsOf returns the tags in a cell, in their order and without repeats: the elements of a JSON
// array, of objects their member name or title; otherwise what stands between the separators. If
// the separator is "", it is | where the cell has one, else a comma.
func TagsOf(cell []byte, separator string) (tags [][]byte) {
	parts, ok := tagArray(cell)
	if !ok {
		if separator == "" && bytes.IndexByte(cell, '|') >= 0 {
			separator = "|"
		}
		parts = bytes.Split(cell, []byte(cmp.Or(separator, ",")))
	}
	seen := map[string]bool{}
	for _, tag := range parts {
		if tag = bytes.TrimSpace(tag); len(tag) > 0 && !seen[string(tag)] {
			seen[string(tag)] = true
			tags = append(tags, tag)
		}
	}
	return tags
}

// tagArray returns the elements of a JSON array.
func tagArray(cell []byte) (tags [][]byte, ok bool) {
	var elements []json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(cell), []byte("[")) || json.Unmarshal(cell, &elements) != nil {
		return nil, false
	}
	for _, element := range elements {
		var text string
		var object struct{ Name, Title string }
		if json.Unmarshal(element, &text) != nil { // null is a text without bytes
			json.Unmarshal(element, &object)
			text = cmp.Or(object.Name, object.Title, string(element))
		}
		tags = append(tags, []byte(text))
	}
	return tags, true
}

// layouts are the forms of a time that is not a number. Each may have a fraction of seconds.
var layouts = [...]string{
	time.RFC3339, "2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700",
	"2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 Z0700", "2006-01-02 15:04:05 UTC",
	"2006-01-02T15:04:05Z07", "2006-01-02 15:04:05Z07", // as PostgreSQL writes it
	time.DateOnly,
}

// ParseTime reads a time: as of RFC 3339, the offset also as +0000 or +00; the same with a space for the T,
// where the offset may be missing or follow a space, and be UTC; a date; Unix seconds of 9 or 10
// digits; Unix milliseconds of 13, of both also what data frames make of them, such as 1.6094592e+09. A
// time without an offset is in UTC, as is the result. Its year is 1 to 9999.
func ParseTime(cell []byte) (time.Time, bool) {
	var buf [40]byte // longer than most
	text := strings.ToUpper(string(AppendNumber(buf[:0], bytes.TrimSpace(cell))))
	t, ok := parseUnix(text)
	const date = len(time.DateOnly)
	for i := 0; i < len(layouts) && !ok; i++ {
		layout := layouts[i]
		if len(layout) > date && len(text) > date && layout[date] != text[date] { // T or a space
			continue
		}
		var err error
		t, err = time.Parse(layout, text)
		ok = err == nil
	}
	t = t.UTC()
	if !ok || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, false
	}
	return t, true
}

func parseUnix(text string) (time.Time, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	switch {
	case err != nil:
	case len(text) == 9 || len(text) == 10:
		return time.Unix(int64(n), 0), true
	case len(text) == 13:
		return time.UnixMilli(int64(n)), true
	}
	return time.Time{}, false
}

// ParseCount reads a whole number of at most 18 digits, of which data frames may have made a 5.0, and
// decimals a 5.00. Blanks around it do not count.
func ParseCount(cell []byte) (n int64, ok bool) {
	cell = bytes.TrimSpace(cell)
	if whole := bytes.TrimSuffix(bytes.TrimRight(cell, "0"), []byte(".")); bytes.HasPrefix(cell[len(whole):], []byte(".0")) {
		cell = whole
	}
	for _, b := range cell {
		if b < '0' || b > '9' {
			return 0, false
		}
		n = n*10 + int64(b-'0')
	}
	return n, 0 < len(cell) && len(cell) <= 18
}

// ParseMean reads a number that is not negative and below 10^15, such as 12.5. Blanks around it do not
// count.
func ParseMean(cell []byte) (x float64, ok bool) {
	cell = bytes.TrimSpace(cell)
	if len(cell) == 0 || cell[0] < '0' || cell[0] > '9' {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(cell), 64)
	return x, err == nil && x < 1e15 && !bytes.ContainsAny(cell, "_xX")
}

// IsTrue reports whether a cell says yes. Blanks around a word and its case do not count, here and
// below.
func IsTrue(cell []byte) bool {
	var buf word
	switch string(buf.of(cell)) {
	case "true", "1", "yes", "y", "t", "on":
		return true
	}
	return isDead(cell)
}

// IsFalse reports whether a cell says no.
func IsFalse(cell []byte) bool {
	var buf word
	switch string(buf.of(cell)) {
	case "false", "0", "no", "n", "f", "off":
		return true
	}
	return isDead(cell)
}

// IsOver reports whether a cell says that a link does not work at a time: yes, or since when.
func IsOver(cell []byte, at time.Time) bool {
	if IsTrue(cell) {
		return true
	}
	if cell = bytes.TrimSpace(cell); len(cell) < 9 || cell[0] < '0' || cell[0] > '9' { // as nearly always
		return false
	}
	since, ok := ParseTime(cell)
	return ok && !IsNoTime(cell) && !since.After(at)
}

// IsState reports whether a cell says in a way that is understood whether a link works. A time is
// understood only as of IsOver.
func IsState(cell []byte) bool {
	var buf word
	switch string(buf.of(cell)) {
	case "active", "enabled", "live", "expired":
		return true
	}
	return IsTrue(cell) || IsFalse(cell) || IsNoTime(cell)
}

// IsExpired reports whether a cell is the word for a link that has expired.
func IsExpired(cell []byte) bool {
	var buf word
	return string(buf.of(cell)) == "expired"
}

// ParseRedirect reads the status of HTTP with which a link redirects: 301, 302, 307 or 308.
func ParseRedirect(cell []byte) (code int64, ok bool) {
	switch code, _ = ParseCount(cell); code {
	case 301, 302, 307, 308:
		return code, true
	}
	return 0, false
}

// IsGone reports whether a cell is 410, the status of a link that no longer works.
func IsGone(cell []byte) bool {
	code, _ := ParseCount(cell)
	return code == 410
}

// A Life is what a cell says of whether a link works.
type Life int

const (
	Unsaid  Life = iota // nothing
	Works               // it does, perhaps with a redirect code
	Dead                // it no longer does
	Ended               // it has expired
	Unclear             // the cell is not understood
)

// LifeOf reads a cell of the role Status: a redirect code, 410, or a word. Neither yes nor no is one: they
// mean something else to each program.
func LifeOf(cell []byte) Life {
	var buf word
	switch string(buf.of(cell)) {
	case "", "null", `\n`, "none":
		return Unsaid
	case "active", "enabled", "live":
		return Works
	case "expired":
		return Ended
	}
	if _, ok := ParseRedirect(cell); ok {
		return Works
	}
	if isDead(cell) || IsGone(cell) {
		return Dead
	}
	return Unclear
}

// isDead reports whether a cell is a word for a link that no longer works: yes to the question
// whether it is archived, no to the question whether it is enabled.
func isDead(cell []byte) bool {
	var buf word
	switch string(buf.of(cell)) {
	case "archived", "banned", "disabled", "inactive", "deleted":
		return true
	}
	return false
}

// IsNoTime reports whether a cell where a time may stand is a word for none, as programs write it:
// what is not IsSet, a word for ever, a date of only zeros, the first second of the year 1.
func IsNoTime(cell []byte) bool {
	if !IsSet(cell) {
		return true
	}
	var buf word
	switch string(buf.of(cell)) {
	case "never", "infinity":
		return true
	}
	if cell = bytes.TrimSpace(cell); cell[0] != '0' {
		return false
	}
	t, ok := ParseTime(cell)
	return ok && t.IsZero() && len(cell) > len(time.DateOnly) || bytes.HasPrefix(cell, []byte("0000-00-00"))
}

// IsSet reports whether a cell has a value: it is not blank, null or \N (so MySQL and PostgreSQL write
// it), none, an empty array or object, nor no.
func IsSet(cell []byte) bool {
	var buf word
	switch string(buf.of(cell)) {
	case "", "false", "0", "no", "f", "n", "off", "null", `\n`, "none", "{}", "[]":
		return false
	}
	return true
}

// A word has room for each word that has a meaning.
type word [len("disabled")]byte

// of returns a cell without blanks around it, in lower case if it can be such a word. Data frames make
// 1.0 and 0.0 of yes and no where a cell of the column is blank.
func (w *word) of(cell []byte) []byte {
	cell = bytes.TrimSpace(cell)
	if len(cell) == len("1.0") {
		cell = bytes.TrimSuffix(cell, []byte(".0"))
	}
	if len(cell) > len(w) {
		return cell
	}
	return appendLower(w[:0], cell)
}
