package sinktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

var scanTests = []test{
	{"scan/all", testScanAll},
	{"scan/stopped", testScanStopped},
	{"scan/find", testFind},
}

// scan lists the links with a store of its own.
func (db *database) scan(visit func(*sink.Stored) error) error {
	db.t.Helper()
	store := db.Open(db.t)
	defer closed(db.t, store)
	return store.Scan(context.Background(), visit)
}

// Links come in the order of their bytes, with all their columns.
func testScanAll(t *testing.T, db *database) {
	db.with(func(sink.Session) {})
	var list []Row
	for i, code := range []string{"b", "B", "a", "ä", "aa", "Z"} {
		row := Row{Workspace: []string{"x", "X"}[i%2], Code: code, Key: sink.Key{byte(i)}, Canonical: "http://example.com/" + code,
			Run: int32(i), Created: time.UnixMicro(int64(i) * 123456789).UTC()}
		switch i % 3 {
		case 0:
			row.Original = sql.NullString{String: "HTTP://example.com/" + code, Valid: true}
		case 1:
			row.Original.Valid = true // empty, which is not the same as NULL
		}
		list = append(list, row)
	}
	db.Insert(t, list...)
	var got []Row
	noError(t, db.scan(func(l *sink.Stored) error {
		got = append(got, stored(l))
		return nil
	}))
	equal(t, got, db.Dump(t)...)
	var codes []string
	for _, r := range got {
		codes = append(codes, fmt.Sprint(r.Workspace, " ", r.Code))
	}
	equal(t, codes, "X B", "X Z", "X ä", "x a", "x aa", "x b")
}

// stored is what a link looks like in the database.
func stored(l *sink.Stored) Row {
	return Row{Rules: rulesOf(l.Rules), Workspace: string(l.Workspace), Code: string(l.Code), Key: l.Key, Canonical: string(l.Canonical),
		Original: sql.NullString{String: string(l.Original), Valid: l.Original != nil}, Run: l.Run, Created: l.Created, Alias: l.Alias, Base: l.Base, Attrs: string(l.Attrs)}
}

// A link is found by its code, byte by byte, in its workspace only.
func testFind(t *testing.T, db *database) {
	ls := sorted([]sink.Link{coded("w", "https://a.example/", "aA"), coded("w", "https://b.example/", "aa"), coded("v", "https://c.example/", "aa")})
	ls[2].Original = []byte("HTTPS://b.example")
	db.load(ls, "v", "w")
	store := db.Open(t)
	defer closed(t, store)
	find := func(workspace, code string) (found []Row) {
		noError(t, store.Find(context.Background(), workspace, code, func(l *sink.Stored) error {
			found = append(found, stored(l))
			return nil
		}))
		return found
	}
	for _, want := range rows(ls, 1) {
		equal(t, find(want.Workspace, want.Code), want)
	}
	for _, code := range []string{"AA", "a", "aab", "", "'"} {
		equal(t, find("w", code))
	}
	equal(t, find("x", "aa"))
	stop := errors.New("stop")
	wantIs(t, store.Find(context.Background(), "w", "aa", func(*sink.Stored) error { return stop }), stop)
}

func testScanStopped(t *testing.T, db *database) {
	db.load(links("w", 0, 10), "w")
	stop, n := errors.New("stop"), 0
	err := db.scan(func(*sink.Stored) error { n++; return stop })
	if err != stop || n != 1 {
		t.Errorf("error %v after %d links", err, n)
	}
}
