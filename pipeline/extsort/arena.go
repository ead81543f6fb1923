package extsort

import "sync"

// Arenas are memory of sorters that were closed. Others take it before they get more: fresh memory costs
// page faults, and records of a sort that follows another may need as much again. Safe for concurrent
// use.
type Arenas struct {
	mu   sync.Mutex
	free [][]byte // of mostArena bytes each
}

// take returns free memory of size bytes, with whatever it held before.
func (a *Arenas) take(size int) (arena []byte) {
	if a != nil && size == mostArena {
		a.mu.Lock()
		defer a.mu.Unlock()
		if last := len(a.free) - 1; last >= 0 {
			arena, a.free = a.free[last], a.free[:last]
			return arena
		}
	}
	return newArena(size)
}

// give takes arenas that nobody uses any more.
func (a *Arenas) give(arenas [][]byte) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, arena := range arenas {
		if len(arena) == mostArena {
			a.free = append(a.free, arena)
		}
	}
}
