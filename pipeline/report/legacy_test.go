package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/parquet-go/parquet-go"
)

func modes() []legacy.Mode { return []legacy.Mode{legacy.Map, legacy.Keep, legacy.Both} }

// legacyRows are a link, an alias of it, a row without a legacy code, and one whose code
// generation made none of.
func legacyRows() []Row {
	url := []byte("http://a.example/")
	cells := [][]byte{[]byte("k"), nil}
	return []Row{
		{Source: "l.csv", Row: 1, Workspace: []byte("ws"), Original: url, Canonical: url, Code: []byte("-promo"), Outcome: outcome.Created, Salt: -1,
			Legacy: []byte("-promo"), LinkCode: []byte("7Yq2pQx1Ab"), LinkSalt: 0, Carried: cells},
		{Source: "l.csv", Row: 2, Workspace: []byte("ws"), Original: url, Canonical: url, Code: []byte("=ü,1"), Outcome: outcome.Existing, Salt: -1,
			Alias: true, Legacy: []byte("=ü,1"), LinkCode: []byte("@x"), LinkSalt: -1, Carried: cells},
		{Source: "l.csv", Row: 3, Workspace: []byte("ws"), Original: url, Canonical: url, Code: []byte("7Yq2pQx1Ab"), Outcome: outcome.Duplicate, Salt: 12,
			LinkCode: []byte("7Yq2pQx1Ab"), LinkSalt: 12, Carried: cells},
	}
}

func TestLegacyColumns(t *testing.T) {
	plain := strings.Join(Columns{}.Names(), ",")
	for mode, want := range map[legacy.Mode]string{
		legacy.Off:  "",
		legacy.Map:  ",legacy_code",
		legacy.Keep: ",kind,legacy_code,link_code,link_salt",
		legacy.Both: ",kind,legacy_code,link_code,link_salt",
	} {
		columns := Columns{Legacy: mode}.Names()
		if got := strings.Join(columns, ","); got != plain+want {
			t.Errorf("%s: %s", mode, got)
		}
		carried := CarriedNames(columns, []string{"kind", "legacy_code", "link_code", "link_salt", "in_kind"})
		for i, name := range carried[:4] {
			if taken := slices.Contains(columns, strings.TrimPrefix(name, "in_")); taken != strings.HasPrefix(name, "in_") {
				t.Errorf("%s: carried column %d is named %s", mode, i, name)
			}
		}
	}
}

func TestLegacyCSV(t *testing.T) {
	for _, mode := range modes() {
		opts := MappingOptions{Carried: CarriedNames(Columns{Legacy: mode}.Names(), []string{"kind", "note"}), BaseURL: "https://sho.rt", Columns: Columns{Legacy: mode}}
		golden(t, "mapping_legacy_"+string(mode)+".csv", mapping(t, CSV, opts, legacyRows(), 2))
		opts.ExcelSafe, opts.BaseURL = true, ""
		golden(t, "mapping_legacy_"+string(mode)+"_safe.csv", mapping(t, CSV, opts, legacyRows(), 2))
	}
}

func TestLegacyColumnar(t *testing.T) {
	added := [][]string{
		{"link", "-promo", "7Yq2pQx1Ab", "0"},
		{"alias", "=ü,1", "@x", "NULL"},
		{"link", "NULL", "7Yq2pQx1Ab", "12"},
	}
	for _, f := range []Format{Parquet, Arrow} {
		for mode, from := range map[legacy.Mode][2]int{legacy.Map: {1, 2}, legacy.Keep: {0, 4}, legacy.Both: {0, 4}} {
			opts := MappingOptions{Carried: CarriedNames(Columns{Legacy: mode}.Names(), []string{"kind", "note"}), Columns: Columns{Legacy: mode}}
			columns, rows := readMapping(t, f, mapping(t, f, opts, legacyRows(), 2))
			if want := append(Columns{Legacy: mode}.Names(), opts.Carried...); !slices.Equal(columns, want) {
				t.Errorf("%s, %s: columns %q, want %q", f, mode, columns, want)
			}
			_, plain := readMapping(t, f, mapping(t, f, MappingOptions{Carried: opts.Carried}, legacyRows(), 2))
			for i, row := range rows {
				want := slices.Concat(plain[i][:9], added[i][from[0]:from[1]], plain[i][9:])
				if !slices.Equal(row, want) {
					t.Errorf("%s, %s: row %d: %q, want %q", f, mode, i+1, row, want)
				}
			}
		}
	}
}

