// Command files is the harness of make bench: it measures bulk from lists in files to
// mappings in files and to an SQLite file, and the checks of a finished run, beside DuckDB,
// a naive program, and dd, which copies the same bytes. Its settings are those of package
// harness.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/linkforge/bulk/benchmarks/harness"
	"github.com/linkforge/bulk/pipeline/outdir"
)

// workers is how many goroutines and threads each side gets, so that the figures
// of machines with more cores can be compared.
const workers = 2

// parts are in the order in which they are measured.
var parts = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"csv", (*bench).csv}, {"parquet", (*bench).parquet}, {"sqlite", (*bench).sqlite}, {"memory", (*bench).memory}, {"campaign", (*bench).campaign}, {"pipe", (*bench).pipe},
}

func main() {
	var known []string
	for _, p := range parts {
		known = append(known, p.name)
	}
	os.Exit(harness.Main(harness.Options{Target: "bench", Known: known, Count: 10}, []string{harness.Generator, "./benchmarks/naive"}, run))
}

// A bench is one run of this harness.
type bench struct {
	*harness.Bench
	duck []string // start of DuckDB's command line; nil: it could not be installed
}

func run(ctx context.Context, h *harness.Bench) (err error) {
	b := &bench{Bench: h}
	if b.Has("csv") || b.Has("parquet") {
		if b.duck, err = b.duckdb(ctx); err != nil {
			fmt.Println("DuckDB is not measured:", err)
			b.duck = nil
		} else {
			b.Result.Machine.Versions["DuckDB"] = duckdbVersion
		}
	}
	for _, part := range parts {
		if !b.Has(part.name) {
			continue
		}
		if err := part.run(b, ctx); err != nil {
			return fmt.Errorf("part %s: %w", part.name, err)
		}
	}
	return nil
}

// dryRun is a run of a bulk without a store. It writes to dryOut(name).
func (b *bench) dryRun(program, name, input string, flags ...string) harness.Step {
	return b.runTo(dryOut(name), program, name, input, append(flags, "--db", "sqlite:none", "--dry-run")...)
}

// dryOut is the directory that a dry run of this name writes.
func dryOut(name string) string { return outdir.DryOf(name + ".bulk") }

// run is a run of a bulk into name.bulk.
func (b *bench) run(program, name, input string, flags ...string) harness.Step {
	return b.runTo(name+".bulk", program, name, input, flags...)
}

// runTo is a run of a bulk that writes the directory written.
func (b *bench) runTo(written, program, name, input string, flags ...string) harness.Step {
	step := b.reader(program, name, append([]string{"run", input, "--workspace", "demo", "--out", name + ".bulk", "--as-of", harness.AsOf}, flags...)...)
	step.Prepare = harness.Remove(written)
	step.Done = func(_ context.Context, s *harness.Sample) error { return s.BulkOutput(written) }
	return step
}

// reader is a command of a bulk that writes no file.
func (b *bench) reader(program, name string, args ...string) harness.Step {
	args = append([]string{program}, append(args, "--workers", strconv.Itoa(workers))...)
	return harness.Step{Name: name, Rows: b.Rows, Command: harness.Command{Args: args}}
}

// peer is another program, which writes one file.
func (b *bench) peer(name, output string, args ...string) harness.Step {
	return harness.Step{
		Name: name, Rows: b.Rows, Prepare: harness.Remove(output), Command: harness.Command{Args: args},
		Done: func(_ context.Context, s *harness.Sample) error { return s.Written(output) },
	}
}

// dd copies the mapping of bulk to copy.FORMAT: the least that writing it takes.
func (b *bench) dd(format string) harness.Group {
	out := "copy." + format
	return harness.Group{b.peer("dd of the same bytes", out, "dd", "if="+dryOut("bulk")+"/mapping."+format, "of="+out, "bs=1M")}
}

// sql is DuckDB doing its part of the job to a file. There is no such group if it could
// not be installed.
func (b *bench) sql(output, statement string) []harness.Group {
	if b.duck == nil {
		return nil
	}
	return []harness.Group{{b.peer("DuckDB", output, append(b.duck, statement)...)}}
}
