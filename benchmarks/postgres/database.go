//go:build linux || darwin

package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/benchmarks/harness"
)

// database is the database of all steps; template is one that has the first list.
const (
	database = "bench"
	template = "base"
)

// psql returns the command line of psql in a database.
func (b *bench) psql(name string, args ...string) []string {
	return append([]string{"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", b.server.Socket(), "-p", strconv.Itoa(b.server.Port()),
		"-U", "postgres", "-d", name}, args...)
}

// url is the address of a database.
func (b *bench) url(name string) string {
	q := url.Values{"host": {b.server.Socket()}, "port": {strconv.Itoa(b.server.Port())}, "sslmode": {"disable"}}
	return "postgres://postgres@/" + name + "?" + q.Encode()
}

// create makes a database anew. options are those of CREATE DATABASE.
func (b *bench) create(ctx context.Context, name, options string) error {
	if err := b.server.ExecContext(ctx, "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		return err
	}
	return b.server.ExecContext(ctx, "postgres", "CREATE DATABASE "+name+options)
}

// empty makes the database anew.
func (b *bench) empty(ctx context.Context) error { return b.create(ctx, database, "") }

// indexed makes the database anew with the empty tables of bulk.
func (b *bench) indexed(ctx context.Context) error {
	if err := b.empty(ctx); err != nil {
		return err
	}
	_, err := harness.Output(ctx, b.Bulk, "init", "--db", b.url(database))
	return err
}

// fromBase makes the database anew with the first list in it.
func (b *bench) fromBase(ctx context.Context) error {
	options := " TEMPLATE " + template
	if b.version >= 15 {
		options += " STRATEGY file_copy" // the default writes all pages to the log, too
	}
	return b.create(ctx, database, options)
}

// vacuum does what autovacuum, which wakes up once a minute, would do at some time after a
// load, perhaps during a step.
const vacuum = "VACUUM (ANALYZE)"

func (b *bench) vacuum(ctx context.Context) error { return b.server.ExecContext(ctx, database, vacuum) }

// finish makes a database anew with a list in it. It leaves the finished rows in files for
// COPY: LIST.input.txt in the order of the input, LIST.code.txt and, as binary,
// LIST.code.bin in the order of the codes.
func (b *bench) finish(ctx context.Context, list, name string) error {
	if err := b.create(ctx, name, ""); err != nil {
		return err
	}
	defer os.RemoveAll(out)
	if _, err := harness.Output(ctx, b.Bulk, "run", list+".csv", "--workspace", "demo", "--db", b.url(name), "--out", out, "--as-of", harness.AsOf); err != nil {
		return err
	}
	_, err := harness.Output(ctx, b.psql(name,
		"-c", "CREATE TEMP TABLE mapping (source text, row bigint, w text, original text, canonical text, code text, short_url text, outcome text, salt int)",
		"-c", `\copy mapping from '`+out+`/mapping.csv' (format csv, header)`,
		"-c", `\copy (SELECT links.* FROM links JOIN mapping ON short_code = code COLLATE "C" ORDER BY row) to '`+list+`.input.txt'`,
		"-c", `\copy (SELECT * FROM links ORDER BY workspace_id, short_code) to '`+list+`.code.txt'`,
		"-c", `\copy (SELECT workspace_id, short_code, url_key, canonical_url, original_url, run_id, created_at, updated_at FROM links ORDER BY workspace_id, short_code) to '`+list+`.code.bin' (format binary)`)...)
	return err
}

// content counts the links and the unique constraints of the table, and has a digest of the
// links, without the time and the run that they came from.
const content = `SELECT count(*), (SELECT count(*) FROM pg_index WHERE indrelid = 'links'::regclass AND indisunique),
  sum(('x' || substr(md5(workspace_id || short_code || url_key || canonical_url || coalesce(original_url, '')), 1, 15))::bit(60)::bigint) FROM links`

// check fails unless the table holds so many links under two unique constraints, and the
// same links as all tables of the list, and of so many links, that were checked before.
func (b *bench) check(ctx context.Context, list string, total int64) error {
	now, err := harness.Output(ctx, b.psql(database, "-At", "-c", content)...)
	if err != nil {
		return err
	}
	key := fmt.Sprint(list, " ", total)
	if b.content[key] == "" {
		b.content[key] = now
	}
	if was := b.content[key]; now != was || !strings.HasPrefix(now, fmt.Sprintf("%d|2|", total)) {
		return fmt.Errorf("the table holds (links|unique constraints|digest) %s, not %d links under 2 constraints or not %s as before", now, total, was)
	}
	return nil
}
