package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

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
		Short: "Compare two runs or two mappings",
		Long: `A and B are output directories of runs, or mapping files, of any format and
order. Files with the same SHA-256 in both manifests are not read: to find
changed files, run bulk verify.

If A and B agree, nothing is printed. Otherwise each difference is a line with
what A and B have, and stderr says how many there are:

  added, removed  only B, or only A, has the link
  remapped        the link (workspace and URL) has another code
  moved           the code belongs to another URL of its workspace
  outcome         the outcome changed (for example created -> existing)
  reject          a row was rejected for another reason, or in one run only
  manifest        the two runs were made with different settings, or one has no
                  mapping

Rows are matched by source and row number if the inputs are the same; otherwise
links are matched by workspace and URL, and rejects by content. A run with more
rejects than --max-rejects allows has no mapping: only manifest and rejects are
compared.

original_url, short_url and your own columns are not compared: to see whether
two files are identical, compare their SHA-256. A mapping file does not say
whether it was written with --excel-safe: to compare such runs, give their
directories.`,
		Example: `  bulk diff monday.bulk tuesday.bulk
  bulk diff old/mapping.csv new/mapping.parquet --json`,
		Args: usageArgs(cobra.ExactArgs(2), "give two runs or mappings, A and B"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.A, o.B = args[0], args[1]
			return runDiff(cmd.Context(), ui, &o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print JSON lines instead of CSV")
	group(f, "Common flags")
	f.IntVar(&o.Workers, "workers", 0, "use `N` CPU cores (default: all)")
	f.StringVar(&o.memory, "memory", "", fmt.Sprintf("memory `SIZE` to use, %dMiB or more (default: half of the machine's)", diff.LeastMemory>>20))
	f.StringVar(&o.TempDir, "tmp", "", "`DIR` for what does not fit in memory (default: TMPDIR)")
	group(f, "Resource flags")
	return cmd
}

// runDiff runs bulk diff.
func runDiff(ctx context.Context, ui *ui, o *diffOptions) (err error) {
	if o.Memory, err = parseMemory(o.memory, diff.LeastMemory); err != nil {
		return usage(err)
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
		ui.log.Warn("a run had too many rejects and has no mapping: links are not compared", "run", path)
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
	words := map[diff.Change][2]string{
		"added": {"link", "added"}, "removed": {"link", "removed"}, "remapped": {"link", "remapped"}, "moved": {"code", "moved"},
		"outcome": {"outcome", "changed"}, "reject": {"reject", "changed"}, "manifest": {"setting", "changed"},
	}
	var attrs []any
	var counts []string
	for _, change := range slices.Sorted(maps.Keys(found)) {
		attrs = append(attrs, string(change), found[change])
		counts = append(counts, count(int64(found[change]), words[change][0])+" "+words[change][1])
	}
	ui.tell(slog.LevelInfo, "differences: "+strings.Join(counts, ", "), "there are differences", attrs...)
	return errDiffers
}

// printCSV returns a function that writes a difference as a line, after the header.
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
