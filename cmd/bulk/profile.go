package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"

	"github.com/spf13/pflag"
)

// profiles are files that tell where time and memory went; "": none.
type profiles struct{ cpu, memory, trace string }

// flags defines the flags. They are for whoever works on bulk, so help does not show them.
func (p *profiles) flags(f *pflag.FlagSet) {
	f.StringVar(&p.cpu, "cpuprofile", "", "write a CPU profile for go tool pprof")
	f.StringVar(&p.memory, "memprofile", "", "write a memory profile for go tool pprof")
	f.StringVar(&p.trace, "trace", "", "write a trace for go tool trace")
	for _, name := range []string{"cpuprofile", "memprofile", "trace"} {
		f.Lookup(name).Hidden = true
	}
}

// start begins to profile. The function that it returns ends that and writes the
// files, which must not exist yet: so nothing is overwritten.
func (p *profiles) start() (stop func() error, err error) {
	var stops []func() error
	stop = func() (err error) {
		for _, s := range stops {
			err = errors.Join(err, s())
		}
		return err
	}
	record := func(flag, name string, begin, end func(io.Writer) error) {
		if name == "" || err != nil {
			return
		}
		var f *os.File
		if f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
			err = fmt.Errorf("--%s: %w", flag, err)
			return
		}
		stops = append(stops, func() error { return errors.Join(end(f), f.Close()) })
		err = begin(f)
	}
	record("cpuprofile", p.cpu, pprof.StartCPUProfile, func(io.Writer) error { pprof.StopCPUProfile(); return nil })
	record("trace", p.trace, trace.Start, func(io.Writer) error { trace.Stop(); return nil })
	record("memprofile", p.memory, func(io.Writer) error { return nil }, func(f io.Writer) error {
		runtime.GC()
		return pprof.WriteHeapProfile(f)
	})
	if err != nil {
		err = errors.Join(err, stop())
	}
	return stop, err
}
