package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/columns"
)

// jsonRejects tells what a detail of JSON ends with from what it says.
func jsonRejects(recs []rec) []rec {
	for i := range recs {
		recs[i].detail = strings.TrimSuffix(recs[i].detail, jsonCells)
	}
	return recs
}

func TestJSON(t *testing.T) {
	for _, tt := range []struct {
		name, data string
		columns    string
		want       []string // or an error
	}{
		{"an array", `[{"url":"http://a/","n":1},{"n":-2.50e3,"url":"http://b/"}]`, "url n",
			[]string{`1@1 "http://a/|1"`, `2@27 "http://b/|-2.50e3"`}},
		{"lines", "{\"url\":\"a\"}\r\n\r\n  {\"url\":\"b\",\"late\":true}\n", "url late", []string{`1@0 "a|∅"`, `2@17 "b|true"`}},
		{"no end of line", `{"url":"a"}`, "url", []string{`1@0 "a"`}},
		{"objects one after the other", "{\n \"url\": \"a\"\n}\n{\n \"url\": \"b\" }{\"url\":\"c\"} {\"url\":\"d\"}", "url",
			[]string{`1@0 "a"`, `2@16 "b"`, `3@31 "c"`, `4@43 "d"`}},
		{"byte order mark", "\xef\xbb\xbf[ {\"url\":\"a\"} ]\n\n", "url", []string{`1@5 "a"`}},
		{"UTF-16", "\xff\xfe{\x00\"\x00u\x00\"\x00:\x00\"\x00\xe9\x00\"\x00}\x00", "u", []string{`1@3 "é"`}},
		{"nested", `[{"data":{"url":"a","x":{"y":1}}},{"data":{"x":{"z":2}}},{"data":null}]`, "data.url data.x.y data.x.z",
			[]string{`1@1 "a|1|∅"`, `2@34 "∅|∅|2"`}},
		{"null, absent and empty", `{"url":"","a":null}{"url":null}{}{"url":"","a":1}`, "url a", []string{`4@33 "|1"`}},
		{"lists and empty objects", `[{"url":"a","tags":[ "x y" , {"k" : 1.0} ],"o":{ }}]`, "url tags o", []string{`1@1 "a|[\"x y\",{\"k\":1.0}]|{}"`}},
		{"an object and a value", `{"url":"a","m":{"k":1}}{"url":"b","m":"x"}`, "url m m.k", []string{`1@0 "a|∅|1"`, `2@23 "b|x|∅"`}},
		{"two names of one path", `{"url":"a","m.k":1,"m":{"k":2}}`, "url m.k m.k_2", []string{`1@0 "a|1|2"`}},
		{"escapes", `{"\u0075rl":"http:\/\/a\/\"\\\b\f\n\r\t\u00e9\ud83d\ude00\u0000"}`, "url",
			[]string{`1@0 "http://a/\"\\\b\f\n\r\té😀\x00"`}},
		{"no name", `{"":1,"url":2}`, "column_1 url", []string{`1@0 "1|2"`}},
		{"members twice", `[{"url":"a"},{"url":"b","n":1,"url":"c"},{"url":"d","m":{"x":1},"m":{"y":2}},{"url":"e"}]`, "url n m.x m.y", []string{
			`1@1 "a|∅|∅|∅"`,
			`2@13 malformed_row (two members have the name "url") "{\"url\":\"b\",\"n\":1,\"url\":\"c\"}"`,
			`3@41 malformed_row (two members have the name "m") "{\"url\":\"d\",\"m\":{\"x\":1},\"m\":{\"y\":2}}"`,
			`4@77 "e|∅|∅|∅"`}},
		{"strings that are none", "[{\"url\":\"\xff\"},{\"url\":\"\\ud800\"},{\"url\":\"\\ude00\\ud83d\"},{\"url\":\"\\ud800\\u0041\"},{\"\\ud800x\":1},{\"url\":\"a\"}]", "url", []string{
			"1@1 malformed_row (bytes that are not UTF-8) \"{\\\"url\\\":\\\"\\xff\\\"}\"",
			`2@13 malformed_row (a string has half of a surrogate pair) "{\"url\":\"\\ud800\"}"`,
			`3@30 malformed_row (a string has half of a surrogate pair) "{\"url\":\"\\ude00\\ud83d\"}"`,
			`4@53 malformed_row (a string has half of a surrogate pair) "{\"url\":\"\\ud800\\u0041\"}"`,
			`5@76 malformed_row (a string has half of a surrogate pair) "{\"\\ud800x\":1}"`,
			`6@90 "a"`}},
		{"no objects", `[1,"x",[{"url":"in"}],null,{"url":"a"}]`, "url", []string{
			`1@1 malformed_row (a number where there should be an object) "1"`,
			`2@3 malformed_row (a string where there should be an object) "\"x\""`,
			`3@7 malformed_row (an array where there should be an object) "[{\"url\":\"in\"}]"`,
			`4@22 malformed_row (true, false or null where there should be an object) "null"`,
			`5@27 "a"`}},
		{"only no objects", `["http://a/"]`, "column_1", []string{`1@1 malformed_row (a string where there should be an object) "\"http://a/\""`}},
		{"broken lines", "{\"url\":\"a\"\n{\"url\":\"b\"}\nx\n{\"url\":\"c\"} y \r\n{\"url\":\"d\"}{\"url\":\n{\"url\":\"e\"}\n{\"url\":\"f}\n{url:1} {\"url\":\"g\"}\n42", "url", []string{
			`1@0 malformed_row (unexpected end of JSON input (byte 10 of the record)) "{\"url\":\"a\""`,
			`2@11 "b"`,
			`3@23 malformed_row (invalid character 'x' looking for beginning of value (byte 1 of the record)) "x"`,
			`4@25 malformed_row (invalid character 'y' after top-level value (byte 13 of the record)) "{\"url\":\"c\"} y"`,
			`5@41 "d"`,
			`6@52 malformed_row (unexpected end of JSON input (byte 7 of the record)) "{\"url\":"`,
			`7@60 "e"`,
			`8@72 malformed_row (unexpected end of JSON input (byte 10 of the record)) "{\"url\":\"f}"`,
			`9@83 malformed_row (invalid character 'u' looking for beginning of object key string (byte 2 of the record)) "{url:1}"`,
			`10@91 "g"`,
			`11@103 malformed_row (a number where there should be an object) "42"`}},
		{"the first line is broken", "{\"url\":\n\"a\"\n{\"url\":\"b\"}", "url", []string{
			`1@0 malformed_row (unexpected end of JSON input (byte 7 of the record)) "{\"url\":"`,
			`2@8 malformed_row (a string where there should be an object) "\"a\""`,
			`3@12 "b"`}},
		{"long", `[{"url":"` + strings.Repeat("a", 90) + `"},{"url":"b"}]`, "url", []string{
			`1@1 field_too_long (the record is longer than 70 bytes; raw has the first 70 of its 100 bytes) "{\"url\":\"` + strings.Repeat("a", 62) + `"`,
			`2@102 "b"`}},
		{"a long line", `{"url":"` + strings.Repeat("a", 90) + "\"}\n{\"url\":\"b\"}", "url", []string{
			`1@0 field_too_long (the record is longer than 70 bytes; raw has the first 70 of its 100 bytes) "{\"url\":\"` + strings.Repeat("a", 62) + `"`,
			`2@101 "b"`}},
		{"just short enough", "{\"url\":\"" + strings.Repeat("a", 60) + "\"}\n[" + strings.Repeat(" ", 68) + "]", "url", []string{
			`1@0 "` + strings.Repeat("a", 60) + `"`,
			`2@71 malformed_row (an array where there should be an object) "[` + strings.Repeat(" ", 68) + `]"`}},
		{"nothing", " [ ] ", "column_1", nil},
		{"nothing in an object", "{}", "column_1", nil},

		{"a comma too many", `[{"url":"a"},]`, "", []string{"read - after record 1 (byte 13): ']' where there should be an element of the array"}},
		{"no comma", `[{"url":"a"} {"url":"b"}]`, "", []string{"read - after record 1 (byte 13): '{' where there should be a comma or the end of the array"}},
		{"a broken element", `[{"url":"a"},{"url":b},{"url":"c"}]`, "", []string{"read - after record 1 (byte 20): invalid character 'b' looking for beginning of value"}},
		{"a quote too few", `[{"url":"a"},{"url":"b},{"url":"c"},{"url":"d}]`, "", []string{"read - after record 1 (byte 26): invalid character 'u' after object key:value pair"}},
		{"the wrong bracket", `[{"url":"a"},{"url":["b"}]`, "", []string{"read - after record 1 (byte 24): invalid character '}' after array element"}},
		{"a line end in a string", "[{},{\"url\":\"a\n\"}]", "", []string{"read - after record 1 (byte 13): invalid character '\\n' in string literal"}},
		{"cut in an element", `[{"url":"a"},{"url":"b`, "", []string{"read - after record 1 (byte 22): the text ends within the array: it is not whole"}},
		{"cut after one", `[{"url":"a"},`, "", []string{"read - after record 1 (byte 13): the text ends within the array: it is not whole"}},
		{"something follows", `[{"url":"a"}] [`, "", []string{"-: cannot tell the columns: "}},
		{"too deep", `[{"url":"a"},{"url":` + strings.Repeat("[", 10_001), "", []string{"read - after record 1 (byte 10019): the brackets of a value do not match"}},
	} {
		for _, block := range []int{1, 7, 0} {
			opts := Options{Choice: columns.Choice{URLColumn: "1"}, MaxField: 70, Block: block, Delimiter: ';', Header: HeaderNo}
			in, recs, err := readBytes([]byte(tt.data), opts)
			if tt.columns == "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.want[0]) && tt.name != "something follows" {
					t.Errorf("%s: %v", tt.name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			if got := strs(jsonRejects(recs)); in.Format != "json" || in.Dialect != nil || strings.Join(in.Columns, " ") != tt.columns || !slices.Equal(got, tt.want) {
				t.Errorf("%s, block %d: %s %v\n%s", tt.name, block, in.Format, in.Columns, strings.Join(got, "\n"))
			}
			if in.Blank != (tt.want == nil) && in.BlankRows() == 0 {
				t.Errorf("%s: blank %t", tt.name, in.Blank)
			}
		}
	}
}

// What begins with a bracket but is no JSON is read as before.
func TestBracketsInCSV(t *testing.T) {
	for data, want := range map[string]string{
		"[url],name\nhttp://a/,x\n":                  "[url]|name",
		"[1],url\nx,http://a/\n":                     "[1]|url",
		"{url},link\nx,http://a/\n":                  "{url}|link",
		"{\"id\":1},http://a/\n{\"id\":2},http://b/": "{\"id\":1}|http://a/",
	} {
		in, recs, err := readBytes([]byte(data), Options{Choice: columns.Choice{URLColumn: "2"}, Header: HeaderNo, Quote: '\''})
		if err != nil || in.Format != "csv" || recs[0].cells != want {
			t.Errorf("%q: %v %v", data, err, recs)
		}
	}
}

func TestJSONURLColumn(t *testing.T) {
	for data, want := range map[string]string{
		`{"data":{"title":"x","long_url":"http://a/"}}`:            "[1]",
		`{"user":{"url":"http://u/"},"url":"http://a/"}`:           "[1]",
		`{"a":{"b":{"link":1},"url":"http://a/"},"c":{"d":"url"}}`: "[1]",
		`{"only":{"one":1}}`:            "[0]",
		`{"a":{"url":1},"b":{"url":2}}`: `-: more than one column has a known URL name. Give the right one with Options.URLColumn, by name or number. Columns: 1 "a.url", 2 "b.url"`,
		`{"a":1,"b":2}`:                 `-: no column has a known URL name. Give the URL column with Options.URLColumn, by name or number. Columns: 1 "a", 2 "b"`,
	} {
		in, err := openBytes([]byte(data), Options{})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(in.URLs)
			in.Close()
		}
		if got != want {
			t.Errorf("%s: %s", data, got)
		}
	}
	in, err := openBytes([]byte(`{"a":{"url":1},"b":{"url":2}}`), Options{Choice: columns.Choice{URLColumn: "b.url"}})
	if err != nil || in.URLs[0] != 1 {
		t.Error(err)
	}
	in.Close()
}

