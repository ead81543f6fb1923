package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

type verifyOptions struct {
	verify.Config
	store          storeOptions
	json           bool
	format, memory string
}

func verifyCommand(ui *ui) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify DIR [--inputs FILE…] [--db URL]",
		Short: "Prove that a run is what its files say",
		Long: `Prove that a run is what its files say. From manifest, mapping, rejects and
collisions in DIR everything is computed again: canonical forms, codes, salts and
who had the lower codes, duplicates, order, reasons, counts, digests, and that
each row of the inputs is accounted for once. With --inputs the inputs are read
again, and every row is compared; each is found by its name, else by the longest
end of its path that tells it from the others, else as the only one that is left.
With --db every link of the mapping must be in the store, as must every owner of a
lower code and the run with this manifest, and every link of the store must follow
from its URL.

The first line on stdout (of CSV, the first below its header) is a summary; each
further one is a finding. Two kinds are listed but are no faults: "unexplained", a
code of a lower salt that nobody is known to hold, and "file_unlisted", a file in
DIR that the manifest does not know.

` + exitCodes,
		Example: `  bulk verify links.bulk
  bulk verify links.bulk --inputs links.csv --db sqlite:bulk.db --json`,
		Args: usageArgs(cobra.MinimumNArgs(1), "name DIR, the output folder of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && len(o.Inputs) == 0 {
				return usage(errors.New("one folder at a time; inputs come after --inputs"))
			}
			if err := unasked(cmd.Flags()); err != nil {
				return usage(err)
			}
			if f := cmd.Flags(); f.Changed("json") && f.Changed("format") && o.json != (o.format == "jsonl") {
				return usage(errors.New("--json and --format contradict each other"))
			}
			o.Dir, o.Inputs = args[0], append(o.Inputs, args[1:]...)
			o.Source.Stdin = cmd.InOrStdin()
			if err := errors.Join(inRange(cmd.Flags()), o.settle()); err != nil {
				return usage(err)
			}
			return runVerify(cmd.Context(), ui, &o, cmd.Flags().Changed("db"))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.Inputs, "inputs", nil, "inputs of the run, to be compared with it row by row")
	o.store.flags(cmd)
	cmd.Flag("db").Usage = "store of the run, to be compared with it: sqlite:FILE or postgres://…"
	f.StringVar(&o.ManifestSHA256, "manifest-sha256", "", "digest that the manifest must have, in hexadecimal")
	f.BoolVar(&o.json, "json", false, "print JSON lines rather than CSV")
	f.StringVar(&o.format, "format", "csv", "print csv or jsonl")
	f.IntVar(&o.MaxFindings, "max-findings", 1000, "most findings that are printed; the summary counts all")
	f.IntVar(&o.Source.MaxField, "max-field", 0, "longest field of the inputs in bytes (default: as the manifest has it)")
	f.IntVar(&o.Workers, "workers", 0, "goroutines that recompute rows (default: one a core)")
	f.StringVar(&o.memory, "memory", "256MiB", "memory for what is sorted")
	f.StringVar(&o.TempDir, "tmp", "", "folder for what does not fit in memory (default: TMPDIR)")
	offer(cmd, "format", "csv", "jsonl")
	return cmd
}

// runVerify does bulk verify, with options that are settled.
func runVerify(ctx context.Context, ui *ui, o *verifyOptions, withStore bool) (err error) {
	if withStore {
		if o.Store, err = o.store.open(ctx, ui.log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Store.Close()) }()
	}
	debug.SetMemoryLimit(2*o.Memory + 1<<30)
	v, err := verify.Run(ctx, o.Config)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	if missing && !errors.Is(err, sink.ErrRetryable) { // which a missing socket of a server is
		return usage(err)
	}
	if err != nil {
		return err
	}
	if err := printVerified(ui.stdout, v, o.json); err != nil {
		return err
	}
	if v.Failed() > 0 {
		return errDiffers
	}
	return nil
}

func (o *verifyOptions) settle() (err error) {
	o.Version = toolVersion()
	var problems []error
	switch o.format {
	case "csv":
	case "jsonl":
		o.json = true
	default:
		problems = append(problems, fmt.Errorf("--format: %q is not csv or jsonl", o.format))
	}
	if digest, err := hex.DecodeString(o.ManifestSHA256); o.ManifestSHA256 != "" && (err != nil || len(digest) != sha256.Size) {
		problems = append(problems, fmt.Errorf("--manifest-sha256: %q is not 64 hexadecimal digits", o.ManifestSHA256))
	}
	if o.Memory, err = parseMemory(o.memory, 0); err != nil {
		problems = append(problems, fmt.Errorf("--memory: %w", err))
	}
	return errors.Join(problems...)
}

// verifySummary is the first line.
type verifySummary struct {
	Kind           string                `json:"kind"` // "summary"
	ManifestSHA256 string                `json:"manifest_sha256"`
	Rows           int64                 `json:"rows"`
	Rejects        int64                 `json:"rejects"`
	Findings       int64                 `json:"findings"`
	Unlisted       int64                 `json:"unlisted"`
	Unexplained    int64                 `json:"more_unexplained,omitempty"`
	DryRun         bool                  `json:"dry_run,omitempty"`
	NoMapping      bool                  `json:"no_mapping,omitempty"`
	Undone         bool                  `json:"undone,omitempty"`
	Kinds          map[verify.Kind]int64 `json:"kinds,omitempty"`
}

func printVerified(w io.Writer, v *verify.Result, asJSON bool) error {
	b := bufio.NewWriter(w)
	s := verifySummary{"summary", v.ManifestSHA256, v.Rows, v.Rejects, v.Failed(), v.Unlisted, v.MoreUnexplained, v.DryRun, v.NoMapping, v.Undone, v.Kinds}
	list := slices.Concat(v.Findings, v.Unexplained)
	if asJSON {
		j := newJSON(b)
		err := j.Encode(s)
		for _, f := range list {
			err = cmp.Or(err, j.Encode(f))
		}
		return cmp.Or(err, b.Flush())
	}
	c := csv.NewWriter(b)
	c.Write([]string{"kind", "file", "row", "column", "expected", "found"})
	summary := fmt.Sprintf("%d rows, %d rejects, %d findings (%d not listed), sha256 %s", s.Rows, s.Rejects, s.Findings, s.Unlisted, s.ManifestSHA256)
	switch {
	case s.NoMapping:
		summary += "; the run had too many rejects and has no mapping"
	case s.DryRun:
		summary += "; dry run: what it says is created is not stored"
	case s.Undone:
		summary += "; the store says that the run was undone"
	}
	if s.Unexplained > 0 {
		summary += fmt.Sprintf("; not listed, and no faults: %d", s.Unexplained)
	}
	c.Write([]string{s.Kind, manifest.Name, "", "", "", summary})
	for _, f := range list {
		row := ""
		if f.Row > 0 {
			row = strconv.FormatInt(f.Row, 10)
		}
		c.Write([]string{string(f.Kind), string(f.File), row, string(f.Column), string(f.Expected), string(f.Found)})
	}
	c.Flush()
	return b.Flush() // b keeps the error of c
}
