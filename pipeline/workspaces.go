package pipeline

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/codegen"
)

// workspaces numbers the workspaces of a run in the order they turn up, which
// depends on the workers and shows in no result.
type workspaces struct {
	mu    sync.RWMutex
	ids   map[string]uint32
	names []string
	bytes [][]byte                 // the same, once frozen
	ranks atomic.Pointer[[]uint32] // once frozen: position of each in byte order
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
		w.names = append(w.names, name)
	}
	return id
}

func (w *workspaces) name(id uint32) string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.names[id]
}

// compare orders workspaces by the bytes of their names. Safe for concurrent use.
func (w *workspaces) compare(a, b uint32) int {
	if ranks := w.ranks.Load(); ranks != nil {
		return cmp.Compare((*ranks)[a], (*ranks)[b])
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.compareNames(a, b)
}

func (w *workspaces) compareNames(a, b uint32) int { return strings.Compare(w.names[a], w.names[b]) }

// freeze is called when all are known. It makes comparing cheap and returns the
// numbers in byte order of the names.
func (w *workspaces) freeze() []uint32 {
	sorted := make([]uint32, len(w.names))
	for i := range sorted {
		sorted[i] = uint32(i)
	}
	slices.SortFunc(sorted, w.compareNames)
	ranks := make([]uint32, len(sorted))
	w.bytes = make([][]byte, len(sorted))
	for rank, id := range sorted {
		ranks[id] = uint32(rank)
		w.bytes[id] = []byte(w.names[id])
	}
	w.ranks.Store(&ranks)
	return sorted
}

// workspaceName returns the name of a workspace, once all are known. Nobody may
// write to it.
func (r *run) workspaceName(id uint32) []byte { return r.workspaces.bytes[id] }

// workspaceNames returns all names in byte order.
func (r *run) workspaceNames() []string {
	names := make([]string, len(r.order))
	for i, id := range r.order {
		names[i] = r.workspaces.names[id]
	}
	return names
}

// A workspaceCache finds the numbers of workspaces for one goroutine.
type workspaceCache struct {
	all  *workspaces
	ids  map[string]uint32
	last string
	id   uint32
}

// lookup returns the number of a workspace, or the error of
// codegen.CheckWorkspace.
func (c *workspaceCache) lookup(name []byte) (uint32, error) {
	if len(name) > 0 && string(name) == c.last {
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
	c.last, c.id = c.all.name(id), id
	return id, nil
}
