package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"strconv"
	"strings"
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
		Short: "Delete the links that a run created",
		Long: `Links stay if somebody changed them since, or if something in the database
refers to them; they are listed as CSV. The codes of deleted links become free.
Links that had to take a different code because of them keep theirs.

Nothing is deleted if a foreign key would delete or change other rows with the
links (ON DELETE CASCADE and such; in SQLite, any foreign key to the links), or
if foreign keys are switched off.

Later runs may have used links of this run, and their mappings then list links
that no longer exist. A warning says which runs these may be. Run their inputs
again to recreate the links.

If undo is interrupted, run it again.`,
		Example: `  bulk runs --db sqlite:links.db
  bulk undo 3 --db sqlite:links.db`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.ExactArgs(1), "give one RUN_ID; bulk runs lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 32)
			if err != nil || id < 1 {
				return usage(fmt.Errorf("%q is not the number of a run; bulk runs lists them", args[0]))
			}
			return undo(cmd.Context(), ui, &o, lock, int32(id))
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&lock.NoWait, "no-wait", false, "fail, instead of waiting, if another run is at work")
	group(cmd.Flags(), "Store flags")
	return cmd
}

func undo(ctx context.Context, ui *ui, o *storeOptions, lock sink.LockOptions, id int32) (err error) {
	store, err := o.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	lock.Wait = func(holder string) { ui.log.Info("waiting for another run", "holder", holder) }
	signal.Ignore(syscall.SIGPIPE) // a reader that ends early, such as head, shall be a write error
	w := csv.NewWriter(ui.stdout)
	header := sync.OnceFunc(func() { w.Write([]string{"workspace_id", "short_code", "updated_at"}) })
	done, err := store.Undo(ctx, id, lock, func(k sink.Kept) error {
		header()
		w.Write([]string{k.Workspace, k.Code, stamp(k.Updated)}) // an error is reported below: the links are deleted already
		return nil
	})
	undone := err == nil
	if undone {
		header()
	}
	w.Flush()
	err = errors.Join(err, w.Error())
	counts := fmt.Sprintf("%s deleted, %s kept", count(done.Deleted, "link"), thousands(done.Kept))
	switch {
	case undone: // even if its output was lost
		ui.tell(slog.LevelInfo, fmt.Sprintf("run %d undone: %s", id, counts), "run undone", "run", id, "deleted", done.Deleted, "kept", done.Kept)
		if done.Deleted > 0 {
			err = errors.Join(err, warnOfLater(ctx, ui, store, id))
		}
	case done.Deleted > 0:
		ui.tell(slog.LevelWarn, fmt.Sprintf("run %d undone in part: %s; undo it again", id, counts), "run undone in part: undo it again", "run", id, "deleted", done.Deleted, "kept", done.Kept)
	}
	return err
}

// warnOfLater warns of runs that may have used links of an undone run.
func warnOfLater(ctx context.Context, ui *ui, store sink.Store, undone int32) error {
	runs, err := store.Runs(ctx)
	var later []string
	existing := int64(0)
	for _, r := range runs {
		if r.ID > undone && (r.State == sink.Loaded || r.State == sink.Finished) && r.Counts.Existing > 0 {
			later = append(later, strconv.Itoa(int(r.ID)))
			existing += r.Counts.Existing
		}
	}
	if len(later) > 0 {
		noun, its := "run", "its"
		if len(later) > 1 {
			noun, its = "runs", "their"
		}
		ui.tell(slog.LevelWarn, fmt.Sprintf("warning: %s %s used %s. Some may be deleted now. Run %s inputs again to create them",
			noun, strings.Join(later, ", "), count(existing, "existing link"), its),
			"later runs used existing links: some may be deleted now; run the inputs again to create them", "runs", strings.Join(later, ","), "existing", existing)
	}
	return err
}
