package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
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
	"github.com/linkforge/bulk/pipeline/charset"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/hygiene"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/profile"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runOptions are the flags of bulk run: a Config, and flags that are no field of it or become
// one in resolve.
type runOptions struct {
	pipeline.Config

	store    storeOptions
	newStore bool // nothing is stored there yet
	profiles profiles

	asOf, maxRejects, memory                                string
	columns, reserved, hygiene, shortDomains, defaultDomain string
	targetBase                                              string
	csv                                                     csvText
	identity                                                identityText
	rules                                                   rulesText
	campaign                                                campaignText
	scheme                                                  schemeText

	summary              string // json: also on stdout
	html                 bool   // write the page of the run, too
	rejectsOK, noRetries bool
}

// These parts of the help of bulk run and bulk preview name the topics.
const (
	legacyHelp    = `Rows of another shortener have codes already (--legacy): bulk help legacy.`
	migrationHelp = `Its links have titles, dates and passwords: bulk help migration.`
	campaignHelp  = `Rows may become several links (--expand): bulk help campaigns.`
	rulesHelp     = `Links may end, and may have an owner (--rules): bulk help rules.`
	schemeHelp    = `Codes may be secret, or short without collisions: bulk help schemes.`
)

func runCommand(ui *ui) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run INPUT… --workspace ID",
		Short: "Shorten every URL of the inputs and store the links",
		Long: `An INPUT is a CSV, TSV, JSON (an array of objects, or an object a line),
Parquet, Arrow or .txt file (one URL a line), the rejects.csv of an earlier run,
a quoted pattern such as 'links-*.csv', or - for standard input. gzip and zstd
are recognised. The output directory gets the mapping, rejects.csv,
collisions.csv, manifest.json and timings.json.

DIR always holds the last good run. A run that may store no links, because it
has too many rejects or only rejects, writes them to DIR.failed. A dry run
writes to DIR.dry. A STORE is sqlite:FILE or postgres://…. A COLUMN is a name or
a number.

If a run does not finish, run the same command again to resume it, with the same
inputs and --db and as the same user. Any other command starts a run of its own:
links of the unfinished run then count as existing. If the run is finished
already, the same command says so and changes nothing, also with --overwrite. To
run it anyway, add --overwrite --new-run.

More about some flags:
  --metrics-file  It is written when the run ends, but not with --dry-run.
  --no-wait       Runs of one workspace, SQLite file or DIR wait for each other.
  --limit         Inputs are read in the order of their names.
  --report-order  sort: by workspace, then code. input: by file name, then row.
  --base-url      {workspace} and {domain} stand for those of the link. Without
                  a URL the column short_url is blank.
  --excel-safe    Spreadsheets run cells that begin with = and such as formulas.
  --as-of         It is recorded for links, and decides which have expired.
  --max-field     It counts for objects of JSON, too. At most 1073741824 (1GiB).

` + legacyHelp + `
` + migrationHelp + `
` + rulesHelp + `
` + campaignHelp + `
` + schemeHelp + `

bulk preview, with the same flags, shows what a run would do.`,
		Example: `  bulk run links.csv --workspace demo
  bulk run 'links-*.csv' more.parquet -w demo -o out --db sqlite:links.db
  bulk run links.csv --workspace-column team --max-rejects 1%`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.take(ui, cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), ui, &o)
		},
	}
	o.flags(cmd, cmd.Flags())
	return cmd
}

