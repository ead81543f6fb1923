package fsys

import (
	"os"

	"golang.org/x/sys/unix"
)

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

func startSync(fd int, offset, n int64) {
	_ = unix.SyncFileRange(fd, offset, n, unix.SYNC_FILE_RANGE_WRITE)
}

func unnamed(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
}
