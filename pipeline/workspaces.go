package pipeline

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/codegen"
)

// workspaces numbers the workspaces of a run in the order they turn up, which
// depends on the workers and shows in no result.
type workspaces struct {
	mu    sync.Mutex
	ids   map[string]uint32
	names [][]byte                 // nobody may write to them
	ranks atomic.Pointer[[]uint32] // once frozen: position of each in byte order
	order []uint32                 // once frozen: their numbers in byte order
}

func newWorkspaces() *workspaces { return &workspaces{ids: map[string]uint32{}} }

// id returns the number of a workspace, which it gets if it has none.
func (w *workspaces) id(name string) uint32 {
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

// compare orders workspaces by the bytes of their names. Safe for concurrent use.
func (w *workspaces) compare(a, b uint32) int {
	if ranks := w.ranks.Load(); ranks != nil {
		return cmp.Compare((*ranks)[a], (*ranks)[b])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.compareNames(a, b)
}

func (w *workspaces) compareNames(a, b uint32) int { return bytes.Compare(w.names[a], w.names[b]) }

// freeze is called when all are known, and makes comparing cheap.
func (w *workspaces) freeze() {
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

// sorted returns all names in byte order, once they are frozen.
func (w *workspaces) sorted() []string {
	names := make([]string, len(w.order))
	for i, id := range w.order {
		names[i] = string(w.names[id])
	}
	return names
}

// workspaceName returns the name of a workspace, once all are known.
func (r *run) workspaceName(id uint32) []byte { return r.workspaces.names[id] }

// A workspaceCache finds the numbers of workspaces for one goroutine.
type workspaceCache struct {
	all  *workspaces
	ids  map[string]uint32
	last []byte
	id   uint32
}

// lookup returns the number of a workspace, or the error of
// codegen.CheckWorkspace.
func (c *workspaceCache) lookup(name []byte) (uint32, error) {
	if len(name) > 0 && bytes.Equal(name, c.last) {
		return c.id, nil
	}
	id, ok := c.ids[string(name)]
	if !ok {
		if err := codegen.CheckWorkspace(name); err != nil {
			return 0, err
		}
		id = c.all.id(string(name))
		c.ids[string(name)] = id
	}
	c.last, c.id = append(c.last[:0], name...), id
	return id, nil
}
