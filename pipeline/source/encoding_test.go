package source

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/charset"
	"golang.org/x/text/transform"
	"pgregory.net/rapid"
)

// encoded returns a text in an encoding with one byte a character that has all of it, or in UTF-16.
func encoded(name, text string) []byte {
	var coded []byte
	of := map[string]byte{}
	for c := range 256 {
		if got, _, err := transform.String(charset.NewReader(name), string([]byte{byte(c)})); err == nil {
			of[got] = byte(c)
		}
	}
	for _, r := range text {
		switch name {
		case charset.UTF16LE:
			coded = append(coded, byte(r), byte(r>>8))
			continue
		case charset.UTF16BE:
			coded = append(coded, byte(r>>8), byte(r))
			continue
		}
		coded = append(coded, of[string(r)])
	}
	return coded
}

// A text in an encoding is read like the same text in UTF-8, but for its digest and size, whatever its
// blocks and workers are.
func TestEncodings(t *testing.T) {
	letters := map[string]string{"windows-1252": "\u00e9\u20ac", "windows-1251": "\u0436\u0402", "iso-8859-15": "\u00e9\u20ac", "iso-8859-11": "\u0e01\u0e5b", charset.UTF16LE: "\u00e9\u4e0a", charset.UTF16BE: "\u00e9\u0a2c"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(slices.Sorted(keys(letters))).Draw(t, "name")
		text := "url,note\n" + strings.Join(rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("a,\"\n\r \x00\u00a0"+letters[name])), 0, 12, -1), 0, 30).Draw(t, "lines"), "\n")
		opts := Options{MaxField: rapid.SampledFrom([]int{7, 1 << 20}).Draw(t, "field"), Block: rapid.SampledFrom([]int{5, 64, 1 << 20}).Draw(t, "block")}
		want, recs, err := readBytes([]byte(text), opts)
		if err != nil {
			t.Fatal(err)
		}
		whole := func(list []rec) []rec { // a line that is cut within a character is another one
			for i := range list {
				if list[i].reason == string(FieldTooLong) {
					list[i].detail, list[i].raw = "", ""
				}
			}
			return list
		}
		coded := encoded(name, text)
		for compression, data := range map[string][]byte{"": coded, "gzip": gzipped(coded)} {
			opts.Encoding, opts.Stdin = name, bytes.NewReader(data)
			in, err := Open(context.Background(), "-", opts)
			if err != nil {
				t.Fatal(err)
			}
			got, err := collectBy(in, rapid.IntRange(1, 3).Draw(t, "workers"))
			if err != nil || !slices.Equal(whole(got), whole(recs)) || in.Records() != want.Records() || in.BlankRows() != want.BlankRows() {
				t.Fatalf("%s %s: %q\n%v, %v\n%v", name, compression, text, got, err, recs)
			}
			if in.Dialect.Encoding != name || in.Size() != int64(len(data)) || in.NotDecoded() || !reflect.DeepEqual(in.Columns, want.Columns) {
				t.Fatalf("%+v, %d", in.Dialect, in.Size())
			}
		}
	})
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// What an encoding lacks is told of a whole record, and no other record is lost. Its raw line is UTF-8.
func TestLacking(t *testing.T) {
	for _, tt := range []struct {
		encoding, text string
		want           []string
	}{
		{"windows-1252", "url,note\nhttp://a/\xe9,1\nhttp://b/\x81,2\nhttp://c/,\x93\x94\n", []string{
			`1@9 "http://a/é|1"`, `2@23 malformed_row (field 1 has the byte 81, which windows-1252 lacks: fill in the cells) "http://b/` + "\ufffd" + `,2"`, `3@36 "http://c/|“”"`}},
		{"windows-1252", "url,note\n\"http://a/\",\"x\n\x8d\x8f\"\r\nhttp://b/,2\n", []string{
			`1@9 malformed_row (field 2 has the byte 8D, which windows-1252 lacks: fill in the cells) "\"http://a/\",\"x\n` + "\ufffd" + `\""`, `2@29 "http://b/|2"`}},
		{"windows-1252", "url,note\nhttp://a/\x81\nhttp://b/\x81,\"2\n", []string{
			`1@9 malformed_row (field 1 has the byte 81, which windows-1252 lacks: fill in the cells) "http://a/` + "\ufffd" + `"`,
			`2@20 malformed_row (the quote of field 2 is never closed; the line has the byte 81, which windows-1252 lacks: fill in the cells) "http://b/` + "\ufffd" + `,\"2"`}},
		{"utf-16le", "u\x00r\x00l\x00\n\x00a\x00\x00\xd8\n\x00b\x00\n\x00c", []string{
			`1@4 malformed_row (field 1 has half of a character of utf-16le: fill in the cells) "a` + "\ufffd" + `"`, `2@9 "b"`,
			`3@11 malformed_row (field 1 has half of a character of utf-16le: fill in the cells) "` + "\ufffd" + `"`}},
		{"utf-16le", "\xff\xfeu\x00r\x00l\x00\n\x00a\x00\x00\xd8\n\x00b\x00", []string{
			`1@7 malformed_row (field 1 has half of a character of utf-16le: fill in the cells) "a` + "\ufffd" + `"`, `2@12 "b"`}},
		{"iso-8859-1", "url\n\xa0\x85\na\x81\n", []string{`2@9 "a\u0081"`}},
	} {
		for _, block := range []int{5, 1 << 16} {
			_, recs, err := readBytes([]byte(tt.text), Options{Encoding: tt.encoding, Block: block})
			if got := strs(recs); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%q: %v\n%s\n%s", tt.text, err, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		}
	}
	// A line of which only the beginning is kept is not cut within a character.
	_, recs, err := readBytes([]byte("url\na\xe9\xe9\xe9\xe9\nb\x81\xe9\xe9\xe9\xe9\xe9\n"), Options{Encoding: "windows-1252", MaxField: 6})
	const want = `[1@4 field_too_long (field 1 is longer than 6 bytes; raw has the first 5 of the line's 9 bytes) "aéé" ` +
		`2@14 field_too_long (field 1 is longer than 6 bytes; raw has the first 6 of the line's 12 bytes; the line has the byte 81, which windows-1252 lacks: fill in the cells) "b` + "\ufffd" + `éé"]`
	if got := fmt.Sprint(recs); err != nil || got != want {
		t.Errorf("%v\n%s\n%s", err, got, want)
	}
}

// Other formats, and byte order marks of other encodings, are refused. Rejects of a run are UTF-8.
func TestEncodingRefused(t *testing.T) {
	const rejects = "source,row,byte_offset,reason,detail,url,raw\na,1,0,userinfo,,http://\u00e9/,\n"
	for _, tt := range []struct {
		what, encoding, fault string
		data                  []byte
	}{
		{"parquet", "windows-1252", "is for CSV and text", parquetOf(t, testRows)},
		{"arrow", "utf-16le", "is for CSV and text", arrowOf(t, true, testRecords(t))},
		{"an arrow stream", "windows-1252", "is for CSV and text", arrowOf(t, false, testRecords(t))},
		{"json", "windows-1252", "is for CSV and text", []byte(`[{"url":"http://a/"}]`)},
		{"json in the encoding", "windows-1252", "is for CSV and text", []byte("{\"url\":\"http://a/\xe9\"}\n")},
		{"json in UTF-16", "utf-16le", "is for CSV and text", encoded("utf-16le", `{"url":"http://a/"}`)},
		{"another mark", "windows-1252", "the byte order mark of utf-16le, so", []byte("\xff\xfeu\x00r\x00l\x00\n\x00")},
		{"UTF-8", "windows-1252", "the byte order mark of utf-8, so", []byte(utf8BOM + "url\n")},
		{"another order", "utf-16be", "the byte order mark of utf-16le, so", []byte("\xff\xfeu\x00r\x00l\x00\n\x00")},
		{"a header that lacks", "windows-1252", "the header has the byte 81, which windows-1252 lacks: it is in another encoding", []byte("url,\x81\n")},
		{"random bytes", "windows-1252", "is neither text nor", []byte("\xe9\x00\x01\x02\x03\x04\x05\x06\x07\x08")},
		{"PDF", "windows-1252", "is a PDF file", []byte("%PDF-\x81")},
		{"twice", "windows-1252", "is compressed twice", gzipped(gzipped([]byte("url\n")))},
		{"its own mark", "utf-16le", "", []byte("\xff\xfeu\x00r\x00l\x00\n\x00")},
		{"nothing", "windows-1252", "", nil},
		{"rejects", "windows-1252", "", []byte(rejects)},
		{"rejects with a mark", "windows-1252", "", []byte(utf8BOM + strings.ReplaceAll(rejects, ",", ";"))},
		{"rejects in UTF-16", "windows-1252", "", append([]byte("\xff\xfe"), encoded("utf-16le", rejects)...)},
	} {
		in, err := openBytes(tt.data, Options{Encoding: tt.encoding})
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s: %v", tt.what, err)
			}
			continue
		}
		if err != nil || in.NotDecoded() != strings.HasPrefix(tt.what, "rejects") {
			t.Errorf("%s: %v", tt.what, err)
			continue
		}
		if recs, err := collect(in); err != nil || in.NotDecoded() && fmt.Sprint(recs)[5:] != "\"http://\u00e9/\"]" && !strings.HasSuffix(fmt.Sprint(recs), "\"http://\u00e9/\"]") {
			t.Errorf("%s: %v, %v", tt.what, recs, err)
		}
	}
	if err := (Options{Encoding: "latin1"}).Validate(); err == nil {
		t.Error("latin1 is taken")
	}
}

// Only what is asked for is inspected, and only bytes that are not UTF-8 are noted.
func TestInspect(t *testing.T) {
	for text, want := range map[string]bool{"url,n\na,\u00e9\n": false, "url,n\na,\u00e9\nb,\xe9\n": true, "url,n\n\xc3,\xa9\n": true} {
		for _, inspect := range []bool{true, false} {
			in, err := openBytes([]byte(text), Options{})
			if err != nil {
				t.Fatal(err)
			}
			in.Inspect = inspect
			if _, err := collect(in); err != nil || in.NotUTF8() != (want && inspect) {
				t.Errorf("%q, %t: %t, %v", text, inspect, in.NotUTF8(), err)
			}
		}
	}
}
