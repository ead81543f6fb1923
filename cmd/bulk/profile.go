package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strings"

	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/sink/sqlite"
	"github.com/spf13/pflag"
)

// profiles are files that tell where time and memory went; "": none.
type profiles struct{ cpu, memory, trace string }

func (p *profiles) flags(f *pflag.FlagSet) {
	f.StringVar(&p.cpu, "cpuprofile", "", "write a CPU profile for go tool pprof")
	f.StringVar(&p.memory, "memprofile", "", "write a memory profile for go tool pprof")
	f.StringVar(&p.trace, "trace", "", "write a trace for go tool trace")
}

// check refuses a profile that would be written over a file that does not begin as one of
// its kind, or into an input, the file of the store, which may be still to come, or another
// profile.
func (p *profiles) check(inputs []string, db string) error {
	const gzip = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff" // as runtime/pprof writes its header, without a name and a time
	taken, _ := source.Expand(inputs, nil)                  // who reads them tells the error
	if file, ok := strings.CutPrefix(db, "sqlite:"); ok {
		taken = append(taken, file)
	}
	var problems []error
	for _, f := range []struct{ flag, name, begins string }{{"cpuprofile", p.cpu, gzip}, {"memprofile", p.memory, gzip}, {"trace", p.trace, "go 1."}} {
		if f.name == "" {
			continue
		}
		if slices.ContainsFunc(taken, func(name string) bool { return sameFile(name, f.name) }) {
			problems = append(problems, fmt.Errorf("--%s: %s is an input, the store or another profile, which it would overwrite", f.flag, f.name))
		} else if err := replaceable(f.name, f.begins); err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", f.flag, err))
		}
		taken = append(taken, f.name)
	}
	return errors.Join(problems...)
}

// replaceable is the error of a file that has content which does not begin as its
// successor will.
func replaceable(name, begins string) error {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(begins))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != begins {
		return fmt.Errorf("%s is there and is not such a profile: it would be overwritten", name)
	}
	return nil
}

// sameFile tells whether two names are those of one file, be it there or not.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, errB := os.Stat(b)
	if err == nil && errB == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	a, err = sqlite.Resolve(a)
	b, errB = sqlite.Resolve(b)
	return err == nil && errB == nil && a == b
}

// start begins to profile. The function that it returns ends that and writes the
// files.
func (p *profiles) start() (stop func() error, err error) {
	var stops []func() error
	stop = func() (err error) {
		for _, s := range stops {
			err = errors.Join(err, s())
		}
		return err
	}
	record := func(name string, begin, end func(io.Writer) error) {
		if name == "" || err != nil {
			return
		}
		var f *os.File
		if f, err = os.Create(name); err != nil {
			return
		}
		stops = append(stops, func() error { return errors.Join(end(f), f.Close()) })
		err = begin(f)
	}
	record(p.cpu, pprof.StartCPUProfile, func(io.Writer) error { pprof.StopCPUProfile(); return nil })
	record(p.trace, trace.Start, func(io.Writer) error { trace.Stop(); return nil })
	record(p.memory, func(io.Writer) error { return nil }, func(f io.Writer) error {
		runtime.GC()
		return pprof.WriteHeapProfile(f)
	})
	if err != nil {
		err = errors.Join(err, stop())
	}
	return stop, err
}
