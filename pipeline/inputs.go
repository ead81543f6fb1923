package pipeline

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
)

// inputs are the sources of a run in the order of their names, with the columns
// that all of them together have.
type inputs struct {
	list    []*input
	carried []string // every column that carries no URL and no workspace
	columns []string // every column
	size    int64    // bytes as they lie; -1: unknown
}

// An input is a source and where the columns of the run lie in it.
type input struct {
	*source.Input
	carried []int // for each carried column of the run, its column here, or absent
	cells   []int // for each column of the run: the number of a carried column of the run, or one of the constants below
	opened  bool  // it was read, be it in part

	counting sync.Mutex
	counted  int64 // bytes that are in Status.Bytes
}

const (
	absent    = -1
	cellOfURL = -2
	cellOfWS  = -3
)

// nameInputs lists the inputs, none of which may lie where the output goes.
func nameInputs(cfg *Config) ([]string, error) {
	names, err := source.Expand(cfg.Inputs, cfg.Source.Stdin)
	if err != nil {
		return nil, err
	}
	if len(names) > manifest.MaxInputs {
		return nil, &UsageError{errors.New("more than 1,048,576 inputs")}
	}
	if cfg.ReportFormat != report.CSV {
		if err := apartAsText(names); err != nil {
			return nil, err
		}
	}
	files := names
	if s, ok := cfg.Store.(interface{ Files() []string }); ok {
		if err := apart(cfg.Out, s.Files()); err != nil {
			return nil, err
		}
		files = slices.Concat(names, s.Files())
	}
	return names, outside(cfg.Out, files)
}

// apartAsText refuses names that differ, but not as text, which the columns of a
// mapping in Parquet or Arrow are: nobody could tell whose row is whose.
func apartAsText(names []string) error {
	named := make(map[string]string, len(names))
	for _, name := range names {
		text := string(canon.EscapeInvalid([]byte(name)))
		if other, taken := named[text]; taken {
			return &UsageError{fmt.Errorf("inputs %q and %q have one name in the mapping: rename one, or write CSV", other, name)}
		}
		named[text] = name
	}
	return nil
}

// openInputs settles format, dialect and columns of every input.
func openInputs(ctx context.Context, cfg *Config, names []string) (_ *inputs, err error) {
	in := &inputs{}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.close())
		}
	}()
	for _, name := range names {
		s, err := source.Open(ctx, name, cfg.Source)
		if err != nil {
			return nil, err
		}
		in.list = append(in.list, &input{Input: s})
		if n := len(s.Skipped); n > 0 {
			cfg.Logger.Warn("columns of lists, maps or unions are left out", "input", name, "columns", n, "first", s.Skipped[0])
		}
		if _, size := s.Progress(); size >= 0 && in.size >= 0 {
			in.size += size
		} else {
			in.size = -1
		}
	}
	in.unite()
	if n := len(in.columns); n > source.MaxColumns {
		return nil, &UsageError{fmt.Errorf("the inputs have %d columns in all, more than %d: their rejects could not be read back", n, source.MaxColumns)}
	}
	return in, nil
}

// apart refuses an output that has the name of a file of the store, which may be still to
// come.
func apart(out string, store []string) error {
	folder, err := filepath.EvalSymlinks(filepath.Dir(out))
	if err == nil {
		folder, err = fsys.Abs(folder)
	}
	if err != nil {
		return nil // claiming the output will say what is wrong
	}
	if slices.Contains(store, filepath.Join(folder, filepath.Base(out))) {
		return &UsageError{fmt.Errorf("the output folder %s would have the name of a file of the store %s", out, store[0])}
	}
	return nil
}

// outside refuses files that lie in the output folder, or in that where the output
// is written: the run would replace it with them in it.
func outside(out string, names []string) error {
	var folders []fs.FileInfo
	for _, folder := range []string{out, outdir.PartialOf(out)} {
		if info, err := os.Stat(folder); err == nil {
			folders = append(folders, info)
		}
	}
	seen := map[string]bool{}
	for _, name := range names {
		path, err := filepath.EvalSymlinks(name)
		if errors.Is(err, fs.ErrNotExist) { // a store that is not there yet has no links in its path
			path, err = name, nil
		}
		if err == nil {
			path, err = fsys.Abs(path)
		}
		if name == "-" || err != nil {
			continue // opening it will say what is wrong
		}
		for dir := filepath.Dir(path); !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			info, err := os.Stat(dir)
			if err == nil && slices.ContainsFunc(folders, func(folder fs.FileInfo) bool { return os.SameFile(info, folder) }) {
				return &source.UsageError{Input: name, Msg: "lies in the output folder " + out + ", which the run replaces: name another with --out"}
			}
		}
	}
	return nil
}

func (in *inputs) close() error {
	var errs []error
	for _, i := range in.list {
		errs = append(errs, i.Close())
	}
	return errors.Join(errs...)
}

// unite collects the columns of all inputs by name and finds each in each input. One
// without a record has none, unless all are such, or the others would have another
// column than theirs in the rejects, whose raw lines could not be split again.
func (in *inputs) unite() {
	if slices.ContainsFunc(in.list, func(i *input) bool { return !i.Blank }) {
		for _, i := range in.list {
			if i.Blank {
				i.Columns, i.URLs = nil, nil
			}
		}
	}
	isCarried := map[string]int{}
	seen := map[string]bool{}
	for _, i := range in.list {
		for c, name := range i.Columns {
			if !seen[name] {
				seen[name] = true
				in.columns = append(in.columns, name)
			}
			if _, ok := isCarried[name]; !ok && !i.isKey(c) {
				isCarried[name] = len(in.carried)
				in.carried = append(in.carried, name)
			}
		}
	}
	for _, i := range in.list {
		i.Among = in.columns
		at := map[string]int{}
		for c, name := range i.Columns {
			at[name] = c
		}
		for _, name := range in.carried {
			c, ok := at[name]
			if !ok || i.isKey(c) {
				c = absent
			}
			i.carried = append(i.carried, c)
		}
		for _, name := range in.columns {
			i.cells = append(i.cells, i.cellOf(at, name, isCarried))
		}
	}
}

// isKey reports whether column c is one that the URL or the workspace is taken from.
func (i *input) isKey(c int) bool { return c == i.Workspace || slices.Contains(i.URLs, c) }

// cellOf returns the entry of cells for a column of the run.
func (i *input) cellOf(at map[string]int, name string, carried map[string]int) int {
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

// all appends the cells that a row of the input has in the columns of the run. The
// carried ones are asked for by their number in the run.
func (i *input) all(cells [][]byte, url, workspace []byte, carried func(c int) []byte) [][]byte {
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

// manifest describes the inputs, once they are read.
func (in *inputs) manifest() []manifest.Input {
	var list []manifest.Input
	for _, i := range in.list {
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
