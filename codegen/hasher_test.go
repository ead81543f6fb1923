package codegen

import (
	"bytes"
	"testing"
)

// A Hasher is used again for inputs of every length around those of blocks. Of
// one whose library saves its state otherwise, the results are the same.
func TestHasher(t *testing.T) {
	fast, plain := NewHasher(), NewHasher()
	if fast.saver == nil {
		t.Error("the standard library saves the state of SHA-256 in another way: a Hasher gains nothing")
	}
	plain.saver = nil
	url := bytes.Repeat([]byte("https://example.com/"), 12)
	for n := range url {
		for salt := range 3 {
			want := Sum(AppendInput(nil, url[:n], []byte("demo"), salt))
			if got := fast.Sum(url[:n], []byte("demo"), salt); got != want {
				t.Errorf("%d bytes in demo, salt %d: %x, want %x", n, salt, got, want)
			}
			if got := plain.Sum(url[:n], []byte("demo"), salt); got != want {
				t.Errorf("%d bytes in demo, salt %d, plain: %x, want %x", n, salt, got, want)
			}
			want = Sum(append(AppendInput(nil, url[:n], []byte("demo|m=5"), 0), []string{"", "|1", "|2"}[salt]...))
			if got := fast.SumIdentity(url[:n], []byte("demo"), []byte("|m=5"), salt); got != want {
				t.Errorf("%d bytes in demo, m=5, salt %d: %x, want %x", n, salt, got, want)
			}
		}
	}
}
