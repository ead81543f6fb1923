//go:build linux || darwin

package pgtest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDiskGetsFull(t *testing.T) {
	for _, c := range []struct {
		name    string
		mayHave bool
	}{{"file_system", true}, {"limited", false}} {
		t.Run(c.name, func(t *testing.T) {
			if c.mayHave {
				t.Parallel()
			} else {
				path := filepath.Join(t.TempDir(), "unshare")
				if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
					t.Fatal(err)
				}
				t.Setenv("PATH", filepath.Dir(path)+":"+os.Getenv("PATH"))
			}
			s := New(Options{Disk: 24 << 20})
			s.Need(t)
			t.Cleanup(func() { s.Close() })
			if c.mayHave && !s.mounts {
				t.Skip("nothing may be mounted here")
			}
			if s.mounts && !c.mayHave {
				t.Fatal("mounted without unshare")
			}
			s.Exec(t, "postgres", "CREATE DATABASE small TABLESPACE "+Disk)
			const use = "CREATE TABLE mine AS SELECT repeat('y', 100) FROM generate_series(1, 30000)"
			for range 2 {
				state := s.Fill(t, "small", 1<<20)
				if err := s.ExecContext(t.Context(), "small", use); err == nil || sqlstate(err) != state {
					t.Errorf("error %v, want %s", err, state)
				}
				s.Empty(t, "small")
			}
			s.Exec(t, "small", use)
		})
	}
}
