package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// A load into a table with rows: the links are encoded into batches of batchBytes. Each
// batch is a range of codes and one transaction on one of loadConnections. A load holds
// at most loadConnections + 2 buffers of that size.
//
// 3 million rows into a table with 3 million, with other work on the two cores, take
// 10.3–13.6 s with one connection, 8.6–9.6 s with two and 8.6–9.4 s with three. Batches of
// 4 MiB or 16 MiB make no difference.
//
// A batch with a conflict is rolled back alone, and the others continue. The next load
// has batches of a quarter of the size, so a conflict keeps fewer neighbours out: a run
// gets through, however often another writer takes something.
const (
	loadConnections = 2
	batchBytes      = 8 << 20
	leastBatch      = 4 << 10
	conflictShare   = 4
)

// Load implements sink.Session. If the table is empty and first.go allows it, all links are
// added in one transaction, otherwise in batches. A batch that fails with
// sink.ErrRetryable is tried again. A first load is not, since its links were read by then:
// it leaves nothing and returns sink.ErrRetryable. If the locks were lost since the
// session began, or since the last conflict, Load returns sink.ErrConflict. One other
// goroutine reads the chunks.
func (s *session) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	s.near.Store(0)
	begun, links := time.Now(), 0
	e, reason, err := s.openFirst(ctx, run)
	if err != nil {
		return err
	}
	counted := func(yield func([]sink.Link, error) bool) {
		for chunk, err := range chunks {
			if links += len(chunk); !yield(chunk, err) {
				return
			}
		}
	}
	way := "one transaction into an empty table"
	if reason == "" {
		err = s.loadFirst(ctx, e, counted)
	} else {
		way = "batches into the indexed table: " + reason
		err = s.loadBatches(ctx, run, counted)
	}
	took := time.Since(begun)
	s.store.stat("load_way", way)
	s.store.stat("load_seconds", took.Seconds())
	if err == nil {
		s.store.opts.Logger.Info("stored links", "run", run.ID, "links", links, "seconds", math.Round(took.Seconds()*1000)/1000, "way", way)
	}
	return err
}

func (s *session) loadBatches(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	s.store.stat("load_connections", loadConnections)
	free, out := buffers(loadConnections+2), make(chan batch)
	g, ctx := errgroup.WithContext(ctx)
	size := s.store.batchBytes.Load()
	e := newEncoder(run)
	load := &load{session: s, run: run.ID, id: rand.Int64(), into: copyInto(s.store.names.links, e.columns, "")}
	g.Go(func() error { return encode(ctx, e, chunks, int(size), free, out) })
	for range loadConnections {
		g.Go(func() error {
			for {
				select {
				case b, ok := <-out:
					if !ok {
						return nil
					}
					if err := load.commit(ctx, b); err != nil {
						return err
					}
					free <- b.data
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if load.conflict != nil {
		s.store.batchBytes.CompareAndSwap(size, max(size/conflictShare, leastBatch)) // unless another load has
		return load.conflict
	}
	return s.relocked()
}

// A load is one call of Load. The ledger identifies a transaction by the number of the
// load and that of the batch.
type load struct {
	session *session
	run     int32
	id      int64
	into    string // the COPY statement

	mu       sync.Mutex
	conflict error // the first
}

// commit adds one batch. It keeps the first conflict for the end of the load.
func (l *load) commit(ctx context.Context, b batch) error {
	err := l.try(ctx, b)
	if !errors.Is(err, sink.ErrConflict) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conflict == nil {
		l.conflict = err
	}
	return nil
}

// try adds one batch, and again if that fails with sink.ErrRetryable.
func (l *load) try(ctx context.Context, b batch) error {
	s := l.session
	op := fmt.Sprintf("copy batch %d of %d rows", b.seq+1, b.rows)
	return s.store.retry(ctx, op, func(ctx context.Context) error {
		if err := s.hold(ctx); err != nil {
			return err
		}
		conn, err := s.store.acquire(ctx)
		if err != nil {
			return err
		}
		defer s.store.release(conn)
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return l.copy(ctx, conn, b) })
	})
}

// copy does the work of the transaction. The row in the ledger comes first: if an earlier
// try is still committing, the INSERT waits for it. If that try has committed, nothing is
// left to do.
func (l *load) copy(ctx context.Context, conn *pgx.Conn, b batch) error {
	n := l.session.store.names
	tag, err := conn.Exec(ctx, "INSERT INTO "+n.ledger+" (run_id, session, batch) SELECT run_id, $2, $3 FROM "+n.runs+
		" WHERE run_id = $1 AND "+open+" ON CONFLICT DO NOTHING", l.run, l.id, b.seq)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return l.committed(ctx, conn, b)
	}
	if err := copyFrom(ctx, conn, l.into, func() (batch, error) {
		whole := b
		b = batch{}
		if whole.data == nil {
			return b, io.EOF
		}
		return whole, nil
	}); err != nil {
		return err
	}
	if err := l.session.checkHeld(ctx, conn); err != nil {
		return err
	}
	l.session.store.count("load_transactions", 1)
	return nil
}

// committed finds out why the ledger took no row. If an earlier try has committed, its
// answer was lost, and there is no error. Otherwise somebody ended the run.
func (l *load) committed(ctx context.Context, conn *pgx.Conn, b batch) error {
	var there bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+l.session.store.names.ledger+
		" WHERE run_id = $1 AND session = $2 AND batch = $3)", l.run, l.id, b.seq).Scan(&there)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w, or ended run %d", sink.ErrConflict, l.run)
	}
	l.session.store.count("load_answers_lost", 1)
	return nil
}
