package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/sink"
)

// The first links of a workspace decide whether it folds case. A run that meets both kinds, or that would
// decide it again, is refused, whatever it does with its links, and nothing is stored.
func TestFoldOfWorkspace(t *testing.T) {
	fold := pipeline.Scheme{Fold: true}
	inBothStores(t, func(t *testing.T, store sink.Store) {
		run(t, pipeline.Config{Workspace: "s", Store: store, Scheme: fold}, map[string]string{"a.csv": "url\nnone\n"})
		if got := schemesOf(t, store); len(got) > 0 {
			t.Errorf("a run without a link has set %+v", got)
		}
		one := map[string]string{"a.csv": "url,ws\nhttp://a.example/1,\n"}
		run(t, pipeline.Config{Workspace: "s", Store: store, Scheme: fold}, one)
		run(t, pipeline.Config{Workspace: "t", Store: store}, one)
		schemes := map[string]sink.Scheme{"s": {Name: codegen.NameBase32, Fold: true}}
		if got := schemesOf(t, store); !maps.Equal(got, schemes) {
			t.Errorf("schemes %+v", got)
		}
		before, runs := linksOf(t, store), runsOf(t, store)
		const both = `workspace "s" folds case and workspace "t" does not: one run cannot have both`
		t.Chdir(t.TempDir())
		for _, c := range []struct {
			rows, workspace string
			scheme          pipeline.Scheme
			want            []string
		}{
			{"http://a.example/2,t\nhttp://a.example/2,s\n", "", pipeline.Scheme{}, []string{both}},
			{"http://a.example/2,t\nhttp://a.example/2,s\n", "", fold, []string{both}},
			{"http://a.example/2,t\nhttp://a.example/2,s\n", "", pipeline.Scheme{Name: codegen.Name}, []string{both}},
			{"http://a.example/2,u\nhttp://a.example/2,s\n", "", pipeline.Scheme{}, []string{`workspace "s" folds case and workspace "u" does not`}},
			{"http://a.example/2,\n", "t", fold, []string{`workspace "t" has links and does not fold case`}},
			{"http://a.example/2,u\nhttp://a.example/2,t\n", "", fold, []string{`workspace "t" has links and does not fold case`}},
			{"http://a.example/2,\n", "s", pipeline.Scheme{Name: codegen.Name}, []string{`workspace "s"`, codegen.NameBase32 + ", folding case,", codegen.Name + ", not folding case:"}},
			{"http://a.example/2,\n", "s", keyed32, []string{`workspace "s"`, codegen.NameBase32, codegen.NameKeyedBase32}},
			{"http://a.example/2,\n", "u", pipeline.Scheme{Name: codegen.Name, Fold: true}, []string{"Config.Scheme.Fold goes with scheme " + codegen.NameBase32}},
			{"http://a.example/2,\n", "u", pipeline.Scheme{Name: codegen.NamePermuted, Secret: keyed.Secret, Fold: true}, []string{"Config.Scheme.Fold goes with scheme " + codegen.NameBase32}},
		} {
			write(t, "b.csv", "url,ws\n"+c.rows)
			cfg := pipeline.Config{Inputs: []string{"b.csv"}, Out: "other", Workspace: c.workspace, Store: store, Scheme: c.scheme}
			if c.workspace == "" {
				cfg.Source.WorkspaceColumn = "ws"
			}
			dry := cfg
			dry.DryRun = true
			_, err := pipeline.Run(t.Context(), cfg)
			_, dryErr := pipeline.Run(t.Context(), dry)
			_, previewErr := pipeline.Preview(t.Context(), cfg)
			for _, err := range []error{err, dryErr, previewErr} {
				_, usage := errors.AsType[*pipeline.UsageError](err)
				if !usage || slices.ContainsFunc(c.want, func(text string) bool { return !strings.Contains(err.Error(), text) }) {
					t.Errorf("%q in %q, %+v: %v", c.rows, c.workspace, c.scheme, err)
				}
			}
		}
		if got := schemesOf(t, store); !maps.Equal(got, schemes) || !slices.Equal(linksOf(t, store), before) || runsOf(t, store) != runs {
			t.Errorf("a refused run changed the store: %+v, %q", got, linksOf(t, store))
		}
	})
}

