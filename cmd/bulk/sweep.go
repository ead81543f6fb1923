package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

// defaultGrace is the --grace of sweep.
const defaultGrace = "24h"

// sweepOptions are the flags of sweep.
type sweepOptions struct {
	sink.SweepOptions
	store                storeOptions
	asOf, grace, atLeast string
	report               string // "": none; "-": stdout
	json                 bool
	skipped              []string // workspaces
}

func sweepCommand(ui *ui) *cobra.Command {
	o := sweepOptions{skipped: []string{}} // in JSON, not null
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Mark links that have ended as expired, and later delete them",
		Long: `A link has ended if its expiry has passed, or if it was used as often as it may
be. sweep does two things:
  mark    Links that have ended and are ACTIVE become EXPIRED.
  delete  Links that were marked EXPIRED or DELETED at least --grace ago are
          deleted, and their codes become free. Until then, a run that has the
          URL again revives the link with its code.
If another program has set one of these marks, --grace counts from the first
sweep that sees it. Links with any other status stay as they are.

One sweep works at a time. If another one is at work, sweep says so, does
nothing and exits with 0. A workspace in which a run is at work is skipped, with
a warning: the next sweep does it. If sweep is interrupted, run it again.

Links stay if something in the database refers to them. If a foreign key would
delete or change other rows with the links (ON DELETE CASCADE and such; in
SQLite, any foreign key to the links), sweep fails and changes nothing.

--report lists the links that were marked or deleted, as CSV. The file is
complete or not there: it gets its name at the end, and replaces a file of that
name. If sweep is interrupted, the file has what was done until then. If another
sweep is at work, no file is written.`,
		Example: `  bulk sweep --db sqlite:links.db
  bulk sweep --grace 30d --report swept.csv --db postgres://me@host/links`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "sweep takes flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.resolve(); err != nil {
				return usage(err)
			}
			return sweep(cmd.Context(), ui, &o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Workspace, "workspace", "w", "", "only the links of the workspace `ID` (default: all)")
	f.StringVar(&o.grace, "grace", defaultGrace, "delete links that were marked this `TIME` ago or before, such as 30d or 12h")
	f.StringVar(&o.atLeast, "at-least", "", "let no other sweep begin before this `TIME`, such as 10m, has passed since the beginning of this one")
	f.StringVar(&o.asOf, "as-of", "", "sweep as if it were this `TIME`: RFC 3339 or a date (default: now)")
	f.StringVar(&o.report, "report", "", "list the links in this `FILE`, which is replaced if it is there; - is standard output")
	f.BoolVar(&o.json, "json", false, "print the counts as one JSON object")
	o.store.flags(cmd)
	group(f, "Store flags")
	return cmd
}

// resolve turns the flags that are text into options.
func (o *sweepOptions) resolve() error {
	var problems flagErrors
	var err error
	o.AsOf, err = parseAsOf(o.asOf)
	problems.check("as-of", err)
	o.Grace, err = parseAge(o.grace)
	problems.check("grace", err)
	o.AtLeast, err = parseAge(cmp.Or(o.atLeast, "0s"))
	problems.check("at-least", err)
	if o.json && o.report == "-" {
		problems = append(problems, errors.New("--json and --report - both write to standard output: give --report a file"))
	}
	return errors.Join(problems...)
}

func sweep(ctx context.Context, ui *ui, o *sweepOptions) (err error) {
	store, err := o.store.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	signal.Ignore(syscall.SIGPIPE) // a sweep continues although nobody reads its log any more
	o.Busy = func(workspace, holder string) {
		o.skipped = append(o.skipped, workspace)
		const message = "workspace skipped, because a run is at work there"
		ui.tell(slog.LevelWarn, fmt.Sprintf("warning: %s: %s (%s)", message, workspace, holder), message, "workspace", workspace, "holder", holder)
	}
	_, fresh := os.Lstat(o.report)
	swept, err := o.sweep(ctx, ui, store)
	if err == nil && fresh == nil {
		ui.note("an earlier "+o.report+" was replaced", "an earlier report was replaced", "report", o.report)
	}
	done := swept.Marked+swept.Deleted > 0
	a := account.Sweep{AsOf: o.AsOf, Marked: swept.Marked, Deleted: swept.Deleted, Kept: swept.Kept, Busy: swept.Busy, Skipped: o.skipped, Failed: err != nil}
	if errors.Is(err, sink.ErrSweeping) {
		a.Other, a.Failed, err = err.Error(), false, nil
		ui.report(account.OtherSweep(a.Other))
	}
	if done || err == nil && a.Other == "" {
		ui.report(a.Account())
	}
	if err != nil || !o.json {
		return err
	}
	return printFacts(ui.stdout, a.Account())
}

// sweep sweeps and writes the report. Once a link was changed there is one, even if the sweep fails
// after that.
func (o *sweepOptions) sweep(ctx context.Context, ui *ui, store sink.Store) (swept sink.Sweeping, err error) {
	if o.report == "" {
		return store.Sweep(ctx, o.SweepOptions, nil)
	}
	unwritten := ui.writeTo(store, "report", o.report, true, func(w io.Writer) error {
		c := csv.NewWriter(w)
		c.Write([]string{"workspace_id", "short_code", "canonical_url", "status", "action"})
		swept, err = store.Sweep(ctx, o.SweepOptions, func(s sink.Swept) error {
			action := "marked"
			if s.Deleted {
				action = "deleted"
			}
			return c.Write([]string{s.Workspace, s.Code, s.Canonical, s.Status, action})
		})
		if err != nil && swept.Marked+swept.Deleted == 0 {
			return errors.New("there is nothing to report")
		}
		c.Flush()
		return c.Error()
	})
	return swept, cmp.Or(err, unwritten)
}
