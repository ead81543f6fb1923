package stage_test

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/stage"
	"pgregory.net/rapid"
)

// An engine is one in memory. Of some tasks it does a second attempt, whose chunks it may take instead.
type engine struct {
	t   rapid.TB
	rnd *rand.Rand
	job *stage.Job // all tasks have the same one, at once
	one bool       // it does each task once

	mu      sync.Mutex
	chunks  map[int][][]byte // by shard
	reports []string
}

// all does tasks at once, each once or twice, and takes the result of one attempt.
func (e *engine) all(tasks []int, attempt func(n int) (take func(), report string, err error)) {
	var each sync.WaitGroup
	for _, n := range tasks {
		times := 1 + e.rnd.IntN(4)/3
		if e.one {
			times = 1
		}
		each.Go(func() {
			for i := range times {
				take, report, err := attempt(n)
				if err != nil {
					e.t.Errorf("task %d: %v", n, err)
					return
				}
				if i == times-1 {
					e.mu.Lock()
					take()
					e.reports = append(e.reports, report)
					e.mu.Unlock()
				}
			}
		})
	}
	each.Wait()
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// mapAll does Map.
func (e *engine) mapAll(ctx context.Context) {
	e.all(upTo(e.job.MapTasks()), func(n int) (func(), string, error) {
		of := map[int][][]byte{}
		report, err := e.job.MapTo(ctx, n, func(shard int, chunk []byte) error {
			of[shard] = append(of[shard], chunk)
			return nil
		})
		return func() {
			for shard, chunks := range of {
				e.chunks[shard] = append(e.chunks[shard], chunks...)
			}
		}, report, err
	})
}

// reduceAll does Reduce of the shards that have chunks.
func (e *engine) reduceAll(ctx context.Context) {
	var shards []int
	for shard, chunks := range e.chunks {
		shards = append(shards, shard)
		e.rnd.Shuffle(len(chunks), func(i, j int) { chunks[i], chunks[j] = chunks[j], chunks[i] })
	}
	e.all(shards, func(n int) (func(), string, error) {
		report, err := e.job.ReduceFrom(ctx, n, next(e.chunks[n]))
		return func() {}, report, err
	})
}

func next(chunks [][]byte) func() ([]byte, error) {
	i := 0
	return func() ([]byte, error) {
		if i++; i > len(chunks) {
			return nil, io.EOF
		}
		return chunks[i-1], nil
	}
}

// accept has the attempts count that the engine took.
func (e *engine) accept(name string) {
	must(e.t, e.job.WriteList(name, e.reports))
	must(e.t, e.job.AcceptList(name))
	e.reports = nil
}

// run does all tasks. After those of Reduce another process may go on, which was not told what counts.
func (e *engine) run(ctx context.Context, other *stage.Job) {
	e.mapAll(ctx)
	e.reduceAll(ctx)
	e.accept("shards")
	if e.rnd.IntN(2) == 0 {
		e.job = other
	}
	must(e.t, e.job.Settle(ctx))
	amended, err := e.job.Amended()
	must(e.t, err)
	e.all(amended, func(n int) (func(), string, error) {
		report, err := e.job.ApplyTo(ctx, n)
		return func() {}, report, err
	})
	if len(amended) > 0 {
		e.accept("apply")
	}
}

// An engine writes what a run writes, whichever attempts it takes, and in whatever order the chunks come.
func TestEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx, dir := context.Background(), tempDir(t)
		s := draw(t, dir)
		if rapid.Bool().Draw(t, "links") {
			s.withLinks(t, dir)
		}
		_, err := pipeline.PlanStages(ctx, s.cfg, s.links, s.rows)
		must(t, err)
		e := engine{t: t, rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "engine"), 4)), job: s.open(t), chunks: map[int][][]byte{}}
		e.run(ctx, s.open(t))
		s.commitAndCompare(t)
	})
}

// Only attempts that the engine counts are published; but if two differ, whichever counts, nothing is.
func TestEngineCounts(t *testing.T) {
	s := small(t)
	ctx := context.Background()
	e := engine{t: t, rnd: rand.New(rand.NewPCG(1, 1)), job: s.open(t), one: true}
	for _, name := range []string{"b", "a", "c"} {
		e.job.SetAttempt(name)
		e.chunks, e.reports = map[int][][]byte{}, nil
		e.mapAll(ctx)
		e.reduceAll(ctx)
		must(t, e.job.WriteList(name, e.reports))
	}
	must(t, e.job.AcceptList("b"))
	must(t, e.job.Settle(ctx))
	run, err := pipeline.CommitStages(ctx, e.job)
	must(t, err)
	for _, f := range run.Manifest.Files {
		if strings.HasPrefix(f.Name, "mapping/") && !strings.HasSuffix(f.Name, "-b.csv") {
			t.Errorf("%s is published", f.Name)
		}
	}
	must(t, os.WriteFile(s.cfg.Inputs[0], []byte("url\nhttps://e.example/changed\n"), 0o666))
	e.job.SetAttempt("z")
	_, err = e.job.MapTo(ctx, 0, func(int, []byte) error { return nil })
	must(t, err)
	if _, err := pipeline.CommitStages(ctx, e.job); err == nil || !strings.Contains(err.Error(), "an input has changed") {
		t.Error(err)
	}
}

// A plan knows whether its names are meant in the working directory.
func TestRelative(t *testing.T) {
	s := small(t)
	if s.open(t).Relative() {
		t.Error("all names are absolute")
	}
	t.Chdir(filepath.Dir(s.cfg.Inputs[0]))
	s.cfg.Inputs, s.cfg.Out = []string{"in.csv"}, "relative"
	_, err := pipeline.PlanStages(t.Context(), s.cfg, nil, s.rows)
	must(t, err)
	if !s.open(t).Relative() {
		t.Error("in.csv is a relative name")
	}
}

// What an engine loses or spoils is noticed.
func TestEngineFaults(t *testing.T) {
	s := small(t)
	ctx := context.Background()
	e := engine{t: t, rnd: rand.New(rand.NewPCG(1, 1)), job: s.open(t), chunks: map[int][][]byte{}}
	e.mapAll(ctx)
	fails := func(err error, why string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %s", err, why)
		}
	}
	for _, chunk := range [][]byte{{}, {'x'}, {'l'}} {
		_, err := e.job.ReduceFrom(ctx, 0, next([][]byte{chunk}))
		fails(err, "a chunk of shard 0: it is damaged")
	}
	_, err := e.job.ReduceFrom(ctx, 0, func() ([]byte, error) { return nil, io.ErrUnexpectedEOF })
	fails(err, "unexpected EOF")
	fails(e.job.Reduce(ctx, 0), "an engine had the rows of this plan")
	fails(e.job.AcceptList("shards"), "its list of attempts is not in")

	e.chunks[1] = e.chunks[1][:0] // rows are lost
	e.reduceAll(ctx)
	must(t, e.job.WriteList("shards", e.reports))
	lists, err := filepath.Glob(filepath.Join(s.cfg.Out, "stage", "engine", "*"))
	must(t, err)
	text := read(t, lists[0])
	must(t, os.WriteFile(lists[0], text[1:], 0o666))
	fails(e.job.AcceptList("shards"), "it is damaged")
	must(t, os.WriteFile(lists[0], text, 0o666))
	must(t, e.job.AcceptList("shards"))
	fails(e.job.Settle(ctx), "the tasks of reduce did not get what those of map sent")
}
