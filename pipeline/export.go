package pipeline

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
)

// ExportLinks writes the links of a workspace, or all if that is "", and describes them.
func ExportLinks(ctx context.Context, store sink.Store, workspace string, told *manifest.Links, create func(columns []string) report.Export) error {
	var to report.Export
	var at [4]int // of workspace, code, kind and canonical URL
	var digest *report.LinksDigest
	end := func() {
		if n := len(told.Workspaces); n > 0 {
			told.Workspaces[n-1].Digest = digest.Sum()
		}
	}
	begin := func(columns []string) error {
		to = create(columns)
		for i, name := range []string{"workspace_id", "short_code", "kind", "canonical_url"} {
			at[i] = slices.Index(columns, name)
		}
		return nil
	}
	err := store.Export(ctx, workspace, begin, func(row [][]byte) error {
		if n := len(told.Workspaces) - 1; n < 0 || string(told.Workspaces[n].Workspace) != string(row[at[0]]) {
			end()
			digest = report.NewLinksDigest()
			told.Workspaces = append(told.Workspaces, manifest.LinksOf{Workspace: manifest.Text(row[at[0]])})
		}
		told.Rows++
		told.Workspaces[len(told.Workspaces)-1].Links++
		digest.Add(row[at[0]], row[at[3]], row[at[1]], string(row[at[2]]) == legacy.KindAlias)
		return to.Append(row)
	})
	end()
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		return err
	}
	return describeLinks(ctx, store, told)
}

// describeLinks fills in the settings of the workspaces.
func describeLinks(ctx context.Context, store sink.Store, told *manifest.Links) (err error) {
	session, err := store.Peek(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	profiles, err := session.Profiles(ctx, nil)
	schemes, err2 := session.Schemes(ctx, nil)
	rules, err3 := session.Rules(ctx, nil)
	if err := cmp.Or(err, err2, err3); err != nil {
		return err
	}
	for i := range told.Workspaces {
		l := &told.Workspaces[i]
		w := string(l.Workspace)
		s := cmp.Or(schemes[w], sink.Scheme{Name: codegen.Name})
		l.Profile, l.Rules = cmp.Or(profiles[w], canon.Profile{}.Name()), rules[w]
		l.Scheme, l.CodeLength, l.Multiplier, l.Fingerprint = s.Name, s.CodeLength, s.Multiplier, s.Fingerprint
		l.Fold = s.Fold
	}
	return nil
}
