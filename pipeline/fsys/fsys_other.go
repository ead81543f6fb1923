//go:build !linux && !darwin

package fsys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func exchange(string, string) error { return unix.ENOSYS }

func direct(int, bool) error { return errors.ErrUnsupported }

func unnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// IsMount is always false: the system does not tell.
func IsMount(string) bool { return false }
