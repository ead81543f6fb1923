package extsort

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// newArena returns free memory, in huge pages where the system has them: that
// saves page faults, and misses of the TLB, since records go to hundreds of places
// in turn. (Reading and hashing 3 million rows in a new process: 0.76 s rather
// than 1.26.)
func newArena(size int) []byte {
	const huge = 2 << 20
	if size < huge {
		return make([]byte, size)
	}
	arena := make([]byte, size+huge) // what is not used of it is never touched
	start := int(-uintptr(unsafe.Pointer(&arena[0])) & (huge - 1))
	arena = arena[start : start+size]
	_ = unix.Madvise(arena[:size&^(huge-1)], unix.MADV_HUGEPAGE) // only advice
	return arena
}
