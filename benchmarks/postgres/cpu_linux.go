package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticks are the units of /proc a second, on every platform that Go runs on.
const ticks = 100

// serverCPU is the processor time that the server has taken, in seconds: of its
// processes and of those that have ended. It is 0 if that cannot be found out.
func (b *bench) serverCPU() (seconds float64) {
	data, err := os.ReadFile(filepath.Join(b.server.Socket(), "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, _, _ := strings.Cut(string(data), "\n")
	_, own, ended := stat(filepath.Join("/proc", pid, "stat"))
	seconds = own + ended
	processes, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range processes {
		if parent, own, _ := stat(p); parent == pid {
			seconds += own
		}
	}
	return seconds
}

// stat reads the parent of a process, the processor time that it took, and that
// of the children it has waited for.
func stat(file string) (parent string, own, ended float64) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", 0, 0
	}
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(f) < 15 {
		return "", 0, 0
	}
	sum := func(fields ...string) (seconds float64) {
		for _, s := range fields {
			n, _ := strconv.ParseFloat(s, 64)
			seconds += n / ticks
		}
		return seconds
	}
	return f[1], sum(f[11], f[12]), sum(f[13], f[14])
}
