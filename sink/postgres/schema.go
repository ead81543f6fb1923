package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// version of the schema. It stands in the comment on the table links, so a dump has it too.
const (
	version = 3
	oldest  = 1 // version that Init upgrades
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
	schema, table      string // not quoted
	primary, key, base string // the constraints of links and the index on base_key, not quoted

	links, runs, ledger, workspaces, counter string // quoted and with the schema, as SQL needs them
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
		primary: table + "_pkey", key: table + "_url_key_key", base: table + "_base_key",
		links: tableName(""), runs: tableName("_runs"), ledger: tableName("_ledger"),
		workspaces: tableName("_workspaces"), counter: tableName("_counter"),
	}
}

// tables are the names of the tables of a version, not quoted.
func (n names) tables(version int32) []string {
	out := []string{n.table, n.table + "_runs", n.table + "_ledger"}
	if version > 1 {
		out = append(out, n.table+"_workspaces", n.table+"_counter")
	}
	return out
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a string for SQL, with any setting of standard_conforming_strings.
func literal(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

// linksColumns are the columns of links that a plain run writes, in the order of the table,
// which is also the order of COPY. newColumns come after them.
var linksColumns = []string{"workspace_id", "short_code", "url_key", "canonical_url", "original_url", "run_id", "created_at", "updated_at"}

// activeColumns have the same values in all links of a run with rules, which writes them after
// linksColumns.
var activeColumns = []string{"access_count", "status"}

// constant are the columns that an encoder can leave to their defaults, and some others.
func constant(run sink.Run) []string {
	if run.Rules {
		return slices.Concat(linksColumns, activeColumns)
	}
	return linksColumns
}

// ownColumns are those that only some links have. A run writes them last.
func ownColumns(run sink.Run) (columns []string) {
	for _, c := range []struct {
		has  bool
		name string
	}{
		{run.Aliases, "kind"}, {run.Aliases || run.Parts, "base_key"}, {run.Attrs, "attrs"}, {run.Rules, "expires_at"},
		{run.Rules, "max_uses"}, {run.Rules, "link_type"}, {run.Rules, "owner_id"}, {run.Rules, "ref"},
	} {
		if c.has {
			columns = append(columns, c.name)
		}
	}
	return columns
}

// hasOwn reports whether a run may have links with more than others have.
func hasOwn(run sink.Run) bool { return run.KeepCreated || len(ownColumns(run)) > 0 }

// newColumns of links, since version 2, are NULL unless a feature of bulk, or the service that
// owned a link before, sets them. They have no constraints: COPY would check each of them
// with each row.
var newColumns = []string{
	"kind            text",  // NULL: a link; else 'alias'
	"base_key        uuid",  // url_key of the URL alone; NULL: that is url_key
	"attrs           jsonb", // what a migrated link was, such as its title and tags
	"expires_at      timestamp with time zone",
	"max_uses        bigint",
	"access_count    bigint",
	"avg_redirect_ms double precision",
	"link_type       text",
	"owner_id        text",
	"ref             text",
	"status          text",
	"marked_at       timestamp with time zone",
	"changed_run     integer", // the run that changed an existing link
	"change          text",    // and how
}

// newRunsColumns of runs are since version 2.
var newRunsColumns = []string{
	"inputs          jsonb", // their names
	"workspaces      jsonb", // their names
	"out             text",  // output directory
	"numbers         jsonb", // links_created, if that is not rows_created; links_changed; keep_created, if true; ranges of the counter: [{first, last}, …]
}

// createNew is the SQL of the tables that are new since version 1, and the comment with the
// version: the settings of workspaces (no row: linkforge-1, sha256-base58, no rules), and the
// next number of a counter (one row, or none before the first).
func (n names) createNew() []string {
	return []string{"CREATE TABLE " + n.workspaces + ` (
  workspace_id    text COLLATE "C" PRIMARY KEY,
  profile         text,
  scheme          text,
  code_length     integer,
  multiplier      bigint,
  fingerprint     text,
  rules           boolean,
  fold            boolean
)`, "CREATE TABLE " + n.counter + " (next bigint NOT NULL)", n.comment()}
}

// comment is the SQL of the comment with the version.
func (n names) comment() string {
	return fmt.Sprintf("COMMENT ON TABLE %s IS '%s%d'", n.links, marker, version)
}

// createIndex is the SQL of the index for all links of a URL. With "CONCURRENTLY " it keeps no
// writer waiting.
func (n names) createIndex(how string) string {
	return "CREATE INDEX " + how + quote(n.base) + " ON " + n.links + " (base_key) WHERE base_key IS NOT NULL"
}

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
  updated_at      timestamp with time zone NOT NULL,
  ` + strings.Join(newColumns, ",\n  ") + `
)`}
	out = append(append(out, n.constraints()...), n.createIndex(""))
	out = append(out, "CREATE TABLE "+n.runs+` (
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
  `+strings.Join(newRunsColumns, ",\n  ")+`,
  CONSTRAINT `+quote(n.table+"_runs_pkey")+` PRIMARY KEY (run_id)
)`, "CREATE TABLE "+n.ledger+` (
  run_id          integer NOT NULL,
  session         bigint NOT NULL,
  batch           bigint NOT NULL,
  CONSTRAINT `+quote(n.table+"_ledger_pkey")+` PRIMARY KEY (run_id, session, batch)
)`)
	return append(out, n.createNew()...)
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
			return errors.New("no schema of the search path exists: choose one with Options.Schema")
		}
		schema = *current
	}
	s.names = newNames(schema, s.opts.Table)
	return nil
}

// Init creates the tables, or checks them if they exist. Tables of an older version become those
// of this one: at once, by the owner of the tables, while runs may be at work. The index on
// base_key is created after that, which may take a while. Init returns what it did, such as
// "created tables links, …"; nothing if the tables exist and fit. The error wraps
// sink.ErrNotOurs if they do not fit.
func (s *Store) Init(ctx context.Context) (did []string, err error) {
	for _, step := range []struct {
		op string
		do func(context.Context, *pgx.Conn) (string, error)
	}{{"create the tables", s.ensure}, {fmt.Sprint("upgrade the tables to version ", version), s.upgrade}, {"create the index on base_key", s.index}} {
		err := s.with(ctx, step.op, func(ctx context.Context, conn *pgx.Conn) error {
			what, err := step.do(ctx, conn)
			if errors.Is(err, sink.ErrOldTables) { // the next step upgrades them
				err = nil
			}
			if err == nil && what != "" {
				did = append(did, what)
			}
			return err
		})
		if err != nil {
			return did, err
		}
	}
	return did, nil
}

// ensure creates the tables, or checks them.
func (s *Store) ensure(ctx context.Context, conn *pgx.Conn) (did string, err error) {
	if err := s.check(ctx, conn); !errors.Is(err, sink.ErrMissing) {
		return "", err
	}
	err = s.alone(ctx, conn, func(tx pgx.Tx) error {
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
		did = "created tables " + strings.Join(s.names.tables(version), ", ")
		return execAll(ctx, conn, s.names.create()...)
	})
	return did, err
}

// alone calls f in a transaction. A lock on the schema keeps two stores from changing it at
// the same time.
func (s *Store) alone(ctx context.Context, conn *pgx.Conn, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", lockKey("schema", s.names.schema, "", "")); err != nil {
			return err
		}
		return f(tx)
	})
}

// upgradeTimeout is how long a try of an upgrade waits for the tables. Meanwhile an online
// service waits for the upgrade.
const upgradeTimeout = "200ms"

// upgrade makes tables of this version of those of an older one. No row is written. It locks runs
// before links: a load takes them in this order.
func (s *Store) upgrade(ctx context.Context, conn *pgx.Conn) (did string, err error) {
	n := s.names
	err = s.alone(ctx, conn, func(tx pgx.Tx) error {
		if err := s.check(ctx, conn); !errors.Is(err, sink.ErrOldTables) {
			return err
		}
		if err := n.owned(ctx, conn); err != nil {
			return err
		}
		add := func(table string, columns []string) string {
			return "ALTER TABLE " + table + " ADD COLUMN " + strings.Join(columns, ", ADD COLUMN ")
		}
		// The tables of version 1 lack a table.
		var made bool
		if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", n.workspaces).Scan(&made); err != nil {
			return err
		}
		steps := append([]string{"LOCK TABLE " + n.runs + ", " + n.links + " IN ACCESS EXCLUSIVE MODE",
			add(n.runs, newRunsColumns), add(n.links, newColumns)}, n.createNew()...)
		if made {
			steps = []string{add(n.workspaces, []string{"fold boolean"}), n.comment()}
		}
		if err := execAll(ctx, conn, append([]string{"SET LOCAL lock_timeout = '" + upgradeTimeout + "'"}, steps...)...); err != nil {
			return err
		}
		did = fmt.Sprintf("upgraded table %s to version %d", n.table, version)
		return nil
	})
	return did, err
}

// owned fails if the role may not change the tables.
func (n names) owned(ctx context.Context, conn *pgx.Conn) error {
	var owner string
	var owns bool
	err := conn.QueryRow(ctx, "SELECT relowner::regrole::text, pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass($1)", n.links).Scan(&owner, &owns)
	if err == nil && !owns {
		err = fmt.Errorf("table %s belongs to role %s, and only its owner can change it: run bulk init as that role", n.table, owner)
	}
	return err
}

// index creates the index on base_key, if it is missing or an earlier try was interrupted.
// Until then, a search for all links of a URL reads the table.
func (s *Store) index(ctx context.Context, conn *pgx.Conn) (did string, err error) {
	n := s.names
	var valid *bool
	if err := conn.QueryRow(ctx, `SELECT (SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE i.indrelid = to_regclass($1) AND c.relname = $2)`, n.links, n.base).Scan(&valid); err != nil || valid != nil && *valid {
		return "", err
	}
	if err := n.owned(ctx, conn); err != nil {
		return "", err
	}
	var statements []string
	if valid != nil {
		statements = append(statements, "DROP INDEX CONCURRENTLY "+quote(n.schema)+"."+quote(n.base))
	}
	return "created index " + n.base, execAll(ctx, conn, append(statements, n.createIndex("CONCURRENTLY "))...)
}
