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

// numberedRows are two links with a number, a duplicate, and a link that existed before.
func numberedRows() []Row {
	rows := legacyRowsWithout()
	rows = append(rows, rows[2])
	for i, number := range []int64{7, 0, 62 * 62 * 62 * 62 * 62, 62 * 62 * 62 * 62 * 62} {
		rows[i].Number, rows[i].Salt, rows[i].LinkSalt, rows[i].Row = number, -1, -1, int64(i+1)
	}
	rows[2].Outcome = outcome.Created
	return rows
}

// The column comes straight after salt, before those of legacy codes and link rules.
func TestNumberColumn(t *testing.T) {
	names := Columns{Numbers: true, Legacy: legacy.Both, Rules: true}.Names()
	if got := strings.Join(names[7:12], ","); got != "outcome,salt,number,kind,legacy_code" {
		t.Errorf("columns %s", got)
	}
	if got := CarriedNames(names, []string{"number"}); got[0] != "in_number" {
		t.Errorf("carried %s", got)
	}
	if slices.Contains((Columns{}).Names(), "number") {
		t.Error("runs without a counter have the column")
	}
}

func TestNumbersCSV(t *testing.T) {
	golden(t, "mapping_numbers.csv", mapping(t, CSV, MappingOptions{Columns: Columns{Numbers: true}}, numberedRows(), 3))
	golden(t, "mapping_numbers_legacy_keep.csv", mapping(t, CSV, MappingOptions{Columns: Columns{Numbers: true, Legacy: legacy.Keep}}, numberedRows(), 3))
}

func TestNumbersColumnar(t *testing.T) {
	columns := Columns{Numbers: true, Legacy: legacy.Map}
	for _, f := range []Format{Parquet, Arrow} {
		names, rows := readMapping(t, f, mapping(t, f, MappingOptions{Columns: columns}, numberedRows(), 3))
		if !slices.Equal(names, columns.Names()) {
			t.Errorf("%s: columns %q", f, names)
		}
		_, plain := readMapping(t, f, mapping(t, f, MappingOptions{Columns: Columns{Legacy: legacy.Map}}, numberedRows(), 3))
		for i, number := range []string{"7", "NULL", "916132832", "916132832"} {
			if want := slices.Insert(plain[i], 9, number); !slices.Equal(rows[i], want) {
				t.Errorf("%s: row %d: %q, want %q", f, i+1, rows[i], want)
			}
		}
	}
}

// Numbers are integers of 64 bits.
func TestNumberTypes(t *testing.T) {
	opts := MappingOptions{Columns: Columns{Numbers: true}}
	data := mapping(t, Parquet, opts, numberedRows(), 3)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	field := file.Schema().Fields()[plainColumns]
	if got := fmt.Sprintf("%s %s %t", field.Name(), field.Type(), field.Optional()); got != "number INT(64,true) true" {
		t.Errorf("Parquet: %s", got)
	}
	chunk := file.Metadata().RowGroups[0].Columns[plainColumns].MetaData.Statistics
	if chunk.NullCount != 1 || chunk.MinValue[0] != 7 || len(chunk.MaxValue) != 8 {
		t.Errorf("Parquet: statistics %+v", chunk)
	}
	r, err := ipc.NewFileReader(bytes.NewReader(mapping(t, Arrow, opts, numberedRows(), 3)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if f := r.Schema().Field(int(plainColumns)); f.Name != "number" || f.Type.String() != "int64" || !f.Nullable {
		t.Errorf("Arrow: %v", f)
	}
}

// A mapping without any number can be written and read, too.
func TestNoNumbers(t *testing.T) {
	rows := numberedRows()
	for i := range rows {
		rows[i].Number = 0
	}
	for _, f := range []Format{Parquet, Arrow} {
		_, got := readMapping(t, f, mapping(t, f, MappingOptions{Columns: Columns{Numbers: true}}, rows, 2))
		for i, row := range got {
			if row[9] != "NULL" {
				t.Errorf("%s: row %d: %q", f, i+1, row)
			}
		}
	}
}

func TestNumbersDoNotDependOnBlocks(t *testing.T) {
	rows := randomRows(arrowRows + 5000)
	for i := range rows {
		rows[i].Number = int64(i % 3 * i)
	}
	for _, f := range formats() {
		opts := MappingOptions{Carried: []string{"x", "y"}, Columns: Columns{Numbers: true}}
		want := mapping(t, f, opts, rows, len(rows))
		opts.Workers = 3
		if !bytes.Equal(mapping(t, f, opts, rows, 777), want) {
			t.Errorf("%s: other bytes", f)
		}
	}
}

// The digest does not change, since manifests hold it, and a number counts if, and only if, there is a
// column for it.
func TestNumberDigest(t *testing.T) {
	digest := func(columns Columns, rows []Row) string {
		d := RowDigest{Columns: columns}
		for i := range rows {
			d.Add(&rows[i])
		}
		return d.Sum()
	}
	with := digest(Columns{Numbers: true}, numberedRows())
	if with != "2022585ef256264ad3f6960c530a0795" {
		t.Errorf("digest %s", with)
	}
	for i := range numberedRows() {
		rows := numberedRows()
		rows[i].Number++
		if digest(Columns{Numbers: true}, rows) == with {
			t.Errorf("row %d: another number has the same digest", i+1)
		}
		if digest(Columns{}, rows) != digest(Columns{}, numberedRows()) {
			t.Errorf("row %d: a number counts without its column", i+1)
		}
	}
}
