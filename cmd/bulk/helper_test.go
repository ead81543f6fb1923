package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linkforge/bulk/benchmarks/gen"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
}

func read(t *testing.T, elem ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	must(t, err)
	return data
}

func list(t *testing.T, name string, o gen.Options) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	must(t, gen.Write(f, o))
}

// process is the command as another process, which ends with the test.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // it hangs
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0] = "bulk"                                                                                                 // which testscript.Main goes by
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "BULK_TEST_") }) // the command would warn of them
	cmd.SysProcAttr = mortal()
	return cmd
}

// command runs bulk in a process of its own, which must end with the exit code.
func command(t *testing.T, want int, args ...string) {
	t.Helper()
	if code, output := execute(t, nil, args...); code != want {
		t.Fatalf("exit code %d, want %d: %s", code, want, output)
	}
}

// execute runs bulk in a process of its own, and kills it after a while if there is
// one; the exit code is -1 then.
func execute(t *testing.T, kill *time.Duration, args ...string) (int, []byte) {
	t.Helper()
	cmd := process(t, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	must(t, cmd.Start())
	if kill != nil {
		defer time.AfterFunc(*kill, func() { cmd.Process.Kill() }).Stop()
	}
	cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", status.Signal(), output.Bytes())
	}
	return cmd.ProcessState.ExitCode(), output.Bytes()
}
