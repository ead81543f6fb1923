package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/linkforge/bulk/sink"
)

// A transaction ends after transactionRows if links go to the end of a b-tree, and after
// transactionTime if each goes to a page of its own, as in a big table. Other writers wait
// for that time and for the commit: together less than 5 s, the usual limit of their wait.
// With several workspaces each transaction writes most of the index again, so it may
// take longer: 1 million links of 300 workspaces, loaded into as many, wrote 3.6 times as
// much with 250 ms as with no limit, and twice as much with 1 s.
const (
	statementRows   = 100     // with 20, a load needs a third more processor time; with 500, a tenth more
	transactionRows = 100_000 // 20 MB of WAL at the end of a b-tree
	transactionTime = 250 * time.Millisecond
	severalTimes    = 8 // factor of transactionTime where keys do not ascend like codes
)

// A series of transactions, each of which ends after so many rows or so long.
type series struct {
	c            *conn
	op           string // for errors
	txRows       int
	txTime       time.Duration
	transactions int64
	pending      int       // rows of the open transaction
	since        time.Time // the transaction is open
}

// open opens a transaction.
func (s *series) open() error {
	err := s.c.exec(s.op, "BEGIN IMMEDIATE")
	s.pending, s.since = 0, time.Now()
	return err
}

func (s *series) commit() error {
	s.transactions++
	return s.c.commit("commit links")
}

// add counts rows of the transaction. If it is full, it commits it and opens the next one.
func (s *series) add(rows int) error {
	if s.pending += rows; s.pending < s.txRows && time.Since(s.since) < s.txTime {
		return nil
	}
	if err := s.commit(); err != nil {
		return err
	}
	return s.open()
}

// A load is one call of Load.
type load struct {
	series
	run       sink.Run
	at        []byte // updated_at, and created_at unless the link has its own
	many, one *stmt  // insert statementRows rows, and one row

	atEnd   bool // the index on url_key is created after the last row, in the first transaction
	rows    int64
	skipped int64 // rows whose code or key is taken
}

// Load implements sink.Session. The package comment says how. After a failure other than a
// conflict, the transactions before it stay.
func (s *session) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	scattered, err := s.scattered(ctx, run)
	if err != nil {
		return err
	}
	return s.write(ctx, func(c *conn) (err error) {
		if _, err = c.openRun(run.ID); err != nil {
			return err
		}
		if err = s.closeReaders(); err != nil { // the writer needs their memory
			return err
		}
		begun := time.Now()
		l := &load{series: s.series("load links"), run: run, at: []byte(stamp(run.AsOf))}
		if err = l.begin(scattered); err == nil {
			err = l.all(ctx, chunks)
		}
		s.store.setStats(l, time.Since(begun))
		return errors.Join(err, c.rollback())
	})
}

// series is one of the session.
func (s *session) series(op string) series {
	return series{c: s.c, op: op, txRows: s.store.txRows, txTime: s.store.txTime}
}

// insertVerb is INSERT OR ROLLBACK: an error rolls back the whole transaction, as Load would
// do anyway. To be able to roll back one statement, SQLite would save the pages that it
// changes in a temporary file, two thirds of all that it wrote. If there is a trigger the verb
// is a plain INSERT, since another one would override the INSERT OR IGNORE of a trigger.
func (c *conn) insertVerb() (string, error) {
	triggers, err := c.number("look for triggers", "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = 'links'")
	if triggers > 0 {
		return "INSERT", err
	}
	return "INSERT OR ROLLBACK", err
}

