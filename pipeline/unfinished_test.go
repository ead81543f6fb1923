package pipeline_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/sink"
)

// interrupted makes a run end at an operation of the store, and returns its
// configuration.
func interrupted(t *testing.T, dir, operation string) pipeline.Config {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, "a.csv", csvFile(rows(8, 500)))
	cfg := base(2)
	cfg.Inputs, cfg.Out, cfg.Store = []string{"a.csv"}, "out", openStore(t, dir)
	interrupt(t, cfg, operation)
	return cfg
}

// interrupt makes a run end at an operation of the store.
func interrupt(t *testing.T, cfg pipeline.Config, operation string) {
	t.Helper()
	fault := errors.New("fault")
	cfg.Store = hooked(cfg.Store, operation, func() error { return fault })
	if _, err := pipeline.Run(context.Background(), cfg); !errors.Is(err, fault) {
		t.Fatal(err)
	}
}

// A run that was just killed may still have its output directory locked.
func TestOutputIsLetGo(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.csv", csvFile(rows(8, 50)))
	for noWait, want := range map[bool]error{false: nil, true: outdir.ErrBusy} {
		synctest.Test(t, func(t *testing.T) {
			folder, err := outdir.Claim("out", outdir.ClaimOptions{})
			must(t, err)
			time.AfterFunc(time.Second, func() { must(t, folder.Abandon()) })
			cfg := base(10)
			cfg.Inputs, cfg.Out, cfg.NoWait, cfg.Overwrite = []string{"a.csv"}, "out", noWait, true
			if _, err := pipeline.Run(t.Context(), cfg); !errors.Is(err, want) {
				t.Errorf("no wait %t: %v", noWait, err)
			}
			time.Sleep(time.Hour)
		})
		must(t, os.RemoveAll("out"))
	}
}

// A run that was undone in part, and goes on, finishes when it does that.
func TestUndoneInPart(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	write(t, "a.csv", csvFile(rows(8, 50)))
	cfg, fault := base(10), errors.New("fault")
	cfg.Inputs, cfg.Out, cfg.Store, cfg.AsOf, cfg.Overwrite = []string{"a.csv"}, "out", openStore(t, dir), asOf, true
	finished := func() time.Time {
		_, err := pipeline.Run(t.Context(), cfg)
		must(t, err)
		runs, err := cfg.Store.Runs(t.Context())
		must(t, err)
		if len(runs) != 1 || runs[0].State != sink.Finished {
			t.Fatalf("%+v", runs)
		}
		return runs[0].Finished
	}
	first := finished()
	db, err := sql.Open("sqlite", filepath.Join(dir, "links.db"))
	must(t, err)
	defer db.Close()
	_, err = db.Exec("UPDATE links SET updated_at = '2030-01-02T03:04:05Z' WHERE short_code = (SELECT min(short_code) FROM links)")
	must(t, err)
	if _, err := cfg.Store.Undo(t.Context(), 1, sink.LockOptions{}, func(sink.Kept) error { return fault }); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	if again := finished(); !again.After(first) {
		t.Errorf("finished at %v, and again at %v", first, again)
	}
}

// The same command goes on with an interrupted run, under its id and its as_of. A new run
// gives it up, and its links count as existing.
func TestNewRun(t *testing.T) {
	dir := t.TempDir()
	cfg := interrupted(t, dir, "loaded")
	links := dump(t, dir)
	fresh := cfg
	fresh.NewRun = true
	for id := int32(2); id < 4; id++ {
		result, err := pipeline.Run(context.Background(), fresh)
		must(t, err)
		if result.Resumed || result.RunID != id || result.Counts.Created != 0 || result.Counts.Existing != int64(len(links)) {
			t.Errorf("new run: %+v", result)
		}
		must(t, os.RemoveAll("out"))
	}
	interrupt(t, fresh, "loaded")
	result, err := pipeline.Run(context.Background(), cfg)
	must(t, err)
	if !result.Resumed || result.RunID != 4 || result.Counts.Created != 0 {
		t.Errorf("the run that goes on: %+v", result)
	}
	runs, err := cfg.Store.Runs(t.Context())
	must(t, err)
	if runs[0].State != sink.Abandoned {
		t.Errorf("the first run: %+v", runs[0])
	}
}

