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
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
)

type verifyOptions struct {
	verify.Config
	store          storeOptions
	scheme         schemeText
	json           bool
	format, memory string
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
--scheme-key-file or the variable BULK_SCHEME_KEY. Without it everything is
checked but that each code is the one of its URL or number. If the run had a
--blocklist, give the same one, or it is believed which codes were skipped.
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
	f.StringArrayVar(&o.Inputs, "inputs", nil, "also compare each row with the inputs of the run; repeat it for each `FILE`")
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

// runVerify runs bulk verify; its options are resolved.
func runVerify(ctx context.Context, ui *ui, o *verifyOptions, withStore bool) (err error) {
	if withStore {
		if o.Store, err = o.store.open(ctx, ui.log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Store.Close()) }()
	}
	against := []string{"files"}
	if len(o.Inputs) > 0 {
		against = append(against, "inputs")
	}
	if withStore {
		against = append(against, "store")
	}
	debug.SetMemoryLimit(2*o.Memory + 1<<30)
	v, err := verify.Run(ctx, o.Config)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	if wrong := errors.As(err, new(*verify.UsageError)); wrong || missing && !errors.Is(err, sink.ErrRetryable) { // a missing socket of a server is both
		return usage(err)
	}
	if err != nil {
		return err
	}
	if err := printVerified(ui.stdout, v, enumerate(against), o.json); err != nil {
		return err
	}
	o.tellVerdict(ui, v)
	if v.Failed() > 0 {
		return errDiffers
	}
	return nil
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
	}
	var problems flagErrors
	o.Secret, err = o.scheme.secret()
	problems.check("scheme-key-file", err)
	o.Words, err = o.scheme.words()
	problems.check("blocklist", err)
	return errors.Join(problems...)
}

// verifySummary is the first line.
type verifySummary struct {
	Kind           string                `json:"kind"`    // "summary"
	Verdict        string                `json:"verdict"` // "OK" or "FAILED"
	NotCompared    []verify.Part         `json:"not_compared"`
	ManifestSHA256 string                `json:"manifest_sha256"`
	Rows           int64                 `json:"rows"`
	Rejects        int64                 `json:"rejects"`
	Findings       int64                 `json:"findings"`
	Unlisted       int64                 `json:"unlisted"`
	Unexplained    int64                 `json:"more_unexplained,omitempty"`
	DryRun         bool                  `json:"dry_run,omitempty"`
	NoMapping      bool                  `json:"no_mapping,omitempty"`
	Undone         bool                  `json:"undone,omitempty"`
	Since          verify.Since          `json:"since,omitzero"`
	Kinds          map[verify.Kind]int64 `json:"kinds,omitempty"`
}

// verdict is the result in one word.
func verdict(v *verify.Result) string {
	if v.Failed() > 0 {
		return "FAILED"
	}
	return "OK"
}

