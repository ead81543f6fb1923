package verify_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/verify"
)

// Somebody changes the salt of a link after the run.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "links")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	const list = "https://example.com/sale\nhttps://example.com/shop\n"
	ctx := context.Background()
	result, err := pipeline.Run(ctx, pipeline.Config{
		Inputs: []string{"-"}, Source: source.Options{Stdin: strings.NewReader(list)},
		Workspace: "demo", Out: filepath.Join(dir, "links.bulk"),
	})
	if err != nil {
		panic(err)
	}

	check := func() {
		found, err := verify.Run(ctx, verify.Config{
			Dir: result.Out, ManifestSHA256: result.ManifestSHA256,
			Inputs: []string{"-"}, Source: source.Options{Stdin: strings.NewReader(list)},
		})
		if err != nil {
			panic(err)
		}
		fmt.Println(found.Rows, "rows,", found.Failed(), "findings")
		for _, f := range found.Findings {
			fmt.Println(f.Kind, f.File, f.Row)
		}
	}
	check()
	mapping := filepath.Join(result.Out, "mapping.csv")
	rows, err := os.ReadFile(mapping)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(mapping, []byte(strings.Replace(string(rows), ",created,0", ",created,1", 1)), 0o666); err != nil {
		panic(err)
	}
	check()
	// Output:
	// 2 rows, 0 findings
	// 2 rows, 3 findings
	// file_sum mapping.csv 0
	// row_digest mapping.csv 0
	// salt mapping.csv 1
}
