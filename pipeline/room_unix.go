//go:build linux || darwin

package pipeline

import (
	"errors"

	"golang.org/x/sys/unix"
)

// freeRoom returns how many bytes can be written to a directory.
func freeRoom(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	if s.Blocks == 0 {
		return 0, errors.ErrUnsupported // a file system that does not count
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
