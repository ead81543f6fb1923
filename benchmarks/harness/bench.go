package harness

import (
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// A Bench is a run of a harness.
type Bench struct {
	Options
	Root   string // of the checkout
	Work   string // folder for the files, removed at the end
	Out    io.Writer
	Result Result
}

// Main runs a harness: it reads the options, makes a folder, builds the programs
// of the packages and bulk into it, calls run, writes what there is of the result
// and removes the folder, also when run failed or the process was asked to end.
// It returns the exit code.
func Main(defaults Options, packages []string, run func(context.Context, *Bench) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &Bench{Options: defaults, Out: os.Stdout}
	if err := b.parse(flag.CommandLine, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	if err := b.main(ctx, packages, run); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func (b *Bench) main(ctx context.Context, packages []string, run func(context.Context, *Bench) error) (err error) {
	for _, path := range []*string{&b.Tmp, &b.Bulk, &b.Old} { // the steps have a folder of their own
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if b.Work, err = os.MkdirTemp(b.Tmp, "bulk-bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.Work)) }()
	// A server of another account reads files in it.
	if err := os.Chmod(b.Work, 0o755); err != nil {
		return err
	}
	if err := b.build(ctx, packages); err != nil {
		return err
	}
	b.Result.Name, b.Result.Machine = b.Name, Inspect(ctx, b.Root)
	if err := b.measured(ctx); err != nil {
		return err
	}
	err = run(ctx, b)
	if len(b.Result.Sections) == 0 {
		return err
	}
	page, werr := b.Result.Write(b.results())
	fmt.Fprintln(b.Out, "\n"+page)
	return errors.Join(err, werr)
}

// results is the folder of the result.
func (b *Bench) results() string {
	if filepath.IsAbs(b.Results) {
		return b.Results
	}
	return filepath.Join(b.Root, b.Results)
}

// Keep leaves data in a file beside the result, NAME-suffix.
func (b *Bench) Keep(suffix string, data []byte) (file string, err error) {
	if err := os.MkdirAll(b.results(), 0o755); err != nil {
		return "", err
	}
	file = filepath.Join(b.results(), b.Name+"-"+suffix)
	return file, os.WriteFile(file, data, 0o644)
}

// build builds the programs into the folder: bulk and each package's.
func (b *Bench) build(ctx context.Context, packages []string) error {
	mod, err := Output(ctx, "", b.Go, "env", "GOMOD")
	if err != nil {
		return err
	}
	b.Root = filepath.Dir(mod)
	if b.Bulk == "" {
		b.built = true
		b.Bulk = filepath.Join(b.Work, "bulk")
		packages = append(packages, "./cmd/bulk")
	}
	packages = append(packages, "./benchmarks/warm")
	args := []string{b.Go, "build", "-trimpath", "-o", b.Work + string(filepath.Separator)}
	_, err = Output(ctx, b.Root, append(args, packages...)...)
	return err
}

// measured notes by which Go bulk was built and, where it was given, its revision.
func (b *Bench) measured(ctx context.Context) error {
	info, err := buildinfo.ReadFile(b.Bulk)
	if err != nil {
		return err
	}
	b.Result.Machine.Go = info.GoVersion
	if !b.built {
		said, err := Output(ctx, "", b.Bulk, "--version")
		b.Result.Machine.Revision = strings.TrimPrefix(said, "bulk version ")
		return err
	}
	return nil
}

// Path is a file in the folder of the run.
func (b *Bench) Path(name string) string { return filepath.Join(b.Work, name) }

// Section measures groups as a section of the result.
func (b *Bench) Section(ctx context.Context, s Section, count int, groups ...Group) ([]Sample, error) {
	fmt.Fprintf(b.Out, "\n%s\n", s.Title)
	samples, err := b.rounds(ctx, count, groups)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Title, err)
	}
	s.Samples = samples
	b.Result.Sections = append(b.Result.Sections, s)
	return samples, nil
}

// Aim adds aims to the last section.
func (b *Bench) Aim(aims ...Aim) {
	last := &b.Result.Sections[len(b.Result.Sections)-1]
	last.Aims = append(last.Aims, aims...)
}

// Remove returns a preparation that removes files and folders.
func Remove(paths ...string) func(context.Context) error {
	return func(context.Context) (err error) {
		for _, p := range paths {
			err = errors.Join(err, os.RemoveAll(p))
		}
		return err
	}
}

// Generate writes a list with the generator to a file of the folder; the
// generator is among the packages.
func (b *Bench) Generate(ctx context.Context, name string, args ...string) error {
	_, err := Command{Args: append([]string{b.Path("generate")}, args...), Stdout: b.Path(name)}.Run(ctx)
	return err
}
