package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// parseMemory parses a size such as 512MiB, 2G or 1000000000 and returns it in bytes. Less
// than least bytes is an error. "" means half of what the machine, or the control group of
// the process, allows, or least if that is more and the machine has so much.
func parseMemory(s string, least int64) (int64, error) {
	if s == "" {
		n, err := machineMemory("/")
		return max(n/2, min(n, least)), err
	}
	digits := strings.TrimRight(s, "kKMGTiB")
	shift, ok := map[string]int{"": 0, "B": 0, "KiB": 10, "K": 10, "k": 10, "MiB": 20, "M": 20, "GiB": 30, "G": 30, "TiB": 40, "T": 40}[s[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n <= 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("--memory %q: sizes are like 512MiB or 4GiB", s)
	}
	if n <<= shift; n < least {
		problem := "is too little"
		if digits == s {
			problem = "means " + count(n, "byte")
		}
		return 0, fmt.Errorf("--memory %s %s; the least is %dMiB", s, problem, (least+1<<20-1)>>20)
	}
	return n, nil
}

// machineMemory returns what this process may use, in bytes: the memory of the
// machine or, if less, the limit of a control group (version 2 or 1) above it.
// The directory root is that of the file system.
func machineMemory(root string) (int64, error) {
	least, err := totalMemory(root)
	if err != nil {
		return 0, fmt.Errorf("find out how much memory this machine has (give --memory instead): %w", err)
	}
	group, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.SplitSeq(string(group), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		mount, name := "sys/fs/cgroup", "memory.max"
		if strings.Contains(parts[1], "memory") {
			mount, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for dir := parts[2]; ; dir = filepath.Dir(dir) {
			data, err := os.ReadFile(filepath.Join(root, mount, dir, name))
			if n, perr := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && perr == nil {
				least = min(least, n)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return least, nil
}
