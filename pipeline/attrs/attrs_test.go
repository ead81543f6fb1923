package attrs

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/sink"
)

var fields = []Field{
	{Name: "a\"b"}, {Name: "clicks", Form: Count}, {Name: "created_at", Form: Time}, {Name: "tags", Form: Tags, Separator: "|"}, {Name: "title"},
}

// object makes the object of these cells.
func object(fields []Field, cells ...string) string {
	return string(Append(nil, fields, func(i int) []byte { return []byte(cells[i]) }))
}

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		cells [5]string
		want  string
	}{
		{[5]string{}, ``},
		{[5]string{" ", "\t", "\u00a0", " ", "\n"}, ``},
		{[5]string{"", "", "", "|", ""}, ``},
		{[5]string{"", "", "", "[]", "x"}, `{"title":"x"}`},
		{[5]string{"x", " 12 ", "2014-03-01 10:11:12", "b|a|b", "Tea & <cake>"},
			`{"a\"b":"x","clicks":12,"created_at":"2014-03-01T10:11:12Z","tags":["b","a"],"title":"Tea & <cake>"}`},
		{[5]string{"", "007", "2014-03-01T10:11:12.500+01:00", `["x","y|z"]`, " \"a\\b\" "},
			`{"clicks":7,"created_at":"2014-03-01T09:11:12.5Z","tags":["x","y|z"],"title":" \"a\\b\" "}`},
		{[5]string{"", "000", "1709287872", "", "é日\u2028\u2029\u2027"},
			`{"clicks":0,"created_at":"2024-03-01T10:11:12Z","title":"é日\u2028\u2029` + "\u2027\"}"},
		{[5]string{"", "999999999999999999"}, `{"clicks":999999999999999999}`},
		{[5]string{"", "1000000000000000000"}, `{"clicks":"1000000000000000000"}`},
		{[5]string{"", "-1"}, `{"clicks":"-1"}`},
		{[5]string{"", "1,234", "0000-00-00 00:00:00"}, `{"clicks":"1,234","created_at":"0000-00-00 00:00:00"}`},
		{[5]string{"a\x00b\xff", "\xff", "\xff", "a\xff|a%FF", "\x01\x1f\x7f\b\t\n\f\r"},
			`{"a\"b":"a%00b%FF","clicks":"%FF","created_at":"%FF","tags":["a%FF"],"title":"\u0001\u001f` + "\x7f" + `\b\t\n\f\r"}`},
		{[5]string{"", "", "", `["a\u0000","a%00","\ud800"]`}, `{"tags":["a%00",` + "\"\ufffd\"]}"},
		{[5]string{"", "", "", "a\x00|a%00"}, `{"tags":["a%00"]}`},
	} {
		if got := object(fields, tt.cells[:]...); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.cells, got, tt.want)
		}
	}
}

// Bytes before the object stay, and count for nothing.
func TestAppendTo(t *testing.T) {
	for cell, want := range map[string]string{"": "{", "x": `{{"n":"x"}`} {
		if got := Append([]byte("{"), []Field{{Name: "n"}}, func(int) []byte { return []byte(cell) }); string(got) != want {
			t.Errorf("%q: %s", cell, got)
		}
	}
}

// wayBack returns the cells that an export has for the members of an object.
func wayBack(t *testing.T, object string) []string {
	members := map[string]json.RawMessage{}
	if object != "" {
		if err := json.Unmarshal([]byte(object), &members); err != nil {
			t.Fatalf("%q: %v", object, err)
		}
	}
	cells := make([]string, len(fields))
	for i, f := range fields {
		if value := members[f.Name]; json.Unmarshal(value, &cells[i]) != nil {
			cells[i] = string(value)
		}
	}
	return cells
}

// An object is in the form in which a store exports it, and the exported cells give it again.
func FuzzAppend(f *testing.F) {
	f.Add("a", "12", "2014-03-01 10:11:12", "a|b", "title")
	f.Add("\xff\x00", "007", "1709287872123", `[{"name":"a"},"b\u0000"]`, "\u2028 \\ <&>")
	f.Add(" ", "x", "0001-01-01T00:00:00+01:00", "\xe2|\x80\xa8", "\"")
	f.Fuzz(func(t *testing.T, a, b, c, d, e string) {
		first := object(fields, a, b, c, d, e)
		if first != "" {
			if first == "{}" || !utf8.ValidString(first) {
				t.Errorf("%q", first)
			}
			if stored := string(sink.AppendJSON(nil, []byte(first))); stored != first {
				t.Errorf("%q is exported as %q", first, stored)
			}
		}
		if again := object(fields, wayBack(t, first)...); again != first {
			t.Errorf("%q becomes %q", first, again)
		}
		if strings.Contains(strings.ReplaceAll(first, `\\`, ""), `\u0000`) {
			t.Errorf("%q has NUL", first)
		}
	})
}

// Strings are those of encoding/json.
func FuzzString(f *testing.F) {
	f.Add([]byte("a\"\\\x00\x01\x1f\x7f\b\t\n\f\r\u2028\u2029\u2027\u202a<&>日\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		text = canon.EscapeInvalid(text)
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(strings.ReplaceAll(string(text), "\x00", "%00")); err != nil {
			t.Fatal(err)
		}
		if got := appendString(nil, text); string(got)+"\n" != want.String() {
			t.Errorf("%q: %s, want %s", text, got, &want)
		}
	})
}

func TestAppendAllocatesNothing(t *testing.T) {
	cells := [][]byte{[]byte("a"), []byte("12"), nil, nil, []byte(`Spring, the "big" sale: Menü`)}
	dst := make([]byte, 0, 200)
	if n := testing.AllocsPerRun(100, func() { Append(dst, fields, func(i int) []byte { return cells[i] }) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	cells := [][]byte{[]byte("a"), []byte("12"), []byte("2014-03-01 10:11:12"), []byte("sale|spring"), []byte(`Spring, the "big" sale: Menü`)}
	dst := make([]byte, 0, 200)
	for b.Loop() {
		Append(dst, fields, func(i int) []byte { return cells[i] })
	}
}
