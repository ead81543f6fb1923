package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// A first load is one transaction on the connection that holds the locks. It locks the
// table against everybody, checks that it is empty, truncates it and drops its
// constraints. COPY can then write finished pages (FREEZE) and no index, and the
// constraints are created over sorted rows. 3 million rows take 3.7 s, and 6.6 s with the
// indexes in place. FREEZE needs a table that was created or truncated in the same
// transaction; this one was created before (see ensure), so it is truncated.
//
// Until the commit, nobody else sees the truncated table.
const (
	firstBytes = 1 << 20 // of a buffer
	firstCount = 4       // buffers

	// How long openFirst waits for readers of the empty table. Meanwhile, later readers
	// wait for openFirst.
	firstLockTimeout = "2s"
	// Memory to create an index, unless the server has more set.
	firstMemoryMB = 512
)

// refusal is a query for the reason why a first load of a table without rows is not possible. The
// result is blank if it is. To drop the constraints would lose what depends on them, what somebody has set
// on them or on their indexes, and a constraint of the same name over other columns. A
// subscriber of a published table would truncate its own table, which may have other rows.
const refusal = `SELECT CASE
	WHEN NOT pg_has_role(c.relowner, 'USAGE') THEN 'it belongs to another role'
	WHEN NOT has_schema_privilege(c.relnamespace, 'CREATE') THEN 'the role may not create constraints: CREATE on the schema is missing'
	WHEN EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) THEN 'it has triggers'
	WHEN EXISTS (SELECT FROM pg_constraint WHERE confrelid = c.oid) THEN 'a foreign key refers to it'
	WHEN c.relhasrules OR c.relrowsecurity THEN 'it has rules or row security'
	WHEN EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhparent, inhrelid)) THEN 'it inherits'
	WHEN EXISTS (SELECT FROM pg_publication_tables p JOIN pg_namespace s ON s.nspname = p.schemaname
		WHERE s.oid = c.relnamespace AND p.tablename = c.relname) THEN 'it is published'
	WHEN c.relreplident = 'i' THEN 'an index is its replica identity'
	WHEN (SELECT count(DISTINCT n.contype) FROM pg_constraint n JOIN pg_class i ON i.oid = n.conindid
		WHERE n.conrelid = c.oid AND n.conname IN ($2, $3)
		AND pg_get_constraintdef(n.oid) IN ('PRIMARY KEY (workspace_id, short_code)', 'UNIQUE (url_key)')
		AND i.reltablespace = 0 AND i.reloptions IS NULL
		AND obj_description(n.oid, 'pg_constraint') IS NULL AND obj_description(i.oid, 'pg_class') IS NULL) <> 2 THEN 'bulk did not create its constraints'
	WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisclustered) THEN 'it is clustered on an index'
	ELSE '' END FROM pg_class c WHERE c.oid = to_regclass($1)`

// openFirst begins the transaction of a first load on the connection that holds the locks,
// truncates the table, drops its constraints and returns the encoder. If a first load is
// not possible, it returns the reason, and no transaction is open.
func (s *session) openFirst(ctx context.Context, run sink.Run) (e *encoder, reason string, err error) {
	n := s.store.names
	err = s.do(ctx, "prepare the load", func(ctx context.Context, conn *pgx.Conn) (err error) {
		if err := s.relocked(); err != nil {
			return err
		}
		if _, err := n.openRun(ctx, conn, run.ID); err != nil {
			return err
		}
		if reason, err = n.refuses(ctx, conn); err != nil || reason != "" {
			return err // asked without a lock first, since the lock delays an online service
		}
		if reason, err = s.clear(ctx, conn); err == nil && reason == "" {
			e, err = s.setDefaults(ctx, conn, run)
		}
		if err == nil && reason == "" && (run.Aliases || run.Parts) {
			e.dropped, err = n.dropBase(ctx, conn)
		}
		if err != nil || reason != "" {
			err = errors.Join(err, rollback(conn))
		}
		code := state(err)
		if err == nil || ctx.Err() != nil || code == "" || class(err) != nil && code != "55P03" {
			return err
		}
		// Whatever the server refuses here (another client's lock, a privilege, a view that
		// depends on the key), batches may still work.
		reason, err = "the server says: "+err.Error(), nil
		return nil
	})
	return e, reason, err
}

// refuses returns the reason why a first load is not possible, or "".
func (n names) refuses(ctx context.Context, conn *pgx.Conn) (reason string, err error) {
	err = conn.QueryRow(ctx, "SELECT CASE WHEN EXISTS (SELECT FROM "+n.links+") THEN 'it has rows' ELSE '' END").Scan(&reason)
	if err != nil || reason != "" {
		return reason, err
	}
	if _, err = conn.Prepare(ctx, refusal, refusal); err == nil { // it is asked twice, and a plan costs more than the answer
		err = conn.QueryRow(ctx, refusal, n.links, n.primary, n.key).Scan(&reason)
	}
	return reason, err
}

