package verify

import (
	"bytes"
	"errors"
	"strings"
	"sync"

	"github.com/linkforge/bulk/pipeline/extsort"
)

// sorters are the sorts through which one check hands rows to another. A sort has a share of the
// memory of Config. Its groups are workspaces.
type sorters struct {
	groups  *groups
	memory  int64
	tempDir string

	claims   *extsort.Sorter // see claim
	stored   *extsort.Sorter // links and owners that the store must have; nil: the store is not compared
	sorted   *extsort.Sorter // rows of a mapping that is in the order of the input; nil: it is in the order of the sort
	held     *extsort.Sorter // see heldRow; nil: rows were not held against links
	variants *extsort.Sorter // see variantWriter; nil: a row is one link
	numbered *extsort.Sorter // of rows, as of numberWriter; nil: the scheme has no counter
}

// sharers are how many sorts share Config.Memory: claims, sorted, stored, and rows or two of the
// check of the store.
const sharers = 5

// newSorters makes the sorts that all checks of a run need.
func newSorters(cfg *Config, run *run) *sorters {
	s := &sorters{groups: newGroups(), memory: max(cfg.Memory/sharers, 1), tempDir: cfg.TempDir}
	if s.claims = s.new(compareClaims); run.codes.mode.Keeps() {
		s.claims = s.new(foldedClaims)
	}
	if cfg.Store != nil {
		s.stored = s.new(compareClaims)
	}
	if run.terms.Campaign != nil {
		s.variants = extsort.NewByKey(extsort.Config{Memory: s.memory, TempDir: s.tempDir})
	}
	if run.coding.spec.Counts && run.mapping != "" {
		s.numbered = s.new(compareNumbered)
	}
	if run.ruling.ruled && run.mapping != "" {
		s.held = s.new(bytes.Compare)
	}
	return s
}

// new returns a further sort, which the caller closes. It has at least one byte, since 0 means no
// bound.
func (s *sorters) new(compare func(a, b []byte) int) *extsort.Sorter {
	return extsort.New(extsort.Config{
		CompareGroups: func(a, b uint32) int { return strings.Compare(s.groups.name(a), s.groups.name(b)) },
		Compare:       compare, Memory: s.memory, TempDir: s.tempDir,
	})
}

// writer returns a writer of a sort; nil if there is none.
func writer(s *extsort.Sorter) *extsort.Writer {
	if s == nil {
		return nil
	}
	return s.NewWriter()
}

// close deletes what the sorts have on disk.
func (s *sorters) close() error {
	var errs []error
	for _, s := range []*extsort.Sorter{s.claims, s.stored, s.sorted, s.held, s.numbered, s.variants} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// groups numbers workspaces. It is safe for concurrent use.
type groups struct {
	mu    sync.RWMutex
	ids   map[string]uint32
	names []string
}

func newGroups() *groups { return &groups{ids: map[string]uint32{}} }

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

// A grouper numbers workspaces for one goroutine, which often asks for that of its last call.
type grouper struct {
	groups *groups
	known  bool // name and number are those of the last workspace
	name   string
	number uint32
}

func newGrouper(groups *groups) *grouper { return &grouper{groups: groups} }

// id returns the number of a workspace.
func (g *grouper) id(workspace []byte) uint32 {
	if !g.known || string(workspace) != g.name {
		g.known, g.name, g.number = true, string(workspace), g.groups.id(workspace)
	}
	return g.number
}
