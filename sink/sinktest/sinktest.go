// Package sinktest is the conformance suite of the store contract in package
// sink. A store's own test calls Run with a function that makes fresh
// databases:
//
//	func TestConformance(t *testing.T) {
//		sinktest.Run(t, func(t *testing.T) *sinktest.Database { … })
//	}
//
// Each test of the suite gets a database of its own. The suite speaks to it
// through stores it opens, and looks beside them through Dump, Insert and Change,
// which the store's test implements with plain SQL.
package sinktest

import (
	"database/sql"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// A Row is a row of the table links. It is comparable.
type Row struct {
	Workspace, Code string
	Key             sink.Key
	Canonical       string
	Original        sql.NullString
	Run             int32
	Created         time.Time // UTC
}

// A Database is one fresh, isolated database of the store under test. None of
// its functions is nil.
type Database struct {
	// Open returns a new store on the database, as independent of the others as
	// one in another process. The suite closes it.
	Open func(t *testing.T) sink.Store
	// Created reports whether anything of ours exists: the file, the tables.
	Created func(t *testing.T) bool
	// Dump returns all links as the database sorts them by workspace_id and
	// short_code; none where the tables do not exist.
	Dump func(t *testing.T) []Row
	// Insert commits a link beside all sessions, as an online service would.
	// The tables exist.
	Insert func(t *testing.T, row Row)
	// Change commits the time at which somebody has changed a link.
	Change func(t *testing.T, workspace, code string, updated time.Time)
	// FineLocks says that runs on different workspaces do not exclude each
	// other.
	FineLocks bool
}

// Run runs the suite, with subtests for the sentences of the contract. The
// function fresh makes a new empty database and takes it away with t.Cleanup.
func Run(t *testing.T, fresh func(t *testing.T) *Database) {
	for _, group := range [][]test{schemaTests, lookupTests, loadTests, runTests, lockTests, cancelTests, scanTests, undoTests} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				db := &database{fresh(t), t}
				before := runtime.NumGoroutine()
				c.run(t, db)
				db.noLeak(before)
			})
		}
	}
}

type test struct {
	name string
	run  func(t *testing.T, db *database)
}

// noLeak fails the test if goroutines that the stores started outlive them.
func (db *database) noLeak(before int) {
	db.t.Helper()
	var now int
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if now = runtime.NumGoroutine(); now <= before {
			return
		}
	}
	buf := make([]byte, 1<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	db.t.Errorf("%d goroutines before, %d after:\n%s", before, now, strings.TrimSpace(stacks))
}
