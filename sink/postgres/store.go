// Package postgres keeps links in PostgreSQL (12 or newer, UTF-8) by the
// contract of package sink. Nothing else in bulk imports the driver.
//
// Of a store named links there are three tables: links, links_runs and
// links_ledger (see [SQL]). A [Store] opens few connections and each has one
// use at a time: one holds the locks of a session and carries what it writes about
// its run, and a first load; two carry other loads; each concurrent lookup has one.
//
// The ways of each thing, with what was measured on two cores with PostgreSQL
// 15, stand where they are written: the first load in first.go, loading into a
// table with rows in load.go, lookups in lookup.go, locks in lock.go.
//
// Errors are classed by SQLSTATE and behaviour, never by text (errors.go), and
// none contains a password (redact.go).
package postgres

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/semaphore"
)

// Options of a store. The zero value is ready to use. A run takes up to 17 connections,
// with one worker 3; of those that are idle a Store keeps up to 16 until Close.
type Options struct {
	Schema   string        // "": the first schema of the search path that exists
	Table    string        // "": links
	RetryFor time.Duration // how long one step is tried again, whatever pipeline.Config.RetryFor says; 0: 2 minutes, negative: not at all
	Logger   *slog.Logger  // nil: silent
}

// Validate joins all that is wrong with the options.
func (o Options) Validate() error {
	return errors.Join(checkName("schema", o.Schema, maxIdentifier), checkName("table", o.Table, maxTable))
}

func (o Options) withDefaults() Options {
	if o.Table == "" {
		o.Table = "links"
	}
	if o.RetryFor == 0 {
		o.RetryFor = 2 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Store is an opened database. It is a [sink.Store].
type Store struct {
	opts       Options
	config     *pgx.ConnConfig
	names      names
	lookups    *semaphore.Weighted
	batchBytes atomic.Int64  // of the next load; smaller after conflicts, and in tests
	lockTurn   time.Duration // shorter in tests

	mu    sync.Mutex // guards all below
	idle  []idleConn
	stats map[string]any
}

var _ sink.Store = (*Store)(nil)

// Open connects to the database at dsn, a postgres:// URL or a string of
// keyword=value pairs; what it does not say comes from libpq's variables, the
// service file and the password file; a connection may take 30 seconds unless it has
// a connect_timeout that is not 0. It creates nothing.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts.withDefaults(), config: config, lookups: semaphore.NewWeighted(maxIdle), lockTurn: lockTurn, stats: map[string]any{}}
	s.batchBytes.Store(batchBytes)
	err = s.retry(ctx, "open the database", func(ctx context.Context) error {
		conn, err := s.dial(ctx)
		if err != nil {
			return err
		}
		for _, step := range []func(context.Context, *pgx.Conn) error{s.checkServer, s.resolve, setUp} {
			if err := step(ctx, conn); err != nil {
				hangUp(conn)
				return err
			}
		}
		s.release(conn)
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the connections that are not in use.
func (s *Store) Close() error {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, conn := range idle {
		hangUp(conn.Conn)
	}
	return nil
}

// Stats tells how the last load went and what was retried.
func (s *Store) Stats() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.stats)
}

// stat sets a value of Stats.
func (s *Store) stat(name string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats[name] = value
}

// count adds to a value of Stats.
func (s *Store) count(name string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, _ := s.stats[name].(int64)
	s.stats[name] = old + n
}

// Peek opens a session that can only look.
func (s *Store) Peek(ctx context.Context) (sink.Session, error) {
	if err := s.with(ctx, "look at the tables", s.check); err != nil {
		return nil, err
	}
	return &session{store: s}, nil
}

// Runs lists all runs, by ascending ID.
func (s *Store) Runs(ctx context.Context) (runs []sink.Run, err error) {
	err = s.with(ctx, "list the runs", func(ctx context.Context, conn *pgx.Conn) (err error) {
		if err = s.check(ctx, conn); err != nil {
			return err
		}
		runs, err = s.names.runsWhere(ctx, conn, "true")
		return err
	})
	return runs, err
}
