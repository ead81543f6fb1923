// Package duckdb runs DuckDB as a peer of the benchmarks, through its package
// for Node.js. The package is installed by npm into a folder of the user's cache
// and is no part of the repository.
package duckdb

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/benchmarks/harness"
)

// Package is what is installed, with the version that it is pinned to.
const Package = "@duckdb/node-api@1.5.6-r.1"

//go:embed run.mjs
var script []byte

// DB runs SQL.
type DB struct {
	node, script, folder string
	Version              string
}

// Install installs the package unless the cache has it, and leaves the script
// that runs it in a folder.
func Install(ctx context.Context, work string) (*DB, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	db := &DB{node: node, folder: filepath.Join(cache, "bulk-benchmarks", strings.NewReplacer("@", "_", "/", "_").Replace(Package))}
	db.script = filepath.Join(work, "run.mjs")
	if err := os.WriteFile(db.script, script, 0o644); err != nil {
		return nil, err
	}
	if db.Version, err = db.version(ctx); err == nil {
		return db, nil
	}
	if err := os.MkdirAll(db.folder, 0o755); err != nil {
		return nil, err
	}
	if _, err := harness.Output(ctx, db.folder, "npm", "install", "--prefix", ".", "--no-audit", "--no-fund", "--save-exact", Package); err != nil {
		return nil, fmt.Errorf("install %s: %w", Package, err)
	}
	db.Version, err = db.version(ctx)
	return db, err
}

func (db *DB) version(ctx context.Context) (string, error) {
	v, err := harness.Output(ctx, "", db.node, db.script, db.folder, "1")
	return strings.TrimPrefix(v, "v"), err
}

// Args are the arguments of a process that runs SQL with so many threads.
func (db *DB) Args(threads int, sql ...string) []string {
	return append([]string{db.node, db.script, db.folder, strconv.Itoa(threads)}, sql...)
}
