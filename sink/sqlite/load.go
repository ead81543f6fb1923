package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/sink"
)

// A transaction is bounded by rows where links go to the end of a b-tree, and by time where
// each goes to a page of its own, as in a big table. Other writers wait that long, and for
// the commit: less, in all, than the 5 s that they usually wait at most. With several
// workspaces each transaction writes most of the index again, so there it may last longer:
// 1 million links of 300 workspaces, loaded into as many, wrote 3.6 times as much with
// 250 ms as with no limit, and twice as much with 1 s.
const (
	statementRows   = 100     // 20 take a third more processor time, 500 a tenth
	transactionRows = 100_000 // 20 MB of WAL at the end of a b-tree
	transactionTime = 250 * time.Millisecond
	severalTimes    = 8 // as long, with several workspaces
)

// A load is one call of Load.
type load struct {
	c         *conn
	txRows    int
	txTime    time.Duration
	run       int32
	at        []byte // created_at and updated_at
	many, one *stmt  // insert statementRows rows, one row

	atEnd        bool // the index on url_key is made after the last row
	rows         int64
	passed       int64 // rows that were passed over
	transactions int64
	pending      int       // rows of the open transaction
	since        time.Time // it is open
}

// Load implements sink.Session. See the package comment for how it loads; what any
// failure but a conflict leaves are the transactions before it.
func (s *session) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	return s.write(ctx, func(c *conn) (err error) {
		if _, err = c.openRun(run.ID); err != nil {
			return err
		}
		if err = s.closeReaders(); err != nil { // the writer needs their memory
			return err
		}
		begun := time.Now()
		l := &load{c: c, txRows: s.store.txRows, txTime: s.store.txTime, run: run.ID, at: []byte(stamp(run.AsOf))}
		if err = l.begin(s.workspaces > 1); err == nil {
			err = l.all(ctx, chunks)
		}
		s.store.setStats(l, time.Since(begun))
		return errors.Join(err, c.rollback())
	})
}

// insertVerb makes an error undo the whole transaction, as Load does anyway: to be able to
// undo one statement alone, SQLite saves the pages that it changes in a temporary file,
// which was most of what it wrote. Where there is a trigger the verb is a plain INSERT,
// since another would override the INSERT OR IGNORE of the trigger.
func (c *conn) insertVerb() (string, error) {
	triggers, err := c.number("look for triggers", "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = 'links'")
	if triggers > 0 {
		return "INSERT", err
	}
	return "INSERT OR ROLLBACK", err
}

// prepare prepares the statement that inserts n rows, but for those whose code or key is
// there: ?1 and ?2 are those of all rows, and each has five of its own.
func (l *load) prepare(verb string, n int) (*stmt, error) {
	text := verb + ` INTO links (run_id, created_at, updated_at, workspace_id, short_code, url_key, canonical_url, original_url) VALUES ` +
		strings.TrimSuffix(strings.Repeat("(?1, ?2, ?2, ?, ?, ?, ?, ?),", n), ",")
	if !l.atEnd { // else there is no index on url_key, and nobody who could have taken anything
		text += " ON CONFLICT (workspace_id, short_code) DO NOTHING ON CONFLICT (url_key) DO NOTHING"
	}
	return l.c.prepare("insert links", text)
}

// all loads the chunks and commits.
func (l *load) all(ctx context.Context, chunks iter.Seq2[[]sink.Link, error]) error {
	verb, err := l.c.insertVerb()
	if err != nil {
		return err
	}
	if l.many, err = l.prepare(verb, statementRows); err != nil {
		return err
	}
	defer l.many.finalize()
	if l.one, err = l.prepare(verb, 1); err != nil {
		return err
	}
	defer l.one.finalize()
	for chunk, err := range chunks {
		if err != nil {
			return err
		}
		if err := l.chunk(ctx, chunk); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if l.atEnd {
		// The sort takes as much memory as the cache may, each of them half now.
		if err := l.c.exec("make the index of links", fmt.Sprintf("PRAGMA cache_size = %d; %s; PRAGMA cache_size = %d",
			-writerCache>>11, createIndex, -writerCache>>10)); err != nil {
			return err
		}
	}
	if err := l.commit(); err != nil || l.passed == 0 {
		return err
	}
	return fmt.Errorf("%s: %w, of %d links", l.c.path, sink.ErrConflict, l.passed)
}

// begin opens the first transaction, and decides how long they last and what becomes of
// the index.
func (l *load) begin(several bool) error {
	if err := l.open(); err != nil || !several {
		return err
	}
	l.txTime *= severalTimes
	n, err := l.c.number("load links", "SELECT EXISTS (SELECT 1 FROM links)")
	if err != nil || n > 0 {
		return err
	}
	l.atEnd = true
	return l.c.exec("load links", "DROP INDEX links_url_key")
}

// open opens a transaction.
func (l *load) open() error {
	err := l.c.exec("load links", "BEGIN IMMEDIATE")
	l.pending, l.since = 0, time.Now()
	return err
}

func (l *load) commit() error {
	l.transactions++
	return l.c.commit("commit links")
}

// chunk inserts links, and commits each time there are enough.
func (l *load) chunk(ctx context.Context, links []sink.Link) error {
	for part := range slices.Chunk(links, statementRows) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := l.insert(ctx, part); err != nil {
			return err
		}
		l.pending += len(part)
		if l.atEnd || l.pending < l.txRows && time.Since(l.since) < l.txTime {
			continue
		}
		if err := l.commit(); err != nil {
			return err
		}
		if err := l.open(); err != nil {
			return err
		}
	}
	return nil
}

// insert inserts up to statementRows links.
func (l *load) insert(ctx context.Context, links []sink.Link) error {
	q, n := l.many, statementRows
	if len(links) < statementRows {
		q, n = l.one, 1
	}
	for part := range slices.Chunk(links, n) {
		q.bindInt(1, int64(l.run))
		q.bindText(2, l.at)
		i := 3
		for j := range part {
			link := &part[j]
			q.bindText(i, link.Workspace)
			q.bindText(i+1, link.Code)
			q.bindBlob(i+2, link.Key[:])
			q.bindText(i+3, link.Canonical)
			q.bindText(i+4, link.Original)
			i += 5
		}
		if _, err := q.step(); err != nil {
			return err
		}
		took := l.c.changes()
		l.rows += took
		if over := int64(len(part)) - took; over > 0 {
			l.passed += over
			if err := l.owned(ctx, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// owned fails if the table did not take one of these links although no link has its code
// or its key: another code would not help.
func (l *load) owned(ctx context.Context, links []sink.Link) error {
	r := &reader{c: l.c}
	defer r.finalize()
	if err := r.prepare(); err != nil {
		return err
	}
	for _, k := range links {
		there := false
		probe := sink.Probe{Workspace: k.Workspace, Code: k.Code, Key: k.Key, Canonical: k.Canonical}
		if err := r.lookup(ctx, []sink.Probe{probe}, func(sink.Found) error { there = true; return nil }); err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("%s: the table does not take link %q in workspace %q for %q, and nobody has its code or its url_key: a trigger keeps it out, or the database is damaged: look at it with PRAGMA integrity_check",
				l.c.path, k.Code, k.Workspace, k.Canonical)
		}
	}
	return nil
}

func (s *Store) setStats(l *load, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats = map[string]any{"rows": l.rows, "transactions": l.transactions, "index_made_at_end": l.atEnd, "load_seconds": took.Seconds()}
}
