package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

func undoCommand(ui *ui) *cobra.Command {
	var o storeOptions
	var lock sink.LockOptions
	cmd := &cobra.Command{
		Use:   "undo RUN_ID",
		Short: "Take back the links that a run created",
		Long: `Take back the links that a run created. Links that somebody changed since, or that
something in the database refers to, stay, and are listed as CSV. Codes that other runs
could not have, because this run had them, are free again; links that were given another
code for that keep it. Where a foreign key would delete or change rows with the links
(ON DELETE CASCADE and such; in SQLite, any foreign key to them), or is switched off,
nothing is done.

Later runs may have counted links of this one as existing; their mappings then name links
that are gone, as bulk verify --db tells. A warning says which runs these may be; running
their inputs again makes the links anew.

One that is interrupted leaves an unfinished run, "loading" in bulk runs: undo it again,
or have its command finish it.

` + exitCodes,
		Example: `  bulk runs --db sqlite:links.db
  bulk undo 3 --db sqlite:links.db`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.ExactArgs(1), "name one RUN_ID; bulk runs lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 32)
			if err != nil || id < 1 {
				return usage(fmt.Errorf("%q is not the number of a run; bulk runs lists them", args[0]))
			}
			return undo(cmd.Context(), ui, &o, lock, int32(id))
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&lock.NoWait, "no-wait", false, "fail if another run is at work, rather than wait")
	return cmd
}

func undo(ctx context.Context, ui *ui, o *storeOptions, lock sink.LockOptions, id int32) (err error) {
	store, err := o.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	lock.Wait = func(holder string) { ui.log.Info("waiting for another run", "holder", holder) }
	signal.Ignore(syscall.SIGPIPE) // a reader that goes, as head does, is to be an error of the writing
	w := csv.NewWriter(ui.stdout)
	header := sync.OnceFunc(func() { w.Write([]string{"workspace_id", "short_code", "updated_at"}) })
	done, err := store.Undo(ctx, id, lock, func(k sink.Kept) error {
		header()
		w.Write([]string{k.Workspace, k.Code, stamp(k.Updated)}) // that it fails is told below: the links are gone
		return nil
	})
	taken := err == nil
	if taken {
		header()
	}
	w.Flush()
	err = errors.Join(err, w.Error())
	switch {
	case taken: // be its output lost
		ui.log.Info("run taken back", "run", id, "deleted", done.Deleted, "kept", done.Kept)
		if done.Deleted > 0 {
			err = errors.Join(err, warnOfLater(ctx, ui, store, id))
		}
	case done.Deleted > 0:
		ui.log.Warn("run taken back in part", "run", id, "deleted", done.Deleted, "kept", done.Kept)
	}
	return err
}

// warnOfLater tells of runs that may have counted links of an undone run as existing.
func warnOfLater(ctx context.Context, ui *ui, store sink.Store, undone int32) error {
	runs, err := store.Runs(ctx)
	var later []int32
	existing := int64(0)
	for _, r := range runs {
		if r.ID > undone && (r.State == sink.Loaded || r.State == sink.Finished) && r.Counts.Existing > 0 {
			later = append(later, r.ID)
			existing += r.Counts.Existing
		}
	}
	if len(later) > 0 {
		ui.log.Warn("later runs counted existing links: if links of this run were among them, their mappings name links that are gone",
			"runs", later, "existing", existing)
	}
	return err
}
