package gen

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/campaign"
	"github.com/parquet-go/parquet-go"
)

// Results of different years can only be compared if the lists stay the same.
func TestLists(t *testing.T) {
	for _, c := range []struct {
		name, sum string
		o         Options
	}{
		{"plain", "e88cd5628882cf8b", Options{Rows: 20_000, Duplicates: 0.1, Dirty: 0.1, Rejects: 0.001, Seed: 1}},
		{"workspaces", "d0b9ae3496e21a43", Options{Rows: 20_000, First: 1 << 33, Dirty: 0.5, Workspaces: 200_000}},
		{"codes", "3925d096aba36756", Options{Rows: 20_000, Duplicates: 0.05, Codes: true}},
	} {
		var b bytes.Buffer
		if err := Write(&b, c.o); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b.Bytes())
		if got := hex.EncodeToString(sum[:8]); got != c.sum {
			t.Errorf("%s: %s, want %s", c.name, got, c.sum)
		}
	}
}

func TestParquetHasTheSameRows(t *testing.T) {
	o := Options{Rows: 20_000, Duplicates: 0.1}
	var csv, b bytes.Buffer
	if err := Write(&csv, o); err != nil {
		t.Fatal(err)
	}
	if err := WriteParquet(&b, o); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[urlRow](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, r.URL)
	}
	if want := strings.Split(strings.TrimSpace(csv.String()), "\n")[1:]; !slices.Equal(got, want) {
		t.Errorf("other rows: %d, want %d", len(got), len(want))
	}
}

func TestExpanded(t *testing.T) {
	var plain, expanded bytes.Buffer
	for to, o := range map[*bytes.Buffer]Options{&plain: {Rows: 200, Dirty: 0.5}, &expanded: {Rows: 200, Dirty: 0.5, Expanded: true}} {
		if err := Write(to, o); err != nil {
			t.Fatal(err)
		}
	}
	p, err := campaign.Parse(Parameters, "", nil, Variants)
	if err != nil || p.Combinations() != Variants {
		t.Fatal(err)
	}
	want := []string{"url"}
	row := p.NewRow()
	for _, url := range strings.Fields(plain.String())[1:] {
		if f := row.Make(nil, []byte(url), nil); f != nil {
			t.Fatal(f)
		}
		for row.Next() {
			want = append(want, string(row.AppendURL(nil)))
		}
	}
	if got := strings.Fields(expanded.String()); !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}
