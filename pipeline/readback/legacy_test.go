package readback_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
)

func modes() []legacy.Mode { return []legacy.Mode{legacy.Map, legacy.Keep, legacy.Both} }

// legacyRows are nasty rows with legacy codes, as a mapping of a mode has them.
func legacyRows(mode legacy.Mode, n int) []report.Row {
	rows := nastyRows(n)
	codes := [][]byte{nil, []byte("-a"), []byte("=1,2"), []byte("'@\"é"), []byte("2.19E+26"), []byte(strings.Repeat("x", legacy.MaxCode))}
	for i := range rows {
		r := &rows[i]
		r.Legacy = codes[i%len(codes)]
		if mode.Keeps() {
			r.Alias = i%3 == 0
		}
		if mode == legacy.Both {
			r.LinkCode, r.LinkSalt = codes[i%5], i%4-1
		}
	}
	return rows
}

// A mapping of any format and mode reads back as it was written, and has its digest.
func TestLegacyMapping(t *testing.T) {
	for _, mode := range modes() {
		rows := legacyRows(mode, 3000)
		for _, safe := range []bool{false, true} {
			for _, format := range formats() {
				name := fmt.Sprintf("%s, %s, safe %t", mode, format, safe)
				opts := report.MappingOptions{BaseURL: "https://sho.rt", ExcelSafe: safe, Columns: report.Columns{Legacy: mode},
					Carried: report.CarriedNames(report.Columns{Legacy: mode}.Names(), []string{"kind", "legacy_code"})}
				path := write(t, "mapping", mapping(t, format, opts, rows, 999))
				m, err := readback.OpenMapping(context.Background(), path, readback.Options{ExcelSafe: safe, Columns: report.Columns{Legacy: mode}, Unsafe: func(row int64, column, cell string) {
					t.Errorf("%s: row %d: %s: %q is not safe", name, row, column, cell)
				}})
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(m.Carried) != fmt.Sprint(opts.Carried) {
					t.Errorf("%s: carried %q", name, m.Carried)
				}
				written, read := report.RowDigest{Columns: report.Columns{Legacy: mode}}, report.RowDigest{Columns: report.Columns{Legacy: mode}}
				number := 0
				for got, err := range m.Rows() {
					if number++; err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					r := rows[number-1]
					if want := asRead(format, r, int64(number)); !reflect.DeepEqual(*got, want) {
						t.Fatalf("%s: row %d: %+v\nwant %+v", name, number, got, want)
					}
					written.Add(&r)
					read.Add(&got.Row)
				}
				if number != len(rows) || written.Sum() != read.Sum() {
					t.Errorf("%s: %d rows, and another digest", name, number)
				}
				m.Close()
			}
		}
	}
}

// Without a mode such columns are carried ones; with a mode a mapping without them is none.
func TestModeOfColumns(t *testing.T) {
	columns := []string{"kind", "legacy_code"}
	for _, format := range formats() {
		path := write(t, "mapping", mapping(t, format, report.MappingOptions{Carried: columns}, exampleRows(), 2))
		rows, m, err := readAll(t, path)
		if err != nil || fmt.Sprint(m.Carried) != fmt.Sprint(columns) || string(rows[0].Carried[0]) != `say "hi"` || rows[0].Legacy != nil {
			t.Errorf("%s: %v, %+v", format, err, rows)
		}
		for _, mode := range []legacy.Mode{legacy.Map, legacy.Both} {
			_, err = readback.OpenMapping(context.Background(), path, readback.Options{Columns: report.Columns{Legacy: mode}})
			var damage *readback.DamageError
			if !errors.As(err, &damage) || !strings.Contains(err.Error(), "not a mapping written by bulk: its column 1") {
				t.Errorf("%s, %s: %v", format, mode, err)
			}
		}
	}
}

// Of links only, the kind is read too.
func TestLegacyLinksOnly(t *testing.T) {
	rows := legacyRows(legacy.Both, 8)
	for _, format := range formats() {
		opts := report.MappingOptions{Carried: []string{"a", "b"}, Columns: report.Columns{Legacy: legacy.Both}}
		path := write(t, "mapping", mapping(t, format, opts, rows, 8))
		m, err := readback.OpenMapping(context.Background(), path, readback.Options{LinksOnly: true, Columns: report.Columns{Legacy: legacy.Both}})
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for r, err := range m.Rows() {
			if err != nil || r.Alias != rows[i].Alias || string(r.Code) != string(rows[i].Code) {
				t.Fatalf("%s: row %d: %+v, %v", format, i+1, r, err)
			}
			if format != report.CSV && (r.Legacy != nil || r.LinkCode != nil || r.LinkSalt != -1) {
				t.Errorf("%s: row %d: %+v", format, i+1, r)
			}
			i++
		}
		m.Close()
	}
}

// Cells that no run writes are named.
func TestLegacyFaults(t *testing.T) {
	const head, row = header + ",kind,legacy_code,link_code,link_salt\n", "a,1,w,o,c,s,,created,0,link,l,k,3\n"
	for text, want := range map[string]string{
		row:                                              "",
		strings.Replace(row, "link", "alias", 1):         "",
		strings.Replace(row, "l,k,3", ",,", 1):           "",
		strings.Replace(row, "link", "Link", 1):          `row 1: column kind: "Link" is not a valid value`,
		strings.Replace(row, "link", "", 1):              `row 1: column kind: "" is not a valid value`,
		strings.Replace(row, ",3\n", ",-1\n", 1):         `row 1: column link_salt: "-1" is not a valid value`,
		strings.Replace(row, ",3\n", ",x\n", 1):          `row 1: column link_salt: "x" is not a valid value`,
		strings.Replace(row, ",3\n", ",03\n", 1):         `row 1: column link_salt: "03" is not a valid value`,
		strings.Replace(row, ",3\n", ",9876543210\n", 1): `row 1: column link_salt: "9876543210" is not a valid value`,
	} {
		m, err := readback.OpenMapping(context.Background(), write(t, "mapping", []byte(head+text)), readback.Options{Columns: report.Columns{Legacy: legacy.Both}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Next()
		if want == "" && (err != nil || r.Alias != strings.Contains(text, "alias")) || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
		m.Close()
	}

	record := arrowRecordOf(t, report.MappingOptions{Columns: report.Columns{Legacy: legacy.Keep}}, exampleRows()[:1])
	kind := record.Column(9).Data()
	null := array.MakeFromData(array.NewData(kind.DataType(), 1, append([]*memory.Buffer{memory.NewBufferBytes(make([]byte, 1))}, kind.Buffers()[1:]...), nil, 1, 0))
	columns := append([]arrow.Array{}, record.Columns()...)
	columns[9] = null
	m, err := readback.OpenMapping(context.Background(), write(t, "mapping", arrowFile(t, array.NewRecord(record.Schema(), columns, 1))), readback.Options{Columns: report.Columns{Legacy: legacy.Keep}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var cell *readback.CellError
	if _, err := m.Next(); !errors.As(err, &cell) || cell.Column != "kind" || cell.Found != "null" {
		t.Errorf("a null kind: %v", err)
	}
}
