package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"strconv"
	"syscall"
	"testing"

	"github.com/linkforge/bulk/pipeline/account"
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

// Whatever was not compared, people are told why, or with which flag it is.
func TestGaps(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../pipeline/verify/parts.go", nil, parser.SkipObjectResolution)
	must(t, err)
	parts := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Part" {
			part, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			must(t, err)
			parts++
			for _, n := range []account.NotCompared{{}, {Inputs: true, Store: true, Attrs: []string{"title"}}} {
				if gap := n.Gap(part); gap.Why == "" || gap.What == part {
					t.Errorf("%s: %+v", part, gap)
				}
			}
		}
		return true
	})
	if parts < 12 {
		t.Errorf("only %d parts", parts)
	}
}
