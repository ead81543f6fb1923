package record

import (
	"reflect"
	"testing"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/outcome"
)

// A placed row comes back as it was filed. An alias takes no more room than a link, and a row
// without the code of a link has none of its bytes.
func TestPlaced(t *testing.T) {
	base := Placed{Workspace: 300, Outcome: outcome.Duplicate, Salt: 3, Code: []byte("abc"), LinkSalt: -1, Record: []byte("record")}
	rows := []struct {
		change func(p *Placed)
		size   int
	}{
		{func(*Placed) {}, 2 + 1 + 1 + 4 + 6},
		{func(p *Placed) { p.Alias, p.Outcome, p.Salt = true, outcome.Created, -1 }, 2 + 1 + 1 + 4 + 6},
		{func(p *Placed) { p.LinkCode, p.LinkSalt = []byte("link"), 10 }, 2 + 1 + 1 + 4 + 6 + 1 + 5},
		{func(p *Placed) { p.Alias, p.LinkCode, p.LinkSalt = true, []byte("link"), -1 }, 2 + 1 + 1 + 4 + 6 + 1 + 5},
		{func(p *Placed) { p.LinkCode, p.Record = []byte{}, []byte{} }, 2 + 1 + 1 + 4 + 1 + 1},
	}
	sorter := extsort.NewByKey(extsort.Config{})
	defer sorter.Close()
	w := sorter.NewWriter()
	var want []Placed
	var buf []byte
	for i, row := range rows {
		p := base
		row.change(&p)
		want = append(want, p)
		buf = p.File(w, Place{Row: int64(i + 1)}, buf)
	}
	if err := sorter.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := sorter.Cursor(t.Context(), 1)
	defer c.Close()
	i := 0
	for ; c.Next(); i++ {
		if got := DecodePlaced(c.Record()); !reflect.DeepEqual(got, want[i]) || len(c.Record()) != rows[i].size {
			t.Errorf("row %d, %d bytes: %+v, want %+v", i+1, len(c.Record()), got, want[i])
		}
	}
	if c.Err() != nil || i != len(rows) {
		t.Errorf("%d rows, %v", i, c.Err())
	}
}
