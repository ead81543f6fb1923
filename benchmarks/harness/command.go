package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// grace is how long an interrupted child has to clean up.
const grace = 20 * time.Second

// A Command is a child process to be measured. What it writes to standard error
// is part of the error if it fails.
type Command struct {
	Args   []string
	Feed   []string // arguments of a process whose output is the standard input; may be nil
	Stdout string   // file for the standard output; "": it is discarded
}

// Usage is what a process used.
type Usage struct {
	Seconds float64 `json:"seconds"`        // wall clock
	CPU     float64 `json:"cpu_seconds"`    // user and system
	RSS     int64   `json:"peak_rss_bytes"` // peak resident memory
}

// Run runs the command to its end. It is an error if the process, or the process
// that feeds it, exits with another code than 0.
func (c Command) Run(ctx context.Context) (u Usage, err error) {
	var said, feederSaid bytes.Buffer
	cmd := child(ctx, c.Args, &said)
	if c.Stdout != "" {
		f, err := os.Create(c.Stdout)
		if err != nil {
			return u, err
		}
		defer f.Close()
		cmd.Stdout = f
	}
	if c.Feed != nil {
		feeder := child(ctx, c.Feed, &feederSaid)
		pipe, failed := feeder.StdoutPipe()
		if failed == nil {
			failed = feeder.Start()
		}
		if failed != nil {
			return u, failed
		}
		cmd.Stdin = pipe
		defer func() {
			pipe.Close() // otherwise a feeder whose output is not read waits forever
			if failed := feeder.Wait(); err == nil {
				err = failure(ctx, c.Feed, failed, &feederSaid)
			}
		}()
	}
	start := time.Now()
	err = failure(ctx, c.Args, cmd.Run(), &said)
	return usage(cmd.ProcessState, time.Since(start)), err
}

// usage returns what a process that has ended used. The state is nil if the process
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

// child prepares a process that is terminated when the context ends. The settings
// of libpq and of bulk are removed from its environment.
func child(ctx context.Context, args []string, said *bytes.Buffer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = said
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") && !strings.HasPrefix(v, "BULK_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd
}

// failure adds the end of what a child wrote to standard error to its error.
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

// Output runs a program that is not measured and returns what it wrote to standard
// output, trimmed.
func Output(ctx context.Context, args ...string) (string, error) {
	var said bytes.Buffer
	out, err := child(ctx, args, &said).Output()
	return strings.TrimSpace(string(out)), failure(ctx, args, err, &said)
}
