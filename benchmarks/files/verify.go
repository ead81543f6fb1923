package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/linkforge/bulk/benchmarks/harness"
)

const verifyNote = "Of %d rows with a report in %s: a run, what verify says of it by itself and against its input, and diff with an equal mapping. " +
	"The run includes writing to the disk, which the others do not. Each has %d workers."

// verify measures what checks a run beside the run that it checks.
func (b *bench) verify(ctx context.Context) error {
	for _, format := range []string{"csv", "parquet"} {
		input := "list." + format
		if err := b.list(ctx, input, format); err != nil {
			return err
		}
		if err := b.check(ctx, input, format); err != nil {
			return err
		}
	}
	return b.checkStored(ctx)
}

// check measures a run without a store.
func (b *bench) check(ctx context.Context, input, format string) error {
	flags := []string{"--report-format", format}
	twin := b.dryRun(b.Bulk, "twin", b.Rows, input, flags...)
	if err := twin.Prepare(ctx); err != nil {
		return err
	}
	if _, err := twin.Command().Run(ctx); err != nil {
		return err
	}
	run, folder := "run", b.Path("run.bulk")
	mapping := "mapping." + format
	groups := append([]harness.Group{
		{b.dryRun(b.Bulk, run, b.Rows, input, flags...)},
		{b.reader(b.Bulk, "verify", "verify", folder)},
		{b.reader(b.Bulk, "verify --inputs", "verify", folder, "--inputs", input)},
		{b.reader(b.Bulk, "diff", "diff", filepath.Join(folder, mapping), b.Path("twin.bulk/"+mapping))},
	}, b.old(func(program, name string) harness.Step {
		return b.reader(program, name+" verify", "verify", folder)
	})...)
	samples, err := b.Section(ctx, harness.Section{
		Title: fmt.Sprintf("Checking a run in %s, %s rows", format, size(b.Rows)), Note: fmt.Sprintf(verifyNote, b.Rows, format, workers), Reference: run,
	}, b.Count, groups...)
	if err != nil {
		return err
	}
	b.Aim(harness.Aim{Name: "verify / run", Unit: "×", Limit: 1, Value: harness.Ratio(samples, "verify", run, harness.Sample.Total)},
		harness.Aim{Name: "verify / run, CPU", Unit: "×", Limit: 1, Value: harness.Ratio(samples, "verify", run, cpu)})
	return nil
}

// checkStored measures a run into an SQLite file.
func (b *bench) checkStored(ctx context.Context) error {
	const run = "run into SQLite"
	db := "sqlite:" + b.Path(run+".db")
	samples, err := b.Section(ctx, harness.Section{
		Title:     fmt.Sprintf("Checking a run into SQLite, %s rows", size(b.Rows)),
		Note:      "verify with the store, whose links are all listed and checked.",
		Reference: run,
	}, b.Count, harness.Group{
		b.stored(b.Bulk, run, b.Rows, "list.csv"),
		b.reader(b.Bulk, "verify --db", "verify", b.Path(run+".bulk"), "--db", db),
	})
	if err != nil {
		return err
	}
	b.Aim(harness.Aim{Name: "verify --db / run", Unit: "×", Limit: 1, Value: harness.Ratio(samples, "verify --db", run, harness.Sample.Total)})
	return nil
}

// reader is a command of bulk that writes no file; what it must find is nothing.
func (b *bench) reader(program, name string, args ...string) harness.Step {
	args = append([]string{program}, append(args, "--workers", strconv.Itoa(workers))...)
	found := b.Path("found")
	return harness.Step{
		Name: name, Rows: b.Rows,
		Command: func() harness.Command { return harness.Command{Args: args, Dir: b.Work, Stdout: found} },
		Done: func(context.Context, *harness.Sample) error {
			return os.Remove(found)
		},
	}
}

// cpu is the processor time.
func cpu(s harness.Sample) float64 { return s.CPU }