// A new run that fails for a while goes on with itself, which nobody interrupted.
func TestNewRunRetries(t *testing.T) {
	dir := t.TempDir()
	cfg := interrupted(t, dir, "start")
	store := hooked(cfg.Store, "loaded", nil)
	store.hit = func() error { store.at = ""; return sink.ErrRetryable }
	cfg.Store, cfg.NewRun = store, true
	result, err := pipeline.Run(context.Background(), cfg)
	must(t, err)
	runs, err := cfg.Store.Runs(context.Background())
	if err != nil || len(runs) != 1 || runs[0].State != sink.Finished || result.Counts.Created == 0 || result.Resumed {
		t.Errorf("%+v, %v, %v", result, runs, err)
	}
}

// An output that has its name, but whose run the store does not know as finished, is replaced
// by the same run. To another it is a finished one.
func TestLoadedRunOwnsItsOutput(t *testing.T) {
	tests := map[string]struct {
		change  func(cfg *pipeline.Config)
		refused bool
	}{
		"same":      {func(cfg *pipeline.Config) {}, false},
		"option":    {func(cfg *pipeline.Config) { cfg.BaseURL = "" }, true},
		"as_of":     {func(cfg *pipeline.Config) { cfg.AsOf = asOf }, true},
		"new run":   {func(cfg *pipeline.Config) { cfg.NewRun = true }, false},
		"overwrite": {func(cfg *pipeline.Config) { cfg.BaseURL, cfg.Overwrite = "", true }, false},
		"content": {func(*pipeline.Config) {
			data := read(t, "a.csv")
			write(t, "a.csv", data[:len(data)-3]+"x\n")
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := interrupted(t, dir, "finish")
			before, links := readReports(t), dump(t, dir)
			test.change(&cfg)
			_, err := pipeline.Run(context.Background(), cfg)
			clean(t)
			if !test.refused {
				must(t, err)
				if name == "same" {
					sameReports(t, readReports(t), before, reports...)
				} else if now := fmt.Sprint(readManifest(t).Options["base_url"]); now != cfg.BaseURL {
					t.Errorf("base_url is %q", now)
				}
				return
			}
			if !errors.Is(err, outdir.ErrExists) || !strings.Contains(err.Error(), "Config.Overwrite") {
				t.Errorf("error %v", err)
			}
			sameReports(t, readReports(t), before, reports...)
			if len(dump(t, dir)) != len(links) {
				t.Error("the store has changed")
			}
		})
	}
}

// If that run is finished after all, as by its own process once the store works again,
// there is nothing to do.
func TestLoadedRunFinishesMeanwhile(t *testing.T) {
	for _, newRun := range []bool{false, true} {
		dir := t.TempDir()
		cfg := interrupted(t, dir, "finish")
		before, links, open := readReports(t), dump(t, dir), cfg.Store
		cfg.Store, cfg.NewRun = hooked(open, "lock", func() error {
			runs, err := open.Runs(t.Context())
			if err != nil {
				return err
			}
			session, err := open.Lock(t.Context(), nil, sink.LockOptions{})
			if err != nil {
				return err
			}
			return errors.Join(session.Finish(t.Context(), runs[0]), session.Close())
		}), newRun
		if result, err := pipeline.Run(t.Context(), cfg); err != nil || !result.Repeated || result.RunID != 1 {
			t.Errorf("%+v, %v", result, err)
		}
		clean(t)
		sameReports(t, readReports(t), before, reports...)
		if !slices.Equal(dump(t, dir), links) {
			t.Error("the store has changed")
		}
	}
}

// While only the store could say whether the run whose output is there is finished, and
// the store is down, the same run again is no wrong usage.
func TestLoadedRunWhileTheStoreIsDown(t *testing.T) {
	cfg := interrupted(t, t.TempDir(), "finish")
	store := hooked(cfg.Store, "runs", func() error { return sink.ErrRetryable })
	cfg.Store = store
	if _, err := pipeline.Run(context.Background(), cfg); !errors.Is(err, sink.ErrRetryable) || errors.Is(err, outdir.ErrExists) {
		t.Errorf("error %v", err)
	}
	store.hit = func() error { return sink.ErrNotOurs } // which no later run will change
	if _, err := pipeline.Run(context.Background(), cfg); !errors.Is(err, sink.ErrNotOurs) || !errors.Is(err, outdir.ErrExists) {
		t.Errorf("error %v", err)
	}
	store.at = ""
	if result, err := pipeline.Run(context.Background(), cfg); err != nil || !result.Resumed {
		t.Errorf("%+v, %v", result, err)
	}
}

