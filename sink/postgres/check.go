package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// checkServer refuses what no statement of ours could put right: an old server,
// another encoding, a pooler that gives each transaction another connection.
// The connection has its settings as the server gave them.
func (s *Store) checkServer(ctx context.Context, conn *pgx.Conn) error {
	pg := conn.PgConn()
	if encoding := pg.ParameterStatus("server_encoding"); encoding != "UTF8" {
		return fmt.Errorf("%w: the encoding of the database is %s: URLs need one with ENCODING 'UTF8' (and TEMPLATE template0)",
			sink.ErrNotOurs, encoding)
	}
	number := pg.ParameterStatus("server_version")
	s.stat("server", "PostgreSQL "+number)
	major, _, _ := strings.Cut(number, ".")
	if n, err := strconv.Atoi(major); err == nil && n < 12 {
		return fmt.Errorf("PostgreSQL %s: at least 12 is needed", number)
	}
	return s.checkPooler(ctx, conn)
}

// checkPooler looks for a pooler in transaction mode, where a lock of a session
// would belong to whoever is given the server's connection next. A backend that
// has the process ID that the server announced is no pooler's. Otherwise a
// second connection must be on another backend than the first, which must stay
// where it is.
func (s *Store) checkPooler(ctx context.Context, conn *pgx.Conn) error {
	first, err := backend(ctx, conn)
	if err != nil || first == conn.PgConn().PID() {
		return err
	}
	other, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer hangUp(other)
	for range 3 {
		second, err := backend(ctx, other)
		if err != nil {
			return err
		}
		again, err := backend(ctx, conn)
		if err != nil {
			return err
		}
		if again != first || second == first {
			return errors.New("a pooler in transaction mode stands before the database, where the locks of a run do not hold:" +
				" connect to the server itself, or to the pooler in session mode")
		}
	}
	return nil
}

// backend is the process ID of the connection's backend. It is asked for with
// the simple protocol, which every pooler lets through.
func backend(ctx context.Context, conn *pgx.Conn) (uint32, error) {
	results, err := conn.PgConn().Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return 0, err
	}
	pid, err := strconv.ParseUint(string(results[0].Rows[0][0]), 10, 32)
	return uint32(pid), err
}

// checkWritable refuses a server or a role that cannot write.
func checkWritable(ctx context.Context, conn *pgx.Conn) error {
	var standby, readOnly bool
	err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::bool").
		Scan(&standby, &readOnly)
	if err == nil && standby {
		return errors.New("the server is a standby, which cannot write: connect to the primary")
	}
	if err == nil && readOnly {
		return errors.New("default_transaction_read_only is on for this role, database or server: it must be off to load links")
	}
	return err
}

// check looks for the tables: sink.ErrMissing if they are not there. Tables that
// do not fit are an error that names everything that does not.
func (s *Store) check(ctx context.Context, conn *pgx.Conn) error {
	tables := []struct {
		name    string
		columns []column
		unique  []string
	}{
		{s.names.table, linksColumns[:], []string{"workspace_id,short_code", "url_key"}},
		{s.names.table + "_runs", runsColumns[:], []string{"run_id"}},
		{s.names.table + "_ledger", ledgerColumns[:], []string{"run_id,session,batch"}},
	}
	found, err := readFacts(ctx, conn, s.names.schema, tables[0].name, tables[1].name, tables[2].name)
	if err != nil {
		return err
	}
	var wrong []string
	absent := 0
	for i, t := range tables {
		var problems []string
		if found[i].kind == "" {
			absent++
			problems = []string{"it is missing"}
		} else {
			if i == 0 {
				problems = found[i].versionMisfits()
			}
			problems = append(problems, found[i].misfits(t.columns, t.unique)...)
		}
		for _, p := range problems {
			wrong = append(wrong, "table "+t.name+": "+p)
		}
	}
	if absent == len(tables) {
		return fmt.Errorf("there is no table %q in schema %q: %w", s.names.table, s.names.schema, sink.ErrMissing)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: schema %s: %s", sink.ErrNotOurs, s.names.schema, strings.Join(wrong, "; "))
	}
	return nil
}

