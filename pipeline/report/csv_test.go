package report

import (
	"bytes"
	"encoding/csv"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/outcome"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got\n%s\nwant\n%s", path, got, want)
	}
}

func TestCell(t *testing.T) {
	tests := []struct{ name, cell, plain, safe string }{
		{"empty", "", "", ""},
		{"ordinary", "http://example.com/", "http://example.com/", "http://example.com/"},
		{"comma", "a,b", `"a,b"`, `"a,b"`},
		{"comma only", ",", `","`, `","`},
		{"comma at the end of a word", "1234567,", `"1234567,"`, `"1234567,"`},
		{"comma past a word", "12345678,", `"12345678,"`, `"12345678,"`},
		{"quote", `say "hi"`, `"say ""hi"""`, `"say ""hi"""`},
		{"line feed", "a\nb", "\"a\nb\"", "\"a\nb\""},
		{"carriage return", "a\rb", "\"a\rb\"", "\"a\rb\""},
		{"spaces at the ends", " a ", " a ", " a "},
		{"semicolon", "a;b", "a;b", "a;b"},
		{"tab inside", "a\tb, or longer", "\"a\tb, or longer\"", "\"a\tb, or longer\""},
		{"tab inside, nothing else", "long enough\tb", "long enough\tb", "long enough\tb"},
		{"NUL", "a\x00b", "a\x00b", "a\x00b"},
		{"not UTF-8", "\xff\xacbcdefgh", "\xff\xacbcdefgh", "\xff\xacbcdefgh"},
		{"high bits of a comma", "aaaaaaa\xac", "aaaaaaa\xac", "aaaaaaa\xac"},
		{"equals", "=1+1", "=1+1", "'=1+1"},
		{"equals and quotes", `=HYPERLINK("x","y")`, `"=HYPERLINK(""x"",""y"")"`, `"'=HYPERLINK(""x"",""y"")"`},
		{"plus", "+1", "+1", "'+1"},
		{"minus", "-1", "-1", "'-1"},
		{"minus alone", "-", "-", "'-"},
		{"at", "@a", "@a", "'@a"},
		{"tab first", "\t=1", "\t=1", "'\t=1"},
		{"carriage return first", "\r=1", "\"\r=1\"", "\"'\r=1\""},
		{"line feed first", "\n=1", "\"\n=1\"", "\"\n=1\""},
		{"apostrophe of its own", "'=1", "'=1", "''=1"},
		{"apostrophes of its own", "''\t", "''\t", "'''\t"},
		{"apostrophe and no formula", "'a=1", "'a=1", "'a=1"},
		{"apostrophe alone", "'", "'", "'"},
		{"equals later", "a=1", "a=1", "a=1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := string(csvCells{}.append(nil, []byte(test.cell))); got != test.plain {
				t.Errorf("plain: got %q, want %q", got, test.plain)
			}
			if got := string(csvCells{excelSafe: true}.append(nil, []byte(test.cell))); got != test.safe {
				t.Errorf("excel-safe: got %q, want %q", got, test.safe)
			}
			if got := string(Undefuse(Defuse([]byte(test.cell)))); got != test.cell {
				t.Errorf("defused and back: got %q", got)
			}
		})
	}
}

func TestNeedsQuotesFindsEveryPlace(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200_000 {
		cell := make([]byte, random.IntN(40))
		for i := range cell {
			cell[i] = byte(0x2d + random.IntN(256-0x2d))
			if random.IntN(60) == 0 {
				cell[i] = byte(random.IntN(256))
			}
		}
		if got, want := needsQuotes(cell), bytes.ContainsAny(cell, ",\"\r\n"); got != want {
			t.Fatalf("needsQuotes(%q) = %t", cell, got)
		}
	}
}

func FuzzCell(f *testing.F) {
	for _, seed := range []string{"", "a,b", `"`, "\r", "a\nb", "=1", "12345678,"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, cell []byte) {
		if bytes.Contains(cell, []byte("\r\n")) {
			t.Skip("the standard reader drops the CR")
		}
		line := append(csvCells{}.append([]byte("x,"), cell), '\n')
		record, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil || len(record) != 2 || record[1] != string(cell) {
			t.Fatalf("%q: read back %q, %v", cell, record, err)
		}
	})
}

func TestCarriedNames(t *testing.T) {
	tests := []struct{ columns, want string }{
		{"", ""},
		{"title tags", "title tags"},
		{"source", "in_source"},
		{"source in_source", "in_source in_in_source"},
		{"in_source source", "in_source in_in_source"},
		{"row salt note", "in_row in_salt note"},
		{"twice twice", "twice in_twice"},
	}
	for _, test := range tests {
		got := CarriedNames(Columns{}.Names(), strings.Fields(test.columns))
		if !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%q: got %q, want %q", test.columns, got, test.want)
		}
	}
}

func TestRejects(t *testing.T) {
	var out bytes.Buffer
	r := NewRejects(&out, []string{"url", "row", "a, b", "raw"})
	rejects := []outcome.Reject{
		{Source: "a.csv", Row: 2, Offset: 17, Reason: "unsupported_scheme", Cells: [][]byte{[]byte("ftp://x/"), []byte("7"), nil, []byte("")}},
		{Source: "a.csv", Row: 3, Offset: 40, Reason: "malformed_row", Detail: "2 fields where the header has 4", Raw: []byte("x,\"y")},
		{Source: "b,c.parquet", Row: 1, Offset: -1, Reason: "empty", Cells: [][]byte{[]byte("\xff \n"), []byte("=1"), []byte("-"), []byte("@")}},
	}
	for i := range rejects {
		if err := r.Append(&rejects[i]); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() > 0 {
		t.Error("written before it was full")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "rejects.csv", out.Bytes())
}

func TestCollisions(t *testing.T) {
	for name, excelSafe := range map[string]bool{"collisions.csv": false, "collisions_safe.csv": true, "collisions_parts.csv": false} {
		parts := name == "collisions_parts.csv"
		var out bytes.Buffer
		c := NewCollisions(&out, excelSafe, parts)
		for _, collision := range []Collision{
			{[]byte("ws"), []byte("http://b/"), 0, []byte("11"), []byte("http://a/?x=1,2"), nil},
			{[]byte("-ws"), []byte("http://b/"), 1, []byte("12"), nil, []byte("|r=a,b")},
		} {
			if err := c.Append(&collision); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.Bytes())
	}
}

func TestRejectsKeepTheFirstError(t *testing.T) {
	w := &failingWriter{after: 1}
	r := NewRejects(w, nil)
	reject := &outcome.Reject{Raw: make([]byte, csvStep)}
	if err := r.Append(reject); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Append(reject); err != errFull {
			t.Errorf("append: got %v", err)
		}
	}
	if err := r.Close(); err != errFull {
		t.Errorf("close: got %v", err)
	}
}
