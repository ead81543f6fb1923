package sinktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/sink"
)

var exportTests = []test{
	{"export/all", testExport},
	{"export/members", testExportMembers},
	{"export/many_members", testExportManyMembers},
	{"export/empty", testExportEmpty},
	{"export/stopped", testExportStopped},
}

// exportCells exports with a store of its own: the names of the columns, then the cells of each
// link. NULL is ~.
func (db *database) exportCells(workspace string) (out [][]string) {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	noError(db.t, store.Export(context.Background(), workspace, func(columns []string) error {
		out = append(out, columns)
		return nil
	}, func(row [][]byte) error {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = string(cell); cell == nil {
				cells[i] = "~"
			}
		}
		out = append(out, cells)
		return nil
	}))
	return out
}

// export is exportCells with cells joined by blanks.
func (db *database) export(workspace string) (out []string) {
	db.t.Helper()
	for _, cells := range db.exportCells(workspace) {
		out = append(out, strings.Join(cells, " "))
	}
	return out
}

// Links and aliases come in the order of the codes, with the columns that one of them has.
func testExport(t *testing.T, db *database) {
	a, b, c := coded("v", "https://a.example/", "b"), alias("w", "https://b.example/", "B"), coded("w", "https://c.example/", "a")
	for i, l := range []*sink.Link{&a, &b, &c} {
		l.Key = sink.Key{0x12, 0x34, 15: byte(i)}
	}
	b.Base = sink.Key{0xab, 0xcd, 15: 1}
	b.Original = []byte("HTTPS://B.example")
	db.with(func(s sink.Session) {
		run := startAliases(t, s)
		noError(t, s.Load(context.Background(), run, chunks([]sink.Link{a, b, c}, 2)))
		complete(t, s, run)
	}, "v", "w")
	const at = " 1 2025-03-04T05:06:07.890123Z 2025-03-04T05:06:07.890123Z"
	equal(t, db.export(""), "workspace_id short_code kind canonical_url original_url url_key base_key run_id created_at updated_at",
		"v b link https://a.example/ ~ 12340000-0000-0000-0000-000000000000 ~"+at,
		"w B alias https://b.example/ HTTPS://B.example 12340000-0000-0000-0000-000000000001 abcd0000-0000-0000-0000-000000000001"+at,
		"w a link https://c.example/ ~ 12340000-0000-0000-0000-000000000002 ~"+at)
	equal(t, db.export("v"), "workspace_id short_code kind canonical_url url_key run_id created_at updated_at",
		"v b link https://a.example/ 12340000-0000-0000-0000-000000000000"+at)
	db.Execute(t, `UPDATE links SET expires_at = '2030-01-02 03:04:05', marked_at = '2030-01-02 03:04:05.5', max_uses = 9223372036854775807,
		access_count = 0, avg_redirect_ms = 1000000.25, attrs = '{"title": "a <b> \u00e9", "n": [1, 2.50], "a": null}', link_type = 'TEMPORARY',
		owner_id = '', ref = 'r', status = 'ACTIVE', changed_run = 7, change = 'updated' WHERE workspace_id = 'v'`)
	equal(t, db.export("v"), "workspace_id short_code kind canonical_url url_key a n title expires_at max_uses access_count avg_redirect_ms"+
		" link_type owner_id ref status marked_at run_id created_at updated_at changed_run change",
		`v b link https://a.example/ 12340000-0000-0000-0000-000000000000 ~ [1,2.50] a <b> é 2030-01-02T03:04:05.000000Z`+
			" 9223372036854775807 0 1000000.25 TEMPORARY  r ACTIVE 2030-01-02T03:04:05.500000Z"+at+" 7 updated")
}

// loadAttrs loads links with these attrs, in their order.
func (db *database) loadAttrs(attrs ...string) {
	db.t.Helper()
	var ls []sink.Link
	for i, a := range attrs {
		l := coded("w", fmt.Sprint("https://example.com/", i), fmt.Sprintf("%03d", i))
		if a != "" {
			l.Attrs = []byte(a)
		}
		ls = append(ls, l)
	}
	db.with(func(s sink.Session) {
		run := startOwn(db.t, s, sink.Run{Attrs: true})
		noError(db.t, s.Load(context.Background(), run, chunks(ls, 50)))
		complete(db.t, s, run)
	}, "w")
}

// exportAttrs exports the columns between url_key and run_id: their names, then the cells of each
// link.
func (db *database) exportAttrs() (out [][]string) {
	db.t.Helper()
	all := db.exportCells("w")
	for _, cells := range all {
		if len(cells) != len(all[0]) {
			db.t.Fatalf("%d cells, want %d", len(cells), len(all[0]))
		}
		out = append(out, cells[slices.Index(all[0], "url_key")+1:slices.Index(all[0], "run_id")])
	}
	return out
}

