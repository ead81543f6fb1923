package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// totalMemory returns the bytes of memory of the machine.
func totalMemory(root string) (int64, error) {
	data, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("no MemTotal in proc/meminfo")
}
