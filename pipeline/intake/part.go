package intake

import (
	"context"
	"fmt"
	"slices"

	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/judge"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/source"
)

// Describe returns inputs as a manifest has them, of a run that looks at URLs and workspaces only. They
// are not open, and Read leaves them out; OpenOne opens one of them. The error is a *columns.UsageError.
func Describe(list manifest.Inputs) (*Inputs, error) {
	in := &Inputs{}
	for i := range list {
		table, err := describe(&list[i])
		if err != nil {
			return nil, err
		}
		in.List = append(in.List, &Input{Input: &source.Input{Table: *table}, described: true})
	}
	in.unite()
	return in, nil
}

func describe(m *manifest.Input) (*columns.Table, error) {
	choice := columns.Choice{UniqueNames: true}
	if len(m.Columns) == 0 { // a blank one beside others
		t := columns.New(string(m.Name), choice)
		t.Format, t.Blank = m.Format, true
		return &t, nil
	}
	if len(m.URLColumns) == 1 {
		choice.URLColumn = string(m.URLColumns[0])
	}
	if m.WorkspaceColumn != nil {
		choice.WorkspaceColumn = string(*m.WorkspaceColumn)
	}
	var names []string
	for _, name := range m.Columns {
		names = append(names, string(name))
	}
	return columns.Describe(string(m.Name), m.Format, names, choice)
}

// OpenOne opens input n of those that Describe returned, from a path. The error is a
// *columns.UsageError if it has other columns than it was described with. The caller closes the inputs.
func (in *Inputs) OpenOne(ctx context.Context, n int, path string, opts source.Options) error {
	s, err := source.Open(ctx, path, opts)
	if err != nil {
		return err
	}
	of := in.List[n]
	if of.Blank && s.Blank {
		s.Columns, s.URLs = nil, nil
	}
	if s.Format != of.Format || !slices.Equal(s.Columns, of.Columns) || !slices.Equal(s.URLs, of.URLs) || s.Workspace != of.Workspace {
		err := &columns.UsageError{Input: of.Name, Msg: fmt.Sprintf("has changed: it is %s with the columns %q, and was %s with the columns %q", s.Format, s.Columns, of.Format, of.Columns)}
		_ = s.Close() // nothing was read
		return err
	}
	s.Among = in.Names
	in.List[n] = &Input{Input: s, Layout: of.Layout, judged: judge.Columns{Input: of.Name, Names: s.Columns}}
	in.List[n].judged.Params = in.List[n].findParams()
	_, in.Size = s.Progress()
	return nil
}
