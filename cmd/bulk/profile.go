package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"slices"

	"github.com/linkforge/bulk/pipeline/source"
	"github.com/spf13/pflag"
)

// profiles are files that tell where time and memory went; "": none.
type profiles struct{ cpu, memory, trace string }

func (p *profiles) flags(f *pflag.FlagSet) {
	f.StringVar(&p.cpu, "cpuprofile", "", "write a CPU profile for go tool pprof")
	f.StringVar(&p.memory, "memprofile", "", "write a memory profile for go tool pprof")
	f.StringVar(&p.trace, "trace", "", "write a trace for go tool trace")
}

// check refuses a profile that would be written over an input.
func (p *profiles) check(inputs []string) error {
	var there []fs.FileInfo
	for _, to := range []string{p.cpu, p.memory, p.trace} {
		if profile, err := os.Stat(to); err == nil {
			there = append(there, profile)
		}
	}
	if len(there) == 0 {
		return nil
	}
	names, err := source.Expand(inputs)
	if err != nil {
		return nil // who reads them says it
	}
	for _, name := range names {
		input, err := os.Stat(name)
		if err == nil && slices.ContainsFunc(there, func(profile fs.FileInfo) bool { return os.SameFile(input, profile) }) {
			return fmt.Errorf("%s is an input: a profile would overwrite it", name)
		}
	}
	return nil
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
