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

// checkServer refuses a server that bulk cannot work with: one that is too old, a
// database in another encoding, a pooler in transaction mode. The connection still has
// the settings that the server gave it.
func (s *Store) checkServer(ctx context.Context, conn *pgx.Conn) error {
	pg := conn.PgConn()
	if encoding := pg.ParameterStatus("server_encoding"); encoding != "UTF8" {
		return fmt.Errorf("%w: the encoding of the database is %s; bulk needs a database with ENCODING 'UTF8' (and TEMPLATE template0)",
			sink.ErrNotOurs, encoding)
	}
	number := pg.ParameterStatus("server_version")
	s.stat("server", "PostgreSQL "+number)
	major, _, _ := strings.Cut(number, ".")
	if n, err := strconv.Atoi(major); err == nil && n < 12 {
		return fmt.Errorf("the server is PostgreSQL %s; bulk needs version 12 or newer", number)
	}
	return s.checkPooler(ctx, conn)
}

// checkPooler looks for a pooler in transaction mode: there, the lock of a session would
// belong to the next client that is given the same connection to the server. If the
// backend has the process ID that the server announced, there is no pooler. Otherwise
// a second connection must have another backend than the first one, and the first one
// must keep its own.
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
			return errors.New("the address is that of a pooler in transaction mode, where the locks of a run do not hold:" +
				" connect to the server itself, or to a pooler in session mode")
		}
	}
	return nil
}

// backend is the process ID of the connection's backend. The question uses the simple
// protocol, which every pooler supports.
func backend(ctx context.Context, conn *pgx.Conn) (uint32, error) {
	results, err := conn.PgConn().Exec(ctx, "SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return 0, err
	}
	pid, err := strconv.ParseUint(string(results[0].Rows[0][0]), 10, 32)
	return uint32(pid), err
}

// check looks for the tables. The error is sink.ErrMissing if there are none, sink.ErrNotOurs,
// with every problem, if they do not fit, and sink.ErrOldTables if Init can upgrade them.
// Columns are not checked: the version in the comment on the table links, which is kept, stands
// for them.
func (s *Store) check(ctx context.Context, conn *pgx.Conn) error {
	tables := s.names.tables(version)
	unique := [][]string{{"workspace_id,short_code", "url_key"}, {"run_id"}, {"run_id,session,batch"}, {"workspace_id"}, {}}
	found, err := readFacts(ctx, conn, s.names.schema, tables)
	if err != nil {
		return err
	}
	var wrong []string
	made := int32(version) // version of the tables
	absent := 0
	for i, f := range found {
		if f.Kind == "" {
			absent++
		}
		if i == len(s.names.tables(made)) {
			break
		}
		problems := f.misfits(unique[i])
		if i == 0 && f.Kind != "" {
			n, misfits := f.version()
			made, problems = n, append(misfits, problems...)
		}
		for _, p := range problems {
			wrong = append(wrong, "table "+tables[i]+": "+p)
		}
	}
	if absent == len(tables) {
		return fmt.Errorf("there is no table %q in schema %q: %w", s.names.table, s.names.schema, sink.ErrMissing)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: schema %s: %s", sink.ErrNotOurs, s.names.schema, strings.Join(wrong, "; "))
	}
	if made < version {
		return fmt.Errorf("store %q in schema %q: %w: run bulk init first", s.names.table, s.names.schema, sink.ErrOldTables)
	}
	return nil
}

// facts about a table.
type facts struct {
	Kind     string // pg_class.relkind; "": there is no such table
	Unlogged bool   // a crash of the server empties it
	Comment  string
	Unique   []string // columns of each valid unique index, joined by commas
}

// readFacts reads what there is under each name. It is one statement over one snapshot:
// while another process creates the tables of a store, it sees all of them or none.
// (to_regclass would look into a cache that may be older.) Each step of a run asks this, so the
// connection keeps the plan, which costs more than the answer; obj_description would cost as much again.
func readFacts(ctx context.Context, conn *pgx.Conn, schema string, tables []string) ([]facts, error) {
	const sql = `SELECT c.relname, c.relkind::text, c.relpersistence = 'u',
			coalesce((SELECT description FROM pg_description WHERE objoid = c.oid AND classoid = 'pg_class'::regclass AND objsubid = 0), ''),
			ARRAY(SELECT (SELECT string_agg(a.attname, ',' ORDER BY array_position(i.indkey, a.attnum))
					FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey))
				FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
					AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = i.indnatts)
		FROM pg_class c WHERE c.relname = ANY ($2) AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)`
	if _, err := conn.Prepare(ctx, sql, sql); err != nil {
		return nil, err
	}
	rows, _ := conn.Query(ctx, sql, schema, tables) // rows have its error
	out := make([]facts, len(tables))
	var name string
	var f facts
	_, err := pgx.ForEachRow(rows, []any{&name, &f.Kind, &f.Unlogged, &f.Comment, &f.Unique}, func() error {
		out[slices.Index(tables, name)] = f
		f.Unique = nil
		return nil
	})
	return out, err
}

// version reads the version in the comment, and says what is wrong with it.
func (f *facts) version() (int32, []string) {
	number, ok := strings.CutPrefix(f.Comment, marker)
	n, err := strconv.ParseInt(number, 10, 32)
	switch {
	case !ok || err != nil:
		return oldest, []string{"bulk did not make it: its comment is not '" + marker + strconv.Itoa(version) + "'"}
	case n > version:
		return version, []string{fmt.Sprintf("a newer version of bulk made it (schema %d; this version knows %d)", n, version)}
	case n < oldest:
		return oldest, []string{fmt.Sprintf("an older version of bulk made it (schema %d; this version needs %d)", n, oldest)}
	}
	return int32(n), nil
}

// misfits lists why a table cannot be used; these columns of it must be unique.
func (f *facts) misfits(unique []string) (out []string) {
	switch {
	case f.Kind == "":
		return []string{"it is missing"}
	case f.Kind != "r":
		return []string{"it is not an ordinary table (relkind " + f.Kind + ")"}
	case f.Unlogged:
		out = append(out, "it is UNLOGGED, so a crash of the server would empty it: ALTER TABLE … SET LOGGED")
	}
	for _, u := range unique {
		if !slices.Contains(f.Unique, u) {
			out = append(out, "it has no unique constraint over ("+u+")")
		}
	}
	return out
}
