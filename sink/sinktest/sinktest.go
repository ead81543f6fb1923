// Package sinktest is the conformance suite for the contract of package sink. The test of a
// store calls Run with a function that creates databases:
//
//	func TestConformance(t *testing.T) {
//		sinktest.Run(t, func(t *testing.T) *sinktest.Database { … })
//	}
//
// Each test of the suite gets a database of its own. The suite opens stores on it, and
// looks past them with Dump, Insert, Execute and Change, which the test of the store implements
// with plain SQL.
package sinktest

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/pprof"
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
	Alias           bool
	Base            sink.Key // zero: NULL
	Attrs           string   // in the form of sink.AppendJSON; blank: NULL
	Rules
}

// Rules are the columns of sink.Rules. A zero value is NULL.
type Rules struct {
	Expires          time.Time // UTC
	MaxUses, Uses    int64     // Uses that are 0 may be 0 in the database, too
	Type, Owner, Ref string
	Status           string
	Marked           time.Time // UTC
	ChangedRun       int32
	Change           string
}

// A Database is a new, isolated database of the store under test. None of its functions is
// nil.
type Database struct {
	// Open returns a new store on the database, as independent of other stores as if it
	// were in another process. The suite closes it.
	Open func(t *testing.T) sink.Store
	// Created reports whether the file or the tables exist.
	Created func(t *testing.T) bool
	// Dump returns all links as the database sorts them by workspace_id and
	// short_code. It returns none if the tables do not exist.
	Dump func(t *testing.T) []Row
	// Insert commits links in one transaction past all sessions, as an online service would.
	// The updated_at of each is its created_at. The tables exist.
	Insert func(t *testing.T, rows ...Row)
	// Change sets the updated_at of a link, as if somebody had changed it.
	Change func(t *testing.T, workspace, code string, updated time.Time)
	// Execute executes a statement, in which the table is links.
	Execute func(t *testing.T, sql string)
	// FineLocks: runs on different workspaces do not exclude each other.
	FineLocks bool
}

// Run runs the suite, with a parallel subtest for each sentence of the contract. The function
// fresh creates an empty database, and deletes it with t.Cleanup.
func Run(t *testing.T, fresh func(t *testing.T) *Database) {
	for _, group := range [][]test{schemaTests, lookupTests, loadTests, runTests, lockTests, cancelTests, scanTests, undoTests, aliasTests, ownTests, exportTests, rulesTests, changeTests, deleteTests, sweepTests, schemeTests, counterTests} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				db := &database{fresh(t), t}
				// Every goroutine that the test starts has its label.
				pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("test", t.Name())))
				c.run(t, db)
				db.noLeak()
			})
		}
	}
}

type test struct {
	name string
	run  func(t *testing.T, db *database)
}

// noLeak fails the test if goroutines of the stores still run after Close. Other tests may run beside
// this one.
func (db *database) noLeak() {
	db.t.Helper()
	var left []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if left = labeled(db.t.Name()); len(left) == 1 { // this one
			return
		}
	}
	db.t.Errorf("goroutines still run, or this one has no label:\n%s", strings.Join(left, "\n\n"))
}

// labeled lists the stacks of the goroutines of a test.
func labeled(test string) (stacks []string) {
	var all strings.Builder
	pprof.Lookup("goroutine").WriteTo(&all, 1)
	label := fmt.Sprintf("%q:%q", "test", test)
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, label) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
