package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// version of the schema. It is marked in the comment on the table links, so
// that a dump carries it along.
const (
	version = 1
	marker  = "bulk links, version "
)

// PostgreSQL cuts longer names short. A table's name leaves room for what the
// names of its companions and constraints add.
const (
	maxIdentifier = 63
	maxTable      = maxIdentifier - len("_url_key_key")
)

func checkName(kind, name string, limit int) error {
	if len(name) > limit {
		return fmt.Errorf("name of the %s %q is longer than %d bytes", kind, name, limit)
	}
	if strings.ContainsRune(name, 0) {
		return fmt.Errorf("name of the %s %q contains a NUL", kind, name)
	}
	return nil
}

// names of a store.
type names struct {
	schema, table       string // as they are
	primary, key        string // constraints of links, as they are
	links, runs, ledger string // quoted and with the schema, ready to stand in SQL
}

// newNames makes the names; with schema "", the tables have none either.
func newNames(schema, table string) names {
	tableName := func(suffix string) string {
		if schema == "" {
			return quote(table + suffix)
		}
		return quote(schema) + "." + quote(table+suffix)
	}
	return names{
		schema: schema, table: table,
		primary: table + "_pkey", key: table + "_url_key_key",
		links: tableName(""), runs: tableName("_runs"), ledger: tableName("_ledger"),
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a string for SQL, whatever standard_conforming_strings is.
func literal(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

// A column of a table of ours.
type column struct {
	name, kind string // kind as format_type writes it
	null       bool
}

var (
	linksColumns = [...]column{
		{"workspace_id", `text COLLATE "C"`, false},
		{"short_code", `text COLLATE "C"`, false},
		{"url_key", "uuid", false},
		{"canonical_url", "text", false},
		{"original_url", "text", true},
		{"run_id", "integer", false},
		{"created_at", "timestamp with time zone", false},
		{"updated_at", "timestamp with time zone", false},
	}
	runsColumns = [...]column{
		{"run_id", "integer", false},
		{"fingerprint", "text", false},
		{"state", "text", false},
		{"as_of", "timestamp with time zone", false},
		{"rows_read", "bigint", false},
		{"rows_created", "bigint", false},
		{"rows_existing", "bigint", false},
		{"rows_duplicate", "bigint", false},
		{"rows_rejected", "bigint", false},
		{"manifest_sha256", "text", false},
		{"started", "timestamp with time zone", false},
		{"finished", "timestamp with time zone", true},
	}
	// The ledger has a row for each transaction of a load that is not Loaded
	// yet. It is written first in the transaction, so that whoever repeats one
	// whose answer was lost waits for it, and learns what became of it.
	ledgerColumns = [...]column{
		{"run_id", "integer", false},
		{"session", "bigint", false},
		{"batch", "bigint", false},
	}
)

// constraints of links, in the order in which they are added after a load.
func (n names) constraints() []string {
	return []string{
		"ALTER TABLE " + n.links + " ADD CONSTRAINT " + quote(n.primary) + " PRIMARY KEY (workspace_id, short_code)",
		"ALTER TABLE " + n.links + " ADD CONSTRAINT " + quote(n.key) + " UNIQUE (url_key)",
	}
}

// create is the SQL that makes the tables, statement by statement.
func (n names) create() []string {
	out := []string{createTable(n.links, linksColumns[:], "")}
	out = append(out, n.constraints()...)
	return append(out,
		createTable(n.runs, runsColumns[:], "CONSTRAINT "+quote(n.table+"_runs_pkey")+" PRIMARY KEY (run_id)"),
		createTable(n.ledger, ledgerColumns[:], "CONSTRAINT "+quote(n.table+"_ledger_pkey")+" PRIMARY KEY (run_id, session, batch)"),
		fmt.Sprintf("COMMENT ON TABLE %s IS '%s%d'", n.links, marker, version))
}

func createTable(name string, columns []column, constraint string) string {
	var lines []string
	for _, c := range columns {
		line := fmt.Sprintf("  %-15s %s", c.name, c.kind)
		if !c.null {
			line += " NOT NULL"
		}
		lines = append(lines, line)
	}
	if constraint != "" {
		lines = append(lines, "  "+constraint)
	}
	return "CREATE TABLE " + name + " (\n" + strings.Join(lines, ",\n") + "\n)"
}

// SQL returns the statements that create the tables of a store, for a DBA to
// run. Of the options it reads Schema and Table.
func SQL(opts Options) (string, error) {
	if err := opts.Validate(); err != nil {
		return "", err
	}
	opts = opts.withDefaults()
	statements := []string{"BEGIN"}
	if opts.Schema != "" {
		schema := quote(opts.Schema) // IF NOT EXISTS wants the right to make it even if it is there
		statements = append(statements, "DO "+literal("BEGIN IF to_regnamespace("+literal(schema)+") IS NULL THEN CREATE SCHEMA "+schema+"; END IF; END"))
	}
	statements = append(statements, newNames(opts.Schema, opts.Table).create()...)
	return strings.Join(append(statements, "COMMIT"), ";\n") + ";\n", nil
}

// resolve makes the names of the store, in the schema that the search path
// leads to if the options name none.
func (s *Store) resolve(ctx context.Context, conn *pgx.Conn) error {
	schema := s.opts.Schema
	if schema == "" {
		var current *string
		if err := conn.QueryRow(ctx, "SELECT current_schema()::text").Scan(&current); err != nil {
			return err
		}
		if current == nil {
			return errors.New("no schema of the search path exists: name one")
		}
		schema = *current
	}
	s.names = newNames(schema, s.opts.Table)
	return nil
}

// Init creates the tables if they are not there, and checks them if they are.
func (s *Store) Init(ctx context.Context) error {
	return s.with(ctx, "create the tables", s.ensure)
}

// ensure creates the tables, or checks them. Of the stores of a schema one at a
// time does, since the schema may be missing too.
func (s *Store) ensure(ctx context.Context, conn *pgx.Conn) error {
	if err := s.check(ctx, conn); !errors.Is(err, sink.ErrMissing) {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", lockKey("schema", s.names.schema, "", "")); err != nil {
			return err
		}
		if err := s.check(ctx, conn); !errors.Is(err, sink.ErrMissing) {
			return err
		}
		var there bool
		err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", s.names.schema).Scan(&there)
		if err == nil && !there {
			_, err = tx.Exec(ctx, "CREATE SCHEMA "+quote(s.names.schema))
		}
		if err != nil {
			return err
		}
		return execAll(ctx, conn, s.names.create()...)
	})
}
