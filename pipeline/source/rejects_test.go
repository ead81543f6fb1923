package source

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/columns"
	"pgregory.net/rapid"
)

func TestRejects(t *testing.T) {
	const head = "source,row,byte_offset,reason,detail,"
	for _, tt := range []struct {
		name, in string
		opts     Options
		want     string // columns, URL columns
		recs     []string
	}{
		{"cells and raw", head + "url,team,raw\na,7,9,userinfo,d,http://u@b/,x,\na,8,20,malformed_row,edited,,,\"http://b/,y\"\n", Options{},
			"[url team] [0]", []string{`1@50 "http://u@b/|x"`, `2@82 "http://b/|y"`}},
		{"two mended lines", head + "url,team,raw\na,8,20,malformed_row,e,,,\"http://b/,y\"\na,9,20,malformed_row,e,,,\"http://bbbbbbbbbbb/,yyyy\"\n", Options{},
			"[url team] [0]", []string{`1@50 "http://b/|y"`, `2@89 "http://bbbbbbbbbbb/|yyyy"`}},
		{"reason edited", head + "url,team,raw\na,8,20,edited,e,,,\"http://b/,y,z\"\n", Options{},
			"[url team] [0]", []string{`1@50 malformed_row (e) "http://b/,y,z"`}},
		{"other delimiter", head + "url,team,raw\na,8,20,malformed_row,edited,,,http://b/;y\n", Options{},
			"[url team] [0]", []string{`1@50 "http://b/|y"`}},
		{"delimiter given", head + "url,team,raw\na,8,20,malformed_row,edited,,,\"a;b,c\"\n", Options{Delimiter: ';'},
			"[url team] [0]", []string{`1@50 "a|b,c"`}},
		{"either delimiter", head + "url,team,raw\na,8,20,malformed_row,edited,,,\"http://a/,b;c\"\n", Options{},
			"[url team] [0]", []string{`1@50 malformed_row (both ',' and ';' split the line: choose with --delimiter, or fill in the cells) "http://a/,b;c"`}},
		{"another input's columns", head + "url,team,raw\na,8,20,malformed_row,edited" + otherColumns + ",,,\"b,http://a/\"\na,9,40,malformed_row,edited" + otherColumns + ",http://c/,x,\"b,http://a/\"\n", Options{},
			"[url team] [0]", []string{`1@50 malformed_row (edited` + otherColumns + `) "b,http://a/"`, `2@158 "http://c/|x"`}},
		{"unchanged", head + "url,team,raw\na,8,20,malformed_row,3 fields where there should be 2,,,\"a;x,b,c\"\n", Options{},
			"[url team] [0]", []string{`1@50 malformed_row (3 fields where there should be 2) "a;x,b,c"`}},
		{"NUL in raw", head + "url,raw\na,8,20,malformed_row,NUL byte in field 1,,a\x00b\nb,1,0,userinfo,,c,\n", Options{},
			"[url] [0]", []string{`1@45 malformed_row (NUL byte in field 1) "a\x00b"`, `2@91 "c"`}},
		{"mended in the cells", head + "url,team,raw\na,8,20,malformed_row,3 fields where there should be 2,http://b/,x,\"http://b/,x,y\"\na,9,40,field_too_long,long,http://c/,,http://a/\n", Options{},
			"[url team] [0]", []string{`1@50 "http://b/|x"`, `2@132 "http://c/|"`}},
		{"a part of a line", head + "url,raw\na,8,20,field_too_long,long,,http://a/\n", Options{},
			"[url] [0]", []string{`1@45 field_too_long (long) "http://a/"`}},
		{"names restored", head + "in_source,link,in_raw,in_x,in_link,in_in_source,raw\na,1,0,r,,1,2,3,4,5,6,\n", Options{Choice: columns.Choice{URLColumn: "2"}},
			"[source link raw in_x in_link in_source] [1]", []string{`1@89 "1|2|3|4|5|6"`}},
		{"saved with semicolons", strings.ReplaceAll(head, ",", ";") + "url;team;raw\na;8;20;malformed_row;edited;;;http://b/,y\n", Options{},
			"[url team] [0]", []string{`1@50 "http://b/|y"`}},
		{"saved with quotes", `"` + strings.ReplaceAll(head, ",", `","`) + "url\",\"raw\"\n\"a\",\"8\",\"20\",\"malformed_row\",\"edited\",\"\",\"http://b/\"\n", Options{},
			"[url] [0]", []string{`1@59 "http://b/"`}},
		{"several URL columns", head + "url,team,link,raw\na,1,0,r,,,x,http://a/,\n", Options{},
			"[url team link] [0 2]", []string{`1@55 "|x|http://a/"`}},
		{"saved without the last delimiters", head + "url,team,note,raw\na,1,0,r,,http://a/\r\na,2,9,r,,http://b/,x\na,3,9,r,,http://", Options{},
			"[url team note] [0]", []string{`1@55 "http://a/||"`, `2@75 "http://b/|x|"`, `3@96 malformed_row (6 fields where there should be 9) "a,3,9,r,,http://"`}},
		{"broken itself", head + "url,raw\na,1\nb,2,0,r,,http://a/,\n", Options{},
			"[url] [0]", []string{`1@45 malformed_row (2 fields where there should be 7) "a,1"`, `2@49 "http://a/"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := openBytes([]byte(tt.in), tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(in.Columns, " ", in.URLs); got != tt.want || in.Format != "rejects" {
				t.Errorf("%s: %s", in.Format, got)
			}
			recs, err := collect(in)
			if got := strs(recs); err != nil || !slices.Equal(got, tt.recs) {
				t.Errorf("%v\n got %q\nwant %q", err, got, tt.recs)
			}
		})
	}
	both := head + "link,url,note,raw\na,1,0,r,,http://a/,,,\na,2,9,r,,spring,http://b/,,\n"
	want := `record 2: both "link" and "url" may be the URL: empty one of the two cells, or use Options.URLColumn NAME, or its number`
	var usage *columns.UsageError
	if _, err := openBytes([]byte(both), Options{}); !errors.As(err, &usage) || !strings.Contains(usage.Msg, want) {
		t.Errorf("%v, want %s", err, want)
	}
	if in, err := openBytes([]byte(both), Options{Choice: columns.Choice{URLColumn: "url"}}); err != nil || fmt.Sprint(in.URLs) != "[1]" {
		t.Errorf("with the column chosen: %v", err)
	}
	for _, in := range []string{"source,row,url\n", "source\nhttp://a/\n"} {
		if in, err := openBytes([]byte(in), Options{Choice: columns.Choice{URLColumn: "1"}}); err != nil || in.Format != "csv" {
			t.Errorf("taken for rejects: %v", err)
		}
	}
	for _, header := range []string{head + "url", head + "url,raw,note", head + "url,raw,", "," + head + "url,raw"} {
		if _, err := openBytes([]byte(header+"\n"), Options{Choice: columns.Choice{URLColumn: "1"}}); !errors.As(err, &usage) || !strings.Contains(err.Error(), "a rejects file must begin with") {
			t.Errorf("%s: not quite rejects, and %v", header, err)
		}
	}
}

// Where a row of rejects has two cells that may hold its URL, none is taken, be it
// far from the start or in a line that is split again.
func TestRejectsOfTwoURLs(t *testing.T) {
	for _, last := range []string{"a,2,9,r,,x,http://b/,", `a,2,9,r,,,,"x,http://b/"`} {
		data := rejectsHead + ",link,url,raw\n" + strings.Repeat("a,1,0,r,,http://a/,,\n", 20_000) + last + strings.Repeat("\na,3,0,r,,http://a/,,", 20_000)
		for _, workers := range []int{1, 3} {
			in, err := openBytes([]byte(data), Options{Block: 10_000})
			if err != nil {
				t.Fatal(err)
			}
			_, err = collectBy(in, workers)
			want := `-: record 20001: both "link" and "url" may be the URL: empty one of the two cells, or use Options.URLColumn NAME, or its number`
			if usage := (*columns.UsageError)(nil); !errors.As(err, &usage) || err.Error() != want {
				t.Errorf("%d workers: %v, want %s", workers, err, want)
			}
		}
	}
}

// A rejects file is known by its header, however long that is.
func TestRejectsOfLongNames(t *testing.T) {
	data := "source,row,byte_offset,reason,detail,url," + strings.Repeat("x", 100<<10) + ",raw\na,1,0,r,,http://a/,y,\n"
	in, recs, err := readBytes([]byte(data), Options{Block: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if in.Format != "rejects" || len(in.Columns) != 2 || len(recs) != 1 || recs[0].cells != "http://a/|y" {
		t.Errorf("%s of %d columns: %v", in.Format, len(in.Columns), recs)
	}
}

// Rejects have room for the columns of any input.
func TestRejectsOfManyColumns(t *testing.T) {
	for _, n := range []int{columns.MaxColumns, columns.MaxColumns + 1} {
		others := strings.Repeat("x,", n-1)
		in, recs, err := readBytes([]byte(rejectsHead+","+others+"url,raw\na,1,0,r,,"+others+"http://a/,\n"), Options{})
		if n > columns.MaxColumns {
			if err == nil || err.Error() != "-: has 16391 columns, more than 16384" {
				t.Errorf("%d columns: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Columns) != n || len(recs) != 1 || recs[0].cells != strings.Repeat("x|", n-1)+"http://a/" {
			t.Errorf("%d of %d columns, %d records", len(in.Columns), n, len(recs))
		}
	}
}

// What is written as a rejects file reads as the input it came from, whatever
// was in it.
func TestRejectsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkRejects(t, generated(t), rapid.SampledFrom([]byte{0, ','}).Draw(t, "delimiter"),
			rapid.IntRange(1, 300).Draw(t, "block"), rapid.IntRange(1, 3).Draw(t, "workers"))
	})
}

func FuzzRejects(f *testing.F) {
	for _, s := range []string{"http://a/,b,c\nx\n", "\"a\n", "a;b;c\n\x00,\"\"\"\",\r\n"} {
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, comma bool) {
		checkRejects(t, data, map[bool]byte{true: ','}[comma], 7, 2)
	})
}

func checkRejects(t interface {
	Skip(...any)
	Fatal(...any)
	Fatalf(string, ...any)
}, data []byte, delimiter byte, block, workers int) {
	if bytes.IndexByte(data, '|') >= 0 {
		t.Skip("by which cellsOf joins")
	}
	data = append([]byte("url,b,source\n"), data...)
	opts := Options{MaxField: 24, Delimiter: delimiter, Header: HeaderYes}
	in, err := openBytes(data, opts)
	if err != nil {
		t.Skip(err)
	}
	first, err := collect(in)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	w.Write(strings.Split("source,row,byte_offset,reason,detail,url,b,in_source,raw", ","))
	for _, r := range first {
		cells := append([]string{"x", fmt.Sprint(r.row), fmt.Sprint(r.offset), r.reason, r.detail}, strings.Split(r.cells, "|")...)
		if r.reason != "" {
			cells = append(cells[:5], "", "", "")
		}
		w.Write(append(cells, r.raw))
	}
	w.Flush()
	again, err := openBytes(buf.Bytes(), Options{MaxField: 24, Delimiter: opts.Delimiter, Block: block})
	if err != nil {
		t.Fatal(err)
	}
	second, err := collectBy(again, workers)
	if again.Format != "rejects" || !slices.Equal(again.Columns, in.Columns) || !slices.Equal(cellsOf(first), cellsOf(second)) {
		t.Fatalf("%s %q: %v\n got %q\nwant %q", again.Format, again.Columns, err, cellsOf(second), cellsOf(first))
	}
}

// The detail of a line that cannot be split says so if the rejects have other columns
// than its input, once.
func TestDetailAmong(t *testing.T) {
	const detail = "3 fields where there should be 2"
	again := "source,row,byte_offset,reason,detail,url,team,raw\na,8,20,malformed_row," + detail + otherColumns + ",,,\"x,b,c\"\n"
	for _, data := range []string{"url,team\nhttp://a/,b,c\n", again} {
		for _, among := range [][]string{{"url", "team"}, {"team", "url"}} {
			in, err := openBytes([]byte(data), Options{})
			if err != nil {
				t.Fatal(err)
			}
			in.Among = among
			recs, err := collect(in)
			want := detail
			if among[0] == "team" || data == again {
				want += otherColumns
			}
			if err != nil || len(recs) != 1 || recs[0].detail != want {
				t.Errorf("%v, %v: %v", among, err, recs)
			}
		}
	}
}
