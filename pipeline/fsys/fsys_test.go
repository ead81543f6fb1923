package fsys_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/linkforge/bulk/pipeline/fsys"
)

// What is written past the page cache, through it, or could only be written
// through it, lies in the file.
func TestDirect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	f, err := fsys.OS{}.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	write := func(b []byte) {
		t.Helper()
		if n, err := f.Write(b); n != len(b) || err != nil {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
		want.Write(b)
	}
	block := fsys.NewBlock(3 * fsys.BlockAlign)
	if len(block) != 0 {
		t.Fatalf("a new block has %d bytes", len(block))
	}
	block = block[:cap(block)]
	for i := range block {
		block[i] = byte(i / 7)
	}
	f.Direct(true)
	write(block)
	write(block[:fsys.BlockAlign])
	f.Direct(false)
	write([]byte("some bytes"))
	f.Direct(true)
	write(block[1:100]) // at no multiple, of no multiple, from memory at none
	write(block)
	if n, err := f.WriteAt([]byte("X"), 5); n != 1 || err != nil {
		t.Fatalf("%d bytes: %v", n, err)
	}
	want.Bytes()[5] = 'X'
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes, want %d (%v)", len(got), want.Len(), err)
	}
	if f, err = (fsys.OS{}).Open(path); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Direct(true)
	for _, n := range []int{fsys.BlockAlign, 5000} {
		if _, err := f.ReadAt(block[:n], fsys.BlockAlign); err != nil || !bytes.Equal(block[:n], want.Bytes()[fsys.BlockAlign:][:n]) {
			t.Errorf("%d bytes read: %v", n, err)
		}
	}
}

// A file is read whole or not at all.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	for most, want := range []string{"", "", "", "abc", "abc"} {
		got, err := fsys.OS{}.ReadFile(path, int64(most))
		if string(got) != want || errors.Is(err, fsys.ErrNotRegular) != (want == "") {
			t.Errorf("at most %d bytes: %q, %v", most, got, err)
		}
	}
	if _, err := (fsys.OS{}).ReadFile(filepath.Dir(path), 1<<30); !errors.Is(err, fsys.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
}

func TestIsMount(t *testing.T) {
	for path, want := range map[string]bool{"/proc": true, "/proc/self": false, t.TempDir(): false} {
		if runtime.GOOS == "linux" && fsys.IsMount(path) != want {
			t.Errorf("%s: %t", path, !want)
		}
	}
}
