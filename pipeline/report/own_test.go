package report

import (
	"reflect"
	"testing"

	"github.com/linkforge/bulk/pipeline/rules"
)

// Each column that not all mappings have has one place in a row, and its cells come back from what
// Append writes.
func TestOwnColumns(t *testing.T) {
	names := map[string]bool{}
	for i := range ownColumns {
		c := &ownColumns[i]
		if names[c.Name] {
			t.Errorf("%s: there are two", c.Name)
		}
		names[c.Name] = true
		places := 0
		for _, set := range []bool{c.Text != nil, c.Number != nil, c.Salt != nil, c.Flag != nil, c.Change != nil} {
			if set {
				places++
			}
		}
		if i < plainColumns {
			if places != 0 || c.has != nil {
				t.Errorf("%s: a plain column has a place", c.Name)
			}
			continue
		}
		if places != 1 || c.has == nil {
			t.Errorf("%s: %d places", c.Name, places)
			continue
		}
		for _, text := range []string{"", "x", "1"} {
			row := Row{LinkSalt: -1}
			setCell(c, &row, text)
			data := append(c.Append(nil, &row), "rest"...)
			back := Row{LinkSalt: -1}
			setCell(c, &back, "another")
			if rest := c.Cut(data, &back); string(rest) != "rest" || !reflect.DeepEqual(back, row) {
				t.Errorf("%s: %q: read back as %+v, want %+v, and %q", c.Name, text, back, row, rest)
			}
		}
	}
}

// setCell sets a cell to what stands for a text; "" is null.
func setCell(c *Column, r *Row, text string) {
	switch {
	case c.Text != nil:
		if *c.Text(r) = nil; text != "" {
			*c.Text(r) = []byte(text)
		}
	case c.Number != nil:
		*c.Number(r) = int64(1000 * len(text))
	case c.Salt != nil:
		*c.Salt(r) = len(text) - 1
	case c.Flag != nil:
		*c.Flag(r) = text != ""
	default:
		*c.Change(r) = rules.Change(len(text) % 3)
	}
}
