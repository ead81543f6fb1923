package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/rules"
)

// Of several reasons the first is told. Each line mends what the line before it was rejected for.
func TestOrderOfReasons(t *testing.T) {
	j := &Judge{
		Hygiene: &hygiene.Rules{Policy: hygiene.Defaults(), ShortDomains: map[string]bool{"go.example": true}, AsOf: time.Unix(0, 0)},
		Codes:   &Codes{Mode: legacy.Keep, Rules: legacy.Rules{Reserved: map[string]bool{"admin": true}}, Pattern: legacy.DefaultPattern},
		Rules:   &rules.Flags{},
	}
	columns := &Columns{Input: "a.csv", Names: []string{"password", "uses"}, Hygiene: &hygiene.Columns{Password: []int{0}}, Params: [rules.ColumnCount]int{-1, 1, -1, -1, -1}}
	cells := []string{"secret", "many"}
	r := &Row{Number: 1, Cell: func(column int) []byte { return []byte(cells[column]) }}
	placed := false
	expect := func(reason, detail string) {
		t.Helper()
		r.Canonical = append(r.Canonical[:0], "kept "...)
		got, text := j.Row(columns, r)
		if got != reason || !strings.Contains(text, detail) || r.Placed != placed || !strings.HasPrefix(string(r.Canonical), "kept ") {
			t.Errorf("%q: %q, placed %t, %q; want %q", got, text, r.Placed, r.Canonical, reason)
		}
	}
	expect("protected", "password")
	cells[0] = ""
	expect("missing_url", "blank")
	r.Original = []byte("go.example/x")
	expect("missing_scheme", "")
	r.Original, r.Workspace = []byte("HTTPS://go.example/x"), []byte("a|b")
	expect("bad_workspace", "a|b")
	r.Workspace, r.Code, placed = []byte("w"), []byte("a/b"), true
	expect("bad_code", legacy.DefaultPattern)
	r.Code = []byte("admin")
	expect("code_reserved", "admin")
	r.Code, r.Reserved = []byte("x"), true // as a run says whose list is not here
	expect("code_reserved", "x")
	r.Reserved = false
	expect("bad_parameter", "uses")
	cells[1] = "3"
	expect("loop", "")
	if r.Params.Limit != 3 || !r.Found.Has(hygiene.Loop) || string(r.Canonical) != "kept https://go.example/x" || r.Changes == 0 {
		t.Errorf("%+v", r)
	}
	r.Original, r.Code = []byte("https://a.example/"), nil
	expect("", "")
	if r.Found != 0 || r.Changes != 0 {
		t.Errorf("%+v has what the row before it had", r)
	}
}

// A code that is not kept may be any text; it may be reserved.
func TestCodesThatAreNotKept(t *testing.T) {
	j := &Judge{Codes: &Codes{Mode: legacy.Map, Rules: legacy.Rules{Reserved: map[string]bool{"admin": true}}, Pattern: legacy.DefaultPattern}}
	for code, want := range map[string]string{"a/b": "", "admin": "", "é": "", "a\n": "bad_code", "\xff": "bad_code"} {
		if reason, _ := j.Code([]byte(code), false); reason != want {
			t.Errorf("%q: %q, want %q", code, reason, want)
		}
	}
}
