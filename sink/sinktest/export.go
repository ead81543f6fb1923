package sinktest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/linkforge/bulk/sink"
)

var exportTests = []test{
	{"export/all", testExport},
	{"export/empty", testExportEmpty},
	{"export/stopped", testExportStopped},
}

// export exports with a store of its own: a line of the names, then one for each link, whose
// cells are joined by blanks. NULL is written ~.
func (db *database) export(workspace string) (out []string) {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	noError(db.t, store.Export(context.Background(), workspace, func(columns []string) error {
		out = append(out, strings.Join(columns, " "))
		return nil
	}, func(row [][]byte) error {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = string(cell); cell == nil {
				cells[i] = "~"
			}
		}
		out = append(out, strings.Join(cells, " "))
		return nil
	}))
	return out
}

// Links and aliases come in the order of the codes, with the columns that one of them has.
func testExport(t *testing.T, db *database) {
	a, b, c := coded("v", "https://a.example/", "b"), alias("w", "https://b.example/", "B"), coded("w", "https://c.example/", "a")
	for i, l := range []*sink.Link{&a, &b, &c} {
		l.Key, l.Base = sink.Key{0x12, 0x34, 15: byte(i)}, sink.Key{0xab, 0xcd, 15: byte(i)}
	}
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
	equal(t, db.export("v"), "workspace_id short_code kind canonical_url url_key attrs expires_at max_uses access_count avg_redirect_ms"+
		" link_type owner_id ref status marked_at run_id created_at updated_at changed_run change",
		`v b link https://a.example/ 12340000-0000-0000-0000-000000000000 {"a":null,"n":[1,2.50],"title":"a <b> é"} 2030-01-02T03:04:05.000000Z`+
			" 9223372036854775807 0 1000000.25 TEMPORARY  r ACTIVE 2030-01-02T03:04:05.500000Z"+at+" 7 updated")
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