// flags defines the flags of a run. Those that do not matter to a preview are defined in a set of
// their own: for bulk run that is the flags of the command, too.
func (o *runOptions) flags(cmd *cobra.Command, writing *pflag.FlagSet) {
	f := cmd.Flags()
	f.StringVarP(&o.Workspace, "workspace", "w", "", "workspace `ID` of all rows, or of blank cells")
	f.StringVar(&o.Source.WorkspaceColumn, "workspace-column", "", "`COLUMN` that has the workspace, name or number")
	f.StringVar(&o.Source.URLColumn, "url-column", "", "`COLUMN` of the URL (default: by usual names)")
	writing.StringVarP(&o.Out, "out", "o", "", "output `DIR` (default: links.csv: ./links.bulk)")
	writing.BoolVar(&o.DryRun, "dry-run", false, "store nothing; write the reports to DIR.dry")
	f.StringVar(&o.maxRejects, "max-rejects", "", "store nothing over `N` or N% rejected rows")
	f.Int64Var(&o.ExpectRows, "expect-rows", 0, "store nothing unless there are `N` input rows")
	f.BoolVar(&o.rejectsOK, "rejects-ok", false, "exit with 0 instead of 3 if rows are rejected")
	writing.BoolVar(&o.Overwrite, "overwrite", false, "replace the finished run in the output DIR")
	writing.BoolVar(&o.NewRun, "new-run", false, "start a new run, instead of resuming one")
	f.BoolVar(&o.AllowEmpty, "allow-empty", false, "no rows at all, or no file, are no error")
	writing.StringVar(&o.summary, "summary", "", "print what the run did to stdout, as `json`")
	writing.BoolVar(&o.html, "html", false, "also write a page for people: report.html")
	writing.String("metrics-file", "", "write metrics for Prometheus to this `FILE`")
	o.store.flags(cmd)
	f.Lookup("db").Usage = "`STORE` (default: BULK_DB, else sqlite:bulk.db)"
	writing.BoolVar(&o.NoWait, "no-wait", false, "fail, instead of waiting for another run")
	group(f, "Store flags")
	o.csv.flags(cmd, &o.Source)
	f.Int64Var(&o.Limit, "limit", 0, "read only the first `N` records")
	group(f, "Input flags")
	f.StringVar((*string)(&o.Legacy), "legacy", "", "what becomes of old codes, `MODE`: keep, both, map")
	f.StringVar(&o.Source.CodeColumn, "code-column", "", "`COLUMN` of old codes (default: by usual names)")
	f.StringVar(&o.Source.Profile, "profile", "", "`NAME` of the program that wrote the files")
	f.StringVar(&o.columns, "map", "", "columns: a `LIST` as url=target,code=slug")
	f.StringVar(&o.CodePattern, "code-pattern", "", "`PATTERN` of the old codes that may stay")
	f.StringVar(&o.reserved, "reserved", "", "`FILE` of old codes that may not stay")
	f.StringVar((*string)(&o.OnConflict), "on-conflict", "", "two URLs, one code: `MODE` reject, fail, generate")
	f.BoolVar(&o.Partial, "partial", false, "take one page of several as it is")
	f.BoolVar(&o.NoRules, "no-rules", false, "leave out when links end: they become eternal")
	group(f, "Legacy flags")
	f.StringVar((*string)(&o.Domains), "domains", "", "codes of several domains, a `MODE`: keep, merge")
	f.StringVar(&o.Attrs, "attrs", "", "`LIST` to store: none, profile, names of columns")
	f.BoolVar(&o.KeepCreated, "keep-created", false, "links keep the creation time that the input has")
	f.StringVar(&o.hygiene, "hygiene", "", "`LIST` such as protected=warn,secret=reject")
	f.StringVar(&o.defaultDomain, "default-domain", "", "`HOST` that is the domain of blank cells")
	f.StringVar(&o.shortDomains, "short-domain", "", "`DOMAIN` of the short URLs, or several with commas")
	group(f, "Migration flags")
	o.rules.flags(cmd, f)
	group(f, "Link rule flags")
	writing.StringVar((*string)(&o.ReportFormat), "report-format", string(report.CSV), "`FORMAT`: csv, parquet, arrow")
	writing.StringVar((*string)(&o.ReportOrder), "report-order", string(report.SortOrder), "`ORDER`: sort or input")
	writing.StringVar(&o.BaseURL, "base-url", "", "`URL` that short URLs begin with: https://sho.rt")
	writing.BoolVar(&o.NoCarry, "no-carry", false, "do not copy your other columns into the mapping")
	writing.BoolVar(&o.ExcelSafe, "excel-safe", false, "put ' before cells that a spreadsheet would run")
	group(f, "Mapping flags")
	f.StringVar(&o.asOf, "as-of", "", "`TIME` that counts as now: RFC 3339 or a date")
	o.identity.flags(f, &o.Profile)
	f.StringVar(&o.targetBase, "target-base", "", "`URL` before /new, ./new, ../new, ?a and #a")
	o.campaign.flags(f)
	group(f, "Link flags")
	o.scheme.flags(cmd, f)
	f.BoolVar(&o.Scheme.Fold, "fold-case", false, "the server folds case: all codes in lower case")
	f.IntVar(&o.CodeLength, "code-length", 0, codeLengthUsage)
	f.IntVar(&o.MaxRetries, "max-retries", 0, retriesUsage)
	group(f, "Code flags")
	f.IntVar(&o.Workers, "workers", 0, "use `N` CPU cores (default: all)")
	f.StringVar(&o.memory, "memory", "", "`SIZE`, as 512MiB (default: half of the machine's)")
	f.StringVar(&o.TempDir, "tmp", "", "`DIR` for rows that do not fit in memory (default: TMPDIR)")
	group(f, "Resource flags")
	o.profiles.flags(f)
	for flag, words := range map[string][]string{
		"report-format": {"csv", "parquet", "arrow"}, "report-order": {"sort", "input"},
		"legacy": {"keep", "both", "map"}, "domains": {"keep", "merge"}, "assume-scheme": {"https", "http"}, "on-conflict": {"reject", "fail", "generate"},
		"summary": {"json"}, "profile": append(profile.Names(), profile.None, profile.Auto),
	} {
		if f.Lookup(flag) != nil {
			offer(cmd, flag, words...)
		}
	}
}

