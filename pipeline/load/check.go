package load

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// A Conflict is a link of the mapping that the store contradicts.
type Conflict struct {
	Kind                       Kind
	Workspace, Code, Canonical string
	Found                      string // what the store has: of CodeTaken the URL that has the code; otherwise the code of the URL, blank if it has none
	position                   int64  // in the mapping
}

// A Kind says in what the store contradicts a link of the mapping.
type Kind string

// The kinds.
const (
	CodeTaken Kind = "code_taken" // a new link: another link has its code
	URLTaken  Kind = "url_taken"  // a new link: its URL has a link
	LinkGone  Kind = "link_gone"  // an existing link: its URL has none
	OtherCode Kind = "other_code" // an existing link: it has another code
)

// Examples is how many conflicts a Check names.
const Examples = 10

// A Check is what the store has of a mapping.
type Check struct {
	Fresh     []string   // workspaces without links
	There     int64      // new links that it has already, of the run that the check was told of
	Conflicts int64      // links that it contradicts
	First     []Conflict // at most Examples, in the order of the mapping

	there []span // of these links
}

// A span is numbers from begin to below end.
type span struct{ begin, end int64 }

// Check looks all links up, with so many lookups at once. New links of the run with this id are there
// already; 0: none is. Workspaces without links, as the session tells them, need no lookup. Looked counts
// rows.
func (m *Mapping) Check(ctx context.Context, session sink.Session, run int32, workers int, looked *atomic.Int64) (*Check, error) {
	has, err := session.Populated(ctx, m.Workspaces)
	if err != nil {
		return nil, err
	}
	k := &checker{m: m, session: session, run: run, populated: map[string]bool{}, looked: looked}
	for i, w := range m.Workspaces {
		if k.populated[w] = has[i]; !has[i] {
			k.made.Fresh = append(k.made.Fresh, w)
		}
	}
	if m.Manifest.Counts.Existing == 0 && !slices.Contains(has, true) {
		return &k.made, nil
	}
	spec, err := codegen.SpecOf(m.Manifest.Scheme.Name)
	if err != nil {
		return nil, err
	}
	k.alphabet = spec.Alphabet
	if err := k.all(ctx, max(1, workers)); err != nil {
		return nil, err
	}
	k.made.there = join(k.made.there)
	return &k.made, nil
}

// A checker is what the lookups of a Check share.
type checker struct {
	m         *Mapping
	session   sink.Session
	run       int32
	populated map[string]bool // workspaces
	alphabet  string          // of the codes, in ascending order
	looked    *atomic.Int64

	mu   sync.Mutex
	made Check
}

// A batch is the links of one lookup, of at most so many blocks.
type batch struct {
	blocks [8]readback.Block
	links  []link
	first  int64 // position of the first link
	rows   int

	probes []sink.Probe
	of     []int // the link of each probe
	found  []found
}

// found is what the store has of a link of a batch.
type found struct {
	same  bool // the URL has a link
	own   bool // which has the code, and is of the run
	right bool // which has the code
	taken bool // another link has the code
	what  string
}

