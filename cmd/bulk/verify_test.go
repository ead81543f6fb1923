package main

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/sink"
)

// A lost store cannot be reached any more.
type lost struct{ sink.Store }

func (lost) Runs(context.Context) ([]sink.Run, error) {
	return nil, fmt.Errorf("%w: dial unix /run/.s.PGSQL.5432: %w", sink.ErrRetryable, syscall.ENOENT)
}

// That the socket of a server is gone is no mistake of whoever named the folder.
func TestVerifyLosesStore(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", "a.csv", "url\nhttp://a.example/\n")
	command(t, exitDone, "run", "a.csv", "--workspace", "w", "--out", "a", "--db", "sqlite:links.db")
	var o verifyOptions
	o.Dir, o.MaxFindings, o.Memory, o.Store = "a", 1, 1<<20, lost{}
	if err := runVerify(t.Context(), &ui{stdout: io.Discard}, &o, false); exitCode(err) != exitStore {
		t.Errorf("exit code %d: %v", exitCode(err), err)
	}
}