// csvText has the flags about the text of inputs that are text themselves.
type csvText struct{ header, delimiter, quote, encoding string }

// flags defines the flags about the text of inputs.
func (t *csvText) flags(cmd *cobra.Command, s *source.Options) {
	f := cmd.Flags()
	f.StringVar(&t.header, "header", "auto", "a header? `ANSWER`: yes, no, auto")
	f.StringVar(&t.delimiter, "delimiter", "", "CSV delimiter, a `CHAR` or \"tab\" (default: detected)")
	f.StringVar(&t.encoding, "encoding", "", "`NAME` of their encoding, such as windows-1252")
	f.BoolVar(&s.PadRows, "pad-rows", false, "missing cells at the end are blank")
	f.StringVar(&t.quote, "quote", `"`, "CSV quote, a `CHAR`")
	f.IntVar(&s.MaxField, "max-field", source.DefaultMaxField, "reject rows with fields over `N` bytes")
	offer(cmd, "header", "auto", "yes", "no")
	offer(cmd, "encoding", charset.Names()...)
}

// parse reads them into options.
func (t *csvText) parse(s *source.Options) error {
	var problems flagErrors
	var err error
	s.Delimiter, err = character(t.delimiter)
	problems.check("delimiter", err)
	s.Quote, err = character(t.quote)
	problems.check("quote", err)
	s.Header, err = parseHeader(t.header)
	problems.check("header", err)
	s.Encoding, err = charset.Parse(t.encoding)
	problems.check("encoding", err)
	return errors.Join(problems...)
}

// flagErrors are what is wrong with flags.
type flagErrors []error

// check adds the error of a flag, if there is one.
func (e *flagErrors) check(flag string, err error) {
	if err != nil {
		*e = append(*e, fmt.Errorf("--%s: %w", flag, err))
	}
}

// identityText has the flags of a profile that are text.
type identityText struct{ stripParams, assumeScheme string }

