package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

// undoOptions are the flags of undo.
type undoOptions struct {
	store       storeOptions
	lock        sink.LockOptions
	yes, dryRun bool
}

func undoCommand(ui *ui) *cobra.Command {
	var o undoOptions
	cmd := &cobra.Command{
		Use:   "undo RUN_ID",
		Short: "Delete the links that a run created",
		Long: `Links stay if somebody changed them since, or if something in the database
refers to them; they are listed as CSV. The codes of deleted links become free.
Links that had to take a different code because of them keep theirs.

With link rules a run may also change links of earlier runs. Undo cannot reverse
these changes, because the store does not keep what a link was before. It lists
such links, too; the column change says what the run did: updated, claimed or
revived.

Aliases are links, too: they are deleted and counted with the links of their
run. Aliases that other runs made stay, even if the link of their URL is
deleted; bulk verify --db then lists them (store_alias). It does not where link
rules or bulk delete were used: there the link may have been swept.

Nothing is deleted if a foreign key would delete or change other rows with the
links (ON DELETE CASCADE and such; in SQLite, any foreign key to the links), or
if foreign keys are switched off.

Later runs may have used links of this run, and their mappings then list links
that no longer exist. A warning says which runs these may be. Run their inputs
again to recreate the links.

On a terminal, undo shows the run and asks first. Where standard input or
standard error is no terminal it needs --yes. If undo is interrupted, run it
again.`,
		Example: `  bulk runs --db sqlite:links.db
  bulk undo 3 --db sqlite:links.db`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.ExactArgs(1), "give one RUN_ID; bulk runs lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := runID(args[0])
			if err != nil {
				return err
			}
			return undo(cmd.Context(), ui, &o, id, cmd.InOrStdin())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be deleted, and delete nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	o.store.flags(cmd)
	f.BoolVar(&o.lock.NoWait, "no-wait", false, "fail, instead of waiting, if another run is at work")
	group(f, "Store flags")
	return cmd
}

func undo(ctx context.Context, ui *ui, o *undoOptions, id int32, stdin io.Reader) (err error) {
	store, err := o.store.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if !o.yes || o.dryRun {
		if yes, err := o.confirm(ctx, ui, store, id, stdin); err != nil || !yes {
			return err
		}
	}
	o.lock.Wait = func(holder string) { ui.log.Info("waiting for another run", "holder", holder) }
	signal.Ignore(syscall.SIGPIPE) // a reader that ends early, such as head, shall be a write error
	w := csv.NewWriter(ui.stdout)
	header := sync.OnceFunc(func() { w.Write([]string{"workspace_id", "short_code", "updated_at", "change"}) })
	done, err := store.Undo(ctx, id, o.lock, func(k sink.Kept) error {
		header()
		w.Write([]string{k.Workspace, k.Code, stamp(k.Updated), k.Change}) // an error is reported below: the links are deleted already
		return nil
	})
	undone := err == nil
	if undone {
		header()
	}
	w.Flush()
	err = errors.Join(err, w.Error())
	a := account.Undo{Run: id, Deleted: done.Deleted, Kept: done.Kept, Changed: done.Changed, Before: done.Was == sink.Undone, Failed: !undone}
	if undone || done.Deleted > 0 { // even if its output was lost
		ui.report(a.Account())
	}
	if undone && done.Deleted > 0 {
		err = errors.Join(err, warnOfLater(ctx, ui, store, id))
	}
	return err
}

// confirm shows what an undo would do, and asks whether it shall.
func (o *undoOptions) confirm(ctx context.Context, ui *ui, store sink.Store, id int32, stdin io.Reader) (bool, error) {
	preview, err := previewUndo(ctx, ui, store, id)
	if err != nil || o.dryRun {
		return false, err
	}
	if !ui.asks(stdin) {
		return false, needsYes(fmt.Sprintf("undo would delete %s of run %d", count(preview.Deleted, "link"), id))
	}
	if preview.Was == sink.Undone && preview.Deleted == 0 {
		return true, nil
	}
	yes, err := ui.ask(ctx, stdin, fmt.Sprintf("Delete %s of run %d?", count(preview.Deleted, "link"), id))
	if err == nil && !yes {
		ui.tell(slog.LevelInfo, "nothing was deleted", "nothing was deleted", "run", id)
	}
	return yes, err
}

// previewUndo shows a run and what an undo would do.
func previewUndo(ctx context.Context, ui *ui, store sink.Store, id int32) (sink.Undoing, error) {
	preview, err := store.PreviewUndo(ctx, id)
	if err != nil {
		return preview, err
	}
	runs, err := store.Runs(ctx)
	if err != nil {
		return preview, err
	}
	r := preview.Run
	a := account.UndoPreview{Run: id, State: string(r.State), Started: r.Started, Workspaces: r.Workspaces, Inputs: r.Inputs, Out: r.Out,
		Deleted: preview.Deleted, Kept: preview.Kept, Changed: preview.Changed, Orphans: preview.Orphans}
	a.Later, a.Existing = laterRuns(runs, id)
	ui.report(a.Account())
	return preview, nil
}

// asks reports whether a question can be asked: both sides of it are a terminal.
func (u *ui) asks(stdin io.Reader) bool { return isTerminal(stdin) && isTerminal(u.stderr) }

// needsYes is the error of a command that cannot ask, and so does nothing of what it would do.
func needsYes(would string) error {
	return usage(errors.New(would + ". Nothing was done: where standard input or standard error is no terminal, give --yes"))
}

// ask asks a question on the terminal. Only y and yes are a yes.
func (u *ui) ask(ctx context.Context, stdin io.Reader, question string) (bool, error) {
	fmt.Fprintf(u.stderr, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(stdin).ReadString('\n')
		if err != nil { // such as ^D: the cursor is still behind the question
			fmt.Fprintln(u.stderr)
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		return a == "y" || a == "yes", nil
	case <-ctx.Done():
		fmt.Fprintln(u.stderr)
		return false, context.Cause(ctx)
	}
}

// laterRuns are the numbers of later runs that may have used links of a run, and how many
// existing links they used together.
func laterRuns(runs []sink.Run, id int32) (later []string, existing int64) {
	for _, r := range runs {
		if r.ID > id && (r.State == sink.Loaded || r.State == sink.Finished) && r.Counts.Existing > 0 {
			later = append(later, strconv.Itoa(int(r.ID)))
			existing += r.Counts.Existing
		}
	}
	return later, existing
}

// warnOfLater warns of runs that may have used links of an undone run.
func warnOfLater(ctx context.Context, ui *ui, store sink.Store, undone int32) error {
	runs, err := store.Runs(ctx)
	later, existing := laterRuns(runs, undone)
	if len(later) > 0 {
		ui.report(account.LaterRuns(later, existing))
	}
	return err
}
