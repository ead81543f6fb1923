package report

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// exported are rows in which each kind of cell is somewhere.
var exported = [][][]byte{
	{[]byte("w"), []byte("b,\"c\""), nil},
	{[]byte("w"), nil, []byte("é\n")},
	{[]byte(""), []byte("=1"), []byte{}},
}

func TestCSVExport(t *testing.T) {
	for n, want := range map[int]string{0: "z,a,m\n", 3: "z,a,m\nw,\"b,\"\"c\"\"\",\nw,,\"é\n\"\n,=1,\n"} {
		var out strings.Builder
		e := NewCSVExport(&out, []string{"z", "a", "m"})
		for _, row := range exported[:n] {
			if err := e.Append(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil || out.String() != want {
			t.Errorf("%d rows: %q, want %q; %v", n, out.String(), want, err)
		}
	}
}

// Columns keep their order, and cells and nulls come back, also those of later row groups.
func TestParquetExport(t *testing.T) {
	big := [][]byte{bytes.Repeat([]byte("x"), exportGroup), []byte("end"), nil}
	for _, rows := range [][][][]byte{nil, exported, append(slices.Clone(exported), big, exported[0])} {
		var out bytes.Buffer
		e := NewParquetExport(&out, []string{"z", "-", "m,\"x"})
		for _, row := range rows {
			if err := e.Append(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			t.Fatal(err)
		}
		var schema []string
		for _, c := range f.Root().Columns() {
			schema = append(schema, fmt.Sprint(c.Name(), " ", c.Optional(), " ", c.Type()))
		}
		if want := []string{"z true STRING", "- true STRING", `m,"x true STRING`}; !slices.Equal(schema, want) {
			t.Errorf("schema %q, want %q", schema, want)
		}
		if want := map[int]int{0: 0, 3: 1, 5: 2}[len(rows)]; len(f.RowGroups()) != want {
			t.Errorf("%d row groups, want %d", len(f.RowGroups()), want)
		}
		r := parquet.NewReader(f)
		for i, row := range rows {
			got := make([]parquet.Row, 1)
			if n, err := r.ReadRows(got); n != 1 {
				t.Fatal(err)
			}
			for j, cell := range row {
				if v := got[0][j]; v.IsNull() != (cell == nil) || !bytes.Equal(v.ByteArray(), cell) {
					t.Errorf("row %d, column %d: %.20v, want %.20q", i, j, v, cell)
				}
			}
		}
	}
}

// A full disk is an error of Append or of Close.
func TestExportToFullDisk(t *testing.T) {
	for name, make := range map[string]func(columns []string) Export{
		"csv":     func(columns []string) Export { return NewCSVExport(new(failingWriter), columns) },
		"parquet": func(columns []string) Export { return NewParquetExport(new(failingWriter), columns) },
	} {
		e := make([]string{"z", "a", "m"})
		var err error
		for range 1000 {
			err = errors.Join(err, e.Append([][]byte{bytes.Repeat([]byte("x"), 1000), nil, nil}))
		}
		if err = errors.Join(err, e.Close()); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
