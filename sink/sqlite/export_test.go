package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// Attrs that only SQLite can have, because they are no JSON or have a NUL, are exported too.
func TestExportOfStrangeAttrs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	filled(t, path, makeLinks("w", 0, 2))
	for _, c := range []struct{ attrs, columns, cells string }{
		{`no "JSON"`, "attrs a", `no "JSON"|NULL`},
		{``, "attrs a", "|NULL"},
		{`{"a": 1} {"b": 2}`, "attrs a", `{"a": 1} {"b": 2}|NULL`},
		{`{a: 1}`, "attrs a", `{a: 1}|NULL`},
		{`{"b": "x\u0000"}`, "a b", "NULL|x\x00"},
		{`{"b\u0000": 1, "a": 2}`, "attrs", `{"a":2,"b\u0000":1}`},
	} {
		execAll(`UPDATE links SET attrs = '{"a":1}'`, "UPDATE links SET attrs = '"+c.attrs+"' WHERE short_code = (SELECT max(short_code) FROM links)")(t, path)
		from, to, last := 0, 0, ""
		noError(t, open(t, path).Export(context.Background(), "", func(columns []string) error {
			from, to = 5, len(columns)-3
			if got := strings.Join(columns[from:to], " "); got != c.columns {
				t.Errorf("%s: columns %q, want %q", c.attrs, got, c.columns)
			}
			return nil
		}, func(row [][]byte) error {
			var cells []string
			for _, cell := range row[from:to] {
				if cell == nil {
					cell = []byte("NULL")
				}
				cells = append(cells, string(cell))
			}
			last = strings.Join(cells, "|")
			return nil
		}))
		if last != c.cells {
			t.Errorf("%s: cells %q, want %q", c.attrs, last, c.cells)
		}
	}
}
