package settle

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
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/sink"
)

// onDisk returns what settles records, of one workspace, that are on disk in buckets of
// 16 KiB, what adds one to them, what ends that, and how often the disk was read.
func onDisk(t *testing.T, length int) (s *settling, add func(h codegen.Hash, url string, row int, cell []byte), finish func(), reads *atomic.Int64) {
	scheme, err := codegen.New(length)
	if err != nil {
		t.Fatal(err)
	}
	s, reads = &settling{names: record.NewWorkspaces(), made: new(Settlement)}, new(atomic.Int64)
	s.cfg = Config{Order: record.Order{Maker: codegen.Maker{Scheme: scheme}, Carried: 1}, MaxRetries: codegen.DefaultRetries, Workers: 1, Settled: new(atomic.Int64)}
	s.names.ID("ws")
	s.names.Freeze()
	s.records = extsort.New(extsort.Config{
		CompareGroups: s.names.Compare, Compare: s.cfg.Order.Compare, Memory: 1, TempDir: t.TempDir(),
		FS: fsystest.FS{Before: func(operation string) error {
			if operation == "readat" {
				reads.Add(1)
			}
			return nil
		}},
	})
	t.Cleanup(func() { s.records.Close() })
	w := s.records.NewWriter()
	add = func(h codegen.Hash, url string, row int, cell []byte) {
		rec := append(record.Start(nil), url...)
		rec = record.AppendPlace(packed.AppendNullable(record.Finish(rec, h, []byte(url), 0), cell), record.Place{Row: int64(row)})
		copy(w.Reserve(0, s.cfg.Order.Key(h), len(rec)), rec)
	}
	return s, add, func() {
		if err := s.records.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.made.buckets = make([]bucket, s.records.Buckets())
	}, reads
}

// Of many slots that lie beside a URL with very many rows, each bucket on disk is loaded
// about once, and not all of those with the rows once more for each slot. The slots count
// as contested, and so do the URLs that have them.
func TestFreshHoldersLoadOnce(t *testing.T) {
	s, add, finish, reads := onDisk(t, 2)
	found := map[assign.Slot]assign.Holder{}
	const urls, rows = 17_000, 1000 // more than are looked at to find the ranges
	for i := range urls + rows {
		url, cell := fmt.Sprintf("http://example.com/%d", i), []byte(nil)
		if i >= urls {
			url, cell = "http://example.com/", make([]byte, 2000)
		}
		h := codegen.Sum(codegen.AppendInput(nil, []byte(url), []byte("ws"), 0))
		add(h, url, i+1, cell)
		found[assign.Slot{Code: code(s, h)}] = assign.Holder{}
	}
	finish()
	reads.Store(0)
	if err := s.records.InOrder(t.Context(), 0, func(_ int, b *extsort.Bucket) error { b.Release(); return nil }); err != nil {
		t.Fatal(err)
	}
	once := reads.Swap(0)
	s.populated = []bool{false}
	slots := slices.Collect(maps.Keys(found))
	if err := s.Holders(t.Context(), slots, func(i int, h assign.Holder) { found[slots[i]] = h }); err != nil {
		t.Fatal(err)
	}
	contested := int64(0)
	for slot, h := range found {
		if h.Canonical == nil {
			t.Errorf("nobody has %s", slot.Code)
		}
		contested += slotCost + claimCost + int64(len(h.Canonical))
	}
	if s.cost != contested {
		t.Errorf("%d bytes are contested, want %d", s.cost, contested)
	}
	if n := reads.Load(); n > once+once/10 {
		t.Errorf("%d reads, where %d read all of it", n, once)
	}
}

// URLs that contest one code, and that no bucket can hold, count as contested before
// all of them are met.
func TestTooContestedOnDisk(t *testing.T) {
	s, add, finish, _ := onDisk(t, 1)
	const urls, most = 2000, 200
	for i := range urls {
		url := fmt.Sprintf("http://example.com/%d%s", i, strings.Repeat("/long", 200))
		add(codegen.Hash{Hi: 1 << 63, Lo: uint64(i)}, url, i+1, nil)
	}
	finish()
	s.cfg.Contested = most * (claimCost + 1000)
	_, err := Settle(t.Context(), s.records, s.names, nil, 0, s.cfg)
	if n := s.cfg.Settled.Load(); err == nil || !strings.Contains(err.Error(), "Config.Memory") || n > 2*most {
		t.Errorf("%d rows of %d were settled: %v", n, urls, err)
	}
}

// code returns the code of a hash.
func code(s *settling, h codegen.Hash) string { return string(s.cfg.Order.AppendCode(nil, h)) }

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
	s, _, _, _ := onDisk(t, 10)
	slots := make([]assign.Slot, 2*maxProbes+2)
	for i := range slots {
		slots[i].Code = code(s, codegen.Sum([]byte{byte(i), byte(i >> 8)}))
	}
	s.session, s.populated = ownedSession{}, []bool{true}
	visited := make([]int, len(slots))
	err := s.Stored(t.Context(), slots, func(i int, canonical []byte) {
		visited[i]++
		if string(canonical) != slots[i].Code {
			t.Fatalf("%s is %s's", slots[i].Code, canonical)
		}
	})
	if err != nil || slices.Max(visited) != 1 || slices.Min(visited) != 1 {
		t.Errorf("some slot was not visited once: %v", err)
	}
}
