package report

import "golang.org/x/sys/unix"

func exchange(a, b string) error {
	return unix.RenamexNp(a, b, unix.RENAME_SWAP)
}

func startSync(int, int64, int64) {}
