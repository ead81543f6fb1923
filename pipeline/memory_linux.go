package pipeline

import (
	"bytes"
	"os"
	"strconv"
)

// peakMemory returns the most bytes that the process had resident. (The kernel's
// answer to getrusage may be that of the process that started this one.)
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "VmHWM:" {
			kib, _ := strconv.ParseInt(string(f[1]), 10, 64)
			return kib << 10
		}
	}
	return 0
}
