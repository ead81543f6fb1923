//go:build linux || darwin

// Command postgres is the harness of make bench-postgres: bulk run into a private
// PostgreSQL server with the durability that a server has by default, beside what
// psql takes for the finished rows. Its options are those of package harness; the
// parts are those that steps begin with: 1 to 5, with 6 and 7 after 5, and pgloader.
//
// Every round starts each step with a database of its own, or the one that the
// step before left where it says so, and with a checkpoint.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/benchmarks/harness"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
)

func main() {
	os.Exit(harness.Main(harness.Options{Known: []string{"1", "2", "3", "4", "5", "pgloader"}, Count: 3, Name: "bench-postgres", Results: "benchmarks/results"},
		[]string{"./benchmarks/generate"}, run))
}

// A bench is a run of this harness.
type bench struct {
	*harness.Bench
	server  *pgtest.Server
	version int               // major, of the server
	content map[string]string // what tables of the same rows hold: by number of rows
}

func run(ctx context.Context, h *harness.Bench) (err error) {
	b := &bench{Bench: h, server: pgtest.New(pgtest.Options{Durable: true, Tmp: h.Tmp}), content: map[string]string{}}
	b.Result.Command = b.Make("bench-postgres")
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
		Note: "(1) to (3) load finished rows and do nothing else; bulk reads, canonicalizes, hashes, sorts, loads and reports. " +
			"The table is vacuumed before (6), as autovacuum would do at some time. " +
			"CPU and memory are those of the client; the server's CPU seconds are below.",
		Reference: floor,
	}, b.Count, b.groups()...)
	if err != nil {
		return err
	}
	b.aims(samples)
	return nil
}

// inspect notes the versions.
func (b *bench) inspect(ctx context.Context) error {
	said, err := harness.Output(ctx, "", b.psql("postgres", "-At", "-c", "SELECT current_setting('server_version_num')::int / 10000, current_setting('server_version')")...)
	if err != nil {
		return err
	}
	major, name, _ := strings.Cut(said, "|") // the name may be 18beta1
	b.Result.Machine.Versions["PostgreSQL"] = name
	if said, err := harness.Output(ctx, "", "pgloader", "--root-dir", b.Path("pgloader"), "--version"); err == nil {
		line, _, _ := strings.Cut(said, "\n")
		b.Result.Machine.Versions["pgloader"] = strings.Trim(strings.TrimPrefix(line, "pgloader version "), `"`)
	}
	b.version, err = strconv.Atoi(major)
	return err
}

// prepare makes the lists, the finished rows and the template.
func (b *bench) prepare(ctx context.Context) error {
	fmt.Fprintln(b.Out, "making the lists and the finished rows")
	rows := strconv.FormatInt(b.Rows, 10)
	for _, list := range []struct{ name, rows, first string }{
		{"first", rows, "0"}, {"second", rows, rows}, {"few", strconv.Itoa(few), strconv.FormatInt(2*b.Rows, 10)},
	} {
		if err := b.Generate(ctx, list.name+".csv", "-rows", list.rows, "-first", list.first, "-duplicates", "0", "-rejects", "0"); err != nil {
			return err
		}
	}
	for _, list := range [][2]string{{"first", template}, {"second", database}} {
		if err := b.finish(ctx, list[0], list[1]); err != nil {
			return err
		}
	}
	return b.server.ExecContext(ctx, template, vacuum)
}
