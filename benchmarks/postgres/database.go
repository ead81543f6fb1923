//go:build linux || darwin

package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/linkforge/bulk/benchmarks/harness"
)

// database is where steps load to; template is one that has the first list.
const (
	database = "bench"
	template = "base"
)

// The table as bulk makes it, in two parts for the floor.
const (
	table = `CREATE TABLE links (
  workspace_id text COLLATE "C" NOT NULL, short_code text COLLATE "C" NOT NULL, url_key uuid NOT NULL,
  canonical_url text NOT NULL, original_url text, run_id integer NOT NULL,
  created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL);
`
	constraints = `ALTER TABLE links ADD PRIMARY KEY (workspace_id, short_code);
ALTER TABLE links ADD UNIQUE (url_key);
`
)

// content is what a table of links holds, as one line: the links themselves, not
// when and by which run they came.
const content = `SELECT count(*), sum(('x' || substr(md5(workspace_id || short_code || url_key || canonical_url || coalesce(original_url, '')), 1, 15))::bit(60)::bigint),
  (SELECT count(*) FROM pg_index WHERE indrelid = 'links'::regclass AND indisunique) FROM links`

// psql are the arguments of psql in a database.
func (b *bench) psql(name string, args ...string) []string {
	return append([]string{"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", b.server.Socket(), "-p", strconv.Itoa(b.server.Port()),
		"-U", "postgres", "-d", name}, args...)
}

// url is the address of a database.
func (b *bench) url(name string) string {
	q := url.Values{"host": {b.server.Socket()}, "port": {strconv.Itoa(b.server.Port())}, "sslmode": {"disable"}}
	return "postgres://postgres@/" + name + "?" + q.Encode()
}

// empty makes the database anew.
func (b *bench) empty(ctx context.Context) error { return b.create(ctx, database, "") }

func (b *bench) create(ctx context.Context, name, options string) error {
	if err := b.server.ExecContext(ctx, "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		return err
	}
	return b.server.ExecContext(ctx, "postgres", "CREATE DATABASE "+name+options)
}

// indexed makes the database anew with the empty tables of bulk.
func (b *bench) indexed(ctx context.Context) error {
	if err := b.empty(ctx); err != nil {
		return err
	}
	_, err := harness.Output(ctx, b.Work, b.Bulk, "init", "--db", b.url(database))
	return err
}

// finish makes a database anew with a list in it, and leaves the finished rows in files
// for COPY: as text in the order of the input, and as text and binary in that of the codes.
func (b *bench) finish(ctx context.Context, list, name string) error {
	if err := b.create(ctx, name, ""); err != nil {
		return err
	}
	if _, err := harness.Output(ctx, b.Work, b.Bulk, "run", list+".csv", "--workspace", "demo", "--db", b.url(name), "--out", list+".bulk",
		"--as-of", harness.AsOf, "--log-format", "text"); err != nil {
		return err
	}
	if _, err := harness.Output(ctx, b.Work, b.psql(name,
		"-c", "CREATE TEMP TABLE mapping (source text, row bigint, w text, original text, canonical text, code text, short_url text, outcome text, salt int)",
		"-c", `\copy mapping from '`+list+`.bulk/mapping.csv' (format csv, header)`,
		"-c", `\copy (SELECT links.* FROM links JOIN mapping ON short_code = code COLLATE "C" ORDER BY row) to '`+list+`.input.txt'`,
		"-c", `\copy (SELECT * FROM links ORDER BY workspace_id, short_code) to '`+list+`.code.txt'`,
		"-c", `\copy (SELECT * FROM links ORDER BY workspace_id, short_code) to '`+list+`.code.bin' (format binary)`)...); err != nil {
		return err
	}
	return harness.Remove(b.Path(list + ".bulk"))(ctx)
}

// vacuum does what autovacuum, which wakes up once a minute, would do some time after a
// load: in the midst of a step or not.
const vacuum = "VACUUM (ANALYZE)"

func (b *bench) vacuum(ctx context.Context) error { return b.server.ExecContext(ctx, database, vacuum) }

// fromBase makes the database anew with the first list in it.
func (b *bench) fromBase(ctx context.Context) error {
	options := " TEMPLATE " + template
	if b.version >= 15 {
		options += " STRATEGY file_copy" // the other way is all in the log
	}
	return b.create(ctx, database, options)
}

// check fails unless all tables of so many rows that were checked hold the same
// links under two unique constraints.
func (b *bench) check(ctx context.Context, total int64) error {
	now, err := harness.Output(ctx, "", b.psql(database, "-At", "-c", content)...)
	if err != nil {
		return err
	}
	key := strconv.FormatInt(total, 10)
	if b.content[key] == "" {
		b.content[key] = now
	}
	if was := b.content[key]; now != was || !sound(now, total) {
		return fmt.Errorf("the table holds %s: not %s rows under two unique constraints, or not %s as before", now, key, was)
	}
	return nil
}

// sound tells whether content is that of so many rows under two unique constraints.
func sound(content string, rows int64) bool {
	return strings.HasPrefix(content, strconv.FormatInt(rows, 10)+"|") && strings.HasSuffix(content, "|2")
}
