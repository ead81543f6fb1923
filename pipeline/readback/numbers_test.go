package readback_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
)

// numberedRows are nasty rows, two in three with a number.
func numberedRows(mode legacy.Mode, n int) []report.Row {
	rows := nastyRows(n)
	if mode != legacy.Off {
		rows = legacyRows(mode, n)
	}
	for i := range rows {
		rows[i].Number = int64(i%3) << (i % 62)
	}
	return rows
}

// A mapping with numbers reads back as it was written, in any format, and has its digest.
func TestNumbersMapping(t *testing.T) {
	for _, mode := range append(modes(), legacy.Off) {
		columns := report.Columns{Numbers: true, Legacy: mode}
		rows := numberedRows(mode, 3000)
		for _, safe := range []bool{false, true} {
			for _, format := range formats() {
				name := fmt.Sprintf("%s, %s, safe %t", mode, format, safe)
				opts := report.MappingOptions{BaseURL: "https://sho.rt", ExcelSafe: safe, Columns: columns, Carried: report.CarriedNames(columns.Names(), []string{"number", "salt"})}
				path := write(t, "mapping", mapping(t, format, opts, rows, 999))
				m, err := readback.OpenMapping(context.Background(), path, readback.Options{ExcelSafe: safe, Columns: columns})
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(m.Carried) != "[in_number in_salt]" {
					t.Errorf("%s: carried %q", name, m.Carried)
				}
				written, read := report.RowDigest{Columns: columns}, report.RowDigest{Columns: columns}
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

// Of links only, the kind is read, and no number.
func TestNumbersLinksOnly(t *testing.T) {
	columns := report.Columns{Numbers: true, Legacy: legacy.Keep}
	rows := numberedRows(legacy.Keep, 8)
	for _, format := range formats() {
		path := write(t, "mapping", mapping(t, format, report.MappingOptions{Carried: []string{"a", "b"}, Columns: columns}, rows, 8))
		m, err := readback.OpenMapping(context.Background(), path, readback.Options{LinksOnly: true, Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for r, err := range m.Rows() {
			if err != nil || r.Alias != rows[i].Alias || string(r.Code) != string(rows[i].Code) {
				t.Fatalf("%s: row %d: %+v, %v", format, i+1, r, err)
			}
			if format != report.CSV && (r.Row.Number != 0 || r.Legacy != nil) {
				t.Errorf("%s: row %d: %+v", format, i+1, r)
			}
			i++
		}
		m.Close()
	}
}

// Cells that no run writes are named.
func TestNumberFaults(t *testing.T) {
	const head, row = header + ",number\n", "a,1,w,o,c,s,,created,,42\n"
	for cell, bad := range map[string]bool{"42": false, "": false, "9223372036854775807": false, "0": true, "042": true, "-1": true, "x": true, "9223372036854775808": true} {
		m, err := readback.OpenMapping(context.Background(), write(t, "mapping", []byte(head+strings.Replace(row, "42", cell, 1))), readback.Options{Columns: report.Columns{Numbers: true}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Next()
		if want := fmt.Sprintf("row 1: column number: %q is not a valid value", cell); bad != (err != nil) || bad && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %+v, %v", cell, r, err)
		}
		m.Close()
	}
	_, err := readback.OpenMapping(context.Background(), write(t, "mapping", []byte(header+"\n"+"a,1,w,o,c,s,,created,\n")), readback.Options{Columns: report.Columns{Numbers: true}})
	if err == nil || !strings.Contains(err.Error(), "its column 10 is not named number") {
		t.Errorf("without the column: %v", err)
	}
}
