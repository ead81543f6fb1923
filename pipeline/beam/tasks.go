package beam

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/linkforge/bulk/pipeline/stage"
)

func init() {
	register.DoFn4x1[context.Context, int64, func(int64, []byte), func(int64, []byte), error](&mapFn{})
	register.DoFn4x1[context.Context, int64, func(*[]byte) bool, func(int64, []byte), error](&reduceFn{})
	register.DoFn3x1[context.Context, int64, func(int64, []byte), error](&applyFn{})
	register.DoFn2x1[int64, func(*[]byte) bool, error](&listFn{})
	register.Emitter2[int64, []byte]()
	register.Iter1[[]byte]()
}

// reported is the key of all reports.
const reported = 0

// failed begins what a worker says of an error. An engine wraps that in what only its developers understand.
const failed = "a worker failed: "

// A Worker is what all DoFns have.
type Worker struct {
	Place Place
	job   *stage.Job
}

// Setup opens the plan.
func (w *Worker) Setup() (err error) {
	if err = w.Place.enter(); err == nil {
		w.job, err = w.Place.open()
	}
	if err != nil {
		err = fmt.Errorf("%s%w", failed, err)
	}
	return err
}

// enter goes to the working directory of the driver, unless the worker is in it.
func (p *Place) enter() error {
	now, err := os.Getwd()
	if p.Dir == "" || err == nil && now == p.Dir {
		return nil
	}
	if err := os.Chdir(p.Dir); err != nil {
		return fmt.Errorf("the names of the plan are relative to a directory that the worker does not have: %w", err)
	}
	return nil
}

// finish reports the end of a task, or tells what failed.
func finish(stage string, n int64, report string, err error, reports func(int64, []byte)) error {
	if err != nil {
		return fmt.Errorf("%sthe task %s %d: %w", failed, stage, n, err)
	}
	reports(reported, []byte(report))
	return nil
}

// Short returns an error that has, of what an engine says, only what the worker said.
func Short(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	at := strings.LastIndex(text, failed)
	if at < 0 {
		return err
	}
	line, _, _ := strings.Cut(text[at:], "\n")
	return errors.New(line)
}

// A mapFn does the task of an input. It emits chunks by shard, and the name of its report.
type mapFn struct{ Worker }

// ProcessElement does a task.
func (f *mapFn) ProcessElement(ctx context.Context, n int64, chunks, reports func(int64, []byte)) error {
	name, err := f.job.MapTo(ctx, int(n), func(shard int, chunk []byte) error {
		chunks(int64(shard), chunk)
		return nil
	})
	return finish("map", n, name, err, reports)
}

// A reduceFn does the task of a shard. It emits the name of its report.
type reduceFn struct{ Worker }

// ProcessElement does a task.
func (f *reduceFn) ProcessElement(ctx context.Context, n int64, chunks func(*[]byte) bool, reports func(int64, []byte)) error {
	name, err := f.job.ReduceFrom(ctx, int(n), func() (chunk []byte, err error) {
		defer func() { // as Beam ends a stream that breaks off
			if p := recover(); p != nil {
				err = fmt.Errorf("the engine: %v", p)
			}
		}()
		if !chunks(&chunk) {
			return nil, io.EOF
		}
		return chunk, nil
	})
	return finish("reduce", n, name, err, reports)
}

// An applyFn does the task of a shard that was amended. It emits the name of its report.
type applyFn struct{ Worker }

// ProcessElement does a task.
func (f *applyFn) ProcessElement(ctx context.Context, n int64, reports func(int64, []byte)) error {
	name, err := f.job.ApplyTo(ctx, int(n))
	return finish("apply", n, name, err, reports)
}

// A listFn writes the list of all reports that the engine counts.
type listFn struct {
	Worker
	Name string // of the list
}

// ProcessElement writes the list.
func (f *listFn) ProcessElement(_ int64, reports func(*[]byte) bool) error {
	var names []string
	for name := []byte(nil); reports(&name); {
		names = append(names, string(name))
	}
	if err := f.job.WriteList(f.Name, names); err != nil {
		return fmt.Errorf("%sthe list of attempts: %w", failed, err)
	}
	return nil
}
