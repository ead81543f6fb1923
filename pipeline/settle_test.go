package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/assign"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
	"github.com/linkforge/bulk/sink"
)

// onDisk returns a run whose records, of one workspace, are on disk in buckets of
// 16 KiB, what adds one to them, and how often the disk was read.
func onDisk(t *testing.T, length int) (r *run, add func(h codegen.Hash, url string, row int, cell []byte), reads *atomic.Int64) {
	cfg, err := Config{Inputs: []string{"a.csv"}, Out: "out", Workspace: "ws", CodeLength: length, Workers: 1}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r, reads = &run{cfg: cfg, workspaces: newWorkspaces()}, new(atomic.Int64)
	r.scheme, _ = codegen.New(length)
	r.workspaces.id("ws")
	r.workspaces.freeze()
	r.records = extsort.New(extsort.Config{
		CompareGroups: r.workspaces.compare, Compare: compareRecords(r.scheme, 1), Memory: 1, TempDir: t.TempDir(),
		FS: fsystest.FS{Before: func(operation string) error {
			if operation == "readat" {
				reads.Add(1)
			}
			return nil
		}},
	})
	t.Cleanup(func() { r.records.Close() })
	w := r.records.NewWriter()
	return r, func(h codegen.Hash, url string, row int, cell []byte) {
		rec := append(startRecord(nil), url...)
		rec = appendPlace(appendCell(finishRecord(rec, h, []byte(url), 0), cell), place{row: int64(row)})
		copy(w.Reserve(0, r.scheme.Rank(h), len(rec)), rec)
	}, reads
}

// Of many slots that lie beside a URL with very many rows, each bucket on disk is loaded
// about once, and not all of those with the rows once more for each slot. The slots count
// as contested, and so do the URLs that have them.
func TestFreshHoldersLoadOnce(t *testing.T) {
	r, add, reads := onDisk(t, 2)
	found := map[assign.Slot]assign.Holder{}
	const urls, rows = 17_000, 1000 // more than are looked at to find the ranges
	for i := range urls + rows {
		url, cell := fmt.Sprintf("http://example.com/%d", i), []byte(nil)
		if i >= urls {
			url, cell = "http://example.com/", make([]byte, 2000)
		}
		h := codegen.Sum(codegen.AppendInput(nil, []byte(url), []byte("ws"), 0))
		add(h, url, i+1, cell)
		found[assign.Slot{Code: r.codeOf(h)}] = assign.Holder{}
	}
	if err := r.records.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	reads.Store(0)
	var err error
	for range contents(t.Context(), r.records, &err) {
	}
	if err != nil {
		t.Fatal(err)
	}
	once := reads.Swap(0)
	buckets := r.records.Buckets()
	s := &settlement{run: r, populated: []bool{false}, outcomes: make([][]fate, buckets), heads: make([]head, buckets)}
	slots := slices.Collect(maps.Keys(found))
	if err := s.Holders(t.Context(), slots, func(i int, h assign.Holder) { found[slots[i]] = h }); err != nil {
		t.Fatal(err)
	}
	contested := int64(0)
	for slot, h := range found {
		if h.Canonical == nil {
			t.Errorf("nobody has %s", slot.Code.Bytes())
		}
		contested += slotCost + claimCost + int64(len(h.Canonical))
	}
	if s.contested != contested {
		t.Errorf("%d bytes are contested, want %d", s.contested, contested)
	}
	if n := reads.Load(); n > once+once/10 {
		t.Errorf("%d reads, where %d read all of it", n, once)
	}
}

// URLs that contest one code, and that no bucket can hold, count as contested before
// all of them are met.
func TestTooContestedOnDisk(t *testing.T) {
	r, add, _ := onDisk(t, 1)
	const urls, most = 2000, 200
	for i := range urls {
		url := fmt.Sprintf("http://example.com/%d%s", i, strings.Repeat("/long", 200))
		add(codegen.Hash{Hi: 1 << 63, Lo: uint64(i)}, url, i+1, nil)
	}
	if err := r.records.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.budget.contested = most * (claimCost + 1000)
	r.settled = new(settlement) // of an attempt before, which had as much
	err := r.settle(t.Context(), nil, 0)
	if r.settled != nil {
		t.Error("two settlements are held")
	}
	if n := r.cfg.Status.Settled.Load(); err == nil || !strings.Contains(err.Error(), "--memory") || n > 2*most {
		t.Errorf("%d rows of %d were settled: %v", n, urls, err)
	}
}

// ownedSession has every code, each for a URL of that name.
type ownedSession struct{ sink.Session }

func (ownedSession) Lookup(_ context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	for i, p := range probes {
		if err := visit(sink.Found{Probe: i, Code: p.Code, Canonical: p.Code}); err != nil {
			return err
		}
	}
	return nil
}

// Each slot gets its own owner, also of more slots than the store is asked about at once.
func TestOwnersOfManySlots(t *testing.T) {
	r, _, _ := onDisk(t, 10)
	slots := make([]assign.Slot, 2*maxProbes+2)
	for i := range slots {
		slots[i].Code = r.codeOf(codegen.Sum([]byte{byte(i), byte(i >> 8)}))
	}
	s, visited := &settlement{run: r, session: ownedSession{}, populated: []bool{true}}, make([]int, len(slots))
	err := s.owners(t.Context(), slots, func(i int, canonical []byte) {
		visited[i]++
		if string(canonical) != string(slots[i].Code.Bytes()) {
			t.Fatalf("%s is %s's", slots[i].Code.Bytes(), canonical)
		}
	})
	if err != nil || slices.Max(visited) != 1 || slices.Min(visited) != 1 {
		t.Errorf("some slot was not visited once: %v", err)
	}
}