// An array, lines and CSV of the same rows give the same cells, in any compression, from a file
// and from a stream, by any number of workers and in blocks of any size.
func TestJSONAsCSV(t *testing.T) {
	csv, lines := "url,title,n\n", ""
	for i := range 5000 {
		url, title := fmt.Sprintf("http://a/%d?b=\"c\"&d", i), strings.Repeat("é ", i%40)
		csv += fmt.Sprintf("\"%s\",%s,%d\n", strings.ReplaceAll(url, `"`, `""`), title, i)
		quoted, _ := json.Marshal(url)
		lines += fmt.Sprintf("{\"n\" : %d, \"title\":%q,\"url\":%s}\n", i, title, quoted)
	}
	_, want, err := readBytes([]byte(csv), Options{})
	if err != nil {
		t.Fatal(err)
	}
	array := "[" + strings.ReplaceAll(strings.TrimSpace(lines), "}\n", "},\n") + "]"
	for _, text := range []string{lines, array} {
		for name, data := range map[string][]byte{"": []byte(text), "gzip": gzipped([]byte(text)), "zstd": zstded([]byte(text))} {
			file := write(t, "input", data)
			for _, from := range []string{file, "-"} {
				for _, workers := range []int{1, 4} {
					in, err := Open(context.Background(), from, Options{Stdin: bytes.NewReader(data), Block: 1000, BatchRows: 700})
					if err != nil {
						t.Fatal(err)
					}
					recs, err := collectBy(in, workers)
					if err != nil || len(recs) != len(want) || in.Records() != int64(len(want)) || in.Size() != int64(len(data)) || in.Compression != name {
						t.Fatalf("%q %s: %d records, size %d, %v", name, from, len(recs), in.Size(), err)
					}
					for i, r := range recs {
						cells := strings.Split(r.cells, "|")
						if got := cells[2] + "|" + cells[1] + "|" + cells[0]; got != want[i].cells || r.row != want[i].row || text[r.offset] != '{' {
							t.Fatalf("%v, want %v", r, want[i])
						}
					}
				}
			}
		}
	}
}

