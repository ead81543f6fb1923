package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// A sweep reads the table in the order of the primary key and collects links that have something
// to do: a page. No index helps: one on times, statuses and uses would cost each load and each use
// more than it saves a sweep. It reads without locks. Then it takes the lock of each workspace of
// the page, and changes those of its links that still have it to do.
//
// All statements are on one connection, which also holds the lock of the sweep. So if a server
// still works for a client that is gone, it holds the lock until the work is done.
//
// 600,000 links, of which every third is due, with other work on the two cores: a sweep marks
// 43,000 links a second (one UPDATE of them all: 44,000 – 55,000) and deletes 130,000. A marked
// link is written again, on another page of the table, and in both indexes: table and indexes grow
// by half. If the table was loaded with a fillfactor of 70, or if VACUUM has made room on its
// pages, a marked link stays on its page: a sweep marks 83,000 – 134,000 links a second, and
// nothing grows.
const (
	sweepPage = 10_000 // links that a transaction changes, in 0.1 – 0.3 s

	// A statement that takes longer, or waits longer for a row that somebody has locked, is
	// rolled back, and its links are changed in two halves. So a sweep keeps no row locked for
	// a second, and passes over a row that somebody else keeps locked.
	sweepLimit    = 700 * time.Millisecond
	sweepRowLimit = 200 * time.Millisecond
)

// What is to do with a link.
const (
	toMark   = "mark"
	toAge    = "age" // somebody else marked it
	toDelete = "delete"
)

// A due link has something to do.
type due struct {
	row                                      []byte // its ctid
	Workspace, Code, Canonical, Status, Todo string
}

// Conditions of what is to do.
const (
	unaged = "(" + marked + " AND (marked_at IS NULL OR NOT isfinite(marked_at)))"
	old    = "(" + marked + " AND isfinite(marked_at) AND marked_at <= "
)

// Which links a statement is about: those of workspace $1 that were in the rows $2, or that have
// the codes $2. To find a row takes a third of the time, but it is another one if somebody has
// changed the link.
const (
	inRows  = " WHERE ctid = ANY ($2::tid[]) AND workspace_id = $1 AND "
	ofCodes = " unnest($2::text[]) c WHERE workspace_id = $1 AND short_code = c AND "
)

// A step is something that is done to links, by a statement that returns the codes of those that
// it did it to. $3 is the time of the marks. With $4, an earlier try may have done it.
type step struct{ inRows, ofCodes string }

func (n names) mark() step {
	set, condition := "UPDATE "+n.links+" SET status = 'EXPIRED', marked_at = $3", "("+dead("$3")+" OR $4::bool AND status = 'EXPIRED' AND marked_at = $3) RETURNING short_code"
	return step{set + inRows + condition, set + " FROM" + ofCodes + condition}
}

func (n names) age() step {
	set, condition := "UPDATE "+n.links+" SET marked_at = $3", "$4::bool IS NOT NULL AND "+unaged+" RETURNING short_code"
	return step{set + inRows + condition, set + " FROM" + ofCodes + condition}
}

func (n names) deleteOld() step {
	set, condition := "DELETE FROM "+n.links, "$4::bool IS NOT NULL AND "+old+"$3) RETURNING short_code"
	return step{set + inRows + condition, "WITH gone AS (" + set + " USING" + ofCodes + condition + ") SELECT short_code FROM gone UNION ALL SELECT c FROM unnest($2::text[]) c" +
		" WHERE $4 AND NOT EXISTS (SELECT FROM " + n.links + " WHERE workspace_id = $1 AND short_code = c)"}
}

// sweeping is one call of Sweep.
type sweeping struct {
	*session
	opts   sink.SweepOptions
	visit  func(sink.Swept) error
	out    sink.Sweeping
	own    []lock // of the session, while it is in no workspace
	inside string // workspace whose lock is held, or ""
	size   int    // links of a transaction; smaller after one that took too long
}

// Sweep implements sink.Store.
func (s *Store) Sweep(ctx context.Context, opts sink.SweepOptions, visit func(sink.Swept) error) (sink.Sweeping, error) {
	if err := s.with(ctx, "look at the tables", s.check); err != nil {
		return sink.Sweeping{}, err
	}
	session, err := s.lock(ctx, []lock{{s.lockKey("sweep", ""), false}}, sink.LockOptions{NoWait: true})
	if err != nil {
		return sink.Sweeping{}, s.isSweeping(err)
	}
	defer session.Close()
	w := &sweeping{session: session, opts: opts, visit: visit, own: session.locks, size: sweepPage}
	var began int64
	err = w.do(ctx, "look for other sweeps", func(ctx context.Context, conn *pgx.Conn) (err error) {
		if began, err = s.names.mayBegin(ctx, conn); err != nil {
			return err
		}
		return s.names.follows(ctx, conn)
	})
	if err == nil {
		err = w.pages(ctx)
	}
	if err == nil && opts.AtLeast > 0 {
		err = w.do(ctx, "let no other sweep begin", func(ctx context.Context, conn *pgx.Conn) error {
			return s.names.letNoneBegin(ctx, conn, began, began+opts.AtLeast.Microseconds())
		})
	}
	return w.out, s.isSweeping(err)
}