// flags defines the flags of a profile.
func (t *identityText) flags(f *pflag.FlagSet, p *canon.Profile) {
	f.BoolVar(&p.KeepFragment, "keep-fragment", false, "each fragment (after #) is a link of its own")
	f.StringVar(&t.stripParams, "strip-params", "", "drop parameters: a `LIST` as utm_*,gclid")
	f.BoolVar(&p.KeepUserinfo, "keep-userinfo", false, "keep user:password@, do not reject the URL")
	f.StringVar(&t.assumeScheme, "assume-scheme", "", "`SCHEME` of URLs without: http or https")
	f.IntVar(&p.MaxLength, "max-url-length", canon.MaxLength, "reject URLs over `N` bytes")
}

// parse reads them into a profile.
func (t *identityText) parse(p *canon.Profile) error {
	var badList, badScheme error
	if p.StripParams, badList = canon.ParseStripParams(t.stripParams); badList != nil {
		badList = fmt.Errorf("--strip-params: %w", badList)
	}
	if p.AssumeScheme, badScheme = canon.ParseAssumedScheme(t.assumeScheme); badScheme != nil {
		badScheme = fmt.Errorf("--assume-scheme: %w", badScheme)
	}
	return errors.Join(badList, badScheme)
}

// take takes the inputs, and checks them and the flags.
func (o *runOptions) take(ui *ui, cmd *cobra.Command, args []string) error {
	o.Inputs = args
	if len(args) == 0 {
		o.Inputs = ui.settings.inputs
	}
	if len(o.Inputs) == 0 {
		return usage(errors.New("give at least one INPUT"))
	}
	o.Source.Stdin = cmd.InOrStdin()
	o.noRetries = cmd.Flags().Changed("max-retries")
	return usage(errors.Join(inRange(cmd.Flags()), o.resolve(), ui.metrics.apart(o.Out)))
}

// outsideHeap is the part of --memory that the Go runtime does not count: the program itself,
// and the cache and buffers of SQLite.
const outsideHeap = 56 << 20

// run runs bulk run; its options are resolved.
func run(ctx context.Context, ui *ui, o *runOptions) error {
	signal.Ignore(syscall.SIGPIPE) // a run continues although nobody reads its log any more
	ui.begin(o)
	o.scheme.warn(ui, o.CodeLength)
	end, err := o.open(ctx, ui)
	if err != nil {
		return err
	}
	o.Opened = func(inputs []pipeline.Input) {
		switch {
		case o.Legacy != legacy.Off:
			ui.opened(inputs)
		case o.Config.Rules != nil:
			ui.openedParams(inputs)
		}
		ui.notUsed(inputs)
	}
	result, err := pipeline.Run(ctx, o.Config)
	err = errors.Join(err, end())
	if ui.metrics != nil {
		ui.metrics.status, ui.metrics.result = o.Status, result
	}
	unwritten := ui.summary(o, result, err)
	unwritten = cmp.Or(unwritten, ui.writePage(ctx, o, result, err))
	if err != nil {
		return errors.Join(err, unwritten)
	}
	return cmp.Or(unwritten, o.ending(result.Counts.Rejected, nil))
}

// open opens the store, limits the memory and shows how far the run is, until end is called.
func (o *runOptions) open(ctx context.Context, ui *ui) (end func() error, err error) {
	o.Logger, o.Status, o.Outage = ui.log, new(pipeline.Status), ui.outages()
	stopWatching := ui.watch(o.Status)
	defer func() {
		if err != nil {
			stopWatching()
		}
	}()
	o.store.postgres.Outage = o.Outage
	store, err := o.store.open(ctx, ui.log)
	if err != nil {
		return nil, err
	}
	o.Store, o.StoreName, o.Version, o.RetryFor = store, o.store.name(), toolVersion(), o.store.postgres.RetryFor
	o.DiskBound = sync.OnceFunc(spareThreads)
	debug.SetMemoryLimit(o.Memory - outsideHeap)
	stop, err := o.profiles.start()
	if err != nil {
		return nil, usage(errors.Join(err, store.Close()))
	}
	_, missing := store.Runs(ctx) // any other error the run will meet
	o.newStore = errors.Is(missing, sink.ErrMissing)
	return func() error {
		stopWatching()
		return errors.Join(stop(), store.Close())
	}, nil
}