func TestJSONLimit(t *testing.T) {
	sums := map[[32]byte]bool{}
	for _, data := range []string{`[{"url":"a"},{"url":"b"},{"url":"c"}]`, "{\"url\":\"a\"}\n{\"url\":\"b\"}\n{\"url\":\"c\"}"} {
		for limit, cut := range map[int64]bool{1: true, 2: true, 3: false, 4: false} {
			in, err := openBytes([]byte(data), Options{})
			if err != nil {
				t.Fatal(err)
			}
			in.Limit = limit
			recs, err := collectBy(in, 3)
			if err != nil || int64(len(recs)) != min(limit, 3) || in.Cut() != cut {
				t.Errorf("limit %d: %v, cut %t, %v", limit, recs, in.Cut(), err)
			}
			if sums[in.SHA256()] = true; !cut && in.Size() != int64(len(data)) {
				t.Error(in.Size())
			}
		}
	}
	if len(sums) != 4 { // two of records, and those of the two texts
		t.Errorf("%d digests", len(sums))
	}
}

// Hostile numbers of names are refused; brackets and quotes that are never closed take time in
// proportion.
func TestJSONBounds(t *testing.T) {
	var many strings.Builder
	for i := range columns.MaxColumns + 1 {
		fmt.Fprintf(&many, "{\"k%d\":1}\n", i)
	}
	deep := strings.Repeat(`{"key":`, 200) + "1" + strings.Repeat("}", 200)
	for data, most := range map[string]int{many.String(): 0, deep: len(deep)} {
		if _, err := openBytes([]byte(data), Options{MaxField: most}); !errors.As(err, new(*columns.UsageError)) || !strings.Contains(err.Error(), "members of different names") {
			t.Errorf("%.50s: %v", data, err)
		}
	}
	for _, line := range []string{`{"a":`, `{"a":"`, `{"a":[`, "{", "[", `"`, "{}{"} {
		data := `{"url":"a"}` + "\n" + strings.Repeat(line+"\n", 3000) + `{"url":"b"}`
		_, recs, err := readBytes([]byte(data), Options{Choice: columns.Choice{URLColumn: "1"}})
		if err != nil || len(recs) < 3002 || recs[len(recs)-1].cells != "b" && line != "{}{" {
			t.Errorf("%q: %d records, %v", line, len(recs), err)
		}
	}
}

