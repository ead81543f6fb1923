// Command bulk-beam does the tasks of a plan of bulk stage on Apache Spark or Apache Flink, through Apache
// Beam.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal"
	"github.com/linkforge/bulk/internal/crash"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/beam"
	"github.com/linkforge/bulk/pipeline/stage"
)

const help = `bulk-beam does the tasks of a plan of bulk stage on Apache Spark or Apache Flink,
through Apache Beam. The result is that of bulk stage, byte for byte:

  bulk stage plan 'in/*.csv' --workspace demo --out OUT
  bulk-beam --out OUT --endpoint HOST:PORT --environment_type PROCESS

All options of the run are in the plan. The inputs and OUT must be on a disk that
all workers share, under the same names. bulk and bulk-beam must be of one version:
build both with make.

Flags:
  --out DIR               the directory of the plan
  --endpoint HOST:PORT    the job server of the engine (default: no engine, all is
                          done in this process)
  --environment_type T    where the tasks run:
                          LOOPBACK: in this process, for engines of one worker
                          PROCESS: the engine starts this program, which is on each
                          machine under the same name
                          EXTERNAL, DOCKER: as Beam describes; the disk must be there
  --environment_config C  PROCESS: other than this program (as JSON, see Beam)
  --parallelism N         so many tasks at once (default: the engine decides)
  --scheme-key-file FILE  the secret of the scheme, on each machine
                          (default: the variable BULK_SCHEME_KEY of each worker)
  --workers N             use N CPU cores for a task, of which an engine does several
                          at once in a process (default: 1)
  --tmp DIR               for rows that do not fit in memory (default: TMPDIR)
  --rejects-ok            exit with 0 instead of 3 if rows are rejected
  --verbose               show what Beam and the engine say
  --version               show the version
Other flags of Beam's Go SDK are taken, too.

Exit codes are those of bulk: 0 done, 1 failed, 2 wrong usage, 3 rows are rejected,
4 too many rejects or another number of rows than expected, 130 interrupted.
`

// Exit codes, those of bulk.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitRejected = 3
	exitTooMany  = 4

	exitInterrupted = 130
)

func main() {
	crash.AsSignal()
	args, err := boot(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bulk-beam:", err)
		os.Exit(exitFailed)
	}
	os.Args = args
	os.Exit(bulkBeam(flag.CommandLine, args[1:], os.Stdout, os.Stderr))
}

// options are the flags that Beam does not have.
type options struct {
	place               beam.Place
	rejectsOK, verbose  bool
	version, helpWanted bool
}

func (o *options) define(f *flag.FlagSet) {
	f.StringVar(&o.place.Out, "out", "", "")
	f.StringVar(&o.place.KeyFile, "scheme-key-file", "", "")
	f.StringVar(&o.place.TempDir, "tmp", "", "")
	f.IntVar(&o.place.Workers, "workers", 1, "")
	f.BoolVar(&o.rejectsOK, "rejects-ok", false, "")
	f.BoolVar(&o.verbose, "verbose", false, "")
	f.BoolVar(&o.version, "version", false, "")
	f.BoolVar(&o.helpWanted, "help", false, "")
}

// bulkBeam runs the command, or a worker of an engine, and returns the exit code. Beam has its flags in a
// set of the process, and so must those of the command be.
func bulkBeam(flags *flag.FlagSet, args []string, stdout, stderr io.Writer) int {
	var o options
	o.define(flags)
	flags.Usage = func() {}
	flags.SetOutput(io.Discard)
	flags.Init("bulk-beam", flag.ContinueOnError)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp) || err == nil && o.helpWanted:
		fmt.Fprint(stdout, help)
		return 0
	case err == nil && o.version:
		fmt.Fprintln(stdout, beam.Version())
		return 0
	case err == nil:
		sdk.Init() // a worker does not return
		o.show(stderr)
		err = o.check(flags)
	}
	if err != nil {
		fmt.Fprintf(stderr, "bulk-beam: %v\nbulk-beam --help shows all flags\n", err)
		return exitUsage
	}
	run, err := o.run()
	if run != nil {
		tell(stdout, run)
	}
	code := exitCode(err)
	if code == 0 && run.Manifest.Counts.Rejected > 0 && !o.rejectsOK {
		return exitRejected
	}
	if err != nil {
		if !o.verbose {
			err = beam.Short(err)
		}
		fmt.Fprintln(stderr, "bulk-beam:", strings.NewReplacer("Config.AllowEmpty", "--allow-empty", "Config.BaseURL", "--base-url", "Config.Scheme.Secret", "--scheme-key-file").Replace(err.Error()))
	}
	return code
}

