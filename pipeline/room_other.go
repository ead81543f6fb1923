//go:build !linux && !darwin

package pipeline

import "errors"

// freeRoom returns how many bytes can be written to a directory.
func freeRoom(string) (int64, error) { return 0, errors.ErrUnsupported }
