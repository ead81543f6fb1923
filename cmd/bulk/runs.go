package main

import (
	"context"
	"encoding/csv"
	"errors"
	"strconv"
	"time"

	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

func runsCommand(ui *ui) *cobra.Command {
	var o storeOptions
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the runs of a store as CSV",
		Long: `The oldest run comes first. The states of a run are:
  loading   links are being stored
  loaded    all links are stored, the reports are not yet in place
  finished  done
  undone    its links were deleted by bulk undo`,
		Example:           `  bulk runs --db sqlite:links.db`,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              usageArgs(cobra.NoArgs, "runs takes flags only"),
		RunE:              func(cmd *cobra.Command, _ []string) error { return listRuns(cmd.Context(), ui, &o) },
	}
	o.flags(cmd)
	group(cmd.Flags(), "Store flags")
	return cmd
}

func listRuns(ctx context.Context, ui *ui, o *storeOptions) (err error) {
	store, err := o.open(ctx, ui.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	runs, err := store.Runs(ctx)
	if err != nil && !(errors.Is(err, sink.ErrMissing) && o.unnamed) {
		return err
	}
	w := csv.NewWriter(ui.stdout)
	w.Write([]string{"run_id", "state", "as_of", "started", "finished", "read", "created", "existing", "duplicate", "rejected", "manifest_sha256", "fingerprint"})
	for _, r := range runs {
		line := []string{strconv.Itoa(int(r.ID)), string(r.State), stamp(r.AsOf), stamp(r.Started), stamp(r.Finished)}
		for _, n := range []int64{r.Counts.Read, r.Counts.Created, r.Counts.Existing, r.Counts.Duplicate, r.Counts.Rejected} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		w.Write(append(line, r.ManifestSHA256, r.Fingerprint))
	}
	w.Flush()
	return w.Error()
}

// stamp writes a time for CSV; blank if it is zero.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
