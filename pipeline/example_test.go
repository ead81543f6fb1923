package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink/sqlite"
)

// The ten lines with which the package comment begins, in a directory that has the list.
func Example() {
	defer inDirectoryOf("links.csv", "url\nhttps://example.com/spring\nhttps://example.com/menu\n")()
	if err := tenLines(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: 2 links created, see links.bulk
}

func tenLines(ctx context.Context) error {
	store, err := sqlite.Open(ctx, "links.db") // or postgres.Open, or a sink.Store of your own
	if err != nil {
		return err
	}
	defer store.Close()
	result, err := pipeline.Run(ctx, pipeline.Config{
		Inputs: []string{"links.csv"}, Workspace: "demo", Store: store, Out: "links.bulk",
	})
	if err != nil {
		return err
	}
	fmt.Println(result.Counts.Created, "links created, see", result.Out)
	return nil
}

// inDirectoryOf changes to a temporary directory with a file, until back is called.
func inDirectoryOf(name, text string) (back func()) {
	home, _ := os.Getwd()
	dir, err := os.MkdirTemp("", "links")
	if err != nil {
		panic(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666), os.Chdir(dir)); err != nil {
		panic(err)
	}
	return func() {
		os.Chdir(home)
		os.RemoveAll(dir)
	}
}

// The package comment begins with what Example runs.
func TestPackageComment(t *testing.T) {
	doc := string(read(t, "doc.go"))
	_, doc, _ = strings.Cut(doc, "// whole job:\n//\n")
	doc, _, _ = strings.Cut(doc, "//\n")
	_, body, _ := strings.Cut(string(read(t, "example_test.go")), "\nfunc tenLines(ctx context.Context) error {\n")
	body, _, _ = strings.Cut(body, "\treturn nil\n}\n")
	if doc = strings.ReplaceAll("\n"+doc, "\n//", "\n")[1:]; doc != body {
		t.Errorf("the package comment has\n%s\nand the example\n%s", doc, body)
	}
}

// A list becomes links in an SQLite file and a directory of reports, of which the
// mapping is read back.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "links")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	list := filepath.Join(dir, "links.csv")
	if err := os.WriteFile(list, []byte("long_url\nhttps://example.com/spring/\nHTTPS://Example.com/spring\nftp://example.com\n"), 0o666); err != nil {
		panic(err)
	}

	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "links.db"))
	if err != nil {
		panic(err)
	}
	defer store.Close()
	const memory = 1 << 30 // which a run keeps to if the process does
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory - 56<<20))
	result, err := pipeline.Run(ctx, pipeline.Config{
		Inputs: []string{list}, Workspace: "demo", Store: store, Out: filepath.Join(dir, "links.bulk"), Memory: memory,
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%+v %v\n", result.Counts, result.Reasons)

	mapping, err := readback.OpenMapping(ctx, filepath.Join(result.Out, report.CSV.FileName()), readback.Options{})
	if err != nil {
		panic(err)
	}
	defer mapping.Close()
	for row, err := range mapping.Rows() {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s %s %s\n", row.Code, row.Outcome, row.Original)
	}
	// Output:
	// {Read:3 Created:1 Existing:0 Duplicate:1 Rejected:1} map[unsupported_scheme:1]
	// CLN74CNeyc created HTTPS://Example.com/spring
	// CLN74CNeyc duplicate https://example.com/spring/
}
