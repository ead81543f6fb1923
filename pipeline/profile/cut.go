package profile

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A Cut says how a code is cut out of a cell. A column is written with its cut as path(COLUMN)
// or trim(COLUMN).
type Cut string

const (
	Plain Cut = ""
	Path  Cut = "path" // of a URL or a path: what follows the host and one slash, up to a query or fragment
	Trim  Cut = "trim" // all but slashes on both ends
)

// Of returns the code in a cell, a part of it; empty: there is none. Bytes are kept as they are.
func (c Cut) Of(cell []byte) []byte {
	switch c {
	case Path:
		return path(cell)
	case Trim:
		return bytes.Trim(cell, "/")
	}
	return cell
}

// Cell appends a cell out of which c cuts the code that it has cut out of another one.
func (c Cut) Cell(dst, code []byte) []byte {
	if c == Path {
		dst = append(dst, '/')
	}
	return append(dst, code...)
}

// path returns the path of a URL, which may lack its scheme, or scheme and host, without one slash
// before it.
func path(cell []byte) []byte {
	cell, _ = afterScheme(cell)
	start := bytes.IndexAny(cell, "/?#")
	if start < 0 || cell[start] != '/' {
		return nil
	}
	cell = cell[start+1:]
	if end := bytes.IndexAny(cell, "?#"); end >= 0 {
		cell = cell[:end]
	}
	return cell
}

// Cells returns the elements of the cell of a list column, which is a JSON array of strings. Any
// other cell is taken as a whole.
func Cells(list []byte) (cells [][]byte) {
	var elements []json.RawMessage
	if json.Unmarshal(list, &elements) != nil {
		return [][]byte{list}
	}
	for _, element := range elements {
		var text string
		switch {
		case string(element) == "null":
		case json.Unmarshal(element, &text) == nil:
			cells = append(cells, []byte(text))
		default: // a number, as it is written
			cells = append(cells, element)
		}
	}
	return cells
}

// ParseColumn parses the name of a column, which may stand in path(…), trim(…), list(…), or in one
// of the first two in list(…).
func ParseColumn(text string) (c Column) {
	text, c.List = inside(text, "list")
	for _, cut := range []Cut{Path, Trim} {
		if name, ok := inside(text, string(cut)); ok {
			text, c.Cut = name, cut
			break
		}
	}
	c.Name = text
	return c
}

func inside(text, word string) (string, bool) {
	if rest, ok := strings.CutPrefix(text, word+"("); ok && strings.HasSuffix(rest, ")") {
		return rest[:len(rest)-1], true
	}
	return text, false
}

// String returns the column as ParseColumn takes it.
func (c Column) String() string {
	text := c.Name
	if c.Cut != Plain {
		text = string(c.Cut) + "(" + text + ")"
	}
	if c.List {
		text = "list(" + text + ")"
	}
	return text
}
