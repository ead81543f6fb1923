package source

import (
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/linkforge/bulk/pipeline/columns"
)

// A number that is a code, a workspace or an owner is its value; any other is as it is written.
func TestNumbersThatAreNames(t *testing.T) {
	type row struct {
		URL   string   `parquet:"url"`
		Slug  *float64 `parquet:"slug,optional"`
		Team  float32  `parquet:"team"`
		Owner float64  `parquet:"owner_id"`
		N     float64  `parquet:"n"`
	}
	slug := 1001.0
	half := 0.5
	rows := []row{{"http://a/", &slug, 7, 8, 9}, {"http://b/", nil, 7.5, 1e15, 1e6}, {"http://c/", &half, 7, 123456789012345, 0.5}}
	number := arrow.PrimitiveTypes.Float64
	rec := fromJSON(t, `[{"url":"http://a/","slug":1001,"team":7,"owner_id":8,"n":9},{"url":"http://b/","team":7.5,"owner_id":1e15,"n":1e6},{"url":"http://c/","slug":0.5,"team":7,"owner_id":123456789012345,"n":0.5}]`,
		arrow.Field{Name: "url", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "slug", Type: number, Nullable: true}, arrow.Field{Name: "team", Type: arrow.PrimitiveTypes.Float32},
		arrow.Field{Name: "owner_id", Type: number}, arrow.Field{Name: "n", Type: number})
	for name, data := range map[string][]byte{
		"parquet": parquetOf(t, rows), "arrow": arrowOf(t, true, []arrow.Record{rec}),
		"json": []byte(`[{"url":"http://a/","slug":1.001e3,"team":7.0,"owner_id":8.0,"n":9},{"url":"http://b/","slug":null,"team":7.5,"owner_id":1000000000000000,"n":1000000},
{"url":"http://c/","slug":0.5,"team":7,"owner_id":1.23456789012345E14,"n":0.5}]`),
	} {
		_, recs, err := readBytes(data, Options{Choice: columns.Choice{Legacy: true, Rules: true, WorkspaceColumn: "team"}})
		want := []string{"http://a/|1001|7|8|9", "http://b/|∅|7.5|1000000000000000|1000000", "http://c/|0.5|7|123456789012345|0.5"}
		if got := cellsOf(recs); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	_, recs, err := readBytes([]byte(`{"url":"http://a/","slugs":[1001.0,"1002.0"],"n":1003.0}`), Options{Choice: columns.Choice{Legacy: true, CodeColumn: "list(slugs)"}})
	if got := cellsOf(recs); err != nil || !slices.Equal(got, []string{`http://a/|[1001.0,"1002.0"]|1003.0`}) {
		t.Errorf("%q, %v", got, err)
	}
}