// tellVerdict says on stderr how the check ended, and what was not compared.
func (o *verifyOptions) tellVerdict(ui *ui, v *verify.Result) {
	var kinds, parts, gaps []string
	for _, kind := range slices.Sorted(maps.Keys(v.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%s %s", kind, thousands(v.Kinds[kind])))
	}
	for _, part := range v.NotCompared {
		parts, gaps = append(parts, string(part)), append(gaps, o.gap(part))
	}
	level, message := slog.LevelInfo, "the run agrees with what it was compared with"
	say := fmt.Sprintf("%s: %s agree with %s", verdict(v), rowsOf(v), enumerate(o.compared(v)))
	if v.Failed() > 0 {
		level, message = slog.LevelError, "the run has problems"
		say = fmt.Sprintf("%s: %s (%s)", verdict(v), count(v.Failed(), "problem"), strings.Join(kinds, ", "))
	}
	lines := int64(len(v.Unexplained)) + v.MoreUnexplained
	if lines > 0 {
		say += fmt.Sprintf("\nno problems, but worth a look: %s (%s, %s)", count(lines, "line"), verify.Unexplained, verify.FileUnlisted)
	}
	if len(gaps) > 0 {
		say += "\nnot compared: " + strings.Join(gaps, ", ")
	}
	if v.Undone {
		say += "\nthe run was undone"
	}
	attrs := []any{"verdict", verdict(v), "rows", v.Rows, "rejects", v.Rejects, "inputs", v.Inputs, "problems", v.Failed(),
		"kinds", strings.Join(kinds, ", "), "no_problems", lines, "not_compared", strings.Join(parts, ", "), "undone", v.Undone}
	if since := sinceText(v.Since); since != "" {
		say += "\nno problem: since the run, " + since
		attrs = append(attrs, "gone", v.Since.Gone, "changed", v.Since.Changed, "marked", v.Since.Marked, "lives", v.Since.Lives)
	}
	ui.tell(level, say, message, attrs...)
}

// sinceText says to people what became of the links of the run; "": nothing.
func sinceText(s verify.Since) string {
	var list []string
	for _, c := range []struct {
		links int64
		what  string
	}{{s.Gone, "gone (perhaps swept)"}, {s.Changed, "changed by later runs"}, {s.Marked, "marked as expired or deleted"}, {s.Lives, "working again, whose rows were rejected"}} {
		if c.links > 0 {
			list = append(list, count(c.links, "link")+" "+c.what)
		}
	}
	return strings.Join(list, ", ")
}

// rowsOf counts for people the rows of the reports.
func rowsOf(v *verify.Result) string {
	if v.Rejects == 0 {
		return count(v.Rows, "row")
	}
	return count(v.Rows, "row") + " and " + count(v.Rejects, "reject")
}

// compared lists for people what the rows were compared with.
func (o *verifyOptions) compared(v *verify.Result) []string {
	list := []string{"the files"}
	if v.Inputs > 0 {
		list = append(list, count(int64(v.Inputs), "input"))
	}
	if o.Store != nil {
		list = append(list, "the store")
	}
	if o.ManifestSHA256 != "" {
		list = append(list, "the manifest's SHA-256")
	}
	return list
}

// enumerate joins words for people: a, b and c.
func enumerate(list []string) string {
	last := len(list) - 1
	if last == 0 {
		return list[0]
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}

// believed says what is believed because it cannot be compared.
var believed = map[verify.Part]string{
	verify.Secret: "without the secret it is believed that each code is the one that the scheme gives",
	verify.Words:  "without the blocklist it is believed that it has the words for which codes were skipped and that no code of the run contains one",
}

// gap says to people what was not compared, and why, or which flag compares it.
func (o *verifyOptions) gap(part verify.Part) string {
	switch part {
	case verify.Files:
		return "all but the manifest, which no run wrote like this"
	case verify.Links:
		return "the links (the run had too many rejects and has no mapping)"
	case verify.Details:
		return "the details of rejects (another version of bulk wrote them)"
	case verify.Inputs:
		if len(o.Inputs) > 0 {
			return "all rows of the inputs (see the problems)"
		}
		return "the inputs (give them with --inputs)"
	case verify.Params:
		return "what rows said of their links (--inputs: the mapping has what links have)"
	case verify.BeyondLimit:
		return "records of the inputs after those that --limit let the run read"
	case verify.Secret:
		return "the codes with what they were made from (--scheme-key-file: " + believed[part] + ")"
	case verify.Words:
		return "the codes that were skipped (--blocklist: " + believed[part] + ")"
	case verify.Store:
		if o.Store != nil {
			return "the store (see the problems)"
		}
		return "the store (--db)"
	case verify.LinksInStore:
		return "the links in the store (this was a dry run)"
	case verify.ManifestDigest:
		return "the manifest's SHA-256 (--manifest-sha256)"
	}
	return string(part)
}

func printVerified(w io.Writer, v *verify.Result, against string, asJSON bool) error {
	b := bufio.NewWriter(w)
	s := verifySummary{"summary", verdict(v), append([]verify.Part{}, v.NotCompared...), v.ManifestSHA256, v.Rows, v.Rejects, v.Failed(), v.Unlisted, v.MoreUnexplained, v.DryRun, v.NoMapping, v.Undone, v.Since, v.Kinds}
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
	c.Write([]string{"kind", "file", "row", "column", "expected", "found", "workspace_id", "short_code"})
	problems := "no problems"
	if s.Findings > 0 {
		problems = count(s.Findings, "problem")
	}
	if s.Unlisted > 0 {
		problems += fmt.Sprintf(" (%s not listed)", thousands(s.Unlisted))
	}
	summary := fmt.Sprintf("%s: %s and %s checked against %s; %s; manifest sha256 %s", s.Verdict, count(s.Rows, "row"), count(s.Rejects, "reject"), against, problems, s.ManifestSHA256)
	switch {
	case s.NoMapping:
		summary += "; the run had too many rejects and has no mapping"
	case s.DryRun:
		summary += "; this was a dry run: the links were not stored"
	case s.Undone:
		summary += "; the run was undone"
	}
	for _, part := range s.NotCompared {
		if say := believed[part]; say != "" {
			summary += "; " + say
		}
	}
	if since := sinceText(s.Since); since != "" {
		summary += "; since the run: " + since
	}
	if s.Unexplained > 0 {
		summary += fmt.Sprintf("; not listed, and no problem: %s", count(s.Unexplained, "line"))
	}
	c.Write([]string{s.Kind, manifest.Name, "", "", "", summary, "", ""})
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
