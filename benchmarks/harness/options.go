package harness

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// warm is the default of Options.Warm.
const warm = 2 << 30

// Options are common to the harnesses; each has a variable of the environment,
// for make, and a flag of the same name.
type Options struct {
	Rows    int64  // BENCH_ROWS
	Count   int    // BENCH_COUNT
	Parts   string // BENCH_PARTS: some of the parts, separated by commas; "": all
	Large   bool   // BENCH_LARGE: also what takes long and much of the disk
	Name    string // BENCH_NAME: of the result, without extension
	Results string // BENCH_RESULTS: folder of the result
	Bulk    string // BENCH_BULK: bulk to measure; "": built from the checkout
	Old     string // BENCH_OLD: another bulk to measure beside it; "": none
	GoCount int    // BENCH_GO_COUNT: counts of the Go benchmarks; 0: Count
	Tmp     string // BENCH_TMP: folder for the files; "": that of the system
	Warm    int64  // BENCH_WARM: bytes of memory that are touched before each step; 0: none
}

func (o *Options) flags(f *flag.FlagSet) {
	f.Int64Var(&o.Rows, "rows", number("BENCH_ROWS", 3_000_000), "rows of the lists")
	f.IntVar(&o.Count, "count", int(number("BENCH_COUNT", int64(o.Count))), "rounds")
	f.StringVar(&o.Parts, "parts", os.Getenv("BENCH_PARTS"), "parts to measure, separated by commas (default: all)")
	f.BoolVar(&o.Large, "large", number("BENCH_LARGE", 0) != 0, "measure also what takes long and much of the disk")
	f.StringVar(&o.Name, "name", env("BENCH_NAME", o.Name+"-"+time.Now().UTC().Format("2006-01-02")), "name of the result")
	f.StringVar(&o.Results, "results", env("BENCH_RESULTS", o.Results), "folder of the result")
	f.StringVar(&o.Bulk, "bulk", os.Getenv("BENCH_BULK"), "bulk to measure (default: built from the checkout)")
	f.StringVar(&o.Old, "old", os.Getenv("BENCH_OLD"), "another bulk to measure beside it")
	f.IntVar(&o.GoCount, "go-count", int(number("BENCH_GO_COUNT", 0)), "counts of the Go benchmarks (default: as many as rounds)")
	f.Int64Var(&o.Warm, "warm", number("BENCH_WARM", warm), "bytes of memory that are touched before each step")
	f.StringVar(&o.Tmp, "tmp", os.Getenv("BENCH_TMP"), "folder for the files (default: TMPDIR)")
}

func env(name, value string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return value
}

// number is a variable that is a whole number; what is none is as good as not
// set.
func number(name string, value int64) int64 {
	if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return value
}

// Has reports whether a part is to be measured.
func (o *Options) Has(part string) bool {
	return o.Parts == "" || slices.Contains(strings.Split(o.Parts, ","), part)
}

// Make is the command that measures the same again.
func (o *Options) Make(target string) string {
	command := fmt.Sprintf("make %s BENCH_ROWS=%d BENCH_COUNT=%d", target, o.Rows, o.Count)
	if o.Parts != "" {
		command += " BENCH_PARTS=" + o.Parts
	}
	if o.Large {
		command += " BENCH_LARGE=1"
	}
	if o.Warm != warm {
		command += fmt.Sprintf(" BENCH_WARM=%d", o.Warm)
	}
	return command
}
