package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink"
)

// lossySession takes all links, and then fails.
type lossySession struct{ sink.Session }

var errLost = errors.New("the links are lost")

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
	write(t, "links.csv", list.String())
	cfg := pipeline.Config{Workspace: "demo", Workers: 1, ReportFormat: report.Parquet, Inputs: []string{"links.csv"}, Out: "out",
		Store: sessions{openStore(t, "."), func(s sink.Session) sink.Session { return lossySession{s} }}}
	if _, err := pipeline.Run(context.Background(), cfg); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	if stacks := string(buf[:runtime.Stack(buf, true)]); strings.Contains(stacks, "columnMapping") {
		t.Error(stacks)
	}
}
