package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/stage"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func stageCommand(ui *ui) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stage",
		Short: "Do a run in tasks, on any number of machines",
		Long: `A set that outgrows one machine is done in tasks, as array jobs of a scheduler.
The tasks share the inputs and the directory OUT. The mapping is byte for byte
that of bulk run, in parts. Nothing is stored until bulk load; links that exist
come as exports (plan --links).

  plan    samples the inputs and writes the tasks of map and reduce, a command a
          line: OUT/stage/map.tasks and OUT/stage/reduce.tasks
  map     reads an input or an export, or a part of one
  reduce  writes one part of the mapping, once all tasks of map are done
  settle  gives codes to URLs that want the same one, once all of reduce are
          done, and writes OUT/stage/apply.tasks
  apply   writes a part of the mapping again, as it was settled
  commit  writes rejects.csv, collisions.csv and, last, manifest.json, which
          lists the parts

A task that died or hangs is done again. A task may also be done twice at once,
or late. Files that manifest.json does not list are litter. Once the run is
committed OUT/stage can be removed; then no task can be done again.`,
		Example: `  bulk stage plan 'in/*.csv' --workspace demo --out OUT
  xargs -P8 -I{} sh -c {} <OUT/stage/map.tasks
  xargs -P8 -I{} sh -c {} <OUT/stage/reduce.tasks
  bulk stage settle OUT
  xargs -P8 -I{} sh -c {} <OUT/stage/apply.tasks
  bulk stage commit OUT`,
	}
	cmd.AddCommand(planCommand(ui))
	for _, t := range []struct {
		name, short string
		do          func(j *stage.Job, ctx context.Context, n int) error
	}{
		{"map", "Read input N of a plan, an export, or a part", (*stage.Job).Map},
		{"reduce", "Write part N of the mapping", (*stage.Job).Reduce},
	} {
		cmd.AddCommand(taskCommand(ui, t.name, t.short, true, t.do))
	}
	settle := func(j *stage.Job, ctx context.Context, _ int) error {
		half, err := parseMemory("", 0)
		if err == nil {
			debug.SetMemoryLimit(half)
			err = j.Settle(ctx)
		}
		return err
	}
	cmd.AddCommand(taskCommand(ui, "settle", "Give codes to URLs that want the same one", false, settle),
		taskCommand(ui, "apply", "Write part N of the mapping as it was settled", true, (*stage.Job).Apply), commitCommand(ui))
	return cmd
}

// planFlags are the flags of run that plan has.
var planFlags = []string{
	"workspace", "workspace-column", "url-column", "out", "max-rejects", "expect-rows", "allow-empty", "header", "delimiter", "pad-rows", "quote", "max-field",
	"base-url", "no-carry", "excel-safe", "as-of", "keep-fragment", "strip-params", "keep-userinfo", "assume-scheme", "max-url-length",
	"scheme", "scheme-key-file", "code-length", "max-retries", "workers", "tmp",
}

// ignored are the flags of run that change no result, and that plan does not have. On the command line they
// are refused; a file or a variable may have them, for run. Any other flag that plan does not have is refused
// from there, too.
var ignored = []string{
	"db", "schema", "table", "retry-for", "no-wait", "dry-run", "overwrite", "new-run", "rejects-ok", "memory", "summary", "html", "metrics-file",
}

func planCommand(ui *ui) *cobra.Command {
	var o runOptions
	var rows int64
	var links []string
	cmd := &cobra.Command{
		Use:   "plan INPUT… --workspace ID",
		Short: "Plan a run in tasks",
		Long: `An INPUT is a CSV, .txt, Parquet or Arrow file, or a quoted pattern of such. All
machines have it under this name. The output directory must be new, and on a
disk that all of them share. Flags of bulk run that stages cannot do are
refused.`,
		Example: `  bulk stage plan 'in/*.csv' --workspace demo --out OUT`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(refuseUnstaged(cmd.Flags()), o.take(ui, cmd, args)); err != nil {
				return usage(err)
			}
			return plan(cmd.Context(), ui, &o, links, rows)
		},
	}
	cmd.Flags().StringSliceVar(&links, "links", nil, "`FILE` of bulk export, or a pattern: links that exist")
	cmd.Flags().Int64Var(&rows, "shard-rows", 100_000, "about `N` rows in each part of the mapping")
	o.flags(cmd, cmd.Flags())
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "shard-rows" && f.Name != "links" && !slices.Contains(planFlags, f.Name) {
			f.Hidden = slices.Contains(ignored, f.Name)
			f.Annotations = map[string][]string{"group": {notShown}}
		}
	})
	return cmd
}

// refuseUnstaged refuses flags that stages cannot do.
func refuseUnstaged(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if slices.Contains(f.Annotations["group"], notShown) {
			err = errors.Join(err, fmt.Errorf("--%s cannot be used in stages: it is for bulk run", f.Name))
		}
	})
	return err
}

