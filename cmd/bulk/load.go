package main

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/account"
	"github.com/spf13/cobra"
)

// loadOptions are the flags of load.
type loadOptions struct {
	pipeline.LoadConfig
	store storeOptions
}

func loadCommand(ui *ui) *cobra.Command {
	var o loadOptions
	cmd := &cobra.Command{
		Use:   "load DIR",
		Short: "Store the links of a mapping in parts",
		Long: `DIR is the output directory of bulk stage commit. Its links are stored as those
of one run, as bulk run would store them. A workspace whose links can end, or of
which some were deleted, is refused: a run in tasks knows nothing of that.

First the files are compared with their digests, and each link with the store:
an existing link must be there with its code, and of a new one code and URL must
be free. If a link is not so, nothing is stored and the exit code is 1. Stdout
has the first ten of such links as CSV, and stderr says how many there are:
  code_taken  a new link: another URL has its code, which is found
  url_taken   a new link: its URL has a link, whose code is found
  link_gone   an existing link: its URL has none
  other_code  an existing link: its URL has the code that is found
If so, export the links again, and begin with a new plan.

If load is interrupted, the run stays unfinished, and the same command resumes
it. So it is if another program takes a code meanwhile: remove what is in the
way, then resume it. bulk undo takes it back. A load that is finished is not
done again.`,
		Example: `  bulk load OUT --db postgres://localhost/links
  bulk verify OUT --db postgres://localhost/links`,
		Args: usageArgs(cobra.ExactArgs(1), "give one DIR, the output directory of bulk stage commit"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = filepath.Clean(args[0])
			if err := errors.Join(inRange(cmd.Flags()), o.store.resolve()); err != nil {
				return usage(err)
			}
			return load(cmd.Context(), ui, &o)
		},
	}
	f := cmd.Flags()
	o.store.flags(cmd)
	f.BoolVar(&o.NoWait, "no-wait", false, "fail, instead of waiting, if another run is at work")
	group(f, "Store flags")
	f.IntVar(&o.Workers, "workers", 0, "use `N` CPU cores (default: all)")
	group(f, "Resource flags")
	return cmd
}

func load(ctx context.Context, ui *ui, o *loadOptions) (err error) {
	signal.Ignore(syscall.SIGPIPE) // a load continues although nobody reads its log any more
	began := time.Now()
	o.Logger, o.Status, o.Outage = ui.log, new(pipeline.Status), ui.outages()
	o.store.postgres.Outage = o.Outage
	if o.Store, err = o.store.open(ctx, ui.log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Store.Close()) }()
	o.RetryFor = o.store.postgres.RetryFor
	stop := ui.watch(o.Status)
	r, err := pipeline.Load(ctx, o.LoadConfig)
	stop()
	if conflict, ok := errors.AsType[*pipeline.LoadConflictError](err); ok {
		return errors.Join(err, writeConflicts(ui.stdout, conflict))
	}
	if err != nil {
		return err
	}
	run := account.OfDirectory(o.Dir, r.Manifest, r.ManifestSHA256, nil)
	run.ID, run.Store, run.Took, run.Stored = r.RunID, o.store.name(), time.Since(began), true
	run.Resumed, run.Repeated, run.NewStore = r.Resumed, r.Repeated, r.NewStore
	run.Workspaces, run.NewWorkspaces = r.Workspaces, r.NewWorkspaces
	run.Command = checkCommand(o.Dir, nil, o.store.name(), [][2]string{{"schema", o.store.postgres.Schema}, {"table", o.store.postgres.Table}})
	ui.tellRun((&account.Load{Run: run}).Account(), false)
	return nil
}

// writeConflicts writes the links that were found not to be as the mapping says.
func writeConflicts(out io.Writer, e *pipeline.LoadConflictError) error {
	w := csv.NewWriter(out)
	w.Write([]string{"kind", "workspace_id", "short_code", "canonical_url", "found"})
	for _, c := range e.First {
		w.Write([]string{string(c.Kind), c.Workspace, c.Code, c.Canonical, c.Found})
	}
	w.Flush()
	return w.Error()
}
