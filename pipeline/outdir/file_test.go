package outdir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
)

// A directFS counts what is written past the page cache and through it.
type directFS struct {
	fsys.OS
	direct, cached int64 // bytes
}

type directFile struct {
	fsys.File
	fs *directFS
	on bool
}

func (f *directFS) Create(path string) (fsys.File, error) {
	h, err := f.OS.Create(path)
	return &directFile{File: h, fs: f}, err
}

func (f *directFile) Direct(on bool) {
	f.on = on
	f.File.Direct(on)
}

func (f *directFile) Write(p []byte) (int, error) {
	if f.on {
		f.fs.direct += int64(len(p))
	} else {
		f.fs.cached += int64(len(p))
	}
	return f.File.Write(p)
}

func TestFile(t *testing.T) {
	files := &directFS{}
	f := claim(t, filepath.Join(t.TempDir(), "out"), ClaimOptions{FS: files})
	defer f.Abandon()
	files.cached = 0
	var want bytes.Buffer
	file := create(t, f, "x")
	for i, size := range []int{0, 1, 100, fileBlock - 101, fileBlock, 3, 2*fileBlock + 5, 40_000, 40_000, 7} {
		piece := bytes.Repeat([]byte{byte(i)}, size)
		want.Write(piece)
		if n, err := file.Write(piece); n != size || err != nil {
			t.Fatalf("write of %d: %d, %v", size, n, err)
		}
		clear(piece) // it is the caller's again
	}
	if file.Size() != int64(want.Len()) {
		t.Errorf("size %d, want %d", file.Size(), want.Len())
	}
	for range 2 {
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(f.inner, "x"))
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("other content (%v)", err)
	}
	if sum := sha256.Sum256(want.Bytes()); file.SHA256() != hex.EncodeToString(sum[:]) {
		t.Errorf("other digest")
	}
	tail := file.Size() % fileBlock
	if files.direct != file.Size()-tail || files.cached != tail {
		t.Errorf("%d bytes past the cache, %d through it, of %d", files.direct, files.cached, file.Size())
	}
	again, err := f.Create("x")
	if _, staterr := os.Stat(filepath.Join(f.inner, "x")); err != nil || !errors.Is(staterr, fs.ErrNotExist) || !slices.Equal(f.Files(), []*File{again}) {
		t.Errorf("a file in place of the first: %v, and there %v", err, staterr)
	}
}

func TestFileWithoutBytesIsNotCreated(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	f := claim(t, out, ClaimOptions{})
	for _, name := range []string{"closed", "forgotten"} {
		file := create(t, f, name)
		if name == "closed" && file.Close() != nil {
			t.Error("close")
		}
	}
	if err := writeRun(f, "x"); err != nil {
		t.Fatal(err)
	}
	wantRun(t, out, "x")
}

func TestCommitWantsClosedFiles(t *testing.T) {
	f := claim(t, filepath.Join(t.TempDir(), "out"), ClaimOptions{})
	defer f.Abandon()
	file := create(t, f, "open.csv")
	if _, err := file.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil || !strings.Contains(err.Error(), "open.csv") {
		t.Errorf("got %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	left := 1 << 30
	f, err := Claim(out, ClaimOptions{FS: fsystest.FS{Before: func(string) error {
		if left--; left == 0 {
			return syscall.ENOSPC
		}
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := create(t, f, "mapping.csv")
	left = 3 // create, write, write
	want := "write " + filepath.Join(out, "mapping.csv") + ": no space left on device"
	big := make([]byte, fileBlock)
	for range maxPending + 1 { // the second of them fails, which the next one meets
		if _, err := file.Write(big); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := file.Write(big); err == nil || err.Error() != want {
			t.Errorf("write: got %v, want %s", err, want)
		}
	}
	if err := file.Close(); err == nil || err.Error() != want {
		t.Errorf("close: got %v, want %s", err, want)
	}
	if err := f.Commit(); err == nil || err.Error() != want {
		t.Errorf("commit: got %v, want %s", err, want)
	}
	if err := f.Abandon(); err != nil {
		t.Error(err)
	}
	if names, _ := list(t, filepath.Dir(out)); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}

func BenchmarkFile(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			f := claim(b, filepath.Join(b.TempDir(), "out"), ClaimOptions{})
			defer f.Abandon()
			file := create(b, f, "mapping.csv")
			p := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := file.Write(p); err != nil {
					b.Fatal(err)
				}
			}
			if err := file.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(file.SyncTime().Seconds(), "sync-s")
		})
	}
}
