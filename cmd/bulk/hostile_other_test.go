//go:build !linux

package main

import (
	"errors"
	"os/signal"
	"syscall"
)

func apart(*child) {}

func mountDisk(string) error { return errors.ErrUnsupported }

// limitFiles bounds every file that this process writes.
func limitFiles() {
	signal.Ignore(syscall.SIGXFSZ)
	syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: diskSize, Max: diskSize})
}
