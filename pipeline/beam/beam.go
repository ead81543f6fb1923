// Package beam does the tasks of a plan of package stage on an engine, Apache Spark or Apache Flink, through
// Apache Beam. It is a module of its own, since Beam needs some hundred packages that nothing else here does.
//
//	numbers of inputs ──► Reshuffle ──► mapFn ──► GroupByKey by shard ──► reduceFn
//	                                      └──── reports ─────┬───────────────┘
//	                                                         └──► GroupByKey of one key ──► listFn
//
// The process that drives the engine then settles, has applyFn write again what was amended, in the same way,
// and commits. Keys are int64 and values []byte, so that the engine takes them as they are; there is no side
// input, no state and no source of Beam, of which engines support different parts.
package beam

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/stage"
)

// version is set by the linker: it must be that of the bulk that made the plan.
var version string

// Version returns the version of this build, as bulk does.
func Version() string { return pipeline.Version(version) }

// A Place says where the tasks of a plan are done. It goes to the workers, and has no secret: each worker
// reads that from the file, or from its variable pipeline.SecretVariable.
type Place struct {
	Out     string // the directory of the plan
	Plan    string // the plan, as of stage.Job.ID; "": the one that is there
	Dir     string // the working directory, in which names of the plan are meant; "": all are absolute
	KeyFile string // "": none
	TempDir string // of what does not fit in memory; "": that of the system
	Workers int    // goroutines that compute, of a task; at least 1
}

// open opens the plan.
func (p *Place) open() (*stage.Job, error) {
	job, err := stage.Open(p.Out, stage.Options{Version: Version(), Workers: p.Workers, TempDir: p.TempDir, Secret: func(scheme string) (codegen.Secret, error) {
		secret, err := pipeline.ReadSecret(scheme, p.KeyFile)
		if err != nil {
			err = fmt.Errorf("the secret of the scheme: %w", err)
		}
		return secret, err
	}})
	if err == nil && p.Plan != "" && p.Plan != job.ID() {
		err = fmt.Errorf("%s has another plan than when this began", p.Out)
	}
	return job, err
}

// anywhere returns the place as a worker has it, which has another working directory.
func (p Place) anywhere(relative bool) (_ Place, err error) {
	for _, path := range []*string{&p.Out, &p.KeyFile, &p.TempDir} {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	if relative && err == nil {
		p.Dir, err = os.Getwd()
	}
	return p, err
}

// Run does the tasks of a plan on the engine of a runner of Beam, which must be initialized, and commits the
// run. The error is of the plan, of a task, of the engine, or one of pipeline.CommitStages.
func Run(ctx context.Context, runner string, p Place) (run *stage.Run, err error) {
	p.Out = filepath.Clean(p.Out)
	job, err := p.open()
	if err != nil {
		return nil, err
	}
	if p, err = p.anywhere(job.Relative()); err != nil {
		return nil, err
	}
	p.Plan = job.ID()
	d := driver{runner, p, job}
	if err := d.do(ctx, d.shards); err != nil {
		return nil, err
	}
	if err := job.Settle(ctx); err != nil {
		return nil, err
	}
	amended, err := job.Amended()
	if err != nil {
		return nil, err
	}
	if len(amended) > 0 {
		if err := d.do(ctx, func(s sdk.Scope) []sdk.PCollection { return d.apply(s, amended) }); err != nil {
			return nil, err
		}
	}
	return pipeline.CommitStages(ctx, job)
}

// A driver has an engine do tasks.
type driver struct {
	runner string
	place  Place
	job    *stage.Job
}

// do has the engine do tasks, and only the attempts count of which it has the reports.
func (d *driver) do(ctx context.Context, tasks func(s sdk.Scope) (reports []sdk.PCollection)) error {
	name := rand.Text()
	p, s := sdk.NewPipelineWithRoot()
	reports := tasks(s)
	sdk.ParDo0(s.Scope("list"), &listFn{Worker{Place: d.place}, name}, sdk.GroupByKey(s, sdk.Flatten(s, reports...)))
	if _, err := sdk.Run(ctx, d.runner, p); err != nil {
		return fmt.Errorf("the engine: %w", err)
	}
	return d.job.AcceptList(name)
}

// shards does Map and Reduce.
func (d *driver) shards(s sdk.Scope) []sdk.PCollection {
	inputs := make([]int, d.job.MapTasks())
	for n := range inputs {
		inputs[n] = n
	}
	chunks, mapped := sdk.ParDo2(s.Scope("map"), &mapFn{Worker{Place: d.place}}, numbers(s, inputs))
	return []sdk.PCollection{mapped, sdk.ParDo(s.Scope("reduce"), &reduceFn{Worker{Place: d.place}}, sdk.GroupByKey(s, chunks))}
}

// apply does Apply of shards.
func (d *driver) apply(s sdk.Scope, shards []int) []sdk.PCollection {
	return []sdk.PCollection{sdk.ParDo(s.Scope("apply"), &applyFn{Worker{Place: d.place}}, numbers(s, shards))}
}

// numbers are the tasks, spread over the workers.
func numbers(s sdk.Scope, of []int) sdk.PCollection {
	list := make([]int64, len(of))
	for i, n := range of {
		list[i] = int64(n)
	}
	return sdk.Reshuffle(s, sdk.CreateList(s, list))
}
