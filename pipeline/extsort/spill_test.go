package extsort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
)

// spilled returns a sorter whose records are all on disk, past the page cache or
// through it.
func spilled(t *testing.T, direct bool) *Sorter {
	t.Helper()
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Head: 8, Memory: 1 << 20, TempDir: t.TempDir()})
	t.Cleanup(func() { s.Close() })
	w := s.NewWriter()
	s.spill.direct.Store(direct)
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range uint64(100_000) {
		binary.LittleEndian.PutUint64(w.Reserve(0, rnd.Uint64(), 100), i)
	}
	if err := s.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Spilled() < 100_000*100 {
		t.Fatalf("only %d bytes were spilled", s.Spilled())
	}
	if s.Held() != 0 {
		t.Errorf("%d bytes are held, where all is spilled", s.Held())
	}
	return s
}

func loadAll(s *Sorter) error {
	for i := range s.Buckets() {
		if err := load(s, i); err != nil {
			return err
		}
	}
	return nil
}

// load loads a bucket, then its heads.
func load(s *Sorter, i int) error {
	for _, load := range []func(int) (*Bucket, error){s.Load, s.LoadHeads} {
		b, err := load(i)
		if err != nil {
			return err
		}
		b.Release()
	}
	return nil
}

// The spill file has no name, so nothing can be left of it.
func TestSpillHasNoName(t *testing.T) {
	s := spilled(t, false)
	entries, err := os.ReadDir(s.cfg.TempDir)
	if err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A spill file that is not what was written is an error, never a wrong result.
func TestSpillDamaged(t *testing.T) {
	for _, direct := range []bool{false, true} {
		s := spilled(t, direct)
		if err := loadAll(s); err != nil {
			t.Fatal(err)
		}
		block := fsys.NewBlock(fsys.BlockAlign)[:fsys.BlockAlign]
		for _, i := range []int{0, s.Buckets() / 2, s.Buckets() - 1} {
			b := &s.buckets[i]
			for _, e := range []extent{b.extents[0], b.extents[len(b.extents)-1], b.heads[0]} {
				for _, at := range []int{0, 5, 9, 20, 50} {
					for _, damaged := range []bool{true, false} {
						if _, err := s.spill.file.ReadAt(block, e.offset); err != nil {
							t.Fatal(err)
						}
						block[at] ^= 0x10
						if _, err := s.spill.file.WriteAt(block, e.offset); err != nil {
							t.Fatal(err)
						}
						if err := load(s, i); damaged != errors.Is(err, errDamaged) {
							t.Fatalf("byte %d of the extent at %d, damaged: %v: %v", at, e.offset, damaged, err)
						}
					}
				}
			}
		}
		for _, at := range []int64{s.Spilled() / 2, s.Spilled() - 1} {
			if err := s.spill.file.(interface{ Truncate(int64) error }).Truncate(at); err != nil {
				t.Fatal(err)
			}
			if err := loadAll(s); !errors.Is(err, errDamaged) {
				t.Fatalf("truncated at %d: %v", at, err)
			}
		}
	}
}

// A failing is a file system whose spill file fails in one of its reads.
type failing struct {
	fsys.OS
	reads *int // until it fails
}

func (f failing) Temp(dir string) (fsys.File, error) {
	file, err := f.OS.Temp(dir)
	return failingFile{file, f.reads}, err
}

type failingFile struct {
	fsys.File
	reads *int
}

var errRead = errors.New("not read")

func (f failingFile) ReadAt(p []byte, off int64) (int, error) {
	if *f.reads--; *f.reads == 0 {
		return 0, errRead
	}
	return f.File.ReadAt(p, off)
}

// Whichever read of the spill file fails, also while records that are too many for a
// bucket are divided, by key or by content, no record is lost in silence.
func TestSpillReadFails(t *testing.T) {
	failed := 0
	for n := 1; ; n++ {
		reads := n
		s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 64 << 10, TempDir: t.TempDir(), FS: failing{reads: &reads}})
		w := s.NewWriter()
		for i := range uint64(40) {
			binary.LittleEndian.PutUint64(w.Reserve(0, i/30, 5000), i)
		}
		w.Reserve(1, 0, 100_000) // larger by itself than a bucket is to be
		err := s.Finish(t.Context())
		if err == nil {
			err = loadAll(s)
		} else {
			failed++
		}
		s.Close()
		if reads > 0 {
			break
		}
		if !errors.Is(err, errRead) {
			t.Errorf("read %d fails: %v", n, err)
		}
	}
	if failed < 10 {
		t.Errorf("only %d reads were those of Finish", failed)
	}
}

