package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
)

// lossyStore takes all links, and then fails.
type lossyStore struct{ sink.Store }

type lossySession struct{ sink.Session }

var errLost = errors.New("the links are lost")

func (l lossyStore) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	s, err := l.Store.Lock(ctx, workspaces, opts)
	return lossySession{s}, err
}

func (lossySession) Load(_ context.Context, _ sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	for _, err := range chunks {
		if err != nil {
			return err
		}
	}
	return errLost
}

// A run that fails while a row group is encoded returns when nobody works on it
// any more.
func TestFailedMapping(t *testing.T) {
	var list strings.Builder
	list.WriteString("url\n")
	for i := range 1<<17 + 1 { // rows of a row group, and one
		fmt.Fprintf(&list, "http://example.com/%d/%x\n", i, i*i*i*i)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("links.csv", []byte(list.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	cfg := pipeline.Config{Workspace: "demo", Workers: 1, ReportFormat: report.Parquet, Inputs: []string{"links.csv"}, Out: "out",
		Store: lossyStore{openStore(t, ".")}}
	if _, err := pipeline.Run(context.Background(), cfg); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	if stacks := string(buf[:runtime.Stack(buf, true)]); strings.Contains(stacks, "columnMapping") {
		t.Error(stacks)
	}
}
