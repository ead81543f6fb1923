//go:build !linux

package extsort

// newArena returns free memory.
func newArena(size int) []byte { return make([]byte, size) }
