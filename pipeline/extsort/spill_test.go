package extsort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// spilled returns a sorter whose records are all on disk.
func spilled(t *testing.T) *Sorter {
	t.Helper()
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 1 << 20, TempDir: t.TempDir()})
	t.Cleanup(func() { s.Close() })
	w := s.NewWriter()
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range uint64(100_000) {
		binary.LittleEndian.PutUint64(w.Reserve(0, rnd.Uint64(), 100), i)
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if s.Spilled() < 100_000*100 {
		t.Fatalf("only %d bytes were spilled", s.Spilled())
	}
	return s
}

func loadAll(s *Sorter) error {
	for i := range s.Buckets() {
		b, err := s.Load(i)
		if err != nil {
			return err
		}
		b.Release()
	}
	return nil
}

// The spill file has no name, so nothing can be left of it.
func TestSpillHasNoName(t *testing.T) {
	s := spilled(t)
	entries, err := os.ReadDir(s.cfg.TempDir)
	if err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A spill file that is not what was written is an error, never a wrong result.
func TestSpillDamaged(t *testing.T) {
	s := spilled(t)
	if err := loadAll(s); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 5, 9, 20, s.Spilled() / 2, s.Spilled() - 1} {
		var b [1]byte
		for range 2 { // damage it, then mend it
			if _, err := s.spill.file.ReadAt(b[:], at); err != nil {
				t.Fatal(err)
			}
			b[0] ^= 0x10
			if _, err := s.spill.file.WriteAt(b[:], at); err != nil {
				t.Fatal(err)
			}
			err := loadAll(s)
			if damaged := !errors.Is(err, errDamaged); damaged == (err != nil) {
				t.Fatalf("byte %d: %v", at, err)
			}
			if err == nil {
				break
			}
		}
	}
	if err := s.spill.file.(interface{ Truncate(int64) error }).Truncate(s.Spilled() - 1); err != nil {
		t.Fatal(err)
	}
	if err := loadAll(s); !errors.Is(err, errDamaged) {
		t.Fatalf("truncated: %v", err)
	}
}

// An extent of which four bytes side by side are others is an error, unless it is
// those that say nothing.
func FuzzSpill(f *testing.F) {
	f.Add([]byte("some chunk"), []byte("another"), uint16(3), uint32(1))
	f.Add([]byte{}, []byte("x"), uint16(14), uint32(0xffff))
	f.Fuzz(func(t *testing.T, a, b []byte, at uint16, change uint32) {
		p := &spill{fs: fsys.Or(nil), dir: t.TempDir()}
		defer p.close()
		if len(a)+len(b) == 0 {
			return
		}
		first, err := p.write([][]byte{a, b})
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.write([][]byte{b, a})
		if err != nil {
			t.Fatal(err)
		}
		if chunks, err := p.read(first, make([]byte, first.size)); err != nil || string(chunks) != string(a)+string(b) {
			t.Fatalf("%q, %v", chunks, err)
		}
		place := e.offset + int64(at)%int64(e.size)
		var was, is [4]byte
		n, _ := p.file.ReadAt(was[:], place)
		binary.LittleEndian.PutUint32(is[:], binary.LittleEndian.Uint32(was[:])^change)
		if _, err := p.file.WriteAt(is[:n], place); err != nil {
			t.Fatal(err)
		}
		chunks, err := p.read(e, make([]byte, e.size))
		same := string(chunks) == string(b)+string(a)
		if err == nil && !same || err != nil && !errors.Is(err, errDamaged) || err != nil && bytes.Equal(was[:n], is[:n]) {
			t.Errorf("%q, %v", chunks, err)
		}
	})
}

// A writer that somebody still knows keeps no memory once all is spilled.
func TestWriterGivesUpMemory(t *testing.T) {
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 64 << 20, TempDir: t.TempDir()})
	defer s.Close()
	held := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := held()
	w := s.NewWriter()
	for i := range uint64(1 << 20) {
		w.Reserve(0, i*7919, 100)
	}
	if err := s.Finish(); err != nil || s.Spilled() == 0 {
		t.Fatalf("%d bytes were spilled: %v", s.Spilled(), err)
	}
	if more := held() - before; more > 8<<20 {
		t.Errorf("%d bytes are held", more)
	}
	runtime.KeepAlive(w)
}

// A spill that cannot be written is reported by the writer and by Finish.
func TestSpillFails(t *testing.T) {
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 1 << 20, TempDir: "/nowhere"})
	w := s.NewWriter()
	for i := range uint64(100_000) {
		w.Reserve(0, i*7919%100_000, 100)
	}
	if w.Err() == nil || s.Finish() == nil {
		t.Errorf("writer: %v", w.Err())
	}
}