// all reads the mapping and looks it up, batch by batch.
func (k *checker) all(ctx context.Context, workers int) (err error) {
	rows, err := readback.OpenMapping(ctx, k.m.path, k.m.opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	free := make(chan *batch, workers+1)
	for range workers + 1 {
		free <- new(batch)
	}
	caller := ctx
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	l, row, position := linker{m: k.m}, new(readback.MappingRow), int64(0)
	for err == nil && ctx.Err() == nil {
		b := <-free // at most workers of them are in use
		b.links, b.first, b.rows = b.links[:0], position, 0
		for i := 0; i < len(b.blocks) && err == nil; i++ {
			if err = rows.Read(&b.blocks[i]); err == nil {
				b.links, err = l.append(b.links, &b.blocks[i], row)
				b.rows += b.blocks[i].Len()
			}
		}
		if err != nil && err != io.EOF {
			break
		}
		position += int64(len(b.links))
		g.Go(func() error {
			defer func() { free <- b }()
			return k.look(ctx, b)
		})
	}
	if err == io.EOF {
		err = nil
	}
	return cmp.Or(g.Wait(), err, context.Cause(caller))
}

// look looks a batch up.
func (k *checker) look(ctx context.Context, b *batch) error {
	b.of, b.probes = b.of[:0], b.probes[:0]
	b.found = append(b.found[:0], make([]found, len(b.links))...)
	for i := range b.links {
		if k.populated[string(b.links[i].Workspace)] {
			b.of = append(b.of, i)
		}
	}
	slices.SortStableFunc(b.of, func(x, y int) int { // codes with a salt are not in the order of the mapping
		p, q := &b.links[x], &b.links[y]
		return cmp.Or(bytes.Compare(p.Workspace, q.Workspace), bytes.Compare(p.Code, q.Code))
	})
	for _, i := range b.of {
		l := &b.links[i]
		b.probes = append(b.probes, sink.Probe{Workspace: l.Workspace, Code: l.Code, Key: l.Key, Canonical: l.Canonical, WantRun: k.run != 0, Position: k.positionOf(l.Code)})
	}
	if len(b.probes) > 0 {
		if err := k.session.Lookup(ctx, b.probes, func(f sink.Found) error { return k.note(b, &f) }); err != nil {
			return err
		}
	}
	k.judge(b)
	k.looked.Add(int64(b.rows))
	return nil
}

// note notes what was found of a link.
func (k *checker) note(b *batch, f *sink.Found) error {
	l, to := &b.links[b.of[f.Probe]], &b.found[b.of[f.Probe]]
	if !f.Same {
		if to.taken = true; to.what == "" && !l.exists {
			to.what = string(f.Canonical)
		}
		return nil
	}
	to.same = true
	to.right = bytes.Equal(f.Code, l.Code)
	if to.own = to.right && k.run != 0 && f.Run == k.run; !to.right || !l.exists {
		to.what = string(f.Code)
	}
	return nil
}

// judge compares the links of a batch with what was found.
func (k *checker) judge(b *batch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range b.links {
		l, f := &b.links[i], &b.found[i]
		kind := Kind("")
		switch {
		case l.exists && !f.same:
			kind = LinkGone
		case l.exists && !f.right:
			kind = OtherCode
		case l.exists:
		case f.own:
			k.made.There++
			if n := len(k.made.there); n > 0 && k.made.there[n-1].end == l.number {
				k.made.there[n-1].end++
			} else {
				k.made.there = append(k.made.there, span{l.number, l.number + 1})
			}
		case f.same:
			kind = URLTaken
		case f.taken:
			kind = CodeTaken
		}
		if kind == "" {
			continue
		}
		k.made.Conflicts++
		k.example(Conflict{kind, string(l.Workspace), string(l.Code), string(l.Canonical), f.what, b.first + int64(i)})
	}
}

// example keeps the conflict if it is one of the first. The lock is held.
func (k *checker) example(c Conflict) {
	if n := len(k.made.First); n == Examples && k.made.First[n-1].position < c.position {
		return
	}
	at, _ := slices.BinarySearchFunc(k.made.First, c, func(a, b Conflict) int { return cmp.Compare(a.position, b.position) })
	k.made.First = slices.Insert(k.made.First, at, c)
	k.made.First = k.made.First[:min(Examples, len(k.made.First))]
}

// positionOf returns about where a code is among all codes, as sink.Probe has it.
func (k *checker) positionOf(code []byte) uint64 {
	part, unit := 0.0, 1.0
	for _, c := range code[:min(len(code), 10)] { // which is as much as a float64 can tell
		unit /= float64(len(k.alphabet))
		part += unit * float64(max(0, strings.IndexByte(k.alphabet, c)))
	}
	return uint64(min(part, 1-0x1p-52) * math.MaxUint64)
}

// join puts spans in order, and makes one of those that touch.
func join(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	var list []span
	for _, s := range spans {
		if n := len(list); n > 0 && list[n-1].end == s.begin {
			list[n-1].end = s.end
		} else {
			list = append(list, s)
		}
	}
	return list
}
