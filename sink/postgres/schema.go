package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// version of the schema. It stands in the comment on the table links, so a dump has it too.
const (
	version = 1
	marker  = "bulk links, version "
)

// PostgreSQL cuts longer names. The name of a table leaves room for the suffixes of the
// other tables and of the constraints.
const (
	maxIdentifier = 63
	maxTable      = maxIdentifier - len("_url_key_key")
)

func checkName(kind, name string, limit int) error {
	if len(name) > limit {
		return fmt.Errorf("the name of the %s, %q, is longer than %d bytes", kind, name, limit)
	}
	return nil
}

// names of a store.
type names struct {
	schema, table       string // not quoted
	primary, key        string // the constraints of links, not quoted
	links, runs, ledger string // quoted and with the schema, as SQL needs them
}

// newNames makes the names. If schema is "", the names of the tables have no schema.
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

// literal quotes a string for SQL, with any setting of standard_conforming_strings.
func literal(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

// linksColumns are the columns of links in the order of the table, which is also the
// order of COPY.
var linksColumns = []string{"workspace_id", "short_code", "url_key", "canonical_url", "original_url", "run_id", "created_at", "updated_at"}

// constraints adds the constraints of links. A first load does so after its last row.
func (n names) constraints() []string {
	return []string{
		"ALTER TABLE " + n.links + " ADD CONSTRAINT " + quote(n.primary) + " PRIMARY KEY (workspace_id, short_code)",
		"ALTER TABLE " + n.links + " ADD CONSTRAINT " + quote(n.key) + " UNIQUE (url_key)",
	}
}

// create is the SQL that makes the tables, statement by statement. The ledger has a row
// for each transaction of a load that is not Loaded yet. The row is written first in its
// transaction: a client that did not get the answer to a commit writes the row again,
// waits there if the first transaction has not ended, and learns whether it committed.
func (n names) create() []string {
	out := []string{"CREATE TABLE " + n.links + ` (
  workspace_id    text COLLATE "C" NOT NULL,
  short_code      text COLLATE "C" NOT NULL,
  url_key         uuid NOT NULL,
  canonical_url   text NOT NULL,
  original_url    text,
  run_id          integer NOT NULL,
  created_at      timestamp with time zone NOT NULL,
  updated_at      timestamp with time zone NOT NULL
)`}
	out = append(out, n.constraints()...)
	return append(out, "CREATE TABLE "+n.runs+` (
  run_id          integer NOT NULL,
  fingerprint     text NOT NULL,
  state           text NOT NULL,
  as_of           timestamp with time zone NOT NULL,
  rows_read       bigint NOT NULL,
  rows_created    bigint NOT NULL,
  rows_existing   bigint NOT NULL,
  rows_duplicate  bigint NOT NULL,
  rows_rejected   bigint NOT NULL,
  manifest_sha256 text NOT NULL,
  started         timestamp with time zone NOT NULL,
  finished        timestamp with time zone,
  CONSTRAINT `+quote(n.table+"_runs_pkey")+` PRIMARY KEY (run_id)
)`, "CREATE TABLE "+n.ledger+` (
  run_id          integer NOT NULL,
  session         bigint NOT NULL,
  batch           bigint NOT NULL,
  CONSTRAINT `+quote(n.table+"_ledger_pkey")+` PRIMARY KEY (run_id, session, batch)
)`, fmt.Sprintf("COMMENT ON TABLE %s IS '%s%d'", n.links, marker, version))
}

// SQL returns the statements that create the tables of a store, for a DBA to run. It uses
// only Schema and Table of the options. The error is that of Options.Validate.
func SQL(opts Options) (string, error) {
	if err := opts.Validate(); err != nil {
		return "", err
	}
	opts = opts.withDefaults()
	statements := []string{"BEGIN"}
	if opts.Schema != "" {
		schema := quote(opts.Schema) // CREATE SCHEMA IF NOT EXISTS needs the privilege to create it even if it exists
		statements = append(statements, "DO "+literal("BEGIN IF to_regnamespace("+literal(schema)+") IS NULL THEN CREATE SCHEMA "+schema+"; END IF; END"))
	}
	statements = append(statements, newNames(opts.Schema, opts.Table).create()...)
	return strings.Join(append(statements, "COMMIT"), ";\n") + ";\n", nil
}

// resolve makes the names of the store. Without a schema in the options it takes the
// first one of the search path that exists.
func (s *Store) resolve(ctx context.Context, conn *pgx.Conn) error {
	schema := s.opts.Schema
	if schema == "" {
		var current *string
		if err := conn.QueryRow(ctx, "SELECT current_schema()::text").Scan(&current); err != nil {
			return err
		}
		if current == nil {
			return errors.New("no schema of the search path exists: choose one with --schema")
		}
		schema = *current
	}
	s.names = newNames(schema, s.opts.Table)
	return nil
}

// Init creates the tables, or checks them if they exist. The error wraps
// sink.ErrNotOurs if they do not fit.
func (s *Store) Init(ctx context.Context) error {
	return s.with(ctx, "create the tables", s.ensure)
}

// ensure creates the tables, or checks them. A lock on the schema keeps two stores from
// creating it at the same time.
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
