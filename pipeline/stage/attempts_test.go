package stage_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/stage"
	"pgregory.net/rapid"
)

// Attempts that are killed, that write a short file, that run at once, and that come late make no
// difference.
func TestAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, tempDir(t))
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "faults"), 2))
		var late []func()
		s.do(t, func(name string, n int, task func(j *stage.Job) error) {
			attempt := func(called string) {
				j := s.open(t)
				j.SetAttempt(called + "-" + name)
				must(t, task(j))
			}
			switch rnd.IntN(5) {
			case 0: // killed before its report, or its files became short
				attempt("a")
				spoil(t, s.cfg.Out, rnd)
			case 1:
				var both sync.WaitGroup
				both.Go(func() { attempt("b") })
				both.Go(func() { attempt("c") })
				both.Wait()
			case 2:
				late = append(late, func() { attempt("late") })
			}
			attempt("m")
			if len(late) > 0 && rnd.IntN(3) == 0 {
				late[0]()
				late = late[1:]
			}
		})
		run, err := s.open(t).Commit(context.Background())
		if err != nil && !errors.Is(err, stage.ErrNoRows) {
			t.Fatal(err)
		}
		for _, task := range late {
			task()
		}
		s.commitAndCompare(t)
		if _, sum, err := manifest.ReadDir(s.cfg.Out); err == nil && sum != run.Digest {
			t.Error("late attempts have changed the manifest")
		}
	})
}

// spoil makes the attempts that are called a- look killed, or one of their files short.
func spoil(t rapid.TB, out string, rnd *rand.Rand) {
	reports, err := filepath.Glob(filepath.Join(out, "stage", "*", "*-a-*.json"))
	must(t, err)
	how := rnd.IntN(3)
	for _, report := range reports {
		switch how {
		case 0:
			must(t, os.Remove(report))
		case 1:
			must(t, os.Truncate(report, 3))
		}
	}
	if how < 2 {
		return
	}
	for _, pattern := range []string{"stage/*/*-a-*", "stage/settle/a-*", "mapping/*-a-*.csv"} {
		files, err := filepath.Glob(filepath.Join(out, pattern))
		must(t, err)
		for _, file := range files {
			info, err := os.Stat(file)
			must(t, err)
			if !strings.HasSuffix(file, ".json") && info.Size() > 0 {
				must(t, os.Truncate(file, info.Size()-1))
			}
		}
	}
}

