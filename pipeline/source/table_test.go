package source

import (
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// A row is bounded as a whole, and not only each cell of it: columns may share one
// long value.
func TestRowBound(t *testing.T) {
	opts, err := Options{}.settled()
	if err != nil {
		t.Fatal(err)
	}
	bytes := func(n int) cells {
		cell := make([]byte, n)
		return func() ([]byte, bool, error) { return cell, true, nil }
	}
	in := &Input{Table: columns.Table{Columns: []string{"url", "note"}}, opts: opts}
	row := &table{rows: 1, cols: []cells{bytes(1), bytes(mostRecord)}, close: func() {}}
	row.left.Store(1)
	err = row.read(newBatcher(&reading{in: in}, 0))
	if err == nil || !strings.Contains(err.Error(), `column "note" brings its row to over 1073741824 bytes`) {
		t.Errorf("%v", err)
	}
	if s := newSplitter(',', '"', mostRecord, true); s.maxRecord > mostRecord {
		t.Errorf("a record of a text may have %d bytes", s.maxRecord)
	}
}

// So is the text of a page, which may be far longer than its values.
func TestPageBound(t *testing.T) {
	for size, fails := range map[int]bool{mostRecord: false, mostRecord + 1: true} {
		c := &chunk{text: func([]byte, parquet.Value) []byte { return make([]byte, size) }}
		err := c.values(parquet.Int32Type.NewPage(0, 1, encoding.Int32Values([]int32{7})))
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), `it has a page of over 1073741824 bytes, as text`) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
