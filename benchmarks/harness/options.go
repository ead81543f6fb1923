package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// warm is the default of Options.Warm.
const warm = 2 << 30

// Options are common to the harnesses; each but Known has a variable of the
// environment, for make, and a flag of the same name.
type Options struct {
	Known   []string // the parts that the harness has
	Rows    int64    // BENCH_ROWS
	Count   int      // BENCH_COUNT
	Parts   string   // BENCH_PARTS: some of the parts, separated by commas; "": all
	Large   bool     // BENCH_LARGE: also what takes long and much of the disk
	Name    string   // BENCH_NAME: of the result, without extension
	Results string   // BENCH_RESULTS: folder of the result
	Go      string   // BENCH_GO: the go command
	Bulk    string   // BENCH_BULK: bulk to measure; "": built from the checkout
	Old     string   // BENCH_OLD: another bulk to measure beside it; "": none
	GoCount int      // BENCH_GO_COUNT: counts of the Go benchmarks; 0: Count
	Tmp     string   // BENCH_TMP: folder for the files; "": that of the system
	Warm    int64    // BENCH_WARM: bytes of memory that are touched before each step; 0: none

	built bool // Bulk is built from the checkout
}

// parse reads the options from the environment, then from the arguments.
func (o *Options) parse(f *flag.FlagSet, args []string) error {
	o.flags(f)
	if err := fromEnv(f); err != nil {
		return err
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q: there are flags only", f.Arg(0))
	}
	if o.GoCount == 0 {
		o.GoCount = o.Count
	}
	return o.check()
}

func (o *Options) flags(f *flag.FlagSet) {
	f.Int64Var(&o.Rows, "rows", 3_000_000, "rows of the lists")
	f.IntVar(&o.Count, "count", o.Count, "rounds")
	f.StringVar(&o.Parts, "parts", "", "parts to measure, separated by commas (default: all)")
	f.BoolVar(&o.Large, "large", false, "measure also what takes long and much of the disk")
	f.StringVar(&o.Name, "name", o.Name+"-"+time.Now().UTC().Format(time.DateOnly), "name of the result")
	f.StringVar(&o.Results, "results", o.Results, "folder of the result")
	f.StringVar(&o.Go, "go", "go", "go command that builds what is measured")
	f.StringVar(&o.Bulk, "bulk", "", "bulk to measure (default: built from the checkout)")
	f.StringVar(&o.Old, "old", "", "another bulk to measure beside it")
	f.IntVar(&o.GoCount, "go-count", 0, "counts of the Go benchmarks (default: as many as rounds)")
	f.Int64Var(&o.Warm, "warm", warm, "bytes of memory that are touched before each step")
	f.StringVar(&o.Tmp, "tmp", "", "folder for the files (default: TMPDIR)")
}

// fromEnv sets each flag that has a variable.
func fromEnv(f *flag.FlagSet) (err error) {
	f.VisitAll(func(fl *flag.Flag) {
		name := "BENCH_" + strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_"))
		value := os.Getenv(name)
		if value == "" {
			return
		}
		if wrong := fl.Value.Set(value); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s=%s: %w", name, value, wrong))
		}
	})
	return err
}

// check tells what is wrong with the options.
func (o *Options) check() error {
	if o.Rows < 1 || o.Count < 1 {
		return errors.New("rows and rounds are at least 1")
	}
	for part := range strings.SplitSeq(o.Parts, ",") {
		if o.Parts != "" && !slices.Contains(o.Known, part) {
			return fmt.Errorf("no part %q; there are %s", part, strings.Join(o.Known, ", "))
		}
	}
	return nil
}

// Has reports whether a part is to be measured.
func (o *Options) Has(part string) bool {
	return o.Parts == "" || slices.Contains(strings.Split(o.Parts, ","), part)
}

// Make is the command that measures the same again, but for where on this machine
// other programs lie.
func (o *Options) Make(target string) string {
	command := fmt.Sprintf("make %s BENCH_ROWS=%d BENCH_COUNT=%d", target, o.Rows, o.Count)
	if o.Parts != "" {
		command += " BENCH_PARTS=" + o.Parts
	}
	if o.Large {
		command += " BENCH_LARGE=1"
	}
	if o.Bulk != "" && !o.built {
		command += " BENCH_BULK=…"
	}
	if o.Old != "" {
		command += " BENCH_OLD=…"
	}
	if o.GoCount != o.Count {
		command += fmt.Sprintf(" BENCH_GO_COUNT=%d", o.GoCount)
	}
	if o.Warm != warm {
		command += fmt.Sprintf(" BENCH_WARM=%d", o.Warm)
	}
	return command
}
