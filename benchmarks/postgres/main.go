//go:build linux || darwin

// Command postgres is the harness of make bench-postgres: it measures bulk run into a
// private PostgreSQL server, as durable as a server is by default, beside what psql and
// pgloader take for the finished rows. Its settings are those of package harness.
//
// A step starts with a database of its own, or with the one that the step before it left
// if that is said, and after a checkpoint.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/benchmarks/gen"
	"github.com/linkforge/bulk/benchmarks/harness"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
)

func main() {
	options := harness.Options{Target: "bench-postgres", Known: []string{"copy", "floor", "first", "legacy", "rules", "schemes", "campaign", "more", "pgloader"}, Count: 3}
	os.Exit(harness.Main(options, []string{harness.Generator}, run))
}

// A bench is one run of this harness.
type bench struct {
	*harness.Bench
	server  *pgtest.Server
	version int               // major, of the server
	content map[string]string // digest of the links in a table, by list and number of rows
}

func run(ctx context.Context, h *harness.Bench) (err error) {
	b := &bench{Bench: h, server: pgtest.New(pgtest.Options{Durable: true, Tmp: h.Tmp}), content: map[string]string{}}
	defer func() { err = errors.Join(err, b.server.Close()) }()
	if err := b.server.Start(); err != nil {
		return err
	}
	if err := b.inspect(ctx); err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	samples, err := b.Section(ctx, harness.Section{
		Title: fmt.Sprintf("PostgreSQL, %d rows", b.Rows),
		Note: "psql and pgloader load finished rows and do nothing else; bulk reads, canonicalizes, hashes, sorts, loads and reports. " +
			"The table is vacuumed before the run with all existing, as autovacuum would do at some time. " +
			"CPU and memory are those of the client.",
		Reference: floor,
	}, b.groups()...)
	if err != nil {
		return err
	}
	b.aims(samples)
	return nil
}

// inspect notes the versions.
func (b *bench) inspect(ctx context.Context) error {
	said, err := harness.Output(ctx, b.psql("postgres", "-At", "-c", "SELECT current_setting('server_version_num')::int / 10000, current_setting('server_version')")...)
	if err != nil {
		return err
	}
	major, name, _ := strings.Cut(said, "|") // the name may be 18beta1
	b.Result.Machine.Versions["PostgreSQL"] = name
	if said, err := harness.Output(ctx, "pgloader", "--root-dir", "pgloader", "--version"); err == nil {
		line, _, _ := strings.Cut(said, "\n")
		b.Result.Machine.Versions["pgloader"] = strings.Trim(strings.TrimPrefix(line, "pgloader version "), `"`)
	}
	b.version, err = strconv.Atoi(major)
	return err
}

// prepare makes the lists, the finished rows and the template.
func (b *bench) prepare(ctx context.Context) error {
	fmt.Println("making the lists and the finished rows")
	for _, list := range []struct {
		name        string
		rows, first int64
	}{{"first", b.Rows, 0}, {"second", b.Rows, b.Rows}, {"few", few, 2 * b.Rows}} {
		if err := b.Generate(ctx, list.name+".csv", list.rows, "-first", strconv.FormatInt(list.first, 10), "-duplicates", "0"); err != nil {
			return err
		}
	}
	if b.Has("legacy") {
		if err := b.Generate(ctx, legacyList, b.Rows, "-duplicates", "0.05", "-codes"); err != nil {
			return err
		}
	}
	if b.Has("rules") {
		if err := b.Generate(ctx, rulesList, b.Rows, "-duplicates", "0", "-rules"); err != nil {
			return err
		}
	}
	if b.Has("campaign") {
		urls := b.Rows / gen.Variants
		if err := errors.Join(b.Generate(ctx, pagesList, urls, "-duplicates", "0"), b.Generate(ctx, variantsList, urls, "-duplicates", "0", "-expanded")); err != nil {
			return err
		}
	}
	if b.Has("schemes") {
		if err := os.WriteFile(keyFile, []byte("a secret of the benchmarks, 32 B.\n"), 0o600); err != nil {
			return err
		}
	}
	if err := b.finish(ctx, "first", template); err != nil {
		return err
	}
	if err := b.finish(ctx, "second", database); err != nil {
		return err
	}
	return b.server.ExecContext(ctx, template, vacuum)
}
