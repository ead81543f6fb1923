package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/spf13/cobra"
)

// runOptions are the flags of bulk run: the configuration, and those that are no field of
// it, or become one in settle.
type runOptions struct {
	pipeline.Config

	store    storeOptions
	profiles profiles

	header, delimiter, quote, asOf, maxRejects, memory string
}

func runCommand(ui *ui) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run INPUT… --workspace ID [flags]",
		Short: "Shorten every URL of the inputs, store the links, write the mapping",
		Long: `Shorten every URL of the inputs, store the links, write the mapping.

An INPUT is a CSV, TSV, Parquet, Arrow or .txt file (one URL a line), a rejects.csv
of an earlier run, a quoted pattern such as 'links-*.csv', or - for standard input;
gzip and zstd are recognised. The output folder holds mapping, rejects.csv,
collisions.csv, manifest.json and timings.json.

The same command of the same user finishes a run that was interrupted or killed. Until
then the output folder of one that was killed is refused to a run of other inputs,
options or version. With --new-run it is discarded and a new run starts, to which the
links that the old one stored count as existing; bulk undo, before that, takes those
back.

` + exitCodes,
		Example: `  bulk run links.csv --workspace demo
  bulk run a.csv b.parquet c.arrow d.txt.gz - --workspace-column team --workspace rest --out out/ --db sqlite:links.db`,
		Args: usageArgs(cobra.MinimumNArgs(1), "name at least one INPUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Inputs = args
			o.Source.Stdin = cmd.InOrStdin()
			if err := errors.Join(inRange(cmd.Flags()), o.settle()); err != nil {
				return usage(err)
			}
			return run(cmd.Context(), ui, &o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Workspace, "workspace", "", "workspace of all rows, or of those whose cell is blank")
	f.StringVar(&o.Source.WorkspaceColumn, "workspace-column", "", "column of the workspace, by name or number")
	f.StringVar(&o.Source.URLColumn, "url-column", "", "column of the URL, by name or number (default: by its usual names)")
	o.store.flags(cmd)
	f.StringVar(&o.Out, "out", "", "output folder (default: links.bulk in the working folder, after the first input, links.csv)")
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace the run in the output folder, even by one with too many rejects")
	f.BoolVar(&o.NewRun, "new-run", false, "start over rather than finish an interrupted run")
	f.BoolVar(&o.DryRun, "dry-run", false, "write the reports, but nothing to the store")
	f.StringVar((*string)(&o.ReportFormat), "report-format", string(report.CSV), "mapping as csv, parquet or arrow")
	f.StringVar((*string)(&o.ReportOrder), "report-order", string(report.SortOrder), "rows of the mapping in the order of the sort (workspace, code of salt 0) or of the input (source by name, row)")
	f.StringVar(&o.BaseURL, "base-url", "", "base of the short_url column, such as https://sho.rt")
	f.BoolVar(&o.NoCarry, "no-carry", false, "leave the other columns of the input out of the mapping (they still decide which row of a URL is the link)")
	f.BoolVar(&o.ExcelSafe, "excel-safe", false, "put ' before cells that a spreadsheet would run as a formula")
	f.StringVar(&o.maxRejects, "max-rejects", "", "store nothing if more rows (N) or more of them (P%) are rejected")
	f.StringVar(&o.asOf, "as-of", "", "time recorded for the links, RFC 3339 or a date (default: now)")
	f.Int64Var(&o.Limit, "limit", 0, "read only the first N records; inputs are read in the order of their names")
	f.IntVar(&o.CodeLength, "code-length", codegen.DefaultLength, "characters of a code, 1 to 24")
	f.IntVar(&o.MaxRetries, "max-retries", codegen.DefaultRetries, "highest salt tried when codes are taken")
	f.BoolVar(&o.Profile.KeepUserinfo, "keep-userinfo", false, "keep user:password@ instead of rejecting it (profile linkforge-1+userinfo)")
	f.IntVar(&o.Profile.MaxLength, "max-url-length", canon.MaxLength, "longest canonical URL in bytes")
	f.StringVar(&o.delimiter, "delimiter", "", `CSV delimiter, one character or "tab" (default: detected)`)
	f.StringVar(&o.quote, "quote", `"`, "CSV quote, one character")
	f.StringVar(&o.header, "header", "auto", "CSV header: yes, no or auto")
	f.IntVar(&o.Source.MaxField, "max-field", source.DefaultMaxField, "longest field of CSV and text in bytes, 1 to 1073741824 (1GiB)")
	f.IntVar(&o.Workers, "workers", 0, "goroutines that hash and format (default: one a core)")
	f.StringVar(&o.memory, "memory", "", "memory that the run may use, such as 512MiB (default: half of the machine's)")
	f.StringVar(&o.TempDir, "tmp", "", "folder for what does not fit in memory (default: TMPDIR)")
	f.BoolVar(&o.NoWait, "no-wait", false, "fail if another run holds the workspace (in SQLite, the file) or the output folder, rather than wait")
	o.profiles.flags(f)
	offer(cmd, "report-format", "csv", "parquet", "arrow")
	offer(cmd, "report-order", "sort", "input")
	offer(cmd, "header", "auto", "yes", "no")
	return cmd
}