// Where records that are divided cannot be written, the rest of them is not read before
// somebody is told.
func TestDividingEndsWhenTheDiskIsFull(t *testing.T) {
	var reads, writes atomic.Int64
	fs := fsystest.FS{Before: func(operation string) error {
		switch {
		case operation == "readat":
			reads.Add(1)
		case operation == "writeat" && reads.Load() > 0:
			return syscall.ENOSPC
		case operation == "writeat":
			writes.Add(1)
		}
		return nil
	}}
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 1 << 20, TempDir: t.TempDir(), FS: fs})
	defer s.Close()
	w := s.NewWriter()
	for i := range uint64(300_000) {
		binary.BigEndian.PutUint64(w.Reserve(0, 7, 100), i*331%300_000)
	}
	err := s.Finish(t.Context())
	// Two readings are for the bounds, by key and by content.
	if last, extents := reads.Load()-2*writes.Load(), writes.Load(); !errors.Is(err, syscall.ENOSPC) || last < 1 || last > extents/2 {
		t.Errorf("%d of %d extents were read to divide them: %v", last, extents, err)
	}
}

// An extent of which four bytes side by side are others is an error, unless it is
// those that say nothing.
func FuzzSpill(f *testing.F) {
	f.Add([]byte("some chunk"), []byte("another"), uint16(3), uint32(1))
	f.Add([]byte{}, []byte("x"), uint16(14), uint32(0xffff))
	f.Fuzz(func(t *testing.T, a, b []byte, at uint16, change uint32) {
		p := newSpill(fsys.OS{}, t.TempDir())
		defer p.close()
		first, _ := p.write([][]byte{a, b}, 0)
		e, _ := p.write([][]byte{b, a}, 0)
		if err := p.wait(); err != nil {
			t.Fatal(err)
		}
		block := fsys.NewBlock(first.size)
		if chunks, err := p.read(first, block); err != nil || string(chunks) != string(a)+string(b) {
			t.Fatalf("%q, %v", chunks, err)
		}
		place := e.offset + int64(at)%int64(e.size-3)
		p.file.Direct(false)
		var was, is [4]byte
		if _, err := p.file.ReadAt(was[:], place); err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint32(is[:], binary.LittleEndian.Uint32(was[:])^change)
		if _, err := p.file.WriteAt(is[:], place); err != nil {
			t.Fatal(err)
		}
		p.file.Direct(true)
		chunks, err := p.read(e, block)
		same := string(chunks) == string(b)+string(a)
		if err == nil && !same || err != nil && !errors.Is(err, errDamaged) || err != nil && was == is {
			t.Errorf("%q, %v", chunks, err)
		}
	})
}

// heap returns how many bytes somebody holds.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A writer that somebody still knows keeps no memory once all is spilled, nor is any kept for other
// sorters: it is for the buckets that are loaded.
func TestWriterGivesUpMemory(t *testing.T) {
	var arenas Arenas
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 64 << 20, Arenas: &arenas, TempDir: t.TempDir()})
	defer s.Close()
	before := heap()
	w := s.NewWriter()
	for i := range uint64(1 << 20) {
		w.Reserve(0, i*7919, 100)
	}
	if err := s.Finish(t.Context()); err != nil || s.Spilled() == 0 {
		t.Fatalf("%d bytes were spilled: %v", s.Spilled(), err)
	}
	if more := heap() - before; more > 16<<20 {
		t.Errorf("%d bytes are held", more)
	}
	runtime.KeepAlive(w)
	runtime.KeepAlive(&arenas)
}

