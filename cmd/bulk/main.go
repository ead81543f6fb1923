// Command bulk canonicalizes and shortens URL lists in bulk.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/linkforge/bulk/canon"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/internal/crash"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/columns"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// version is set by the linker.
var version string

// toolVersion returns the version of this build.
func toolVersion() string { return pipeline.Version(version) }

func main() {
	crash.AsSignal()
	cobra.EnableCommandSorting = false // help lists the main jobs first
	os.Exit(bulk(hidePasswords(os.Args[1:]), os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes, part of the contract.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRejected    = 3
	exitTooMany     = 4
	exitDiffers     = 5
	exitStore       = 6
	exitInterrupted = 130
)

// bulk runs the command and returns its exit code.
func bulk(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := onSignal(context.Background())
	defer stop()
	ui := newUI(stdout, stderr)
	ui.args, ui.named = args, append(slices.Clone(args), os.Getenv("BULK_DB"))
	root := rootCommand(ui)
	ui.format = namedFormat(args)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ownHelp(root)
	err := root.ExecuteContext(ctx)
	return ui.end(err)
}

// end reports the error that ends the command, and returns the exit code.
func (u *ui) end(err error) int {
	code := exitCode(err)
	if code != exitDone && code != exitRejected && code != exitDiffers {
		hint := ""
		switch {
		case code == exitInterrupted:
			hint = "run the same command again to finish the job"
		case code == exitStore:
			hint = "run the same command again later"
		}
		u.logAs(u.format) // an error of the command line comes before PersistentPreRunE
		u.fail(err, hint)
	}
	if err := u.metrics.write(code); err != nil {
		u.fail(fmt.Errorf("the run ended, but its metrics were not written: %w", err), "")
		if code == exitDone || code == exitRejected {
			code = exitFailed
		}
	}
	if u.lines && !u.began.IsZero() {
		u.result.Info("run ended", "duration", time.Since(u.began).Round(time.Millisecond), "exit_code", code)
	}
	return code
}

// namedFormat returns the --log-format of arguments in which another flag or the command may
// be wrong.
func namedFormat(args []string) string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	format := f.String("log-format", os.Getenv("BULK_LOG_FORMAT"), "")
	file := f.String("config", os.Getenv("BULK_CONFIG"), "")
	f.BoolP("help", "h", false, "") // which pflag takes for an error
	_ = f.Parse(args)               // others report what is wrong
	if *format == "" && *file != "" {
		list, _ := readConfig(*file)
		for _, s := range list {
			if s.key == "log-format" {
				return strings.Join(s.values, "")
			}
		}
	}
	return *format
}

// rootCommand returns the command with its verbs.
func rootCommand(ui *ui) *cobra.Command {
	root := &cobra.Command{
		Use:   "bulk",
		Short: "Turn lists of URLs into short links",
		Long: `bulk reads URLs from CSV, JSON, Parquet, Arrow or text files. It gives each URL
its canonical form and a short code, and stores the links in SQLite or
PostgreSQL. It writes a mapping with the link of each accepted row, and a file
with the rejected rows.

The same URL always gets the same code. If two URLs want the same code, the one
that sorts first gets it; the other gets its next code. The order of your rows
never matters.`,
		Example: `  bulk run links.csv --workspace demo
  bulk verify links.bulk`,
		Args:          noVerb,
		RunE:          func(*cobra.Command, []string) error { return usage(errors.New("no command; see bulk --help")) },
		Version:       toolVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	f := root.PersistentFlags()
	f.BoolVarP(&ui.quiet, "quiet", "q", false, "show only errors, warnings and the result")
	f.StringVar(&ui.format, "log-format", "", "log as text or json, a `FORMAT` (terminal: sentences)")
	f.String("config", "", "settings from a YAML `FILE` (bulk config --help)")
	group(f, "General flags")
	offer(root, "log-format", "text", "json")
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		return usage(errors.Join(ui.prepare(cmd, args), ui.openMetrics(cmd)))
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(help)
	root.AddCommand(runCommand(ui), previewCommand(ui), verifyCommand(ui), reportCommand(ui), diffCommand(ui), explainCommand(ui), estimateCommand(ui), runsCommand(ui), undoCommand(ui), deleteCommand(ui), sweepCommand(ui), resolveCommand(ui), statsCommand(ui), exportCommand(ui), stageCommand(ui), loadCommand(ui), initCommand(ui), profilesCommand(ui), configCommand(ui))
	root.AddCommand(topics()...)
	return root
}

// prepare gives the flags of a command their values and checks what all commands have in
// common.
func (u *ui) prepare(cmd *cobra.Command, args []string) error {
	wrong := u.settle(cmd)
	if len(args) == 0 {
		args = u.settings.inputs
	}
	wrong = errors.Join(wrong, noneEmpty(cmd.Flags()), noneMisplaced(cmd, args), u.logAs(u.format))
	u.unknownVariables(cmd.Root())
	if wrong == nil && slices.Contains([]string{"run", "preview", "verify", "plan"}, cmd.Name()) {
		return nil // these call inRange themselves, to report all problems at once
	}
	return usage(errors.Join(wrong, inRange(cmd.Flags())))
}

// ownHelp words the verbs that cobra adds, and makes bulk help VERB an error if there is no
// such verb.
func ownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Short, completion.Long = "Print a script that completes commands in a shell", ""
	help, _, _ := root.Find([]string{"help"})
	help.Use, help.Short, help.Long = "help [COMMAND]", "Show the help of a command or topic", ""
	help.Args = func(_ *cobra.Command, args []string) error {
		_, rest, _ := root.Find(args)
		return noVerb(root, rest)
	}
}

// offer completes a flag with the words that it knows.
func offer(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// noVerb returns the error of arguments that do not begin with a verb of root. It suggests
// verbs that are spelled alike. It suggests none for an empty argument, which resembles all
// of them, and none for a verb that follows --.
func noVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see bulk --help"
	if alike := root.SuggestionsFor(args[0]); args[0] != "" && len(alike) > 0 && !slices.Contains(alike, args[0]) {
		hint = "did you mean " + strings.Join(alike, " or ") + "?"
	}
	return usage(fmt.Errorf("unknown command %q; %s", args[0], hint))
}

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// onSignal returns a context that the first SIGINT, SIGTERM or SIGHUP ends. The second
// one kills the process, as the first does by default.
func onSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // a shell ignores SIGINT for what it runs in the background
			signal.Notify(signals, s)
		}
	}
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// usage marks an error of the command line.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &pipeline.UsageError{Err: err}
}