func plan(ctx context.Context, ui *ui, o *runOptions, links []string, rows int64) error {
	if rows < 1 {
		return usage(fmt.Errorf("--shard-rows %d: it must be 1 or more", rows))
	}
	o.Logger, o.Version, o.Memory = ui.log, toolVersion(), 0
	o.scheme.warn(ui, o.CodeLength)
	job, err := pipeline.PlanStages(ctx, o.Config, links, rows)
	if err != nil {
		return err
	}
	half, err := parseMemory("", 0)
	if err != nil {
		return err
	}
	if need := job.SettleMemory(); need > float64(half) {
		ui.log.Warn(fmt.Sprintf("so many URLs will want a code that another one wants that settle needs about %.0f GiB of memory: plan with a larger --code-length, or settle on such a machine", need/(1<<30)), "code_length", o.CodeLength)
	}
	ui.note(fmt.Sprintf("planned %s of map and %s: do the tasks of %s, then those of %s", count(int64(job.MapTasks()), "task"), count(int64(job.Shards()), "shard"), job.TasksOf("map"), job.TasksOf("reduce")),
		"planned", "map_tasks", job.MapTasks(), "shards", job.Shards(), "map", job.TasksOf("map"), "reduce", job.TasksOf("reduce"))
	return nil
}

// A taskOptions are the flags of a task.
type taskOptions struct {
	scheme  schemeText
	workers int
	tmp     string
}

func (o *taskOptions) flags(f *pflag.FlagSet) {
	o.scheme.keyFlag(f)
	f.IntVar(&o.workers, "workers", 0, "use `N` CPU cores (default: all)")
	f.StringVar(&o.tmp, "tmp", "", "`DIR` for rows that do not fit in memory (default: TMPDIR)")
	group(f, "Task flags")
}

// taskMemory is what the heap of a task may have, in bytes; that of settle may have half of the machine's.
const taskMemory = 288 << 20

// open opens the plan in a directory.
func (o *taskOptions) open(out string) (*stage.Job, error) {
	debug.SetMemoryLimit(taskMemory)
	if o.workers == 0 {
		o.workers = runtime.GOMAXPROCS(0)
	}
	job, err := stage.Open(out, stage.Options{Version: toolVersion(), Workers: o.workers, TempDir: o.tmp, Secret: func(scheme string) (codegen.Secret, error) {
		o.scheme.name = scheme
		secret, err := o.scheme.secret()
		if err != nil {
			err = usage(fmt.Errorf("--scheme-key-file: %w", err))
		}
		return secret, err
	}})
	return job, stageError(err)
}

// stageError marks errors of wrong usage.
func stageError(err error) error {
	if stage.IsUsage(err) {
		return usage(err)
	}
	return err
}

// taskCommand returns the command of a stage of several tasks, whose arguments end with the number of a task,
// or of a stage that is one.
func taskCommand(ui *ui, name, short string, several bool, do func(j *stage.Job, ctx context.Context, n int) error) *cobra.Command {
	use, args := name+" OUT", usageArgs(cobra.ExactArgs(1), name+" takes the directory OUT")
	if several {
		use, args = use+" N", usageArgs(cobra.ExactArgs(2), name+" takes the directory OUT and the number of a task")
	}
	var o taskOptions
	cmd := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		n := 0
		if len(args) == 2 {
			var err error
			if n, err = strconv.Atoi(args[1]); err != nil {
				return usage(fmt.Errorf("%q is not the number of a task", args[1]))
			}
		}
		job, err := o.open(filepath.Clean(args[0]))
		if err != nil {
			return err
		}
		return stageError(do(job, cmd.Context(), n))
	}}
	o.flags(cmd.Flags())
	return cmd
}

func commitCommand(ui *ui) *cobra.Command {
	rejectsOK := false
	cmd := taskCommand(ui, "commit", "Write rejects, collisions and the manifest", false, func(j *stage.Job, ctx context.Context, _ int) error {
		run, err := pipeline.CommitStages(ctx, j)
		if run == nil {
			return err
		}
		a := account.OfDirectory(run.Out, run.Manifest, run.Digest, nil)
		a.Rewritten, a.RejectsFile, a.Amend = run.Rewritten, filepath.Join(run.Out, manifest.RejectsName), amend(run.Refused)
		if f := run.First; f != nil {
			a.Rejected = map[string]account.Example{f.Reason: exampleOfReject(&pipeline.PreviewRow{Source: manifest.Text(f.Source), Row: f.Row, Detail: f.Detail})}
		}
		if err == nil && a.Counts.Rejected > 0 && !rejectsOK {
			err = errRejected
		}
		if a.ExitCode = exitCode(err); run.Refused {
			a.Refused = err.Error()
		} else {
			a.Command = shellCommand([]string{"verify", run.Out})
		}
		ui.tellRun((&account.Commit{Run: a}).Account(), false)
		return err
	})
	cmd.Flags().BoolVar(&rejectsOK, "rejects-ok", false, "exit with 0 instead of 3 if rows are rejected")
	group(cmd.Flags(), "Task flags")
	return cmd
}
