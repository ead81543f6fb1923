package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// grace is how long an interrupted child has to clean up.
const grace = 20 * time.Second

// A Command is a child process to be measured. What it writes to standard
// output is thrown away, unless Stdout is set; what it writes to standard error
// goes into the error if it fails.
type Command struct {
	Args   []string
	Dir    string
	Feed   []string // arguments of a process whose output is the standard input
	Stdout string   // file that takes the standard output
	Accept int      // exit code that is as good as 0
}

// Usage is what a process took.
type Usage struct {
	Seconds float64 `json:"seconds"`        // wall clock
	CPU     float64 `json:"cpu_seconds"`    // user and system
	RSS     int64   `json:"peak_rss_bytes"` // peak resident memory
}

// Run runs the command to its end. It is an error unless the process exits with
// 0 or Accept, and the one that feeds it with 0.
func (c Command) Run(ctx context.Context) (u Usage, err error) {
	var said, feederSaid bytes.Buffer
	cmd := c.child(ctx, c.Args, &said)
	if c.Stdout != "" {
		var f *os.File
		if f, err = os.Create(c.Stdout); err != nil {
			return u, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		cmd.Stdout = f
	}
	var feeder *exec.Cmd
	var fed io.ReadCloser
	if c.Feed != nil {
		feeder = c.child(ctx, c.Feed, &feederSaid)
		if fed, err = feeder.StdoutPipe(); err != nil {
			return u, err
		}
		cmd.Stdin = fed
		if err := feeder.Start(); err != nil {
			return u, err
		}
	}
	start := time.Now()
	err = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code > 0 && code == c.Accept {
		err = nil
	}
	err = failure(ctx, c.Args, err, &said)
	u = usage(cmd.ProcessState, time.Since(start))
	if feeder != nil {
		fed.Close() // so that a feeder that nobody reads ends
		ferr := feeder.Wait()
		if err == nil {
			err = failure(ctx, c.Feed, ferr, &feederSaid)
		}
	}
	return u, err
}

// usage reads what a process that has ended took. A nil state is a process that
// did not start.
func usage(state *os.ProcessState, wall time.Duration) Usage {
	if state == nil {
		return Usage{}
	}
	u := Usage{Seconds: wall.Seconds(), CPU: (state.UserTime() + state.SystemTime()).Seconds()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.RSS = int64(r.Maxrss)
		if runtime.GOOS != "darwin" {
			u.RSS *= 1024
		}
	}
	return u
}

// child prepares a process that is asked to end when the context does. It has no
// settings of libpq or of bulk.
func (c Command) child(ctx context.Context, args []string, said *bytes.Buffer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stderr = c.Dir, said
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") && !strings.HasPrefix(v, "BULK_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd
}

// failure adds what a child said to its error.
func failure(ctx context.Context, args []string, err error, said *bytes.Buffer) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text := said.Bytes()
	return fmt.Errorf("%s: %w: %s", strings.Join(args[:min(len(args), 3)], " "), err, bytes.TrimSpace(text[max(0, len(text)-2000):]))
}

// Output runs a helper program that is not measured and returns what it wrote to
// standard output, trimmed.
func Output(ctx context.Context, dir string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := Command{Dir: dir}.child(ctx, args, &said)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), failure(ctx, args, err, &said)
}
