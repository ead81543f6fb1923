package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/linkforge/bulk/pipeline/diff"
	"github.com/spf13/cobra"
)

type diffOptions struct {
	diff.Config
	json   bool
	memory string
}

func diffCommand(ui *ui) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two runs, or two mappings, whatever their format and order",
		Long: `Compare two runs, or two mappings, whatever their format and order. A and B are
output folders of runs, or mapping files. Where nothing differs nothing is
printed; otherwise each difference is a line, with what A and B have, and stderr
tells how many of each kind there are:

  added, removed  a link that only B, or only A, has
  remapped        a link (workspace and URL) that has another code
  moved           a code that belongs to another URL of its workspace
  outcome         a row (over the same inputs) or link was created, existing or
                  duplicate, and is not any more
  reject          a row was rejected for another reason, or on one side only;
                  found by source and row over the same inputs, else by content
  manifest        profile, scheme or an option that can change links, or that
                  only one of the runs has a mapping

A run with more rejects than --max-rejects allows has no mapping. It can be
compared with another run, but only manifests and rejects are.

Of links, workspace, URL, code and outcome are compared, not original_url,
short_url and carried cells: whether two files are the same their digests tell.
Where the digests in both manifests agree, the files are not read: bulk verify
tells whether they are what their manifest says. A mapping file does not tell
whether it was written with --excel-safe: compare the folders of such runs.

` + exitCodes,
		Example: `  bulk diff monday.bulk tuesday.bulk
  bulk diff old/mapping.csv new/mapping.parquet --json`,
		Args: usageArgs(cobra.ExactArgs(2), "name two runs or mappings, A and B"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.A, o.B = args[0], args[1]
			return runDiff(cmd.Context(), ui, &o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.json, "json", false, "print JSON lines rather than CSV")
	f.IntVar(&o.Workers, "workers", 0, "goroutines that sort (default: one a core)")
	f.StringVar(&o.memory, "memory", "", fmt.Sprintf("memory to use, %dMiB or more (default: half of the machine's)", diff.LeastMemory>>20))
	f.StringVar(&o.TempDir, "tmp", "", "folder for what does not fit in memory (default: TMPDIR)")
	return cmd
}

// runDiff does bulk diff.
func runDiff(ctx context.Context, ui *ui, o *diffOptions) (err error) {
	if o.Memory, err = parseMemory(o.memory, diff.LeastMemory); err != nil {
		return usage(fmt.Errorf("--memory: %w", err))
	}
	if o.Memory < diff.LeastMemory {
		return usage(fmt.Errorf("--memory: %d MiB is too little: diff takes %d MiB", o.Memory>>20, diff.LeastMemory>>20))
	}
	debug.SetMemoryLimit(o.Memory / 4 * 3) // the batches of Arrow come and go in pieces of 32 MiB
	w := bufio.NewWriterSize(ui.stdout, 1<<16)
	c := csv.NewWriter(w)
	print := printCSV(c)
	if o.json {
		j := newJSON(w)
		print = func(d *diff.Difference) error { return j.Encode(d) }
	}
	o.NoMapping = func(path string) {
		ui.log.Warn("the run had too many rejects and has no mapping: links are not compared", "run", path)
	}
	found := map[diff.Change]int{}
	err = diff.Runs(ctx, o.Config, func(d *diff.Difference) error {
		found[d.Change]++
		return print(d)
	})
	c.Flush() // w keeps its error
	if err = errors.Join(err, w.Flush()); errors.Is(err, fs.ErrNotExist) || errors.Is(err, diff.ErrNoMapping) {
		return usage(err)
	}
	if err != nil || len(found) == 0 {
		return err
	}
	var counts []any
	for _, change := range slices.Sorted(maps.Keys(found)) {
		counts = append(counts, string(change), found[change])
	}
	ui.log.Info("they differ", counts...)
	return errDiffers
}

// printCSV returns a function that writes a line, and before the first one the
// header.
func printCSV(c *csv.Writer) func(*diff.Difference) error {
	header := []string{"change", "workspace_id", "canonical_url", "short_code", "source", "row", "field", "a", "b"}
	return func(d *diff.Difference) error {
		row := ""
		if d.Row != 0 {
			row = strconv.FormatInt(d.Row, 10)
		}
		if header != nil {
			c.Write(header)
			header = nil
		}
		return c.Write([]string{string(d.Change), string(d.Workspace), string(d.Canonical), string(d.Code), string(d.Source), row,
			d.Field, string(d.A), string(d.B)})
	}
}
