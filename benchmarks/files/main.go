// Command files is the harness of make bench: lists in files to mappings in
// files, and to an SQLite file, beside DuckDB, a naive program, and what writing
// the same bytes takes. Its options are those of package harness.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/linkforge/bulk/benchmarks/duckdb"
	"github.com/linkforge/bulk/benchmarks/harness"
)

// workers is how many goroutines and threads each side gets, so that the figures
// of machines with more cores can be compared.
const workers = 2

// parts are in the order in which they are measured.
var parts = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"csv", (*bench).csv}, {"parquet", (*bench).parquet}, {"sqlite", (*bench).sqlite}, {"verify", (*bench).verify},
	{"scale", (*bench).scale}, {"memory", (*bench).memory}, {"alphagov", (*bench).alphagov}, {"go", (*bench).goBenchmarks},
	{"instructions", (*bench).instructions},
}

func main() {
	var known []string
	for _, p := range parts {
		known = append(known, p.name)
	}
	os.Exit(harness.Main(harness.Options{Known: known, Count: 10, Name: "bench", Results: "benchmarks/results"},
		[]string{"./benchmarks/generate", "./benchmarks/naive"}, run))
}

// A bench is a run of this harness.
type bench struct {
	*harness.Bench
	duck *duckdb.DB // nil: could not be installed
}

func run(ctx context.Context, h *harness.Bench) error {
	b := &bench{Bench: h}
	b.Result.Command = b.Make("bench")
	if b.Has("csv") || b.Has("parquet") {
		var err error
		if b.duck, err = duckdb.Install(ctx, b.Work); err != nil {
			fmt.Fprintln(b.Out, "without DuckDB:", err)
		} else {
			b.Result.Machine.Versions["DuckDB"] = b.duck.Version
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

// list generates a list without rejects, which the peers know nothing of.
func (b *bench) list(ctx context.Context, name, format string) error {
	return b.Generate(ctx, name, "-rows", strconv.FormatInt(b.Rows, 10), "-rejects", "0", "-format", format)
}

// dryRun is a run of a bulk without a store.
func (b *bench) dryRun(program, name string, rows int64, input string, flags ...string) harness.Step {
	return b.run(program, name, rows, input, append(flags, "--db", "sqlite:none", "--dry-run")...)
}

// run is a run of a bulk. Its output folder is name.bulk.
func (b *bench) run(program, name string, rows int64, input string, flags ...string) harness.Step {
	out := b.Path(name + ".bulk")
	args := []string{program, "run", input, "--workspace", "demo", "--out", out, "--as-of", harness.AsOf, "--workers", strconv.Itoa(workers)}
	return harness.Step{
		Name: name, Rows: rows, Prepare: harness.Remove(out),
		Command: func() harness.Command { return harness.Command{Args: append(args, flags...), Dir: b.Work} },
		Done:    func(_ context.Context, s *harness.Sample) error { return s.BulkOutput(out) },
	}
}

// peer is a program that writes one file.
func (b *bench) peer(name, output string, args ...string) harness.Group {
	out := b.Path(output)
	return harness.Group{{
		Name: name, Rows: b.Rows, Prepare: harness.Remove(out),
		Command: func() harness.Command { return harness.Command{Args: args, Dir: b.Work} },
		Done:    func(_ context.Context, s *harness.Sample) error { return s.Written(out) },
	}}
}

// old is the step of the other bulk, if there is one.
func (b *bench) old(step func(program, name string) harness.Step) (groups []harness.Group) {
	if b.Old != "" {
		groups = append(groups, harness.Group{step(b.Old, "bulk (old)")})
	}
	return groups
}
