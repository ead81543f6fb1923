package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/fsys"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
)

// listInputs lists the inputs.
func listInputs(cfg *Config) ([]string, error) {
	names, err := source.Expand(cfg.Inputs, cfg.Source.Stdin, cfg.AllowEmpty)
	if err == nil && len(names) > manifest.MaxInputs {
		err = &UsageError{errors.New("more than 1,048,576 inputs")}
	}
	return names, err
}

// nameInputs lists the inputs, none of which may lie where the output goes.
func nameInputs(cfg *Config) ([]string, error) {
	names, err := listInputs(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.ReportFormat != report.CSV {
		if err := apartAsText(names); err != nil {
			return nil, err
		}
	}
	outs, files := []string{cfg.Out}, names
	if !cfg.DryRun {
		outs = append(outs, outdir.FailedOf(cfg.Out))
	}
	if s, ok := cfg.Store.(interface{ Files() []string }); ok {
		for _, out := range outs {
			if err := apart(out, s.Files()); err != nil {
				return nil, err
			}
		}
		files = slices.Concat(names, s.Files())
	}
	for _, out := range outs {
		if err := outside(out, files); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// apartAsText refuses names that differ, but not as text, which the columns of a
// mapping in Parquet or Arrow are: it could not be told from which input a row is.
func apartAsText(names []string) error {
	named := make(map[string]string, len(names))
	for _, name := range names {
		text := string(canon.EscapeInvalid([]byte(name)))
		if other, taken := named[text]; taken {
			return &UsageError{fmt.Errorf("inputs %q and %q have the same name in the mapping: rename one, or write CSV", other, name)}
		}
		named[text] = name
	}
	return nil
}

// apart refuses an output that has the name of a file of the store, which may be still to
// come.
func apart(out string, store []string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(out))
	if err == nil {
		dir, err = fsys.Abs(dir)
	}
	if err != nil {
		return nil // claiming the output will say what is wrong
	}
	if slices.Contains(store, filepath.Join(dir, filepath.Base(out))) {
		return &UsageError{fmt.Errorf("the output directory %s would have the name of a file of the store %s", out, store[0])}
	}
	return nil
}

// outside refuses files that lie in the output directory, or in that where the output
// is written: the run would replace it with them in it.
func outside(out string, names []string) error {
	var dirs []fs.FileInfo
	for _, dir := range []string{out, outdir.PartialOf(out)} {
		if info, err := os.Stat(dir); err == nil {
			dirs = append(dirs, info)
		}
	}
	if dirs == nil {
		return nil // nothing lies in it
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
			if err == nil && slices.ContainsFunc(dirs, func(out fs.FileInfo) bool { return os.SameFile(info, out) }) {
				return &columns.UsageError{Input: name, Msg: "lies in the output directory " + out + ", which the run replaces: give another with Config.Out"}
			}
		}
	}
	return nil
}