// facts about a table.
type facts struct {
	kind     string // pg_class.relkind; "": there is no such table
	unlogged bool   // a crash of the server empties it
	comment  string
	unique   []string // columns of each valid unique index, joined by commas
	// Of each column its name, its type and collation, whether it may be NULL,
	// and whether it has a default or makes its own values.
	columns, types []string
	null, filled   []bool
}

// readFacts reads what there is under each name. It is one statement over one
// snapshot, so that it sees all tables of a store or none while another process
// creates them; to_regclass would look into a cache that may be older.
func readFacts(ctx context.Context, conn *pgx.Conn, schema string, tables ...string) ([]facts, error) {
	rows, _ := conn.Query(ctx, `SELECT coalesce(c.relkind::text, ''), coalesce(c.relpersistence = 'u', false), coalesce(obj_description(c.oid, 'pg_class'), ''),
			ARRAY(SELECT (SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(i.indkey) WITH ORDINALITY k(attnum, n)
					JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum)
				FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
					AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = i.indnatts),
			a.names, a.types, a.nulls, a.filled
		FROM unnest($2::text[]) WITH ORDINALITY t(name, n) LEFT JOIN pg_class c ON c.relname = t.name
			AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
		CROSS JOIN LATERAL (
			SELECT array_agg(a.attname::text) AS names, array_agg(format_type(a.atttypid, a.atttypmod) ||
					CASE WHEN l.collname = 'C' AND l.collnamespace = 'pg_catalog'::regnamespace THEN ' COLLATE "C"' ELSE '' END) AS types,
				array_agg(NOT a.attnotnull) AS nulls,
				array_agg(a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> '') AS filled
			FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation
			WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) a
		ORDER BY t.n`, schema, tables) // rows have its error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f facts, err error) {
		return f, row.Scan(&f.kind, &f.unlogged, &f.comment, &f.unique, &f.columns, &f.types, &f.null, &f.filled)
	})
}

// versionMisfits says what is wrong with the version mark.
func (f *facts) versionMisfits() []string {
	number, ok := strings.CutPrefix(f.comment, marker)
	n, err := strconv.Atoi(number)
	switch {
	case !ok || err != nil:
		return []string{"it was made by something else: its comment is not '" + marker + strconv.Itoa(version) + "'"}
	case n > version:
		return []string{fmt.Sprintf("it was made by a newer version of bulk (schema %d, this one knows %d)", n, version)}
	case n < version:
		return []string{fmt.Sprintf("it was made by an older version of bulk (schema %d)", n)}
	}
	return nil
}

// misfits lists all that keeps a table from being used as one with these
// columns, of which these are unique.
func (f *facts) misfits(columns []column, unique []string) (out []string) {
	if f.kind != "r" {
		return []string{"it is no ordinary table (relkind " + f.kind + ")"}
	}
	if f.unlogged {
		out = append(out, "it is UNLOGGED, so that a crash of the server would empty it: ALTER TABLE … SET LOGGED")
	}
	for _, want := range columns {
		i := slices.Index(f.columns, want.name)
		switch {
		case i < 0:
			out = append(out, "column "+want.name+" is missing")
		case f.types[i] != want.kind && f.types[i] != want.kind+` COLLATE "C"`: // a collation matters only where we ask for one
			out = append(out, fmt.Sprintf("column %s is %s, not %s", want.name, f.types[i], want.kind))
		case f.null[i] && !want.null:
			out = append(out, "column "+want.name+" must be NOT NULL")
		case !f.null[i] && want.null:
			out = append(out, "column "+want.name+" must not be NOT NULL")
		}
	}
	for i, name := range f.columns {
		ours := slices.ContainsFunc(columns, func(c column) bool { return c.name == name })
		if !ours && !f.null[i] && !f.filled[i] {
			out = append(out, "column "+name+" is not ours, and is NOT NULL without a default")
		}
	}
	for _, u := range unique {
		if !slices.Contains(f.unique, u) {
			out = append(out, "no unique constraint over ("+u+")")
		}
	}
	return out
}
