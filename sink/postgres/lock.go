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

// Locks are advisory and belong to a session of the server: they end with the
// connection, however that ends. A run holds the store's lock shared and that
// of each of its workspaces, taken in byte order, so that no two runs wait for
// each other; with more than manyWorkspaces, the store's exclusively instead.
// Creating the tables and numbering the runs have their own, for the length of
// a transaction. Each session also holds a lock under a random number, its
// token, by which the transactions of its other connections see that its locks
// are still held.
const manyWorkspaces = 64

// lockKey is the number of a lock: the same in every process, another for
// every store in the database.
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

// locks of a session on these workspaces.
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

// lockTurn is how long one statement waits for a lock: as long its snapshot holds up
// VACUUM and CREATE INDEX CONCURRENTLY, whatever table they are for. After each it goes
// to the end of the queue. Who wants the store's lock, the first, exclusively takes no
// turns: all who share it would overtake there, without end.
const lockTurn = 30 * time.Second

// take takes the locks on a connection, one after the other. Of those that
// somebody else holds it waits, a turn at a time, having told about the first.
func take(ctx context.Context, conn *pgx.Conn, locks []lock, turn time.Duration, opts sink.LockOptions) error {
	for i, l := range locks {
		suffix := ""
		if l.shared {
			suffix = "_shared"
		}
		var got bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock"+suffix+"($1)", l.key).Scan(&got); err != nil {
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
			return fmt.Errorf("%w: %s", sink.ErrLocked, holder)
		}
		if opts.Wait != nil {
			opts.Wait(holder)
			opts.Wait = nil
		}
		if i == 1 && !l.shared {
			turn = 0 // of no end
		}
		if err := await(ctx, conn, "SELECT pg_advisory_lock"+suffix+"($1)", l.key, turn); err != nil {
			return err
		}
	}
	return nil
}

// await waits for a lock as long as it takes.
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

// held is the condition over pg_locks that a lock is held by somebody.
const held = `locktype = 'advisory' AND objsubid = 1 AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND (classid::bigint << 32) | objid::bigint = $1`

// describe tells who holds a lock. Of other roles' sessions the server may show
// little.
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
