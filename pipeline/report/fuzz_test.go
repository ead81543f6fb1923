package report

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/linkforge/bulk/pipeline/outcome"
)

// readAll reads a mapping back. It is an error of this package, or all rows as
// long as they are few.
func readAll(t *testing.T, path string) (rows []MappingRow, m *MappingReader, err error) {
	if m, err = OpenMapping(path); err == nil {
		defer m.Close()
		var row *MappingRow
		for row, err = m.Next(); err == nil && len(rows) < 10_000; row, err = m.Next() {
			rows = append(rows, cloned(row))
		}
	}
	var damage *DamageError
	var cell *CellError
	if err != nil && err != io.EOF && !errors.As(err, &damage) && !errors.As(err, &cell) {
		t.Errorf("an error of another kind: %v", err)
	}
	if err == io.EOF {
		err = nil
	}
	return rows, m, err
}

func cloned(r *MappingRow) MappingRow {
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

// FuzzReadMapping reads any file as a mapping. Rows that no run writes are an
// error; the others, written again, read as they did.
func FuzzReadMapping(f *testing.F) {
	for _, format := range formats() {
		f.Add(mapping(f, format, MappingOptions{}, exampleRows(), 2))
		f.Add(mapping(f, format, MappingOptions{Carried: []string{"a", "b"}, BaseURL: "https://sho.rt"}, exampleRows(), 1))
	}
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
		again := make([]Row, len(rows))
		for i := range rows {
			again[i] = rows[i].Row
			if again[i].Row < 0 || again[i].Salt < -1 {
				return
			}
		}
		written := mapping(t, m.Format, MappingOptions{Carried: m.Carried}, again, 100)
		same, _, err := readAll(t, write(t, "again", written))
		if err != nil || !reflect.DeepEqual(rows, same) {
			t.Errorf("%v\n got %+v\nwant %+v", err, same, rows)
		}
	})
}

// FuzzReadCSV reads any file as rejects and as collisions; what can be read,
// written again, reads as it did.
func FuzzReadCSV(f *testing.F) {
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
		if collisions, ok := readCollisions(path); ok {
			again, ok := readCollisions(collisionsFile(t, collisions))
			if !ok || !reflect.DeepEqual(collisions, again) {
				t.Errorf("%+v, not %+v", again, collisions)
			}
		}
	})
}

func rejectsFile(t *testing.T, columns []string, rejects []outcome.Reject) (path string) {
	t.Helper()
	var out bytes.Buffer
	w := NewRejects(&out, columns)
	for i := range rejects {
		w.Append(&rejects[i])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, "rejects.csv", out.Bytes())
}

func collisionsFile(t *testing.T, collisions []Collision) (path string) {
	t.Helper()
	var out bytes.Buffer
	w := NewCollisions(&out, false)
	for i := range collisions {
		w.Append(&collisions[i])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, "collisions.csv", out.Bytes())
}

func readRejects(path string) (columns []string, rejects []outcome.Reject, ok bool) {
	r, err := OpenRejects(path)
	if err != nil {
		return nil, nil, false
	}
	defer r.Close()
	for {
		rej, err := r.Next()
		if err != nil {
			return r.Columns, rejects, err == io.EOF
		}
		c := *rej
		c.Raw, c.Cells = bytes.Clone(rej.Raw), slices.Clone(rej.Cells)
		for i := range c.Cells {
			c.Cells[i] = bytes.Clone(c.Cells[i])
		}
		rejects = append(rejects, c)
	}
}

func readCollisions(path string) (collisions []Collision, ok bool) {
	r, err := OpenCollisions(path)
	if err != nil {
		return nil, false
	}
	defer r.Close()
	for {
		c, err := r.Next()
		if err != nil {
			return collisions, err == io.EOF
		}
		collisions = append(collisions, Collision{bytes.Clone(c.Workspace), bytes.Clone(c.Canonical), c.Salt, bytes.Clone(c.Code), bytes.Clone(c.Owner)})
	}
}
