package pipeline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/sink/sqlite"
)

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
