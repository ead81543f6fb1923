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
	"strings"
	"syscall"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type verifyOptions struct {
	verify.Config
	store          storeOptions
	scheme         schemeText
	json           bool
	format, memory string
	attrs          []string // columns of the inputs that went along with links
}

func verifyCommand(ui *ui) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify DIR [--inputs FILE…] [--db STORE]",
		Short: "Check a finished run and report what does not match",
		Long: `verify reads the reports in DIR, the output directory of a run, and computes
everything again: canonical forms, codes, owners of taken codes, duplicates,
order, reasons, counts and digests.

With --inputs it also reads the inputs and compares every row. Files are matched
by name. If they were moved, they are matched by as much of the end of the path
as is needed; a single file that is left over matches whatever its name.

With --db it also checks the store: the links of the mapping, the owners of
taken codes and the run itself must be there, and every link in the store must
follow from its URL.

If the run had a secret for its codes, give the same one, in the file of
--scheme-key-file or the variable BULK_SCHEME_KEY. If it had a --blocklist, give
the same one. Without the secret, verify cannot check that a code belongs to its
URL or number. Without the list, it cannot check which codes were skipped.
Another secret or list than that of the run is wrong usage.

Of a run of a counter it also checks the numbers: each is one that the run took,
stands for one link, and they ascend in the order of the links.

Of a run with --legacy it also checks who has the legacy codes, the kinds, the
links of URLs, and what the manifest says of codes.

Of a run with link rules it also checks the parameters of each row, which row
speaks for each link, and what became of the others. Links that were swept,
marked, or changed by other runs since are counted, and are no problems.

First a summary line is printed (in CSV, below the header), then one line per
problem. Two kinds of lines are no problems:
  unexplained    the link has its second or a later code, and we cannot see
                 which link had the earlier one
  file_unlisted  DIR has a file that the manifest does not list

The verdict, OK or FAILED, comes last, on stderr. It also says what was not
compared. (With --json, the summary has it as well.)`,
		Example: `  bulk verify links.bulk
  bulk verify links.bulk --inputs links.csv --db sqlite:bulk.db --json
  bulk verify links.bulk --scheme-key-file secret.key`,
		Args: usageArgs(cobra.MinimumNArgs(1), "give DIR, the output directory of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && len(o.Inputs) == 0 {
				return usage(errors.New("give one DIR only; inputs come after --inputs"))
			}
			if err := unasked(cmd.Flags()); err != nil {
				return usage(err)
			}
			if f := cmd.Flags(); f.Changed("json") && f.Changed("format") && o.json != (o.format == "jsonl") {
				return usage(errors.New("--json and --format contradict each other"))
			}
			o.Dir, o.Inputs = args[0], append(o.Inputs, args[1:]...)
			o.Source.Stdin = cmd.InOrStdin()
			if err := errors.Join(inRange(cmd.Flags()), o.resolve(), o.readScheme()); err != nil {
				return usage(err)
			}
			return runVerify(cmd.Context(), ui, &o, cmd.Flags().Changed("db"))
		},
	}
	f := cmd.Flags()
	o.inputsFlag(f)
	f.BoolVar(&o.json, "json", false, "print JSON lines instead of CSV")
	f.StringVar(&o.format, "format", "csv", "`FORMAT` to print: csv or jsonl")
	f.StringVar(&o.ManifestSHA256, "manifest-sha256", "", "SHA-256 (`SUM`) that the manifest must have, 64 hexadecimal digits")
	o.scheme.keyFlag(f)
	f.StringVar(&o.scheme.blocklist, "blocklist", "", "the `FILE` of words that no generated code contains, as the run had it")
	f.IntVar(&o.MaxFindings, "max-findings", 1000, "print at most `N` problems; the summary counts all")
	o.store.flags(cmd)
	f.Lookup("db").Usage = "also check this `STORE`: sqlite:FILE or postgres://…"
	group(f, "Store flags")
	f.IntVar(&o.Source.MaxField, "max-field", 0, "reject rows of the inputs that have a field of more than `N` bytes (default: as the run did)")
	group(f, "Input flags")
	f.IntVar(&o.Workers, "workers", 0, "use `N` CPU cores (default: all)")
	f.StringVar(&o.memory, "memory", "256MiB", "memory `SIZE` to sort with")
	f.StringVar(&o.TempDir, "tmp", "", "`DIR` for what does not fit in memory (default: TMPDIR)")
	group(f, "Resource flags")
	offer(cmd, "format", "csv", "jsonl")
	return cmd
}

// inputsFlag defines the flag of the inputs.
func (o *verifyOptions) inputsFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&o.Inputs, "inputs", nil, "also compare each row with the inputs of the run; repeat it for each `FILE`")
}

// runVerify runs bulk verify; its options are resolved.
func runVerify(ctx context.Context, ui *ui, o *verifyOptions, withStore bool) (err error) {
	against := []string{"files"}
	if len(o.Inputs) > 0 {
		against = append(against, "inputs")
	}
	if withStore {
		against = append(against, "store")
	}
	v, a, err := o.check(ctx, ui, withStore)
	if err != nil {
		return err
	}
	if err := printVerified(ui.stdout, v, a, account.Enumerate(against), o.json); err != nil {
		return err
	}
	ui.report(a)
	if v.Failed() > 0 {
		return errDiffers
	}
	return nil
}

