package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
)

// Of many slots that lie beside a URL with very many rows, each bucket on disk is loaded
// about once, and not all of those with the rows once more for each slot.
func TestFreshHoldersLoadOnce(t *testing.T) {
	scheme, _ := codegen.New(2)
	var reads atomic.Int64
	r := &run{scheme: scheme, workspaces: newWorkspaces()}
	r.workspaces.id("ws")
	r.workspaces.freeze()
	r.records = extsort.New(extsort.Config{
		CompareGroups: r.workspaces.compare, Compare: compareRecords(scheme, 1), Memory: 1, TempDir: t.TempDir(),
		FS: fsystest.FS{Before: func(operation string) error {
			if operation == "readat" {
				reads.Add(1)
			}
			return nil
		}},
	})
	defer r.records.Close()
	w := r.records.NewWriter()
	found := map[assign.Slot]freshURL{}
	add := func(url string, row int, cell []byte) {
		rec := append(startRecord(nil), url...)
		h := codegen.Sum(codegen.AppendInput(nil, []byte(url), []byte("ws"), 0))
		rec = appendPlace(appendCell(finishRecord(rec, h, []byte(url), 0), cell), place{row: int64(row)})
		copy(w.Reserve(0, scheme.Rank(h), len(rec)), rec)
		found[assign.Slot{Code: r.codeOf(h)}] = freshURL{}
	}
	const urls, rows = 17_000, 1000 // more than are looked at to find the ranges
	for i := range urls {
		add(fmt.Sprintf("http://example.com/%d", i), 1, nil)
	}
	for row := range rows {
		add("http://example.com/0", row+2, make([]byte, 2000))
	}
	if err := r.records.Finish(); err != nil {
		t.Fatal(err)
	}
	reads.Store(0)
	var err error
	for range contents(r.records, &err) {
	}
	if err != nil {
		t.Fatal(err)
	}
	once := reads.Swap(0)
	buckets := r.records.Buckets()
	s := &settlement{run: r, outcomes: make([][]outcome, buckets), heads: make([]head, buckets)}
	slots := slices.Collect(maps.Keys(found))
	none := func(int) bool { return false }
	err = s.freshHolders(slots, none, func(i int, f freshURL) error {
		found[slots[i]] = f
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for slot, f := range found {
		if !f.known {
			t.Errorf("nobody has %s", slot.Code.Bytes())
		}
	}
	if n := reads.Load(); n > once+once/10 {
		t.Errorf("%d reads, where %d read all of it", n, once)
	}
}