// outsideHeap is what of --memory the runtime does not see: the program itself, and the
// cache and buffers of SQLite.
const outsideHeap = 56 << 20

// run does bulk run, with options that are settled.
func run(ctx context.Context, ui *ui, o *runOptions) error {
	store, err := o.store.open(ctx, ui.log)
	if err != nil {
		return err
	}
	o.Store, o.StoreName, o.Version, o.RetryFor = store, o.store.name(), toolVersion(), o.store.postgres.RetryFor
	o.Logger, o.Status = ui.log, new(pipeline.Status)
	o.DiskBound = sync.OnceFunc(spareThreads)
	debug.SetMemoryLimit(o.Memory - outsideHeap)
	stop, err := o.profiles.start()
	if err != nil {
		return errors.Join(err, store.Close())
	}
	signal.Ignore(syscall.SIGPIPE) // a log whose reader is gone is no reason to end
	stopWatching := ui.watch(o.Status)
	result, err := pipeline.Run(ctx, o.Config)
	stopWatching()
	err = errors.Join(err, stop(), store.Close())
	ui.summary(o, result, err)
	if err == nil && result.Counts.Rejected > 0 {
		return errRejected
	}
	return err
}

// settle turns the flags that are text into configuration.
func (o *runOptions) settle() (err error) {
	var problems []error
	check := func(flag string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	o.Source.Delimiter, err = character(o.delimiter)
	check("delimiter", err)
	o.Source.Quote, err = character(o.quote)
	check("quote", err)
	o.Source.Header, err = parseHeader(o.header)
	check("header", err)
	o.AsOf, err = parseTime(o.asOf)
	check("as-of", err)
	if o.maxRejects != "" {
		o.Config.MaxRejects, err = manifest.ParseMaxRejects(o.maxRejects)
		check("max-rejects", err)
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = pipeline.NoRetries
	}
	o.Memory, err = parseMemory(o.memory, o.LeastMemory())
	check("memory", err)
	if o.Out == "" {
		o.Out, err = defaultOut(o.Inputs[0])
		problems = append(problems, err)
	}
	problems = append(problems, o.store.settle()) // which names the store for the next check
	problems = append(problems, o.profiles.check(o.Inputs, o.store.db))
	rest := o.Config
	rest.Out = cmp.Or(rest.Out, ".") // why there is none is among the problems
	return errors.Join(append(problems, rest.Validate())...)
}

// character reads a flag that is one byte; "": 0.
func character(s string) (byte, error) {
	switch s {
	case "":
		return 0, nil
	case "tab", `\t`:
		return '\t', nil
	}
	if len(s) != 1 {
		return 0, fmt.Errorf("%q is not one ASCII character", s)
	}
	return s[0], nil
}

func parseHeader(s string) (source.Header, error) {
	switch s {
	case "auto":
		return source.HeaderAuto, nil
	case "yes":
		return source.HeaderYes, nil
	case "no":
		return source.HeaderNo, nil
	}
	return 0, fmt.Errorf("%q is not yes, no or auto", s)
}

func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			if t.IsZero() { // which is now
				return t, fmt.Errorf("%q is out of range", s)
			}
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither like 2006-01-02T15:04:05Z nor like 2006-01-02", s)
}

// defaultOut names the output folder, in the working folder, after the first input.
func defaultOut(input string) (string, error) {
	if input == "-" {
		return "stdin.bulk", nil
	}
	names, err := source.Expand([]string{input}, nil)
	if err != nil {
		return "", err
	}
	name := source.TrimCompression(filepath.Base(names[0]))
	return strings.TrimSuffix(name, filepath.Ext(name)) + ".bulk", nil
}
