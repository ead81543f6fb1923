package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strconv"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/diff"
	"github.com/spf13/cobra"
)

type diffOptions struct {
	diff.Config
	json, outcomes bool
	memory         string
}

func diffCommand(ui *ui) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two runs or two mappings",
		Long: `A and B are output directories of runs, or mapping files, of any format and
order. Each difference is a line with what A and B have. The last message is the
verdict: how many there are, or that there are none, with the SHA-256 and the
counts of both. --json ends with an object that says the same, with the verdict
"same" or "different", also if nothing differs:

  added, removed  only B, or only A, has the link
  remapped        the link (workspace and URL) has another code
  moved           the code belongs to another link of its workspace
  row_added       B has more rows of the link (row_removed: A has more)
  row_remapped    the row has another link or legacy code
  kind            the code has another kind (link or alias), or the URL another
                  link_code or link_salt
  parameter       the link has another expiry, use limit, type or owner
  reject          a row was rejected for another reason, or in one run only
  manifest        the two runs were made with different settings, or one has no
                  mapping
  file            a file was changed after its run: it does not have the SHA-256
                  that its manifest says
  outcome         the outcome changed (for example created -> existing), or the
                  change (drifted -> updated); only with --outcomes

What one run created exists in the next. So changed outcomes alone are counted,
but are no difference (exit code 0), except with --outcomes.

If both runs have a --legacy mode, a URL has a link for each of its legacy
codes. With --identity params or row a URL has several links, too. A link has
the parameters of the row that created or found it. An expiry that counts from
the time of the run (--expires-in, --temporary-ttl) is the same the next day. A
mapping file alone is compared without legacy codes and link rules.

Rows are matched by source and row number if the inputs are the same (then
there is no row_added or row_removed: such a row is a reject in one run).
Otherwise links are matched by workspace and URL, and rejects by content. A run
with more rejects than --max-rejects allows has no mapping: only manifest and
rejects are compared.

original_url, short_url and your own columns are not compared. To prove that two
runs agree in everything, use --outcomes, and compare the SHA-256 of their files
in manifest.json: diff has checked that the files have them. A mapping file
alone has no manifest, and does not say whether it was written with
--excel-safe: give directories instead.`,
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
	f.BoolVar(&o.outcomes, "outcomes", false, "also list outcomes that changed, as differences")
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
		ui.log.Warn("a run stored nothing and has no mapping: links are not compared", "run", path)
	}
	v := account.Diff{Found: map[string]int64{}}
	o.Compared = func(a, b diff.Side) { v.A, v.B = accountSide(a), accountSide(b) }
	err = diff.Runs(ctx, o.Config, func(d *diff.Difference) error {
		v.Found[string(d.Change)]++
		if d.Change == diff.OutcomeChanged && !o.outcomes {
			return nil
		}
		return print(d)
	})
	v.Differs = o.differs(v.Found)
	if o.json && (err == nil || errors.Is(err, diff.ErrChanged)) {
		err = errors.Join(err, printFacts(w, v.Account()))
	}
	c.Flush() // w keeps its error
	if err = errors.Join(err, w.Flush()); errors.Is(err, fs.ErrNotExist) || errors.Is(err, diff.ErrNoMapping) {
		return usage(err)
	}
	if errors.Is(err, diff.ErrChanged) {
		ui.log.Warn(err.Error())
		err = nil
	}
	if err != nil {
		return err
	}
	ui.report(v.Account())
	if v.Differs {
		return errDiffers
	}
	return nil
}

// differs reports whether differences count: outcomes do only if they are asked for.
func (o *diffOptions) differs(found map[string]int64) bool {
	return len(found) > 1 || len(found) == 1 && (found[string(diff.OutcomeChanged)] == 0 || o.outcomes)
}

// accountSide returns a side for the account.
func accountSide(s diff.Side) account.Side {
	return account.Side{Path: string(s.Path), SHA256: s.SHA256, Counts: s.Counts, Full: s}
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