// blind is a store that tells of its workspaces under a lock only, as if another run had made their first
// links meanwhile.
type blind struct{ sink.Store }

func (blind) Peek(context.Context) (sink.Session, error) { return nil, sink.ErrMissing }

// A workspace that turns out to fold case when its rows were read has them read once more. What there is
// to tell of the inputs is told once. Rows that cannot be read again are refused.
func TestFoldIsFoundLate(t *testing.T) {
	store := openStore(t, t.TempDir())
	run(t, pipeline.Config{Workspace: "s", Store: store, Scheme: pipeline.Scheme{Fold: true}}, map[string]string{"a.csv": "url\nhttp://a.example/1\n"})
	t.Chdir(t.TempDir())
	write(t, "a.csv", "url,code,ws\nhttp://a.example/2,Menu,s\nhttp://a.example/3,,s\n")
	write(t, "b.csv", "url,code,ws\n")
	for name, c := range map[string]struct {
		store  sink.Store
		column string
	}{"another run": {blind{store}, ""}, "the column tells": {store, "ws"}} {
		opened := 0
		var said strings.Builder
		cfg := pipeline.Config{Inputs: []string{"a.csv", "b.csv"}, Out: name, Workspace: "s", Store: c.store, Legacy: "keep",
			Opened: func([]pipeline.Input) { opened++ }, Logger: slog.New(slog.NewTextHandler(&said, nil))}
		cfg.Source.WorkspaceColumn = c.column
		_, err := pipeline.Run(t.Context(), cfg)
		must(t, err)
		mapping := read(t, name+"/mapping.csv")
		if n := strings.Count(said.String(), "some inputs have no rows"); n != 1 || opened != 1 {
			t.Errorf("%s: opened %d times; %s", name, opened, said.String())
		}
		if !strings.Contains(mapping, ",menu,") || !strings.Contains(read(t, name+"/manifest.json"), `"fold_case": true`) {
			t.Errorf("%s: %s", name, mapping)
		}
	}
	pipe := pipeline.Config{Inputs: []string{"-"}, Out: "pipe", Workspace: "s", Store: blind{store}}
	pipe.Source.Stdin = strings.NewReader("url\nhttp://a.example/4\n")
	if _, err := pipeline.Run(t.Context(), pipe); err == nil || !strings.Contains(err.Error(), `workspace "s" folds case`) || !strings.Contains(err.Error(), "add Config.Scheme.Fold") {
		t.Errorf("rows that cannot be read again: %v", err)
	}
}

// After codes that were kept, a plain run of many URLs makes no two codes that differ in case only.
func TestFoldIsRemembered(t *testing.T) {
	store := openStore(t, t.TempDir())
	old := pipeline.Config{Workspace: "s", Store: store, Legacy: "keep", Scheme: pipeline.Scheme{Fold: true}}
	run(t, old, map[string]string{"old.csv": "slug,url\nMenu,https://shop.example/menu\n"})
	rows := "url\n"
	for i := range 3000 {
		rows += fmt.Sprintf("https://shop.example/p/%d\n", i+1)
	}
	run(t, pipeline.Config{Workspace: "s", Store: store}, map[string]string{"new.csv": rows})
	codes := map[string]bool{}
	must(t, store.Scan(t.Context(), func(l *sink.Stored) error {
		codes[strings.ToLower(string(l.Code))] = true
		if code := string(l.Code); code != strings.ToLower(code) {
			t.Errorf("code %s", code)
		}
		return nil
	}))
	if len(codes) != 3001 || !codes["menu"] {
		t.Errorf("%d codes", len(codes))
	}
}
