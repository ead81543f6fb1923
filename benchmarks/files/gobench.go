package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/benchmarks/harness"
)

// benchstat is the tool that summarises Go benchmarks, pinned.
const benchstat = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"

// goBenchmarks runs the benchmarks of the packages on the way of a row.
func (b *bench) goBenchmarks(ctx context.Context) error {
	packages := []string{"./canon", "./codegen", "./pipeline/source", "./pipeline/extsort", "./pipeline/report", "./sink/sqlite"}
	fmt.Fprintln(b.Out, "\nGo benchmarks")
	var raw strings.Builder
	for _, p := range packages {
		out, err := harness.Output(ctx, b.Root, b.Go, "test", "-run", "^$", "-bench", ".", "-benchmem", "-timeout", "0", "-count", strconv.Itoa(b.GoCount), p)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", p, err, out)
		}
		fmt.Fprintln(b.Out, out)
		raw.WriteString(out + "\n")
	}
	file, err := b.Keep("go.txt", []byte(raw.String()))
	if err != nil {
		return err
	}
	text, err := harness.Output(ctx, b.Root, b.Go, "run", benchstat, file)
	if err != nil {
		fmt.Fprintln(b.Out, "without benchstat:", err)
		text = strings.TrimSpace(raw.String())
	}
	text = strings.ReplaceAll(text, file, "now")
	b.Result.Sections = append(b.Result.Sections, harness.Section{
		Title: fmt.Sprintf("Go benchmarks, %d counts", b.GoCount), Note: "By benchstat, from `" + b.Name + "-go.txt`.", Text: text,
	})
	return nil
}

// A counted benchmark is run under callgrind. The processor that it simulates
// has no instructions for SHA-256, so hashing counts many more than it takes.
type counted struct{ pkg, bench string }

var collected = regexp.MustCompile(`Collected\s*:\s*(\d+)`)

// instructions counts instructions of an operation, which do not drift with what
// else the machine does.
func (b *bench) instructions(ctx context.Context) error {
	if _, err := exec.LookPath("valgrind"); errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintln(b.Out, "\nno valgrind: instructions not counted")
		return nil
	}
	fmt.Fprintln(b.Out, "\ninstructions")
	var text strings.Builder
	for _, c := range []counted{{"canon", "Append/kind=ordinary"}, {"canon", "Append/kind=dirty"}, {"codegen", "HashAndCode/length=10"}} {
		n, err := b.count(ctx, c)
		if err != nil {
			return fmt.Errorf("%s %s: %w", c.pkg, c.bench, err)
		}
		line := fmt.Sprintf("%-8s %-24s %8.0f instructions/op\n", c.pkg, c.bench, n)
		fmt.Fprint(b.Out, line)
		text.WriteString(line)
	}
	b.Result.Sections = append(b.Result.Sections, harness.Section{Title: "Instructions", Note: "Counted by callgrind, whose processor has no instructions of its own for SHA-256.", Text: strings.TrimSpace(text.String())})
	return nil
}

// count runs a benchmark with few operations and with many, and divides the
// difference.
func (b *bench) count(ctx context.Context, c counted) (float64, error) {
	const few, many = 2_000, 52_000
	binary := b.Path(c.pkg + ".test")
	if _, err := harness.Output(ctx, b.Root, b.Go, "test", "-c", "-o", binary, "./"+c.pkg); err != nil {
		return 0, err
	}
	var counts [2]float64
	for i, n := range []int{few, many} {
		log := b.Path("callgrind.log")
		_, err := harness.Output(ctx, filepath.Join(b.Root, c.pkg),
			"env", "GODEBUG=asyncpreemptoff=1", // callgrind cannot follow the signals
			"valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file="+log,
			binary, "-test.run", "^$", "-test.bench", anchored(c.bench), "-test.benchtime", strconv.Itoa(n)+"x", "-test.cpu", "1")
		if err != nil {
			return 0, err
		}
		data, err := os.ReadFile(log)
		if err != nil {
			return 0, err
		}
		m := collected.FindSubmatch(data)
		if m == nil {
			return 0, errors.New("callgrind told no count")
		}
		counts[i], _ = strconv.ParseFloat(string(m[1]), 64)
	}
	return (counts[1] - counts[0]) / (many - few), nil
}

// anchored is a pattern for that benchmark alone.
func anchored(bench string) string {
	return "^Benchmark" + strings.ReplaceAll(bench, "/", "$/^") + "$"
}
