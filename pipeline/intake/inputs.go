package intake

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/source"
)

// Inputs are the sources of a run in the order of their names, with the columns that all of
// them together have.
type Inputs struct {
	List    []*Input
	Carried []string // every column that carries no URL and no workspace
	Columns []string // every column
	Size    int64    // bytes as they lie; -1: unknown
}

// An Input is a source and where the columns of the run lie in it.
type Input struct {
	*source.Input
	carried []int // for each carried column of the run, its column here, or absent
	cells   []int // for each column of the run: the number of a carried column of the run, or one of the constants below
	opened  bool  // it was read, be it in part

	counting sync.Mutex
	counted  int64 // bytes that are in Config.Bytes
}

const (
	absent    = -1
	cellOfURL = -2
	cellOfWS  = -3
)

// Open opens every input and determines its format, dialect and columns. The caller closes
// the inputs. Errors are those of source.Open.
func Open(ctx context.Context, names []string, opts source.Options, log *slog.Logger) (_ *Inputs, err error) {
	in := &Inputs{}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	for _, name := range names {
		s, err := source.Open(ctx, name, opts)
		if err != nil {
			return nil, err
		}
		in.List = append(in.List, &Input{Input: s})
		if n := len(s.Skipped); n > 0 {
			log.Warn("columns of lists, maps or unions are left out", "input", name, "columns", n, "first", s.Skipped[0])
		}
		if _, size := s.Progress(); size >= 0 && in.Size >= 0 {
			in.Size += size
		} else {
			in.Size = -1
		}
	}
	in.unite()
	if n := len(in.Columns); n > source.MaxColumns {
		return nil, &source.UsageError{Input: names[len(names)-1], Msg: fmt.Sprintf("with it the inputs have %d columns in all, more than %d: their rejects could not be read back", n, source.MaxColumns)}
	}
	return in, nil
}

// Close closes all inputs.
func (in *Inputs) Close() error {
	var errs []error
	for _, i := range in.List {
		errs = append(errs, i.Close())
	}
	return errors.Join(errs...)
}

// unite collects the columns of all inputs by name and finds each in each input. One
// without a record has none, unless all are such, or the others would have another
// column than theirs in the rejects, whose raw lines could not be split again.
func (in *Inputs) unite() {
	if slices.ContainsFunc(in.List, func(i *Input) bool { return !i.Blank }) {
		for _, i := range in.List {
			if i.Blank {
				i.Columns, i.URLs = nil, nil
			}
		}
	}
	isCarried := map[string]int{}
	seen := map[string]bool{}
	for _, i := range in.List {
		for c, name := range i.Columns {
			if !seen[name] {
				seen[name] = true
				in.Columns = append(in.Columns, name)
			}
			if _, ok := isCarried[name]; !ok && !i.isKey(c) {
				isCarried[name] = len(in.Carried)
				in.Carried = append(in.Carried, name)
			}
		}
	}
	for _, i := range in.List {
		i.Among = in.Columns
		at := map[string]int{}
		for c, name := range i.Columns {
			at[name] = c
		}
		for _, name := range in.Carried {
			c, ok := at[name]
			if !ok || i.isKey(c) {
				c = absent
			}
			i.carried = append(i.carried, c)
		}
		for _, name := range in.Columns {
			i.cells = append(i.cells, i.cellOf(at, name, isCarried))
		}
	}
}

// isKey reports whether column c is one that the URL or the workspace is taken from.
func (i *Input) isKey(c int) bool { return c == i.Workspace || slices.Contains(i.URLs, c) }

// cellOf returns the entry of cells for a column of the run.
func (i *Input) cellOf(at map[string]int, name string, carried map[string]int) int {
	switch c, ok := at[name]; {
	case !ok:
		return absent
	case c == i.URLs[0]:
		return cellOfURL
	case c == i.Workspace:
		return cellOfWS
	case i.isKey(c):
		return absent
	}
	return carried[name]
}

// Cells appends the cells that a row of the input has in the columns of the run. The
// carried ones are asked for by their number in the run.
func (i *Input) Cells(cells [][]byte, url, workspace []byte, carried func(c int) []byte) [][]byte {
	for _, from := range i.cells {
		var cell []byte
		switch from {
		case absent:
		case cellOfURL:
			cell = url
		case cellOfWS:
			cell = workspace
		default:
			cell = carried(from)
		}
		cells = append(cells, cell)
	}
	return cells
}

// RecordsRead returns how many records were read.
func (in *Inputs) RecordsRead() (n int64) {
	for _, i := range in.List {
		n += i.Records()
	}
	return n
}

// Manifest describes the inputs as far as they are read.
func (in *Inputs) Manifest() []manifest.Input {
	var list []manifest.Input
	for _, i := range in.List {
		m := manifest.Input{
			Name: manifest.Text(i.Name), Format: i.Format, Compression: i.Compression,
			Records: i.Records(), Size: i.Size(),
		}
		if i.Dialect != nil {
			d := manifest.Dialect(*i.Dialect)
			m.Dialect = &d
		}
		for _, name := range i.Columns {
			m.Columns = append(m.Columns, manifest.Text(name))
		}
		for _, c := range i.URLs {
			m.URLColumns = append(m.URLColumns, m.Columns[c])
		}
		if i.Workspace >= 0 {
			m.WorkspaceColumn = &m.Columns[i.Workspace]
		}
		switch sum := i.SHA256(); {
		case i.Cut():
			m.RecordsSHA256 = hex.EncodeToString(sum[:])
		case i.opened:
			m.SHA256 = hex.EncodeToString(sum[:])
		}
		list = append(list, m)
	}
	return list
}