// usageArgs marks the errors of an argument check and words them.
func usageArgs(check cobra.PositionalArgs, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) != nil {
			return usage(errors.New(want))
		}
		return nil
	}
}

// noneEmpty refuses a flag that is given without a text: most likely it is a variable that
// a script has not set, and the default is not what was meant.
func noneEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" {
			err = errors.Join(err, fmt.Errorf("--%s is empty: give it a value or leave it out", f.Name))
		}
	})
	return err
}

// inRange refuses numbers that are out of range, in one form for all verbs. For some flags
// that includes 0, which means the default in a Config. A flag that is out of range is set
// to its default, so that no later check reports it again.
func inRange(flags *pflag.FlagSet) (err error) {
	ranges := map[string][2]int64{
		"code-length": {codegen.MinLength, codegen.MaxLength}, "existing": {0, math.MaxInt64}, "limit": {1, math.MaxInt64},
		"links": {0, math.MaxInt64}, "max-field": {1, 1 << 30}, "max-findings": {1, math.MaxInt64},
		"max-retries": {0, codegen.MostRetries}, "max-url-length": {1, canon.MaxLength}, "workers": {0, math.MaxInt64},
	}
	flags.Visit(func(f *pflag.Flag) {
		r, ok := ranges[f.Name]
		n, _ := strconv.ParseInt(f.Value.String(), 10, 64)
		if !ok || r[0] <= n && n <= r[1] {
			return
		}
		want := fmt.Sprintf("%d to %d", r[0], r[1])
		if r[1] == math.MaxInt64 {
			want = fmt.Sprintf("%d or more", r[0])
		}
		err = errors.Join(err, fmt.Errorf("--%s %d: it must be %s", f.Name, n, want), f.Value.Set(f.DefValue))
	})
	return err
}

// noneMisplaced refuses the address of a server in any flag other than --db, and as an
// argument. Taken for a file or a workspace it would be shown and stored, with its password.
// The arguments of explain are URLs of any kind.
func noneMisplaced(cmd *cobra.Command, args []string) (err error) {
	if cmd.Name() != "explain" && slices.ContainsFunc(args, isPostgres) {
		err = errors.New("an argument is the address of a store: put it after --db")
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if f.Name != "db" && slices.ContainsFunc(values, isPostgres) {
			err = errors.Join(err, fmt.Errorf("--%s has the address of a store: put it after --db", f.Name))
		}
	})
	return err
}

// flagError marks an error of a flag as wrong usage. For an unknown flag it adds where the
// flags are listed. For a value that cannot be parsed it says what is wanted, rather than
// which function failed.
func flagError(cmd *cobra.Command, err error) error {
	if errors.As(err, new(*pflag.NotExistError)) {
		err = fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		want := map[string]string{"bool": "true or false", "duration": "a time such as 30s or 2m", "intSlice": "a list of whole numbers such as 0,1,2"}
		flag := invalid.GetFlag()
		err = fmt.Errorf("--%s: %q is not %s", flag.Name, invalid.GetValue(), cmp.Or(want[flag.Value.Type()], "a whole number of at most 18 digits"))
	}
	return usage(err)
}

// errRejected ends a run that did its work but rejected rows.
var errRejected = errors.New("rows were rejected")

// errDiffers ends a verify or diff that found something.
var errDiffers = errors.New("there are differences")

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, new(*pipeline.UsageError)), errors.As(err, new(*columns.UsageError)),
		errors.Is(err, outdir.ErrExists), errors.Is(err, manifest.ErrNotOurs),
		errors.Is(err, sink.ErrOldTables), errors.Is(err, postgres.ErrAddress):
		return exitUsage
	case errors.Is(err, errRejected):
		return exitRejected
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.As(err, new(*pipeline.TooManyRejectsError)):
		return exitTooMany
	case errors.Is(err, sink.ErrRetryable), errors.Is(err, sink.ErrConflict), errors.Is(err, sink.ErrLocked), errors.Is(err, outdir.ErrBusy):
		return exitStore
	}
	return exitFailed
}