// resolve turns the flags that are text into configuration.
func (o *runOptions) resolve() (err error) {
	problems := flagErrors{o.csv.parse(&o.Source)}
	if o.summary != "" && o.summary != "json" {
		problems = append(problems, fmt.Errorf("--summary %q: it must be json", o.summary))
	}
	o.AsOf, err = parseTime(o.asOf)
	problems.check("as-of", err)
	if o.maxRejects != "" {
		o.Config.MaxRejects, err = manifest.ParseMaxRejects(o.maxRejects)
		problems.check("max-rejects", err)
	}
	o.Codes.Pattern, err = legacy.ParsePattern(o.CodePattern)
	problems.check("code-pattern", err)
	problems.check("reserved", o.readReserved())
	if o.columns != "" {
		o.Source.Map, err = columns.ParseMap(o.columns)
		problems.check("map", err)
	}
	problems = append(problems, o.identity.parse(&o.Profile), o.rules.parse(&o.Config))
	if o.hygiene != "" {
		policy, err := hygiene.ParsePolicy(o.hygiene)
		problems.check("hygiene", err)
		o.Hygiene = &policy
	}
	o.ShortDomains, err = hygiene.ParseDomains(o.shortDomains)
	problems.check("short-domain", err)
	if o.targetBase != "" {
		o.TargetBase, err = canon.ParseBase(o.targetBase)
		problems.check("target-base", err)
	}
	if o.defaultDomain != "" {
		o.DefaultDomain, err = hygiene.ParseDomain(o.defaultDomain)
		problems.check("default-domain", err)
	}
	problems = append(problems, o.campaign.parse(&o.Config), o.scheme.parse(&o.Scheme))
	if spec, _ := codegen.SpecOf(o.scheme.name); spec.Counts && o.noRetries {
		problems = append(problems, fmt.Errorf("--max-retries: scheme %s has no salts to try", spec.Name))
	}
	if o.MaxRetries == 0 && o.noRetries {
		o.MaxRetries = pipeline.NoRetries
	}
	o.Memory, err = parseMemory(o.memory, o.LeastMemory())
	problems = append(problems, err)
	if o.Out == "" {
		if o.Out, err = defaultOut(o.Inputs[0]); err != nil && o.AllowEmpty {
			err = fmt.Errorf("%w: the output directory is named after the first input; give one with --out", err)
		}
		problems = append(problems, err)
	}
	problems = append(problems, o.store.resolve()) // which sets the store for the next check
	rest := o.Config
	rest.Out = cmp.Or(rest.Out, ".") // if it is missing, problems says why
	return errors.Join(append(problems, rest.Validate())...)
}

// readReserved reads the words of --reserved.
func (o *runOptions) readReserved() error {
	if o.reserved == "" {
		return nil
	}
	text, err := os.ReadFile(o.reserved)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	o.ReservedSHA256 = hex.EncodeToString(sum[:])
	o.Codes.Reserved, err = legacy.ReadReserved(bytes.NewReader(text))
	return err
}

// character parses a flag that is one byte; "": 0.
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
	h, ok := map[string]source.Header{"auto": source.HeaderAuto, "yes": source.HeaderYes, "no": source.HeaderNo}[s]
	if !ok {
		return 0, fmt.Errorf("%q is not yes, no or auto", s)
	}
	return h, nil
}

func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			if t.IsZero() { // in a Config that means now
				return t, fmt.Errorf("%q is out of range", s)
			}
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2006-01-02T15:04:05Z or 2006-01-02", s)
}

// defaultOut returns the output directory for a first input: links.csv gives links.bulk, and
// links.parquet links.parquet.bulk, so that no two inputs share one.
func defaultOut(input string) (string, error) {
	if input == "-" {
		return "stdin.bulk", nil
	}
	names, err := source.Expand([]string{input}, nil, false)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(filepath.Base(names[0]), ".csv") + ".bulk", nil
}
