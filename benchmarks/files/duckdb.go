package main

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"strconv"

	"github.com/linkforge/bulk/benchmarks/harness"
)

// duckdbVersion is the version of DuckDB's package for Node.js, which npm installs into
// the user's cache.
const duckdbVersion = "1.5.6-r.1"

//go:embed duckdb.mjs
var script []byte

// duckdb returns the start of the command line of a process that runs SQL in DuckDB.
// It installs the package unless the cache has it.
func (b *bench) duckdb(ctx context.Context) ([]string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "bulk-benchmarks", "duckdb-"+duckdbVersion)
	if err := os.WriteFile("duckdb.mjs", script, 0o644); err != nil {
		return nil, err
	}
	args := []string{"node", "duckdb.mjs", dir, strconv.Itoa(workers)}
	if _, err := harness.Output(ctx, args...); err == nil {
		return args, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	_, err = harness.Output(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "@duckdb/node-api@"+duckdbVersion)
	return args, err
}
