// Package load reads a mapping in parts (package stage) as what a store is to get of it: the links that are
// new, after a look whether the store still is as the mapping says. README.md of package stage says when.
//
//	Open ──► Read ──► Check ──► Links ──► sink.Session.Load
//	manifest  digests  lookups
//
// The parts are read four times, in bounded memory: for their digests, for their workspaces, for the lookups,
// and for the load.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/emit"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/terms"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// ErrNoParts is the error of a directory whose manifest lists no mapping in parts.
var ErrNoParts = errors.New("it has no mapping in parts, as bulk stage commit writes one")

// ErrNotCommitted is the error of a directory with a plan of tasks only.
var ErrNotCommitted = errors.New("its tasks are planned, and not committed")

// A Mapping is a mapping in parts.
type Mapping struct {
	Manifest   *manifest.Manifest
	SHA256     string // of the manifest, hexadecimal
	Terms      *terms.Terms
	Workspaces []string // of its rows, in byte order; nil before Read

	dir  string
	path string // under which opts has the parts as one file
	opts readback.Options
}

// Open opens the mapping in a directory. The error is that of manifest.ReadDir, ErrNoParts or ErrNotCommitted.
func Open(dir string) (*Mapping, error) {
	m, sum, err := manifest.ReadDir(dir)
	if _, planned := os.Stat(filepath.Join(dir, manifest.StageDir)); planned == nil && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNotCommitted)
	}
	if err != nil {
		return nil, err
	}
	if _, parts := m.Reports(); parts == nil {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoParts)
	}
	told, problems := terms.Parse(m)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: the manifest: %s is %v", dir, problems[0].Field, problems[0].Got)
	}
	path, opts := readback.Of(dir, m, told)
	return &Mapping{Manifest: m, SHA256: sum, Terms: told, dir: dir, path: path, opts: opts}, nil
}

// Read reads all parts. One that is not as the manifest says is an error. It notes the workspaces.
func (m *Mapping) Read(ctx context.Context, workers int) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, f := range m.Manifest.Files {
		if !manifest.IsPart(f.Name) {
			continue
		}
		g.Go(func() error {
			name := filepath.Join(m.dir, filepath.FromSlash(f.Name))
			sum, err := manifest.FileSHA256(gctx, name)
			if err == nil && sum != f.SHA256 {
				err = fmt.Errorf("%s is not as the manifest says: it was changed", name)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var counts [3]int64
	err := m.blocks(ctx, func(b *readback.Block, row *readback.MappingRow) error {
		for i := range b.Len() {
			if faults := b.Row(i, row); len(faults) > 0 {
				return faults[0]
			}
			counts[row.Outcome]++
			if n := len(m.Workspaces); n == 0 || m.Workspaces[n-1] != string(row.Workspace) {
				m.Workspaces = append(m.Workspaces, string(row.Workspace))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c := &m.Manifest.Counts; counts != [...]int64{outcome.Created: c.Created, outcome.Existing: c.Existing, outcome.Duplicate: c.Duplicate} {
		return fmt.Errorf("%s: the rows are not as many as the manifest says", m.dir)
	}
	slices.Sort(m.Workspaces) // they are in this order
	m.Workspaces = slices.Compact(m.Workspaces)
	return nil
}

// blocks visits the mapping block by block. Both arguments are used again.
func (m *Mapping) blocks(ctx context.Context, visit func(*readback.Block, *readback.MappingRow) error) (err error) {
	rows, err := readback.OpenMapping(ctx, m.path, m.opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	b, row := new(readback.Block), new(readback.MappingRow)
	for err == nil {
		if err = rows.Read(b); err == nil {
			err = visit(b, row)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return err
}

// Links yields the links that the store is to get: the new ones, without those that the check has found
// there, in the order of the mapping, which is that of their codes but for a few. Written counts rows.
func (m *Mapping) Links(ctx context.Context, c *Check, written *atomic.Int64) iter.Seq2[[]sink.Link, error] {
	return func(yield func([]sink.Link, error) bool) {
		l, there := linker{m: m}, c.there
		var of []link
		var chunk []sink.Link
		err := m.blocks(ctx, func(b *readback.Block, row *readback.MappingRow) (err error) {
			if of, err = l.append(of[:0], b, row); err != nil {
				return err
			}
			chunk = chunk[:0]
			for i := range of {
				for len(there) > 0 && there[0].end <= of[i].number {
					there = there[1:]
				}
				if !of[i].exists && (len(there) == 0 || of[i].number < there[0].begin) {
					chunk = append(chunk, of[i].Link)
				}
			}
			if len(chunk) > 0 && !yield(chunk, nil) {
				return errStopped
			}
			written.Add(int64(b.Len()))
			return nil
		})
		if err == nil && l.number != m.Manifest.Counts.Created {
			err = fmt.Errorf("%s was changed while it was read", m.dir)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped ends the reading because nobody wants more.
var errStopped = errors.New("stopped")

// A link is one of the mapping, which the first row of its URL tells.
type link struct {
	sink.Link
	exists bool  // it is to be in the store already
	number int64 // of a new link: among those, from 0
}

// A linker makes links of the rows of a mapping, which come in its order.
type linker struct {
	m      *Mapping
	input  []byte
	number int64 // of the next new link
}

// append adds the links of a block to dst. They are valid as long as the block.
func (l *linker) append(dst []link, b *readback.Block, row *readback.MappingRow) ([]link, error) {
	for i := range b.Len() {
		if faults := b.Row(i, row); len(faults) > 0 {
			return dst, faults[0]
		}
		if row.Outcome == outcome.Duplicate {
			continue
		}
		l.input = codegen.AppendInput(l.input[:0], row.Canonical, row.Workspace, 0)
		to := link{exists: row.Outcome == outcome.Existing}
		to.Link = sink.Link{Workspace: row.Workspace, Code: row.Code, Key: codegen.Sum(l.input).Key(), Canonical: row.Canonical}
		if !to.exists {
			to.Original = emit.OriginalOf(l.m.Terms.URLs, row.Original, row.Canonical)
			to.number = l.number
			l.number++
		}
		dst = append(dst, to)
	}
	return dst, nil
}