// A long record that was spilled is held by nobody, although it was the last of its
// range.
func TestLongRecordsAreGivenUp(t *testing.T) {
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 8 << 20, TempDir: t.TempDir()})
	defer s.Close()
	before := heap()
	w := s.NewWriter()
	for i := range uint64(sampleSize) {
		w.Reserve(0, i<<40, 8)
	}
	for i := range uint64(2 * rangeBuckets) {
		w.Reserve(0, i*sampleSize/rangeBuckets/2<<40, 100_000)
	}
	if more := heap() - before; more > 32<<20 || s.Spilled() == 0 {
		t.Errorf("%d bytes are held, %d were spilled", more, s.Spilled())
	}
	runtime.KeepAlive(w)
}

// The room of a bucket that one record makes large is not kept.
func TestRoomIsGivenUp(t *testing.T) {
	const loads = 4
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 1 << 20, Loads: loads, TempDir: t.TempDir()})
	defer s.Close()
	w := s.NewWriter()
	for i := range uint64(loads) {
		w.Reserve(0, i, 4<<20)
	}
	if err := s.Finish(t.Context()); err != nil || s.Buckets() < loads {
		t.Fatalf("%d buckets: %v", s.Buckets(), err)
	}
	before := heap()
	var loaded []*Bucket
	for i := range s.Buckets() {
		b, err := s.Load(i)
		if err != nil {
			t.Fatal(err)
		}
		loaded = append(loaded, b)
	}
	for _, b := range loaded {
		b.Release()
	}
	loaded = nil
	if more := heap() - before; more > 4<<20 {
		t.Errorf("%d bytes are held", more)
	}
}

// Where contents divide records, the buckets do not hold any.
func TestContentsAreGivenUp(t *testing.T) {
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 1 << 20, TempDir: t.TempDir()})
	defer s.Close()
	before := heap()
	w := s.NewWriter()
	for i := range uint64(1000) {
		binary.BigEndian.PutUint64(w.Reserve(0, 7, 100_000), i*331%1000)
	}
	if err := s.Finish(t.Context()); err != nil || s.Buckets() < 100 || !s.Joined(2) {
		t.Fatalf("%d buckets: %v", s.Buckets(), err)
	}
	if more := heap() - before; more > 12<<20 {
		t.Errorf("%d bytes are held", more)
	}
}

// A spill that cannot be written is reported by the writer and by Finish.
func TestSpillFails(t *testing.T) {
	s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: 1 << 20, TempDir: "/nowhere"})
	w := s.NewWriter()
	for i := range uint64(100_000) {
		w.Reserve(0, i*7919%100_000, 100)
	}
	if w.Err() == nil || s.Finish(t.Context()) == nil {
		t.Errorf("writer: %v", w.Err())
	}
}

// Long records are held within the memory, the sample among them, also where the disk
// is full and somebody goes on writing until Finish tells him.
func TestLongRecordsFit(t *testing.T) {
	const memory = 1 << 20
	for _, dir := range []string{t.TempDir(), "/nowhere"} {
		s := New(Config{CompareGroups: cmp.Compare[uint32], Compare: bytes.Compare, Memory: memory, TempDir: dir})
		w := s.NewWriter()
		for i := range uint64(1000) {
			w.Reserve(0, i*331%1000, 100_000)
		}
		held, err := s.Held(), errors.Join(s.Finish(t.Context()), s.Close())
		if held > memory || (err != nil) != (dir == "/nowhere") {
			t.Errorf("%d bytes are held, in %s: %v", held, dir, err)
		}
	}
}