// check refuses what cannot work, before anything begins.
func (o *options) check(flags *flag.FlagSet) error {
	env := strings.ToUpper(*jobopts.EnvironmentType)
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("%q is no flag: the inputs are in the plan", flags.Arg(0))
	case o.place.Out == "":
		return errors.New("--out is missing: it is the directory of a plan of bulk stage")
	case o.place.Workers < 1:
		return fmt.Errorf("--workers %d: it must be 1 or more", o.place.Workers)
	case *jobopts.Async:
		return errors.New("--async cannot be used: the command goes on when the engine has done the tasks")
	case *jobopts.Endpoint != "" && env == "":
		return errors.New("--environment_type is missing: it is LOOPBACK, PROCESS, EXTERNAL or DOCKER")
	case env != "" && !slices.Contains([]string{"LOOPBACK", "PROCESS", "EXTERNAL", "DOCKER"}, env):
		return fmt.Errorf("--environment_type %s: it must be LOOPBACK, PROCESS, EXTERNAL or DOCKER", env)
	case strings.Contains(*jobopts.EnvironmentConfig, pipeline.SecretVariable):
		return fmt.Errorf("--environment_config: the engine shows it to its users: set %s on its machines, or use --scheme-key-file", pipeline.SecretVariable)
	}
	return nil
}

// run does the tasks. What Beam leaves in the directory for temporary files is removed at the end.
func (o *options) run() (run *stage.Run, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp(o.place.TempDir, "bulk-beam-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return nil, err
	}
	if strings.EqualFold(*jobopts.EnvironmentType, "PROCESS") {
		if err := asProcess(dir); err != nil {
			return nil, err
		}
	}
	runner := "prism"
	if *jobopts.Endpoint != "" {
		runner = "universal"
	}
	run, err = beam.Run(ctx, runner, o.place)
	if err != nil && ctx.Err() != nil {
		if err = errInterrupted; runner != "prism" {
			err = fmt.Errorf("%w: the job goes on at the engine: cancel it there", err)
		}
	}
	return run, err
}

var errInterrupted = errors.New("interrupted")

// asProcess has the engine start this program for its tasks. Beam would send it the whole program, which it
// does not use: it gets a small file.
func asProcess(dir string) error {
	if *jobopts.EnvironmentConfig == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		config, err := json.Marshal(map[string]string{"command": self})
		if err != nil {
			return err
		}
		*jobopts.EnvironmentConfig = string(config)
	}
	if *jobopts.WorkerBinary == "" {
		*jobopts.WorkerBinary = filepath.Join(dir, "not-used")
		return os.WriteFile(*jobopts.WorkerBinary, []byte("PROCESS starts the program that is on the machine\n"), 0o666)
	}
	return nil
}

// tell says what came of the run, as bulk stage commit does in its log.
func tell(to io.Writer, run *stage.Run) {
	c := run.Manifest.Counts
	fmt.Fprintf(to, "read=%d created=%d existing=%d duplicate=%d rejected=%d out=%s manifest_sha256=%s\n",
		c.Read, c.Created, c.Existing, c.Duplicate, c.Rejected, run.Out, run.Digest)
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, new(*pipeline.TooManyRejectsError)):
		return exitTooMany
	case stage.IsUsage(err):
		return exitUsage
	}
	return exitFailed
}

// silent is above all levels.
const silent = slog.LevelError + 1

// show has Beam and its runner prism show all that they have to say, or nothing: what fails is in the error.
func (o *options) show(to io.Writer) {
	level := silent
	if o.verbose {
		level = slog.LevelInfo
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level})))
	log.SetLogger(&logger{to, o.verbose})
}

// A logger shows what Beam has to say.
type logger struct {
	to  io.Writer
	all bool
}

// Log implements log.Logger.
func (l *logger) Log(_ context.Context, sev log.Severity, _ int, msg string) {
	if l.all && sev >= log.SevInfo || sev >= log.SevFatal {
		fmt.Fprintln(l.to, "bulk-beam:", strings.TrimSpace(msg))
	}
}