// FuzzJSON reads any text in blocks of two sizes and by several workers. Each record is as the
// library decodes it, and no byte but white space, commas and the brackets of the array lies
// outside of records.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`[{"url":"http:\/\/a/","n":1.5e3,"m":{"k":[1, {}],"o":{}}} , {"url":null,"n":true}]`,
		"{\"url\":\"a\"}\r\n{\"url\":\"\\ud83d\\ude00\"}{\n}\n{\"a\":1,\"a\":2}\nx\n", "[]", "[1,\"\\\"\"]", "{\"a\":\"b\n\"}\n{}", "\xef\xbb\xbf{\"a.b\":1,\"a\":{\"b\":2}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 || !isJSON(data) || isNoText(data) {
			return
		}
		read := func(opts Options, workers int) (*Input, []rec, error) {
			opts.URLColumn = "1"
			in, err := openBytes(data, opts)
			if err != nil {
				return nil, nil, err
			}
			recs, err := collectBy(in, workers)
			return in, recs, err
		}
		in, one, errOne := read(Options{}, 1)
		_, two, errTwo := read(Options{Block: 3, BatchRows: 2}, 2)
		if fmt.Sprint(errOne) != fmt.Sprint(errTwo) || !slices.Equal(one, two) {
			t.Fatalf("%v, %v\n%v\n%v", errOne, errTwo, strs(one), strs(two))
		}
		if errOne != nil || in.Format != "json" || in.BlankRows() > 0 {
			return
		}
		at := int64(0)
		array := bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(data, []byte(utf8BOM)), " \t\r\n"), []byte("["))
		for _, r := range one {
			between := strings.TrimPrefix(string(data[at:r.offset]), utf8BOM)
			if array {
				between = strings.Trim(between, ",[ \t\r\n")
			}
			if strings.Trim(between, " \t\r\n") != "" {
				t.Fatalf("%q lies before %v", between, r)
			}
			if at = r.offset + int64(len(r.raw)); r.reason != "" {
				continue
			}
			d := json.NewDecoder(bytes.NewReader(data[r.offset:]))
			var members map[string]json.RawMessage
			if err := d.Decode(&members); err != nil {
				t.Fatalf("%v: %v", r, err)
			}
			at = r.offset + d.InputOffset()
		}
		if rest := strings.Trim(string(data[at:]), " \t\r\n"); rest != "" && !(array && rest == "]") && !(array && len(one) == 0) {
			t.Fatalf("%q follows", rest)
		}
	})
}