// A task whose work is missing is named, and so is one that the plan does not have.
func TestMissing(t *testing.T) {
	s := small(t)
	ctx := context.Background()
	for n, want := range []string{
		"no attempt of the task map 0 is finished and has all its files: do it again",
		"no attempt of the task reduce 0, 1",
	} {
		err := s.open(t).Reduce(ctx, 0)
		if n == 1 {
			must(t, s.open(t).Map(ctx, 0))
			err = s.open(t).Settle(ctx)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	for _, err := range []error{s.open(t).Map(ctx, 1), s.open(t).Reduce(ctx, -1)} {
		if err == nil || !strings.Contains(err.Error(), "there is no task") {
			t.Error(err)
		}
	}
}

// A file that was damaged later is named, and after it is gone the task can be done again.
func TestDamaged(t *testing.T) {
	s := small(t)
	ctx := context.Background()
	first := s.open(t)
	first.SetAttempt("a")
	must(t, first.Map(ctx, 0))
	files, err := filepath.Glob(filepath.Join(s.cfg.Out, "stage/map/*.rows"))
	must(t, err)
	data := read(t, files[0])
	data[20]++
	must(t, os.WriteFile(files[0], data, 0o666))
	second := s.open(t)
	second.SetAttempt("b")
	must(t, second.Map(ctx, 0))
	if err := s.open(t).Reduce(ctx, 0); err == nil || !strings.Contains(err.Error(), files[0]+": it is damaged") || !strings.Contains(err.Error(), "remove it") {
		t.Error(err)
	}
	must(t, os.Remove(files[0]))
	must(t, s.open(t).Reduce(ctx, 0))
}

// A task that fails leaves no file.
func TestFailedLeavesNothing(t *testing.T) {
	s := small(t)
	must(t, s.open(t).Map(t.Context(), 0))
	must(t, os.WriteFile(filepath.Join(s.cfg.Out, "mapping"), nil, 0o666)) // which is to be a directory
	if err := s.open(t).Reduce(t.Context(), 0); err == nil {
		t.Error("a file cannot be created, and reduce does not fail")
	}
	if files, _ := filepath.Glob(filepath.Join(s.cfg.Out, "stage/reduce/*")); len(files) > 0 {
		t.Error("reduce leaves", files)
	}
}

// An input that changes between two attempts ends the run.
func TestInputChanges(t *testing.T) {
	s := small(t)
	ctx := context.Background()
	must(t, s.open(t).Map(ctx, 0))
	text := read(t, s.cfg.Inputs[0])
	must(t, os.WriteFile(s.cfg.Inputs[0], append(text, "https://e.example/more\n"...), 0o666))
	must(t, s.open(t).Map(ctx, 0))
	if err := s.open(t).Reduce(ctx, 0); err == nil || !strings.Contains(err.Error(), "two attempts of the task map 0 differ") {
		t.Error(err)
	}
	must(t, os.WriteFile(s.cfg.Inputs[0], []byte("link,note\nhttps://e.example/1,x\n"), 0o666))
	if err := s.open(t).Map(ctx, 0); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Error(err)
	}
}

// A file that changes while its parts are read ends the run.
func TestPartChanges(t *testing.T) {
	s := small(t)
	s.cfg.Inputs, s.cfg.Out = []string{filepath.Join(t.TempDir(), "in.parquet")}, filepath.Join(t.TempDir(), "out")
	var b strings.Builder
	for n := range 300 {
		fmt.Fprintf(&b, ",https://e.example/%d,\n", n)
	}
	s.rows = 10
	writeInput(t, s.cfg.Inputs[0], b.String())
	plan, err := pipeline.PlanStages(t.Context(), s.cfg, nil, s.rows)
	must(t, err)
	if plan.MapTasks() != 3 {
		t.Fatalf("%d parts of 300 rows for shards of 10", plan.MapTasks())
	}
	for n := range 3 {
		must(t, s.open(t).Map(t.Context(), n))
		must(t, os.Chtimes(s.cfg.Inputs[0], time.Time{}, time.Unix(int64(n), 0)))
	}
	if err := s.open(t).Reduce(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "in.parquet was changed while tasks of map read it") {
		t.Error(err)
	}
}

// A plan is for one version of the tool and one secret.
func TestOtherProcess(t *testing.T) {
	s := small(t)
	if _, err := stage.Open(s.cfg.Out, stage.Options{Version: "other"}); err == nil || !strings.Contains(err.Error(), "bulk test, and this is other") {
		t.Error(err)
	}
	if _, err := stage.Open(s.cfg.Out, stage.Options{Version: "test", Secret: given(secret)}); err == nil || !strings.Contains(err.Error(), "has no secret") {
		t.Error(err)
	}
	if _, err := stage.Open(s.cfg.Out, stage.Options{Version: "test", Workers: 1}); err != nil {
		t.Error(err)
	}
}

// Of a compressed input the plan finds out about how many rows it has, though its end is not read.
func TestPlanOfCompressed(t *testing.T) {
	s := small(t)
	s.cfg.Inputs, s.cfg.Out = []string{filepath.Join(t.TempDir(), "in.csv.gz")}, filepath.Join(t.TempDir(), "out")
	rnd := rand.New(rand.NewPCG(1, 1))
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	fmt.Fprintln(w, "url")
	for range 50_000 {
		fmt.Fprintf(w, "https://e.example/%x%x%x%x\n", rnd.Uint64(), rnd.Uint64(), rnd.Uint64(), rnd.Uint64())
	}
	must(t, errors.Join(w.Close(), os.WriteFile(s.cfg.Inputs[0], b.Bytes(), 0o666)))
	plan, err := pipeline.PlanStages(t.Context(), s.cfg, nil, 1000)
	must(t, err)
	if n := plan.Shards(); n < 35 || n > 70 {
		t.Errorf("%d shards of 1,000 rows for 50,000 rows", n)
	}
}
