package record

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Workspaces numbers the workspaces of a run in the order in which they turn up, which
// depends on the workers and shows in no result. The numbers are the groups of the sort.
type Workspaces struct {
	mu    sync.Mutex
	ids   map[string]uint32
	names [][]byte
	ranks atomic.Pointer[[]uint32] // once frozen: position of each in byte order
	order []uint32                 // once frozen: their numbers in byte order
}

// NewWorkspaces returns an empty list.
func NewWorkspaces() *Workspaces { return &Workspaces{ids: map[string]uint32{}} }

// ID returns the number of a workspace, which it gets if it has none. Safe for concurrent
// use.
func (w *Workspaces) ID(name string) uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, ok := w.ids[name]
	if !ok {
		id = uint32(len(w.names))
		w.ids[name] = id
		w.names = append(w.names, []byte(name))
	}
	return id
}

// Compare orders workspaces by the bytes of their names. Safe for concurrent use.
func (w *Workspaces) Compare(a, b uint32) int {
	if ranks := w.ranks.Load(); ranks != nil {
		return cmp.Compare((*ranks)[a], (*ranks)[b])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.compareNames(a, b)
}

func (w *Workspaces) compareNames(a, b uint32) int { return bytes.Compare(w.names[a], w.names[b]) }

// Freeze is called when all are known, and makes comparing cheap. What follows needs it.
func (w *Workspaces) Freeze() {
	w.order = make([]uint32, len(w.names))
	for i := range w.order {
		w.order[i] = uint32(i)
	}
	slices.SortFunc(w.order, w.compareNames)
	ranks := make([]uint32, len(w.order))
	for rank, id := range w.order {
		ranks[id] = uint32(rank)
	}
	w.ranks.Store(&ranks)
}

// Name returns the name of a workspace, which the caller may not change.
func (w *Workspaces) Name(id uint32) []byte { return w.names[id] }

// Sorted returns all names in byte order.
func (w *Workspaces) Sorted() []string {
	names := make([]string, len(w.order))
	for i, id := range w.order {
		names[i] = string(w.names[id])
	}
	return names
}

// Order returns the numbers of all in the order of Sorted.
func (w *Workspaces) Order() []uint32 { return w.order }

// A WorkspaceCache finds the numbers of workspaces for one goroutine.
type WorkspaceCache struct {
	all  *Workspaces
	ids  map[string]uint32
	last []byte
	id   uint32
}

// NewCache returns a cache.
func (w *Workspaces) NewCache() *WorkspaceCache {
	return &WorkspaceCache{all: w, ids: map[string]uint32{}}
}

// ID is Workspaces.ID.
func (c *WorkspaceCache) ID(name []byte) uint32 {
	if len(c.last) > 0 && bytes.Equal(name, c.last) {
		return c.id
	}
	id, ok := c.ids[string(name)]
	if !ok {
		id = c.all.ID(string(name))
		c.ids[string(name)] = id
	}
	c.last, c.id = append(c.last[:0], name...), id
	return id
}
