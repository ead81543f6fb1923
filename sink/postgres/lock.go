package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// Locks are advisory locks of a connection: they end with it. A run holds the lock of the
// store, shared, and the lock of each of its workspaces. It takes them in byte order, so two
// runs never wait for each other. A run with more than manyWorkspaces holds the lock of the
// store alone, and no others. A sweep holds a lock of its own, and the locks of a run on one
// workspace at a time. To create the tables, to number a run, to set a scheme and to use the
// counter, there is a lock for the length of a transaction.
//
// Each session also holds a lock with a random key, its token. By the token the
// transactions on its other connections see that the locks are still held.
const manyWorkspaces = 64

// lockKey is the number of a lock: the same in every process, and another for each store
// in the database.
func (s *Store) lockKey(kind, workspace string) int64 {
	return lockKey(kind, s.names.schema, s.names.table, workspace)
}

func lockKey(kind, schema, table, workspace string) int64 {
	h := sha256.Sum256(fmt.Appendf(nil, "github.com/linkforge/bulk|%s|%q|%q|%s", kind, schema, table, workspace))
	return int64(binary.BigEndian.Uint64(h[:]))
}

type lock struct {
	key    int64
	shared bool
}

// sql calls a function of PostgreSQL for the lock, whose key is $1.
func (l lock) sql(function string) string {
	if l.shared {
		function += "_shared"
	}
	return "SELECT " + function + "($1)"
}

// locks of a session on these workspaces, without its token.
func (s *Store) locks(workspaces []string) []lock {
	whole := s.lockKey("store", "")
	if len(workspaces) > manyWorkspaces {
		return []lock{{whole, false}}
	}
	out := []lock{{whole, true}}
	for _, w := range workspaces {
		out = append(out, lock{s.lockKey("workspace", w), false})
	}
	return out
}

// lockTurn is how long one statement waits for a lock. While it waits, its snapshot delays
// VACUUM and CREATE INDEX CONCURRENTLY on every table. After each turn, the session is at
// the end of the queue again. A session that needs the lock of the store alone waits
// without turns: all sessions that share the lock would overtake it, again and again.
const lockTurn = 30 * time.Second

// take takes the locks of a session on a connection, one after the other. If another
// session holds one, it waits, a turn at a time, and calls opts.Wait before the first wait.
func take(ctx context.Context, conn *pgx.Conn, locks []lock, turn time.Duration, opts sink.LockOptions) error {
	for i, l := range locks {
		var got bool
		if err := conn.QueryRow(ctx, l.sql("pg_try_advisory_lock"), l.key).Scan(&got); err != nil {
			return err
		}
		if got {
			continue
		}
		holder, err := describe(ctx, conn, l.key)
		if err != nil {
			return err
		}
		if opts.NoWait {
			return &heldError{l.key, holder}
		}
		if opts.Wait != nil {
			opts.Wait(holder)
			opts.Wait = nil
		}
		if i == 1 && !l.shared { // the store's; the first is the token
			turn = 0 // without end
		}
		if err := await(ctx, conn, l.sql("pg_advisory_lock"), l.key, turn); err != nil {
			return err
		}
	}
	return nil
}

// unlock releases locks that take has taken.
func unlock(ctx context.Context, conn *pgx.Conn, locks []lock) error {
	for _, l := range locks {
		if _, err := conn.Exec(ctx, l.sql("pg_advisory_unlock"), l.key); err != nil {
			return err
		}
	}
	return nil
}

// A heldError is a sink.ErrLocked.
type heldError struct {
	key    int64
	holder string
}

func (e *heldError) Error() string { return sink.ErrLocked.Error() + ": " + e.holder }
func (e *heldError) Unwrap() error { return sink.ErrLocked }

// await takes a lock, and waits for it until the context is over.
func await(ctx context.Context, conn *pgx.Conn, sql string, key int64, turn time.Duration) error {
	for {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", turn.Milliseconds())); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, sql, key)
			return err
		})
		if state(err) != "55P03" {
			return err
		}
	}
}

// held is a condition over pg_locks: some session holds the lock with the key $1.
const held = `locktype = 'advisory' AND objsubid = 1 AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND (classid::bigint << 32) | objid::bigint = $1`

// describe says which session holds a lock. The server may show little about the sessions
// of other roles.
func describe(ctx context.Context, conn *pgx.Conn, key int64) (string, error) {
	var name, backend string
	err := conn.QueryRow(ctx, `SELECT coalesce(nullif(application_name, ''), 'a client'),
			concat('backend ', pid, ' from ' || host(client_addr),
				to_char(backend_start AT TIME ZONE 'UTC', '", connected since "YYYY-MM-DD"T"HH24:MI:SS"Z"'))
		FROM pg_stat_activity JOIN (SELECT pid FROM pg_locks WHERE `+held+`) l USING (pid) LIMIT 1`, key).
		Scan(&name, &backend)
	if err == pgx.ErrNoRows {
		return "another bulk run that is ending", nil
	}
	return fmt.Sprintf("%q (%s)", name, backend), err
}
