package readback_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
)

// readAll reads a mapping back. It is an error of this package, or all rows as
// long as they are few.
func readAll(t *testing.T, path string) (rows []readback.MappingRow, m *readback.Mapping, err error) {
	if m, err = open(path); err == nil {
		defer m.Close()
		var row *readback.MappingRow
		for row, err = m.Next(); err == nil && len(rows) < 10_000; row, err = m.Next() {
			rows = append(rows, cloned(row))
		}
	}
	var damage *readback.DamageError
	var cell *readback.CellError
	if err != nil && err != io.EOF && !errors.As(err, &damage) && !errors.As(err, &cell) {
		t.Errorf("an error of another kind: %v", err)
	}
	if err == io.EOF {
		err = nil
	}
	return rows, m, err
}

func cloned(r *readback.MappingRow) readback.MappingRow {
	c := *r
	c.Source = string([]byte(r.Source))
	for _, cell := range []*[]byte{&c.Workspace, &c.Original, &c.Canonical, &c.Code} {
		*cell = bytes.Clone(*cell)
	}
	c.ShortURL = nil
	c.Carried = slices.Clone(r.Carried)
	for i := range c.Carried {
		c.Carried[i] = bytes.Clone(c.Carried[i])
	}
	return c
}

// FuzzMapping reads any file as a mapping. Rows that no run writes are an
// error; the others, written again, read as they did.
func FuzzMapping(f *testing.F) {
	for _, format := range formats() {
		f.Add(mapping(f, format, report.MappingOptions{}, exampleRows(), 2))
		f.Add(mapping(f, format, report.MappingOptions{Carried: []string{"a", "b"}, BaseURL: "https://sho.rt"}, exampleRows(), 1))
	}
	f.Add(invalidSource(f))
	for _, pattern := range []string{"*.parquet", "*.arrow"} {
		names, _ := filepath.Glob("../../testdata/hostile/" + pattern)
		for _, name := range names {
			if data, err := os.ReadFile(name); err == nil && len(data) < 10_000 {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, m, err := readAll(t, write(t, "mapping", data))
		if err != nil {
			return
		}
		again := make([]report.Row, len(rows))
		for i := range rows {
			again[i] = rows[i].Row
		}
		written := mapping(t, m.Format, report.MappingOptions{Carried: m.Carried}, again, 100)
		same, _, err := readAll(t, write(t, "again", written))
		if err != nil || !reflect.DeepEqual(rows, same) {
			t.Errorf("%v\n got %+v\nwant %+v", err, same, rows)
		}
	})
}

// invalidSource is a mapping in Arrow in which the name of an input is no UTF-8.
func invalidSource(t testing.TB) []byte {
	return bytes.Replace(mapping(t, report.Arrow, report.MappingOptions{}, exampleRows(), 2), []byte("links.csv"), []byte("\xff\xffnks.csv"), 1)
}

// No run writes such a name.
func TestInvalidSource(t *testing.T) {
	_, _, err := readAll(t, write(t, "mapping", invalidSource(t)))
	if cell, ok := errors.AsType[*readback.CellError](err); !ok || cell.Column != "source" || cell.Row != 1 || cell.Found != "\xff\xffnks.csv" {
		t.Error(err)
	}
}

// FuzzCSV reads any file as rejects and as collisions; what can be read,
// written again, reads as it did.
func FuzzCSV(f *testing.F) {
	f.Add([]byte("source,row,byte_offset,reason,detail,url,raw\na,1,0,r,\"d,\"\"\",,x\n"))
	f.Add([]byte("workspace_id,canonical_url,salt,code,owner\nw,http://a/,0,c,\"http://b/\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := write(t, "report.csv", data)
		if columns, rejects, ok := readRejects(path); ok {
			_, again, ok := readRejects(rejectsFile(t, columns, rejects))
			if !ok || !reflect.DeepEqual(rejects, again) {
				t.Errorf("%+v, not %+v", again, rejects)
			}
		}
		if collisions, ok := readCollisions(path, false); ok {
			again, ok := readCollisions(collisionsFile(t, collisions, true), true)
			if !ok || !reflect.DeepEqual(collisions, again) {
				t.Errorf("%+v, not %+v", again, collisions)
			}
		}
	})
}

func rejectsFile(t *testing.T, columns []string, rejects []outcome.Reject) (path string) {
	t.Helper()
	var out bytes.Buffer
	w := report.NewRejects(&out, columns)
	for i := range rejects {
		w.Append(&rejects[i])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, "rejects.csv", out.Bytes())
}

func collisionsFile(t *testing.T, collisions []report.Collision, safe bool) (path string) {
	t.Helper()
	var out bytes.Buffer
	w := report.NewCollisions(&out, safe, false)
	for i := range collisions {
		w.Append(&collisions[i])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, "collisions.csv", out.Bytes())
}

func readRejects(path string) (columns []string, rejects []outcome.Reject, ok bool) {
	r, err := readback.OpenRejects(context.Background(), path, readback.Options{})
	if err != nil {
		return nil, nil, false
	}
	defer r.Close()
	for rej, err := range r.Rows() {
		if err != nil {
			return nil, nil, false
		}
		c := *rej
		c.Raw, c.Cells = bytes.Clone(rej.Raw), slices.Clone(rej.Cells)
		for i := range c.Cells {
			c.Cells[i] = bytes.Clone(c.Cells[i])
		}
		rejects = append(rejects, c)
	}
	return r.Columns, rejects, true
}

func readCollisions(path string, safe bool) (collisions []report.Collision, ok bool) {
	r, err := readback.OpenCollisions(context.Background(), path, readback.Options{ExcelSafe: safe})
	if err != nil {
		return nil, false
	}
	defer r.Close()
	for c, err := range r.Rows() {
		if err != nil {
			return nil, false
		}
		collisions = append(collisions, report.Collision{Workspace: bytes.Clone(c.Workspace), Canonical: bytes.Clone(c.Canonical),
			Salt: c.Salt, Code: bytes.Clone(c.Code), Owner: bytes.Clone(c.Owner)})
	}
	return collisions, true
}
