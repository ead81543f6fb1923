//go:build linux || darwin

// Package quick makes tests with hundreds of runs, databases and files cheap.
package quick

import (
	"os"
	"runtime/debug"
	"syscall"
	"testing"
)

// Main sets up the process and runs its tests. It returns the exit code.
func Main(m *testing.M) int {
	SetUp()
	return m.Run()
}

// SetUp puts the temporary files of this process, and of those that it starts, in [Memory], unless
// TMPDIR says where they are to be: such tests wait for a disk most of the time, and what a disk does is
// not tested with them. And it has garbage collected less often, unless GOGC says how often: the heap of
// such tests is small, and each collection costs as much as a run.
func SetUp() {
	if dir := Memory(); dir != "" && os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", dir)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// Memory is a directory in memory with room for the files of tests, or "".
func Memory() string {
	const memory, room = "/dev/shm", 2 << 30
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) != nil || uint64(fs.Bavail)*uint64(fs.Bsize) <= room {
		return ""
	}
	return memory
}
