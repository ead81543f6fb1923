package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The password of a store is not in the process list.
func TestPasswordIsHidden(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", "links.txt", "http://example.com/\n")
	for _, db := range [][]string{
		{"--db", "postgres://me:geheim@/nowhere?host=/nonexistent"},
		{"--db=postgres://me@/nowhere?host=/nonexistent&password=geheim"},
	} {
		cmd := process(t, append([]string{"run", "links.txt", "--workspace", "demo", "--retry-for", "5m"}, db...)...)
		must(t, cmd.Start())
		var title string
		for range 6000 { // until the program has come so far
			data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "cmdline"))
			must(t, err)
			// A process that is just being made has no arguments at all.
			if title = string(data); title != "" && !strings.Contains(title, "geheim") {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if strings.Contains(title, "geheim") || !strings.Contains(title, "postgres://") {
			t.Errorf("the process is called %q", title)
		}
	}
}
