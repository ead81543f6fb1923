//go:build !linux

package extsort

// newArena returns free memory.
func newArena() []byte { return make([]byte, arenaSize) }
