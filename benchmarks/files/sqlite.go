package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/linkforge/bulk/benchmarks/harness"
)

// sqlite measures a load into a new SQLite file, and the same without a store.
func (b *bench) sqlite(ctx context.Context) error {
	if err := b.list(ctx, "list.csv", "csv"); err != nil {
		return err
	}
	step := func(program, name string) harness.Step { return b.stored(program, name, b.Rows, "list.csv") }
	groups := append([]harness.Group{{step(b.Bulk, "bulk")}}, b.old(step)...)
	groups = append(groups, harness.Group{b.dryRun(b.Bulk, "bulk without a store", b.Rows, "list.csv")})
	_, err := b.Section(ctx, harness.Section{
		Title:     fmt.Sprintf("CSV into a new SQLite file, %s rows", size(b.Rows)),
		Note:      "Mapping and links, both constraints in place at the end. The output includes the database.",
		Reference: "bulk",
	}, b.Count, groups...)
	return err
}

// stored is a run into a new SQLite file.
func (b *bench) stored(program, name string, rows int64, input string, flags ...string) harness.Step {
	db := b.Path(name + ".db")
	step := b.run(program, name, rows, input, append(flags, "--db", "sqlite:"+db)...)
	prepare, done := step.Prepare, step.Done
	step.Prepare = func(ctx context.Context) error {
		files, err := filepath.Glob(db + "*") // also its journal and lock
		return errors.Join(err, harness.Remove(files...)(ctx), prepare(ctx))
	}
	step.Done = func(ctx context.Context, s *harness.Sample) error {
		info, err := os.Stat(db)
		if err != nil {
			return err
		}
		s.Bytes = info.Size()
		return done(ctx, s)
	}
	return step
}