// check checks the run; the options are resolved.
func (o *verifyOptions) check(ctx context.Context, ui *ui, withStore bool) (v *verify.Result, a *account.Account, err error) {
	if withStore {
		if o.Store, err = o.store.open(ctx, ui.log); err != nil {
			return nil, nil, err
		}
		defer func() { err = errors.Join(err, o.Store.Close()) }()
	}
	debug.SetMemoryLimit(2*o.Memory + 1<<30)
	v, err = verify.Run(ctx, o.Config)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	if wrong := errors.As(err, new(*verify.UsageError)); wrong || missing && !errors.Is(err, sink.ErrRetryable) { // a missing socket of a server is both
		return nil, nil, usage(err)
	}
	if err != nil {
		return nil, nil, err
	}
	return v, o.account(v), nil
}

func (o *verifyOptions) resolve() (err error) {
	o.Version = toolVersion()
	var problems []error
	switch o.format {
	case "csv":
	case "jsonl":
		o.json = true
	default:
		problems = append(problems, fmt.Errorf("--format %q: it must be csv or jsonl", o.format))
	}
	if digest, err := hex.DecodeString(o.ManifestSHA256); o.ManifestSHA256 != "" && (err != nil || len(digest) != sha256.Size) {
		problems = append(problems, fmt.Errorf("--manifest-sha256 %q: it must be 64 hexadecimal digits", o.ManifestSHA256))
	}
	if o.Memory, err = parseMemory(o.memory, 0); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// readScheme reads the secret and the blocklist of the run, which says by the name of its scheme
// whether it has a secret. If its manifest cannot be read, Run has the error.
func (o *verifyOptions) readScheme() (err error) {
	if m, _, err := manifest.ReadDir(o.Dir); err == nil {
		o.scheme.name = m.Scheme.Name
		o.attrs = attrColumns(m.Inputs)
	}
	var problems flagErrors
	o.Secret, err = o.scheme.secret()
	problems.check("scheme-key-file", err)
	o.Words, err = o.scheme.words()
	problems.check("blocklist", err)
	return errors.Join(problems...)
}

// attrColumns returns the columns of inputs that went along with links, in byte order.
func attrColumns(inputs manifest.Inputs) (names []string) {
	for i := range inputs {
		for _, columns := range inputs[i].Attrs {
			names = append(names, texts(columns)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// account returns the facts of a check.
func (o *verifyOptions) account(v *verify.Result) *account.Account {
	a := account.Verify{Rows: v.Rows, Rejects: v.Rejects, Inputs: int64(v.Inputs), Store: o.Store != nil, Digest: o.ManifestSHA256 != "",
		Problems: v.Failed(), Unlisted: v.Unlisted, Doubts: int64(len(v.Unexplained)) + v.MoreUnexplained, MoreDoubts: v.MoreUnexplained,
		DoubtKinds: []string{string(verify.Unexplained), string(verify.FileUnlisted)}, ManifestSHA256: v.ManifestSHA256,
		DryRun: v.DryRun, NoMapping: v.NoMapping, Undone: v.Undone, Since: account.Since(v.Since), Kinds: map[string]int64{}}
	for kind, n := range v.Kinds {
		a.Kinds[string(kind)] = n
	}
	left := account.NotCompared{Inputs: len(o.Inputs) > 0, Store: o.Store != nil, Attrs: o.attrs}
	for _, part := range v.NotCompared {
		a.NotCompared, a.Gaps = append(a.NotCompared, string(part)), append(a.Gaps, left.Gap(string(part)))
	}
	return a.Account()
}

// printVerified writes the summary and the lines: as JSON, or as CSV.
func printVerified(w io.Writer, v *verify.Result, a *account.Account, against string, asJSON bool) error {
	b := bufio.NewWriter(w)
	list := slices.Concat(v.Findings, v.Unexplained)
	if asJSON {
		summary := *a
		summary.Facts = append([]account.Fact{{Key: "kind", Value: "summary"}}, a.Facts...)
		err := printFacts(b, &summary)
		j := newJSON(b)
		for _, f := range list {
			err = cmp.Or(err, j.Encode(f))
		}
		return cmp.Or(err, b.Flush())
	}
	c := csv.NewWriter(b)
	c.Write([]string{"kind", "file", "row", "column", "expected", "found", "workspace_id", "short_code"})
	c.Write([]string{"summary", manifest.Name, "", "", "", verifiedCell(v, a, against), "", ""})
	for _, f := range list {
		row := ""
		if f.Row > 0 {
			row = strconv.FormatInt(f.Row, 10)
		}
		c.Write([]string{string(f.Kind), string(f.File), row, string(f.Column), string(f.Expected), string(f.Found), string(f.Workspace), string(f.Code)})
	}
	c.Flush()
	return b.Flush() // b keeps the error of c
}

// verifiedCell is the summary of a check as a cell of CSV.
func verifiedCell(v *verify.Result, a *account.Account, against string) string {
	text := "{verdict}: {mapped} and {rejected} checked against " + against + "; "
	if v.Failed() > 0 {
		text += "{findings}"
	} else {
		text += "no problems"
	}
	if v.Unlisted > 0 {
		text += " ({unlisted} not listed)"
	}
	text += "; manifest sha256 {manifest_sha256}"
	switch {
	case v.NoMapping:
		text += "; the run stored nothing and has no mapping"
	case v.DryRun:
		text += "; this was a dry run: the links were not stored"
	case v.Undone:
		text += "; the run was undone"
	}
	for _, part := range v.NotCompared {
		if say := account.Believed[string(part)]; say != "" {
			text += "; " + say
		}
	}
	if since := a.Get("since_words"); since != nil {
		text += "; " + strings.Replace(since.Words, "no problem: since the run,", "since the run:", 1)
	}
	if v.MoreUnexplained > 0 {
		text += "; not listed, and no problem: {more_unexplained}"
	}
	return expand(a, nil, text)
}