// prepare prepares a statement that inserts n rows, and skips those whose code or key is
// taken. ?1 and ?2 are for all rows; each row has five more parameters, and those of what only
// some links have.
func (l *load) prepare(verb string, n int) (*stmt, error) {
	created := "?2"
	if l.run.KeepCreated {
		created = "?"
	}
	columns, row := "run_id, updated_at, created_at, workspace_id, short_code, url_key, canonical_url, original_url", "(?1, ?2, "+created+", ?, ?, ?, ?, ?"
	for _, own := range []struct {
		has          bool
		columns, row string
	}{
		{l.run.Aliases, ", kind", ", ?"}, {l.run.Aliases || l.run.Parts, ", base_key", ", ?"}, {l.run.Attrs, ", attrs", ", ?"},
		{l.run.Rules, ", expires_at, max_uses, link_type, owner_id, ref, access_count, status", ", ?, ?, ?, ?, ?, 0, '" + sink.Active + "'"},
	} {
		if own.has {
			columns, row = columns+own.columns, row+own.row
		}
	}
	text := verb + " INTO links (" + columns + ") VALUES " + strings.TrimSuffix(strings.Repeat(row+"),", n), ",")
	if !l.atEnd { // else there is no index on url_key, and no other writer could take anything
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
		// The sort needs as much memory as the cache. Each of them gets half.
		if err := l.c.exec("create the index of links", fmt.Sprintf("PRAGMA cache_size = %d; %s; PRAGMA cache_size = %d",
			-writerCache>>11, createIndex, -writerCache>>10)); err != nil {
			return err
		}
	}
	if err := l.commit(); err != nil || l.skipped == 0 {
		return err
	}
	return fmt.Errorf("%s: %w of %d links", l.c.path, sink.ErrConflict, l.skipped)
}

// scattered reports whether keys do not ascend like codes: in several workspaces, if codes are kept,
// and with a scheme whose length is stored.
func (s *session) scattered(ctx context.Context, run sink.Run) (bool, error) {
	if len(s.workspaces) != 1 || run.Aliases {
		return true, nil
	}
	schemes, err := s.Schemes(ctx, s.workspaces)
	return schemes[s.workspaces[0]].CodeLength > 0, err
}

// begin opens the first transaction, and decides how long transactions may take and whether
// the index is created at the end.
func (l *load) begin(scattered bool) error {
	if err := l.open(); err != nil || !scattered {
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

// chunk inserts links, and commits each transaction when it is full.
func (l *load) chunk(ctx context.Context, links []sink.Link) error {
	for part := range slices.Chunk(links, statementRows) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := l.insert(part); err != nil {
			return err
		}
		if l.atEnd {
			continue
		}
		if err := l.add(len(part)); err != nil {
			return err
		}
	}
	return nil
}

// insert inserts up to statementRows links.
func (l *load) insert(links []sink.Link) error {
	q, n := l.many, statementRows
	if len(links) < statementRows {
		q, n = l.one, 1
	}
	for part := range slices.Chunk(links, n) {
		q.bindInt(1, int64(l.run.ID))
		q.bindText(2, l.at)
		i := 3
		for j := range part {
			link := &part[j]
			if err := l.run.Unannounced(link); err != nil {
				return err
			}
			if l.run.KeepCreated {
				l.bindCreated(q, i, link)
				i++
			}
			q.bindText(i, link.Workspace)
			q.bindText(i+1, link.Code)
			q.bindBlob(i+2, link.Key[:])
			q.bindText(i+3, link.Canonical)
			q.bindText(i+4, link.Original)
			i += 5
			i = l.bindOwn(q, i, link)
		}
		if _, err := q.step(); err != nil {
			return err
		}
		took := l.c.changes()
		l.rows += took
		l.skipped += int64(len(part)) - took
	}
	return nil
}

// bindCreated binds created_at.
func (l *load) bindCreated(q *stmt, i int, link *sink.Link) {
	at := l.at
	if !link.Created.IsZero() {
		at = []byte(stamp(link.Created))
	}
	q.bindText(i, at)
}

// bindOwn binds what only some links have after created_at, from a parameter on, and returns the
// next one.
func (l *load) bindOwn(q *stmt, i int, link *sink.Link) int {
	if l.run.Aliases {
		var kind []byte
		if link.Alias {
			kind = []byte("alias")
		}
		q.bindText(i, kind)
		i++
	}
	if l.run.Aliases || l.run.Parts {
		if link.Alias || link.Base != (sink.Key{}) {
			q.bindBlob(i, link.Base[:])
		} else {
			q.bindText(i, nil)
		}
		i++
	}
	if l.run.Attrs {
		q.bindText(i, link.Attrs)
		i++
	}
	if l.run.Rules {
		r := cmp.Or(link.Rules, new(sink.Rules))
		i = q.bindRules(i, r)
		q.bindText(i, orNull(r.Ref))
		i++
	}
	return i
}

func (s *Store) setStats(l *load, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats = map[string]any{"rows": l.rows, "transactions": l.transactions, "index_made_at_end": l.atEnd, "load_seconds": took.Seconds()}
}
