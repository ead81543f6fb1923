package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/linkforge/bulk/pipeline/columns"
)

// Blank records have a number and are counted, and no batch has them, however they are read.
func TestBlankRows(t *testing.T) {
	type row struct {
		URL *string `parquet:"url,optional"`
		N   *string `parquet:"n,optional"`
	}
	a, b, empty, space := "http://a/", "http://b/", "", " \u00a0"
	rec := fromJSON(t, `[{"url":""},{"url":"http://a/","n":"1"},{},{"url":" ","n":"\u00a0"},{"url":"http://b/"},{"n":""}]`,
		arrow.Field{Name: "url", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "n", Type: arrow.BinaryTypes.String, Nullable: true})
	one := "1"
	for name, data := range map[string]string{
		"csv":     "url,n\n,\nhttp://a/,1\n , \n\"\",\" \u00a0\"\nhttp://b/,\n,,,\n",
		"json":    `[{"url":""},{"url":"http://a/","n":"1"},{},{"url":" ","n":"\u00a0"},{"url":"http://b/","n":""},{"n":null}]`,
		"rejects": "source,row,byte_offset,reason,detail,url,n,raw\n,,,,,,,\n,,,x,,http://a/,1,\ni,2,0,x,y, ,,\ni,3,0,malformed_row,x,,,\" , \"\n,,,,,http://b/,\n,,\n",
		"parquet": string(parquetOf(t, []row{{&empty, nil}, {&a, &one}, {}, {&space, &space}, {&b, &empty}, {nil, &empty}})),
		"arrow":   string(arrowOf(t, true, []arrow.Record{rec})),
	} {
		for _, opts := range []Options{{}, {BatchRows: 1}, {Block: 1}, {BatchRows: 2, Block: 7}} {
			for _, workers := range []int{1, 3} {
				in, err := openBytes([]byte(data), opts)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				recs, err := collectBy(in, workers)
				got := fmt.Sprint(len(recs), in.Rows(), in.BlankRows(), in.Records())
				if err != nil || got != "2 2 4 6" || recs[0].row != 2 || recs[1].row != 5 {
					t.Errorf("%s, %+v, %d workers: %v, %s, %v", name, opts, workers, strs(recs), got, err)
				}
			}
		}
	}
}

// Blank rows do not hide a header, or that there are no rows. The digest of a part tells of them.
func TestBlankRowsFirst(t *testing.T) {
	in, recs, err := readBytes([]byte(",,\n , ,\nurl,slug,n\nhttp://a/,b,\n"), Options{})
	if got := strs(recs); err != nil || in.URLs[0] != 0 || !slices.Equal(got, []string{`1@19 "http://a/|b|"`}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{",,\n,,\n", ";;\n \n", " \n", "\t\t\n"} {
		in, recs, err := readBytes([]byte(text), Options{})
		if err != nil || !in.Blank || len(recs) != 0 || in.BlankRows() != int64(strings.Count(text, "\n")) {
			t.Errorf("%q: %v, %v", text, strs(recs), err)
		}
	}
	seen := map[[32]byte]string{}
	for _, text := range []string{"url\nhttp://a/\n \nhttp://b/\n", "url\nhttp://a/\nhttp://b/\n \n", "url\n \nhttp://a/\nhttp://b/\n"} {
		in, err := openBytes([]byte(text+"http://c/\n"), Options{Choice: columns.Choice{URLColumn: "url"}})
		if err != nil {
			t.Fatal(err)
		}
		in.Limit = 3
		if recs, err := collect(in); err != nil || len(recs) != 2 || !in.Cut() || seen[in.SHA256()] != "" {
			t.Errorf("%q: %v, %v, as of %q", text, strs(recs), err, seen[in.SHA256()])
		}
		seen[in.SHA256()] = text
	}
}