// A run of something else that the store does not know as finished is named, and hinders
// nothing. It may be at work: then nobody has to do anything about it. That is said
// once, however often the run settles.
func TestUnfinishedRunOfAnother(t *testing.T) {
	cfg := interrupted(t, t.TempDir(), "loaded")
	var log strings.Builder
	tries := 0
	cfg.Store = hooked(cfg.Store, "start", func() error {
		if tries++; tries == 1 {
			return sink.ErrConflict
		}
		return nil
	})
	cfg.BaseURL, cfg.Logger = "", slog.New(slog.NewTextHandler(&log, nil))
	if result, err := pipeline.Run(context.Background(), cfg); err != nil || result.Resumed || result.RunID != 2 {
		t.Errorf("%+v, %v", result, err)
	}
	if strings.Count(log.String(), "runs=1\n") != 1 || tries < 2 {
		t.Errorf("it said: %s", &log)
	}
}

// What comes under the output's name while the run is at work is not touched, and no
// wrong usage either: the links are stored. Without it the same run again finishes.
func TestOutputIsTakenMeanwhile(t *testing.T) {
	cfg := interrupted(t, t.TempDir(), "start")
	store := hooked(cfg.Store, "loaded", func() error {
		return errors.Join(os.Mkdir("out", 0o777), os.WriteFile("out/notes.txt", nil, 0o666))
	})
	cfg.Store = store
	_, err := pipeline.Run(context.Background(), cfg)
	if err == nil || errors.Is(err, manifest.ErrNotOurs) || !strings.Contains(err.Error(), "no manifest.json; move it away and run again") {
		t.Errorf("error %v", err)
	}
	must(t, errors.Join(os.Remove("out/notes.txt"), os.Remove("out")))
	store.at = ""
	if result, err := pipeline.Run(context.Background(), cfg); err != nil || !result.Resumed || result.Counts.Created == 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// A given as_of is part of what was asked for.
func TestLoadedRunWithAsOf(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.csv", "url\nhttp://example.com/\n")
	fault := errors.New("fault")
	store := hooked(openStore(t, t.TempDir()), "finish", func() error { return fault })
	cfg := pipeline.Config{Workspace: "demo", Inputs: []string{"a.csv"}, Out: "out", AsOf: asOf, Store: store}
	if _, err := pipeline.Run(context.Background(), cfg); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	store.at, cfg.AsOf = "", time.Time{}
	if _, err := pipeline.Run(context.Background(), cfg); !errors.Is(err, outdir.ErrExists) {
		t.Fatal(err)
	}
	cfg.AsOf = asOf
	if result, err := pipeline.Run(context.Background(), cfg); err != nil || !result.Resumed {
		t.Fatal(result, err)
	}
}

// The same run again changes nothing, unless links of it are gone from the store: then the
// output is replaced if that was asked for.
func TestFinishedRunAgain(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	write(t, "a.csv", csvFile(rows(8, 50)))
	cfg := base(10)
	cfg.Inputs, cfg.Out, cfg.Store = []string{"a.csv"}, "out", openStore(t, dir)
	_, err := pipeline.Run(t.Context(), cfg)
	must(t, err)
	before, links := readReports(t), dump(t, dir)
	result, err := pipeline.Run(t.Context(), cfg)
	if err != nil || !result.Repeated || result.RunID != 1 || result.Counts.Created != int64(len(links)) {
		t.Errorf("%+v, %v", result, err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "links.db"))
	must(t, err)
	defer db.Close()
	_, err = db.Exec("DELETE FROM links WHERE short_code = (SELECT min(short_code) FROM links)")
	must(t, err)
	if _, err := pipeline.Run(t.Context(), cfg); !errors.Is(err, outdir.ErrExists) || !strings.Contains(err.Error(), "lost 1 of its links") {
		t.Errorf("error %v", err)
	}
	sameReports(t, readReports(t), before, reports...)
	cfg.Overwrite = true
	if result, err = pipeline.Run(t.Context(), cfg); err != nil || result.Repeated || result.Counts.Created != 1 || len(dump(t, dir)) != len(links) {
		t.Errorf("%+v, %v", result, err)
	}
}