// Members of attrs are columns, in the order of their names. Those with the name of a column
// of the table have another one. Attrs that are no object stay what they are.
func testExportMembers(t *testing.T, db *database) {
	db.load([]sink.Link{link("v", "https://example.com/")}, "v")
	db.loadAttrs(
		`{"attrs_created_at":1,"clicks":999999999999999999,"created_at":"2011-02-03T04:05:06Z","tags":["a b","é\u2028"],"title":"\"é\" <b>\u2028😀"}`,
		``,
		`{}`,
		`{"Z":true,"a b":false,"clicks":-0.50,"tags":{"a":[null,{}],"b":""},"title":""}`,
		`{"Z":null,"attrs":"x","owner_id":"me","é,\n\"":[]}`)
	none := slices.Repeat([]string{"~"}, 10)
	want := [][]string{
		{"Z", "a b", "attrs_attrs", "attrs_created_at", "clicks", "attrs_attrs_created_at", "attrs_owner_id", "tags", "title", "é,\n\""},
		{"~", "~", "~", "1", "999999999999999999", "2011-02-03T04:05:06Z", "~", `["a b","é\u2028"]`, "\"é\" <b>\u2028😀", "~"},
		none,
		none,
		{"true", "false", "~", "~", "-0.50", "~", "~", `{"a":[null,{}],"b":""}`, "", "~"},
		{"~", "~", "x", "~", "~", "~", "me", "~", "~", "[]"},
	}
	equal(t, db.exportAttrs(), want...)
	equal(t, db.exportCells("v")[0], strings.Fields("workspace_id short_code kind canonical_url url_key run_id created_at updated_at")...)
	for i := range want {
		want[i] = append([]string{"~"}, want[i]...)
	}
	want[0][0] = "attrs"
	for written, other := range map[string]string{`[1, 2]`: `[1,2]`, `"x"`: `"x"`, `null`: `null`} {
		db.Execute(t, `UPDATE links SET attrs = '`+written+`' WHERE short_code = '001'`)
		want[2][0] = other
		equal(t, db.exportAttrs(), want...)
	}
}

// If there are too many members, or one has no name, attrs are one column.
func testExportManyMembers(t *testing.T, db *database) {
	var all []string
	for i := range sink.MaxMembers {
		all = append(all, fmt.Sprintf(`{"m%03d":%d}`, i, i))
	}
	db.loadAttrs(all...)
	got := db.exportAttrs()
	if names := got[0]; len(names) != sink.MaxMembers || names[0] != "m000" || names[199] != "m199" || got[1][0] != "0" || got[200][199] != "199" {
		t.Errorf("%d columns: %q", len(names), got)
	}
	db.Execute(t, `UPDATE links SET attrs = '{"m002": 1, "m000": 2}' WHERE short_code = '000'`)
	for _, more := range []string{`{"m200":7}`, `{"":7}`} {
		db.Execute(t, `UPDATE links SET attrs = '`+more+`' WHERE short_code = '002'`)
		equal(t, db.exportAttrs()[:4], []string{"attrs"}, []string{`{"m000":2,"m002":1}`}, []string{all[1]}, []string{more})
	}
}

// The columns of no link are those that cannot be NULL.
func testExportEmpty(t *testing.T, db *database) {
	store := db.Open(t)
	wantIs(t, store.Export(context.Background(), "", nil, nil), sink.ErrMissing)
	closed(t, store)
	db.load(links("v", 0, 1), "v")
	for _, workspace := range []string{"w", "'"} {
		equal(t, db.export(workspace), "workspace_id short_code kind canonical_url url_key run_id created_at updated_at")
	}
}

// An error of a visitor, or the cause of the context, ends the export.
func testExportStopped(t *testing.T, db *database) {
	db.load(links("w", 0, 20_000), "w")
	store := db.Open(t)
	defer closed(t, store)
	ctx, cancel := context.WithCancelCause(context.Background())
	stop, because, rows := errors.New("stop"), errors.New("because"), 0
	row := func([][]byte) error { rows++; return stop }
	wantIs(t, store.Export(ctx, "", func([]string) error { return stop }, row), stop)
	if rows > 0 {
		t.Error("a row came after an error")
	}
	wantIs(t, store.Export(ctx, "", func([]string) error { return nil }, row), stop)
	if rows != 1 {
		t.Errorf("%d rows", rows)
	}
	wantIs(t, store.Export(ctx, "", func([]string) error { return nil }, func([][]byte) error { cancel(because); return nil }), because)
	if got := len(db.export("")); got != 20_001 {
		t.Errorf("%d lines afterwards", got)
	}
}
