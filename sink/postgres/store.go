// Package postgres is the store in PostgreSQL (version 12 or newer, UTF-8). It implements
// the contract of package sink. Nothing else in bulk imports the driver.
//
// A store named links has five tables: links, links_runs, links_ledger, links_workspaces and
// links_counter (see [SQL]). One of an older version is refused with sink.ErrOldTables until Init has
// upgraded it.
// A [Store] opens few connections. One holds the locks of a session, writes the row of its
// run and does a first load; two do other loads; each lookup that runs has one.
//
// Each file explains what it does, with times measured on two cores with PostgreSQL 15:
// the first load in first.go, a load into a table with rows in load.go, lookups in
// lookup.go, locks in lock.go.
//
// The class of an error depends on its SQLSTATE and type, never on its text (errors.go).
// No error contains a password (redact.go).
package postgres

import (
	"cmp"
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

// Options of a store. The zero value is ready to use. A run needs up to 17 connections, or
// 3 with one worker. A Store keeps up to 16 idle ones until Close.
type Options struct {
	Name     string        // of connections, for pg_stat_activity and for those who wait for a lock; an application_name of the address wins; "": bulk run
	Schema   string        // "": the first schema of the search path that exists
	Table    string        // "": links
	RetryFor time.Duration // how long to keep trying one step when the database does not answer; pipeline.Config.RetryFor is another limit; 0: 2 minutes, negative: do not retry
	Logger   *slog.Logger  // nil: silent
	Outage   sink.Outage   // nil: sink.LogOutage of Logger
}

// Validate returns all problems with the options, joined.
func (o Options) Validate() error {
	return errors.Join(checkName("schema", o.Schema, maxIdentifier), checkName("table", o.Table, maxTable))
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "bulk run"
	}
	if o.Table == "" {
		o.Table = "links"
	}
	if o.RetryFor == 0 {
		o.RetryFor = 2 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Outage == nil {
		o.Outage = sink.LogOutage(o.Logger)
	}
	return o
}

// A Store is an open database. It is a [sink.Store].
type Store struct {
	opts       Options
	config     *pgx.ConnConfig
	names      names
	lookups    *semaphore.Weighted
	batchBytes atomic.Int64  // of the next load; smaller after conflicts, and in tests
	lockTurn   time.Duration // shorter in tests
	failing    atomic.Int32  // calls of retry that have not succeeded since they failed

	mu    sync.Mutex // guards all below
	idle  []idleConn
	stats map[string]any
}

var _ sink.Store = (*Store)(nil)

// Open connects to the database at dsn, a postgres:// URL or a string of keyword=value
// pairs. Settings that dsn does not have come from libpq's environment variables, the
// service file and the password file. A connection may take 30 seconds, or connect_timeout
// if that is not 0. Open creates nothing. The error wraps [ErrAddress] if dsn cannot be
// read, sink.ErrNotOurs for a database in another encoding than UTF-8, and
// sink.ErrRetryable if the server does not answer.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	s, err := newStore(dsn, opts)
	if err != nil {
		return nil, err
	}
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

// newStore returns a store that has no connections and no names yet.
func newStore(dsn string, opts Options) (*Store, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	config.RuntimeParams["application_name"] = cmp.Or(config.RuntimeParams["application_name"], opts.Name)
	s := &Store{opts: opts, config: config, lookups: semaphore.NewWeighted(maxIdle), lockTurn: lockTurn, stats: map[string]any{}}
	s.batchBytes.Store(batchBytes)
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

// Stats describes the last load, and counts retries.
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
