package main

import (
	"io"
	"path/filepath"
	"testing"
)

// writes counts calls of Write.
type writes int

func (n *writes) Write(p []byte) (int, error) {
	*n++
	return len(p), nil
}

// Differences are not written one by one.
func TestDiffWritesOnce(t *testing.T) {
	dir := t.TempDir()
	const header = "source,row,workspace_id,original_url,canonical_url,short_code,short_url,outcome,salt\n"
	write(t, dir, "a.csv", header+"x,1,w,http://a.example/,http://a.example/,A,,created,\nx,2,w,http://b.example/,http://b.example/,B,,created,\n")
	write(t, dir, "b.csv", header)
	for _, flag := range []string{"--json=false", "--json"} {
		var n writes
		code := bulk([]string{"diff", filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv"), flag}, nil, &n, io.Discard)
		if code != exitDiffers || n != 1 {
			t.Errorf("%s: exit code %d, %d writes", flag, code, n)
		}
	}
}
