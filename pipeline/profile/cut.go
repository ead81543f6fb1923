package profile

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/linkforge/bulk/codegen"
)

// A Cut says how a code is cut out of a cell: one of those below, or several joined by (, of which
// the last is the first to be applied. A column is written with its cut as path(COLUMN) or
// trim(path(COLUMN)).
type Cut string

const (
	Plain Cut = ""
	Path  Cut = "path" // of a URL or a path: what follows the host and one slash, up to one slash at the end, a query or a fragment
	Trim  Cut = "trim" // all but slashes on both ends
)

// Of returns the code in a cell; empty: there is none. It is a part of the cell, or of a path the code of
// it (codegen.FromPath).
func (c Cut) Of(cell []byte) []byte {
	if c.HasPath() {
		return codegen.FromPath(c.cut(cell))
	}
	return c.cut(cell)
}

// cut returns a part of a cell as it is written there.
func (c Cut) cut(cell []byte) []byte {
	switch c {
	case Plain:
		return cell
	case Path:
		return bytes.TrimSuffix(PathOf(cell), []byte("/"))
	case Trim:
		return bytes.Trim(cell, "/")
	}
	outer, inner, _ := strings.Cut(string(c), "(")
	return Cut(outer).cut(Cut(inner).cut(cell))
}

// HasPath reports whether the cell is taken for a URL.
func (c Cut) HasPath() bool { return strings.Contains(string(c), string(Path)) }

// Cell returns a cell out of which c cuts the code that it has cut out of another one, of this host;
// empty: none is known.
func (c Cut) Cell(host, code []byte) []byte {
	if !c.HasPath() {
		return bytes.Clone(code)
	}
	var cell []byte
	if len(host) == 0 && c != Path { // a slash at the beginning may be trimmed
		cell = []byte("http://")
	}
	cell = codegen.AppendPath(append(append(cell, host...), '/'), code)
	if bytes.HasSuffix(code, []byte("/")) {
		cell = append(cell, "/?"...) // neither is this one
	}
	return cell
}

// PathOf returns the path of a URL, which may lack its scheme, or scheme and host, without one slash
// before it. A single word is a path, unless it may be a host.
func PathOf(cell []byte) []byte {
	cell, known := afterScheme(cell)
	start := bytes.IndexAny(cell, "/?#")
	if start < 0 && !known && !mayBeHost(cell) {
		return cell
	}
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
		default: // a number
			cells = append(cells, AppendNumber(nil, element))
		}
	}
	return cells
}

// ParseColumn parses the name of a column, which may stand in path(…) and trim(…), also in one within
// another, and all this in list(…).
func ParseColumn(text string) (c Column) {
	text, c.List = inside(text, "list")
	var cuts []string
	for found := true; found; {
		found = false
		for _, cut := range []Cut{Path, Trim} {
			if name, ok := inside(text, string(cut)); ok {
				text, cuts, found = name, append(cuts, string(cut)), true
			}
		}
	}
	c.Name, c.Cut = text, Cut(strings.Join(cuts, "("))
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
		text = string(c.Cut) + "(" + text + strings.Repeat(")", 1+strings.Count(string(c.Cut), "("))
	}
	if c.List {
		text = "list(" + text + ")"
	}
	return text
}