// clear begins the transaction, truncates the table and drops its constraints, unless there
// is a reason not to.
func (s *session) clear(ctx context.Context, conn *pgx.Conn) (reason string, err error) {
	n := s.store.names
	if err := execAll(ctx, conn, "BEGIN", "SET LOCAL lock_timeout = '"+firstLockTimeout+"'",
		"LOCK TABLE "+n.links+" IN ACCESS EXCLUSIVE MODE", "SET LOCAL lock_timeout = 0"); err != nil {
		return "", err
	}
	if reason, err := n.refuses(ctx, conn); err != nil || reason != "" {
		return reason, err
	}
	return "", execAll(ctx, conn,
		fmt.Sprintf(`SELECT set_config('maintenance_work_mem', '%dMB', true)
			WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < %[1]d::bigint << 20`, firstMemoryMB),
		"SET LOCAL max_parallel_maintenance_workers = 4",
		"TRUNCATE "+n.links,
		"ALTER TABLE "+n.links+" DROP CONSTRAINT "+quote(n.primary)+", DROP CONSTRAINT "+quote(n.key))
}

// setDefaults makes the values that all links of the run share the defaults of their
// columns. They need not be sent and parsed with each row: the server copies 3 million rows
// in 1.4 s rather than 1.7 s. If one of these columns already has a default, all columns
// are sent.
func (s *session) setDefaults(ctx context.Context, conn *pgx.Conn, run sink.Run) (*encoder, error) {
	asOf := literal(run.AsOf.UTC().Format("2006-01-02 15:04:05.999999+00"))
	shared := map[string]string{"run_id": strconv.Itoa(int(run.ID)), "created_at": asOf, "updated_at": asOf, "access_count": "0", "status": literal(sink.Active)}
	e := &encoder{run: run}
	if run.KeepCreated {
		delete(shared, "created_at")
		e.tail = appendTime(nil, run.AsOf)
		e.created = len(e.tail) - 8
	}
	if len(s.workspaces) == 1 {
		e.workspace = []byte(s.workspaces[0])
		shared["workspace_id"] = literal(s.workspaces[0])
	}
	var changes, names []string
	for _, c := range constant(run) {
		if value, ok := shared[c]; ok {
			changes, names = append(changes, "ALTER "+c+" SET DEFAULT "+value), append(names, c)
		} else {
			e.columns = append(e.columns, c)
		}
	}
	var taken bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attname = ANY ($2) AND (atthasdef OR attidentity <> ''))`, s.store.names.links, names).Scan(&taken)
	if err != nil || taken {
		return newEncoder(run), err
	}
	return e.withOwn(), execAll(ctx, conn, "ALTER TABLE "+s.store.names.links+" "+strings.Join(changes, ", "))
}

// dropBase drops the index on base_key, unless somebody has set something on it. (600,000 links
// with as many aliases take 4.7 s rather than 5.5 s to load if it is created after them.)
func (n names) dropBase(ctx context.Context, conn *pgx.Conn) (dropped bool, err error) {
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
		WHERE x.indrelid = to_regclass($1) AND i.relname = $2 AND x.indisvalid
		AND i.reltablespace = 0 AND i.reloptions IS NULL AND obj_description(i.oid, 'pg_class') IS NULL)`, n.links, n.base).Scan(&dropped)
	if err != nil || !dropped {
		return false, err
	}
	return true, execAll(ctx, conn, "DROP INDEX "+quote(n.schema)+"."+quote(n.base))
}

// dropDefaults is the statement that undoes setDefaults, or none.
func (n names) dropDefaults(e *encoder) (statements []string) {
	var changes []string
	for _, c := range constant(e.run) {
		if !slices.Contains(e.columns, c) {
			changes = append(changes, "ALTER "+c+" DROP DEFAULT")
		}
	}
	if changes != nil {
		statements = append(statements, "ALTER TABLE "+n.links+" "+strings.Join(changes, ", "))
	}
	return statements
}

// loadFirst does the rest of a first load after openFirst: it copies the links, creates the
// constraints and commits, or rolls back.
func (s *session) loadFirst(ctx context.Context, e *encoder, chunks iter.Seq2[[]sink.Link, error]) error {
	err := s.copyFirst(ctx, e, chunks)
	if err == nil {
		begun, n := time.Now(), s.store.names
		statements := append(n.dropDefaults(e), n.constraints()...)
		if e.dropped {
			statements = append(statements, n.createIndex(""))
		}
		statements = append(statements, "COMMIT")
		err = classify(ctx, "create the constraints", execAll(ctx, s.conn, statements...))
		s.store.stat("constraints_seconds", time.Since(begun).Seconds())
	}
	if err != nil {
		err = errors.Join(err, rollback(s.conn))
	}
	return err
}

// copyFirst streams the links into the table. The encoder has a goroutine of its own. If
// it fails, the stream returns the error to the driver. To cancel the driver's context
// instead would close the connection, and the locks would be lost.
func (s *session) copyFirst(ctx context.Context, e *encoder, chunks iter.Seq2[[]sink.Link, error]) error {
	free, out := buffers(firstCount), make(chan batch, firstCount)
	g, inner := errgroup.WithContext(ctx)
	g.Go(func() error { return encode(inner, e, chunks, firstBytes, free, out) })
	g.Go(func() error {
		var last []byte
		err := copyFrom(ctx, s.conn, copyInto(s.store.names.links, e.columns, ", FREEZE"),
			func() (batch, error) {
				if last != nil {
					free <- last
					last = nil
				}
				select {
				case b, ok := <-out:
					if !ok {
						return b, io.EOF
					}
					last = b.data
					return b, nil
				case <-inner.Done():
					return batch{}, context.Cause(inner)
				}
			})
		return classify(ctx, "copy into the empty table", err)
	})
	return g.Wait()
}
