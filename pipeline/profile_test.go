package pipeline_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres"
)

func inBothStores(t *testing.T, test func(t *testing.T, store sink.Store)) {
	t.Run("sqlite", func(t *testing.T) { test(t, openStore(t, t.TempDir())) })
	t.Run("postgres", func(t *testing.T) {
		store, err := postgres.Open(t.Context(), server.Database(t), postgres.Options{})
		must(t, err)
		defer store.Close()
		test(t, store)
	})
}

func named(t *testing.T, name string) canon.Profile {
	t.Helper()
	p, err := canon.ParseProfile(name)
	must(t, err)
	return p
}

// profilesOf returns all profiles that the store has.
func profilesOf(t *testing.T, store sink.Store) map[string]string {
	t.Helper()
	session, err := store.Peek(t.Context())
	must(t, err)
	defer session.Close()
	set, err := session.Profiles(t.Context(), nil)
	must(t, err)
	return set
}

func linksOf(t *testing.T, store sink.Store) (list []string) {
	t.Helper()
	must(t, store.Scan(t.Context(), func(l *sink.Stored) error {
		list = append(list, string(l.Workspace)+" "+string(l.Canonical))
		return nil
	}))
	slices.Sort(list)
	return list
}

// A workspace has links of one profile only: its first run sets it, and any other is refused
// before it stores anything, as a run, a dry run and a preview.
func TestProfileOfWorkspace(t *testing.T) {
	const plain, spa, strip = "linkforge-1", "linkforge-1+fragment", "linkforge-1+strip(gclid,utm_*)"
	inputs := map[string]string{"a.csv": "url\nhttp://a.example/#/1\nhttp://a.example/#/2\nhttp://a.example/?utm_x=1\n"}
	inBothStores(t, func(t *testing.T, store sink.Store) {
		config := func(workspace, profile string) pipeline.Config {
			return pipeline.Config{Workspace: workspace, Store: store, Profile: named(t, profile)}
		}
		first := map[string]int64{"p": 2, "s": 3, "t": 1}
		of := map[string]string{"p": plain, "s": spa, "t": strip}
		for _, w := range []string{"p", "s", "t"} {
			result := run(t, config(w, of[w]), inputs)
			if result.Counts.Created != first[w] || result.Counts.Created+result.Counts.Duplicate != 3 {
				t.Errorf("%s: %+v", of[w], result.Counts)
			}
			v, err := verify.Run(t.Context(), verify.Config{Dir: "out", Inputs: []string{"a.csv"}, Store: store})
			must(t, err)
			if v.Failed() > 0 {
				t.Errorf("%s: %+v", of[w], v.Findings)
			}
		}
		if got := profilesOf(t, store); len(got) != 2 || got["s"] != spa || got["t"] != strip {
			t.Errorf("profiles %q", got)
		}
		before, runs := linksOf(t, store), runsOf(t, store)
		for _, w := range []string{"p", "s", "t"} {
			for _, profile := range []string{plain, spa, strip, "linkforge-1+userinfo", "linkforge-1+fragment+strip(gclid,utm_*)"} {
				cfg := config(w, profile)
				cfg.Inputs, cfg.Out = []string{"a.csv"}, "other"
				preview, previewErr := pipeline.Preview(t.Context(), cfg)
				dry := cfg
				dry.DryRun = true
				_, dryErr := pipeline.Run(t.Context(), dry)
				if profile == of[w] {
					if previewErr != nil || dryErr != nil || preview.Counts.Created != 0 || preview.Counts.Existing != first[w] {
						t.Errorf("%s again: %v, %v, %+v", profile, previewErr, dryErr, preview.Counts)
					}
					continue
				}
				_, err := pipeline.Run(t.Context(), cfg)
				for _, err := range []error{err, previewErr, dryErr} {
					want := `workspace "` + w + `" has links of profile ` + of[w] + ", and the options are those of profile " + profile + ":"
					if _, ok := errors.AsType[*pipeline.UsageError](err); !ok || !strings.HasPrefix(err.Error(), want) {
						t.Errorf("%s in workspace of %s: %v", profile, of[w], err)
					}
				}
			}
		}
		if got := linksOf(t, store); !slices.Equal(got, before) || runsOf(t, store) != runs {
			t.Errorf("refused runs changed the store: links %q, before %q", got, before)
		}
		// One workspace of several is enough.
		cfg := pipeline.Config{Workspace: "new", Store: store, Profile: named(t, spa), Inputs: []string{"b.csv"}, Out: "b"}
		cfg.Source.WorkspaceColumn = "team"
		write(t, "b.csv", "url,team\nhttp://a.example/#1,\nhttp://a.example/#1,p\n")
		if _, err := pipeline.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `workspace "p"`) {
			t.Error(err)
		}
		if got := profilesOf(t, store); len(got) != 2 {
			t.Errorf("profiles %q", got)
		}
	})
}

func runsOf(t *testing.T, store sink.Store) int {
	t.Helper()
	runs, err := store.Runs(t.Context())
	must(t, err)
	return len(runs)
}

// A workspace without links, because all were undone or its first run died before them, takes the
// profile of the next run.
func TestProfileOfEmptyWorkspace(t *testing.T) {
	inputs := map[string]string{"a.csv": "url\nhttp://a.example/#/1\n"}
	inBothStores(t, func(t *testing.T, store sink.Store) {
		broken := errors.New("broken")
		cfg := pipeline.Config{Workspace: "w", Store: hooked(store, "chunk", func() error { return broken }), Profile: named(t, "linkforge-1+fragment")}
		t.Chdir(t.TempDir())
		write(t, "a.csv", inputs["a.csv"])
		cfg.Inputs, cfg.Out = []string{"a.csv"}, "out"
		if _, err := pipeline.Run(t.Context(), cfg); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		for _, profile := range []string{"linkforge-1+fragment", "linkforge-1", "linkforge-1+userinfo"} {
			if got := profilesOf(t, store)["w"]; got == "" || got == profile && profile != "linkforge-1+fragment" {
				t.Errorf("before %s: %q", profile, got)
			}
			result := run(t, pipeline.Config{Workspace: "w", Store: store, Profile: named(t, profile)}, inputs)
			if got := profilesOf(t, store); got["w"] != profile || result.Counts.Created != 1 {
				t.Errorf("%s: profiles %q, %+v", profile, got, result.Counts)
			}
			_, err := store.Undo(t.Context(), result.RunID, sink.LockOptions{}, func(sink.Kept) error { return nil })
			must(t, err)
		}
	})
}
