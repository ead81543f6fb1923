// Command generate writes a URL list of package gen to standard output.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/linkforge/bulk/benchmarks/gen"
)

func main() {
	var o gen.Options
	flag.Int64Var(&o.Rows, "rows", 1_000_000, "number of rows")
	flag.Int64Var(&o.First, "first", 0, "number of the first distinct URL")
	flag.Float64Var(&o.Duplicates, "duplicates", 0.1, "share of duplicates")
	flag.Float64Var(&o.Dirty, "dirty", 0.1, "share of dirty rows")
	flag.Float64Var(&o.Rejects, "rejects", 0.001, "share of rows without a canonical form")
	flag.IntVar(&o.Workspaces, "workspaces", 0, "number of workspaces in a column of their own; 0: no such column")
	flag.BoolVar(&o.Codes, "codes", false, "give each row a code, in a column of their own")
	flag.BoolVar(&o.Rules, "rules", false, "give each row an expiry and an owner, in columns of their own")
	flag.BoolVar(&o.Expanded, "expanded", false, "write 30 rows for each URL: what a campaign makes of it")
	flag.Uint64Var(&o.Seed, "seed", 1, "seed")
	format := flag.String("format", "csv", "csv or parquet")
	flag.Parse()
	write := gen.Write
	switch *format {
	case "csv":
	case "parquet":
		write = gen.WriteParquet
	default:
		fmt.Fprintf(os.Stderr, "generate: -format %q is neither csv nor parquet\n", *format)
		os.Exit(2)
	}
	if err := write(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
