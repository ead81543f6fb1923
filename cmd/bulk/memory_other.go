//go:build !linux

package main

import "golang.org/x/sys/unix"

// totalMemory returns the bytes of memory of the machine.
func totalMemory(string) (int64, error) {
	n, err := unix.SysctlUint64("hw.memsize")
	return int64(n), err
}
