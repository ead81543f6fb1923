package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The memory is that of the machine, or what a control group above the process allows.
func TestMachineMemory(t *testing.T) {
	const group = "sys/fs/cgroup/"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":      {nil, 8 << 30},
		"unlimited": {map[string]string{"proc/self/cgroup": "0::/a/b\n", group + "a/b/memory.max": "max\n"}, 8 << 30},
		"own":       {map[string]string{"proc/self/cgroup": "0::/a/b\n", group + "a/b/memory.max": "1073741824\n"}, 1 << 30},
		"above":     {map[string]string{"proc/self/cgroup": "0::/a/b\n", group + "a/memory.max": "2147483648\n", group + "a/b/memory.max": "max\n"}, 2 << 30},
		"more":      {map[string]string{"proc/self/cgroup": "0::/\n", group + "memory.max": "99999999999999\n"}, 8 << 30},
		"version 1": {map[string]string{"proc/self/cgroup": "4:cpu:/x\n3:memory:/c\n", group + "memory/c/memory.limit_in_bytes": "536870912\n"}, 512 << 20},
	} {
		root := t.TempDir()
		write := func(name, text string) {
			path := filepath.Join(root, name)
			must(t, os.MkdirAll(filepath.Dir(path), 0o777))
			must(t, os.WriteFile(path, []byte(text), 0o666))
		}
		write("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:         1 kB\n")
		for name, text := range c.files {
			write(name, text)
		}
		if got, err := machineMemory(root); got != c.want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
	}
	if _, err := machineMemory(t.TempDir()); err == nil {
		t.Error("memory of a machine that tells nothing")
	}
	all, err := machineMemory("/")
	for least, want := range map[int64]int64{0: all / 2, all/2 + 1: all/2 + 1, 2 * all: all} {
		if got, _ := parseMemory("", least); got != want || err != nil {
			t.Errorf("of %d, where %d are the least: %d, %v, want %d", all, least, got, err, want)
		}
	}
	for text, want := range map[string]int64{"512MiB": 512 << 20, "2G": 2 << 30, "1000": 1000, "0": 0, "8T": 8 << 40, "9999999TiB": 0, "MiB": 0, "-1G": 0, "1X": 0} {
		if got, err := parseMemory(text, 0); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
}
