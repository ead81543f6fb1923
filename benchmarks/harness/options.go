package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// warm is the default of Options.Warm.
const warm = 2 << 30

// Options are the settings of a harness. The harness sets the first three fields; the
// others, and Count, are read from variables of the environment, which make passes on.
type Options struct {
	Target  string   // of make; also the beginning of the default of Name
	Known   []string // all parts of the harness
	Count   int64    // BENCH_COUNT: rounds
	Rows    int64    // BENCH_ROWS: rows of the lists
	Parts   string   // BENCH_PARTS: parts to measure, separated by commas; "": all
	Old     string   // BENCH_OLD: another bulk to measure beside this one; "": none
	Warm    int64    // BENCH_WARM: bytes of memory to touch before each step; 0: none
	Go      string   // BENCH_GO: the go command
	Name    string   // BENCH_NAME: of the result, without extension
	Results string   // BENCH_RESULTS: directory of the result
	Tmp     string   // BENCH_TMP: directory for the files
}

// read reads the options from the environment.
func (o *Options) read() error {
	o.Rows, o.Warm, o.Go, o.Results, o.Tmp = 3_000_000, warm, "go", "benchmarks/results", os.TempDir()
	o.Name = o.Target + "-" + time.Now().UTC().Format(time.DateOnly)
	err := errors.Join(number("BENCH_COUNT", 1, &o.Count), number("BENCH_ROWS", 1, &o.Rows), number("BENCH_WARM", 0, &o.Warm))
	for name, value := range map[string]*string{"PARTS": &o.Parts, "GO": &o.Go, "NAME": &o.Name, "RESULTS": &o.Results, "TMP": &o.Tmp, "OLD": &o.Old} {
		if s := os.Getenv("BENCH_" + name); s != "" {
			*value = s
		}
	}
	for part := range strings.SplitSeq(o.Parts, ",") {
		if o.Parts != "" && !slices.Contains(o.Known, part) {
			err = errors.Join(err, fmt.Errorf("BENCH_PARTS: no part %q; there are %s", part, strings.Join(o.Known, ", ")))
		}
	}
	// The steps run in a directory of their own.
	for _, path := range []*string{&o.Results, &o.Tmp, &o.Old} {
		if *path != "" {
			abs, failed := filepath.Abs(*path)
			*path, err = abs, errors.Join(err, failed)
		}
	}
	return err
}

// number reads a number of at least least, if the variable is set.
func number(name string, least int64, value *int64) (err error) {
	s := os.Getenv(name)
	if s == "" {
		return nil
	}
	if *value, err = strconv.ParseInt(s, 10, 64); err != nil || *value < least {
		return fmt.Errorf("%s=%s: want a whole number of at least %d", name, s, least)
	}
	return nil
}

// Has reports whether a part is to be measured.
func (o *Options) Has(part string) bool {
	return o.Parts == "" || slices.Contains(strings.Split(o.Parts, ","), part)
}

// command is the command that measures the same again, without paths of this machine.
func (o *Options) command() string {
	command := fmt.Sprintf("make %s BENCH_ROWS=%d BENCH_COUNT=%d", o.Target, o.Rows, o.Count)
	if o.Parts != "" {
		command += " BENCH_PARTS=" + o.Parts
	}
	if o.Old != "" {
		command += " BENCH_OLD=…"
	}
	if o.Warm != warm {
		command += fmt.Sprintf(" BENCH_WARM=%d", o.Warm)
	}
	return command
}
