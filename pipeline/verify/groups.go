package verify

import (
	"strings"
	"sync"

	"github.com/linkforge/bulk/pipeline/extsort"
)

// newSorter returns a sorter whose groups are workspaces. It has a share of the memory: at
// least one byte, since 0 means no bound.
func (v *verifier) newSorter(compare func(a, b []byte) int) *extsort.Sorter {
	return extsort.New(extsort.Config{
		CompareGroups: func(a, b uint32) int { return strings.Compare(v.groups.name(a), v.groups.name(b)) },
		Compare:       compare, Memory: max(v.cfg.Memory/sorters, 1), TempDir: v.cfg.TempDir,
	})
}

// groups numbers workspaces. It is safe for concurrent use.
type groups struct {
	mu    sync.RWMutex
	ids   map[string]uint32
	names []string
}

func (g *groups) id(name []byte) uint32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, ok := g.ids[string(name)]
	if !ok {
		id = uint32(len(g.names))
		g.ids[string(name)] = id
		g.names = append(g.names, string(name))
	}
	return id
}

func (g *groups) name(id uint32) string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.names[id]
}

// group returns the number of a workspace. Often it is the workspace of the last call.
func (w *checker) group(workspace []byte) uint32 {
	if !w.grouped || string(workspace) != w.groupName {
		w.grouped, w.groupName, w.groupID = true, string(workspace), w.groups.id(workspace)
	}
	return w.groupID
}