// isSweeping makes the error that another sweep holds its lock a sink.ErrSweeping.
func (s *Store) isSweeping(err error) error {
	if held, ok := errors.AsType[*heldError](err); ok && held.key == s.lockKey("sweep", "") {
		return fmt.Errorf("%w: %s", sink.ErrSweeping, held.holder)
	}
	return err
}

// A sweep that lets no other begin has a row in the ledger, which every role that sweeps can
// write. The run_id is 0, which no run has. The session is the end of that time, and the batch is
// the beginning of the sweep, by the clock of the server, in microseconds of Unix time. The row is
// written when the sweep has ended well: if it was killed, another may go on at once.
const sweepLedger = " WHERE run_id = 0"

// mayBegin returns the time, or a sink.ErrSweeping if no sweep may begin yet.
func (n names) mayBegin(ctx context.Context, conn *pgx.Conn) (now int64, err error) {
	var until, began int64
	err = conn.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, coalesce(max(session), 0), coalesce(max(batch), 0)
		FROM `+n.ledger+sweepLedger).Scan(&now, &until, &began)
	if err == nil && now < until {
		err = sink.SweepsNext(time.UnixMicro(began), time.UnixMicro(until))
	}
	return now, err
}

func (n names) letNoneBegin(ctx context.Context, conn *pgx.Conn, began, until int64) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM "+n.ledger+sweepLedger)
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO "+n.ledger+" (run_id, session, batch) VALUES (0, $1, $2)", until, began)
		}
		return err
	})
}

// pages does all pages.
func (w *sweeping) pages(ctx context.Context) error {
	after := place{Workspace: w.opts.Workspace}
	for {
		page, err := w.page(ctx, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for len(page) > 0 {
			n := slices.IndexFunc(page, func(l due) bool { return l.Workspace != page[0].Workspace })
			if n < 0 {
				n = len(page)
			}
			after = place{page[n-1].Workspace, page[n-1].Code}
			busy, err := w.workspace(ctx, page[:n])
			if err != nil {
				return err
			}
			if busy {
				after = place{Workspace: after.Workspace + "\x01"} // no text is between the two
			}
			page = page[n:]
		}
	}
}

// page returns the next links that have something to do.
func (w *sweeping) page(ctx context.Context, after place) (page []due, err error) {
	canonical, only := "''", ""
	if w.visit != nil {
		canonical = "canonical_url"
	}
	params := [][]byte{[]byte(after.Workspace), []byte(after.Code), number(timestampOf(w.opts.AsOf)), number(timestampOf(w.opts.AsOf.Add(-w.opts.Grace))), number(sweepPage)}
	if w.opts.Workspace != "" { // without the code, each page would be read from the beginning of the workspace
		only, params = " AND workspace_id = $6 AND short_code > $2", append(params, []byte(w.opts.Workspace))
	}
	todo := "CASE WHEN " + dead("$3") + " THEN '" + toMark + "' WHEN " + unaged + " THEN '" + toAge + "' ELSE '" + toDelete + "' END"
	sql := "SELECT ctid, workspace_id, short_code, " + canonical + ", coalesce(status, ''), " + todo + " FROM " + w.store.names.links +
		" WHERE (workspace_id, short_code) > ($1, $2)" + only + " AND (" + dead("$3") + " OR " + unaged + " OR " + old + "$4)) ORDER BY workspace_id, short_code LIMIT $5"
	err = w.do(ctx, "look for links to sweep", func(ctx context.Context, conn *pgx.Conn) error {
		page = page[:0]
		return query(ctx, conn, sql, params, func(row [][]byte) error {
			page = append(page, due{bytes.Clone(row[0]), string(row[1]), string(row[2]), string(row[3]), sink.Word(row[4]), string(row[5])})
			return nil
		})
	})
	return page, err
}

// number is a bigint or a time in binary format.
func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// workspace does what is to do with links of one workspace, or reports that it is busy.
func (w *sweeping) workspace(ctx context.Context, links []due) (busy bool, err error) {
	name := links[0].Workspace
	if w.inside != name {
		if err = w.leave(ctx); err == nil {
			err = w.enter(ctx, name)
		}
	}
	if err == nil {
		err = w.links(ctx, links)
	}
	held, isHeld := errors.AsType[*heldError](err)
	if !isHeld || held.key == w.own[1].key {
		return false, err
	}
	w.inside, w.locks = "", w.own
	w.out.Busy++
	if w.opts.Busy != nil {
		w.opts.Busy(name, held.holder)
	}
	return true, nil
}

// enter takes the lock of a workspace, as a run does. If the connection is lost after that, hold
// takes it again.
func (w *sweeping) enter(ctx context.Context, workspace string) error {
	locks := w.store.locks([]string{workspace})
	err := w.do(ctx, "lock a workspace", func(ctx context.Context, conn *pgx.Conn) error {
		for i := range locks {
			if err := take(ctx, conn, locks[i:i+1], w.store.lockTurn, sink.LockOptions{NoWait: true}); err != nil {
				return errors.Join(err, unlock(ctx, conn, locks[:i]))
			}
		}
		return nil
	})
	if err == nil {
		w.inside, w.locks = workspace, slices.Concat(w.own, locks)
	}
	return err
}

// leave releases what enter has taken.
func (w *sweeping) leave(ctx context.Context) error {
	if w.inside == "" {
		return nil
	}
	locks := w.locks[len(w.own):]
	w.inside, w.locks = "", w.own
	return w.do(ctx, "unlock a workspace", func(ctx context.Context, conn *pgx.Conn) error { return unlock(ctx, conn, locks) })
}

// links does what is to do with links of the workspace whose lock is held.
func (w *sweeping) links(ctx context.Context, links []due) error {
	todo := map[string][]due{}
	for _, l := range links {
		todo[l.Todo] = append(todo[l.Todo], l)
	}
	if w.opts.Grace <= 0 {
		todo[toDelete] = links
	}
	if len(todo[toMark])+len(todo[toAge]) > 0 {
		if err := w.SetRules(ctx, []string{w.inside}); err != nil {
			return err
		}
	}
	n := w.store.names
	err := w.apply(ctx, todo[toMark], n.mark(), w.opts.AsOf, func(l due) sink.Swept {
		w.out.Marked++
		return sink.Swept{Workspace: l.Workspace, Code: l.Code, Canonical: l.Canonical, Status: sink.Expired}
	})
	if err == nil {
		err = w.apply(ctx, todo[toAge], n.age(), w.opts.AsOf, nil)
	}
	if err == nil {
		err = w.apply(ctx, todo[toDelete], n.deleteOld(), w.opts.AsOf.Add(-w.opts.Grace), func(l due) sink.Swept {
			w.out.Deleted++
			if l.Todo == toMark {
				l.Status = sink.Expired
			}
			return sink.Swept{Workspace: l.Workspace, Code: l.Code, Canonical: l.Canonical, Status: l.Status, Deleted: true}
		})
	}
	return err
}

// apply does a step to links, which are in the order of their codes, and visits what swept makes
// of those that it did it to.
func (w *sweeping) apply(ctx context.Context, links []due, do step, at time.Time, swept func(due) sink.Swept) error {
	for len(links) > 0 {
		part := links[:min(w.size, len(links))]
		links = links[len(part):]
		err := inHalves(part, func(part []due) (refused, err error) {
			var done []string
			again := false
			err = w.do(ctx, "sweep links", func(ctx context.Context, conn *pgx.Conn) (err error) {
				done, refused, err = w.try(ctx, conn, part, do, at, again)
				again = true
				return err
			})
			if err != nil || refused != nil || swept == nil {
				return refused, err
			}
			for _, l := range part {
				if _, found := slices.BinarySearch(done, l.Code); !found {
					continue
				}
				if s := swept(l); w.visit != nil && err == nil {
					err = w.visit(s)
				}
			}
			return nil, err
		}, func(l due, refused error) {
			w.out.Kept++
			w.store.opts.Logger.Warn("a link is passed over, because something in the database refers to it, or somebody has locked it",
				"workspace", l.Workspace, "code", l.Code, "error", refused)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// try does a step to links in a transaction, and returns the codes of those that it did it to, in
// their order. The database refuses it if something refers to one of the links, or if it would
// take too long.
func (w *sweeping) try(ctx context.Context, conn *pgx.Conn, links []due, do step, at time.Time, again bool) (done []string, refused, err error) {
	begun := time.Now()
	err = pgx.BeginFunc(ctx, conn, func(pgx.Tx) error {
		if err := execAll(ctx, conn, fmt.Sprintf("SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %d", sweepLimit.Milliseconds(), sweepRowLimit.Milliseconds())); err != nil {
			return err
		}
		var rows, codes array
		for _, l := range links {
			rows.add(l.row)
		}
		workspace, told := []byte(links[0].Workspace), func(row [][]byte) error { done = append(done, string(row[0])); return nil }
		if !again {
			if err := query(ctx, conn, do.inRows, [][]byte{workspace, rows.encode(tidOID), number(timestampOf(at)), {0}}, told); err != nil {
				return err
			}
			slices.Sort(done)
		}
		if len(done) < len(links) {
			for _, l := range links {
				if _, found := slices.BinarySearch(done, l.Code); !found {
					codes.add([]byte(l.Code))
				}
			}
			params := [][]byte{workspace, codes.encode(textOID), number(timestampOf(at)), {0}}
			if again {
				params[3][0] = 1
			}
			if err := query(ctx, conn, do.ofCodes, params, told); err != nil {
				return err
			}
			slices.Sort(done)
		}
		return execAll(ctx, conn, "SET LOCAL statement_timeout = 0") // not for the commit
	})
	code := state(err)
	if code == "57014" && time.Since(begun) >= sweepLimit || code == "55P03" { // otherwise somebody has cancelled it
		w.size = max(len(links)/2, sweepPage/100)
	} else if !referenced(err) {
		return done, nil, err
	}
	return nil, err, nil
}
