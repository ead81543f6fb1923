package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

// A Bench is one run of a harness.
type Bench struct {
	Options
	Work   string // working directory of all steps, removed at the end
	Bulk   string // bulk, built from the checkout
	Result Result
}

// Main runs a harness, whose working directory must be the root of the checkout. It reads
// the options, builds bulk and the programs (packages of the peers) into a new directory,
// changes to that directory, calls run and writes the result. If run fails or the process
// is interrupted, the sections that are complete are written. The directory is always
// removed. Main returns the exit code.
func Main(defaults Options, programs []string, run func(context.Context, *Bench) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &Bench{Options: defaults}
	err := b.read()
	if err == nil {
		err = b.main(ctx, programs, run)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func (b *Bench) main(ctx context.Context, programs []string, run func(context.Context, *Bench) error) (err error) {
	if b.Work, err = os.MkdirTemp(b.Tmp, "bulk-bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.Work)) }()
	b.Bulk = b.Path("bulk")
	b.Result = Result{Name: b.Name, Command: b.command(), Machine: Inspect(ctx)}
	if b.Old != "" {
		version, err := Output(ctx, b.Old, "--version")
		if err != nil {
			return err
		}
		b.Result.Machine.Versions["old"] = version
	}
	build := []string{b.Go, "build", "-trimpath", "-o", b.Work + string(filepath.Separator), "./cmd/bulk"}
	if _, err := Output(ctx, append(build, programs...)...); err != nil {
		return err
	}
	// A server of another account reads files in it.
	if err := errors.Join(os.Chmod(b.Work, 0o755), os.Chdir(b.Work)); err != nil {
		return err
	}
	err = run(ctx, b)
	if len(b.Result.Sections) == 0 {
		return err
	}
	page, werr := b.Result.Write(b.Results)
	fmt.Println("\n" + page)
	return errors.Join(err, werr)
}

// Path is the absolute path of a file in the directory of the run.
func (b *Bench) Path(name string) string { return filepath.Join(b.Work, name) }

// old ends the names of the steps of the other bulk.
const old = " (old)"

// Both returns the group of steps of bulk and, if there is another bulk to compare with,
// the group of that one. The name of each step must end with the suffix.
func (b *Bench) Both(group func(program, suffix string) Group) []Group {
	groups := []Group{group(b.Bulk, "")}
	if b.Old != "" {
		groups = append(groups, group(b.Old, old))
	}
	return groups
}

// noise is how much slower than the other bulk a step may be.
const noise = 1.05

// Section measures groups and adds them to the result as a section. Its aims compare each
// step with that of the other bulk, if there is one.
func (b *Bench) Section(ctx context.Context, s Section, groups ...Group) ([]Sample, error) {
	fmt.Printf("\n%s\n", s.Title)
	samples, err := b.rounds(ctx, groups)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Title, err)
	}
	s.Samples = samples
	b.Result.Sections = append(b.Result.Sections, s)
	for _, step := range steps(samples) {
		b.Aim(Aim{step + " / old", Ratio(samples, step, step+old, Sample.Total), noise, "×"},
			Aim{step + " / old, CPU", Ratio(samples, step, step+old, Sample.cpu), noise, "×"})
	}
	return samples, nil
}

// Aim adds aims to the last section, except those without a finite value, whose steps were
// not measured.
func (b *Bench) Aim(aims ...Aim) {
	last := &b.Result.Sections[len(b.Result.Sections)-1]
	for _, aim := range aims {
		if aim.Value < math.Inf(1) {
			last.Aims = append(last.Aims, aim)
		}
	}
}

// Remove returns a preparation that deletes files and directories.
func Remove(paths ...string) func(context.Context) error {
	return func(context.Context) (err error) {
		for _, p := range paths {
			err = errors.Join(err, os.RemoveAll(p))
		}
		return err
	}
}

// Generator is the package of the program that makes the lists.
const Generator = "./benchmarks/generate"

// Generator returns the arguments of the program that writes a list without rejects to
// standard output. args are its other flags.
func (b *Bench) Generator(rows int64, args ...string) []string {
	return append([]string{b.Path("generate"), "-rows", strconv.FormatInt(rows, 10), "-rejects", "0"}, args...)
}

// Generate writes a list to a file.
func (b *Bench) Generate(ctx context.Context, file string, rows int64, args ...string) error {
	_, err := Command{Args: b.Generator(rows, args...), Stdout: file}.Run(ctx)
	return err
}