// Codes and kinds are text, salts are integers.
func TestLegacyTypes(t *testing.T) {
	opts := MappingOptions{Columns: Columns{Legacy: legacy.Both}}
	data := mapping(t, Parquet, opts, legacyRowsWithout(), 3)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, field := range file.Schema().Fields()[plainColumns:] {
		got = append(got, fmt.Sprintf("%s %s %t", field.Name(), field.Type(), field.Optional()))
	}
	want := []string{"kind STRING false", "legacy_code STRING true", "link_code STRING true", "link_salt INT(32,true) true"}
	if !slices.Equal(got, want) {
		t.Errorf("Parquet: %q", got)
	}
	r, err := ipc.NewFileReader(bytes.NewReader(mapping(t, Arrow, opts, legacyRowsWithout(), 3)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got = nil
	for _, field := range r.Schema().Fields()[plainColumns:] {
		got = append(got, fmt.Sprintf("%s %s %t", field.Name, field.Type, field.Nullable))
	}
	want = []string{"kind utf8 false", "legacy_code utf8 true", "link_code utf8 true", "link_salt int32 true"}
	if !slices.Equal(got, want) {
		t.Errorf("Arrow: %q", got)
	}
}

// legacyRowsWithout are rows without carried cells.
func legacyRowsWithout() []Row {
	rows := legacyRows()
	for i := range rows {
		rows[i].Carried = nil
	}
	return rows
}

func TestLegacyDoesNotDependOnBlocks(t *testing.T) {
	rows := randomRows(arrowRows + 5000)
	some := legacyRows()
	for i := range rows {
		r, from := &rows[i], &some[i%3]
		r.Alias, r.Legacy, r.LinkCode, r.LinkSalt = from.Alias, from.Legacy, from.LinkCode, from.LinkSalt
	}
	for _, f := range formats() {
		opts := MappingOptions{Carried: []string{"x", "y"}, Columns: Columns{Legacy: legacy.Both}}
		want := mapping(t, f, opts, rows, len(rows))
		opts.Workers = 3
		if !bytes.Equal(mapping(t, f, opts, rows, 777), want) {
			t.Errorf("%s: other bytes", f)
		}
	}
}

func legacyDigest(mode legacy.Mode, rows []Row) string {
	d := RowDigest{Columns: Columns{Legacy: mode}}
	for i := range rows {
		d.Add(&rows[i])
	}
	return d.Sum()
}

// The digests do not change, since manifests hold them.
func TestLegacyDigestValue(t *testing.T) {
	for mode, want := range map[legacy.Mode]string{
		legacy.Off:  "7948ac85c0d109e5bf07e31063f83d56",
		legacy.Map:  "6888d0bf0e9f879e6ad340292c5673ef",
		legacy.Keep: "56d35c149813c5a44732ee64327605e2",
		legacy.Both: "56d35c149813c5a44732ee64327605e2",
	} {
		if got := legacyDigest(mode, legacyRows()); got != want {
			t.Errorf("%q: %s", mode, got)
		}
	}
}

// A field counts if, and only if, the mode has a column for it; null is empty.
func TestLegacyDigest(t *testing.T) {
	kept := []legacy.Mode{legacy.Keep, legacy.Both}
	for name, test := range map[string]struct {
		change func(r *Row)
		counts []legacy.Mode
	}{
		"alias":     {func(r *Row) { r.Alias = !r.Alias }, kept},
		"legacy":    {func(r *Row) { r.Legacy = []byte("x") }, modes()},
		"link code": {func(r *Row) { r.LinkCode = []byte("x") }, kept},
		"link salt": {func(r *Row) { r.LinkSalt++ }, kept},
		"null":      {func(r *Row) { r.Legacy = append([]byte{}, r.Legacy...) }, nil},
	} {
		for _, mode := range append(modes(), legacy.Off) {
			for i := range legacyRows() {
				rows := legacyRows()
				test.change(&rows[i])
				if differs := legacyDigest(mode, rows) != legacyDigest(mode, legacyRows()); differs != slices.Contains(test.counts, mode) {
					t.Errorf("%s, mode %q, row %d: differs %t", name, mode, i+1, differs)
				}
			}
		}
	}
}
