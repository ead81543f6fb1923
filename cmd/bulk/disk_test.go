package main

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/benchmarks/gen"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
)

// A load for which the server's disk has no room fails for good, says what to
// do, and leaves nothing but whole batches. Once there is room, the same command
// finishes the job.
func TestDiskFull(t *testing.T) {
	if testing.Short() {
		t.Skip("stores of packages pipeline and postgres fail in the middle of a load, too")
	}
	own := pgtest.New(pgtest.Options{Disk: 48 << 20})
	own.Need(t)
	t.Cleanup(func() { own.Close() })
	for _, c := range []struct {
		name   string
		filled bool
		rows   int64   // several batches, if it is loaded in batches
		room   float64 // of what the links take without their indexes
	}{
		{"first/copy", false, 35_000, 0.3},
		{"first/constraints", false, 35_000, 1.1},
		{"batches", true, 70_000, 0.8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			list(t, "links.csv", gen.Options{Rows: c.rows, Duplicates: 0.1, Rejects: 0.01})
			list(t, "before.csv", gen.Options{Rows: 1000, First: 1_000_000})
			store := postgresStore()
			fresh := func(options ...string) string {
				dsn := postgresURL(own.Database(t, options...))
				command(t, exitDone, "init", "--db", dsn)
				if c.filled {
					command(t, exitDone, "run", "before.csv", "--workspace", "demo", "--db", dsn, "--out", filepath.Join(t.TempDir(), "before"), "--as-of", "2026-01-01")
				}
				return dsn
			}
			args := func(dsn, out string) []string {
				return []string{"run", "links.csv", "--workspace", "demo", "--db", dsn, "--out", out, "--as-of", "2026-01-02"}
			}
			roomy := fresh()
			command(t, exitRejected, args(roomy, "want")...)
			want := store.dump(t, roomy)

			small := fresh("TABLESPACE " + pgtest.Disk)
			u, _ := url.Parse(small)
			name := u.Query().Get("dbname")
			before := store.dump(t, small)
			state := own.Fill(t, name, int64(c.room*float64(number(t, roomy, "SELECT pg_relation_size('links')"))))
			code, output := execute(t, nil, args(small, "got")...)
			said := string(output)
			if code != exitFailed || !strings.Contains(said, state) || state == "53100" && !strings.Contains(said, "make room on the server's disk and run again") {
				t.Fatalf("exit code %d, state %s: %s", code, state, said)
			}
			if left, _ := filepath.Glob("*got*"); len(left) > 0 {
				t.Errorf("%v was left", left)
			}
			after := store.dump(t, small)
			t.Logf("%d links before, %d after, of %d: %s", len(before), len(after), len(want), said)
			if !c.filled && len(after) > 0 || len(after) < len(before) || len(after) == len(want) {
				t.Errorf("%d links after, %d before", len(after), len(before))
			}
			unlocked(t, small)
			command(t, exitDone, "init", "--db", small) // the tables are as they should be

			own.Empty(t, name)
			command(t, exitRejected, args(small, "got")...)
			if got := store.dump(t, small); !slices.Equal(got, want) {
				t.Errorf("%d links, want %d", len(got), len(want))
			}
			for _, file := range []string{"mapping.csv", "rejects.csv", "collisions.csv", "manifest.json"} {
				if string(read(t, "got", file)) != string(read(t, "want", file)) {
					t.Errorf("%s differs", file)
				}
			}
		})
	}
}

// unlocked fails if a lock stays in the database.
func unlocked(t *testing.T, dsn string) {
	t.Helper()
	const locks = "SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	for deadline := time.Now().Add(30 * time.Second); number(t, dsn, locks) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a lock is left")
		}
	}
}

// number reads one number.
func number(t *testing.T, dsn, sql string) (n int64) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer conn.Close(ctx)
	must(t, conn.QueryRow(ctx, sql).Scan(&n))
	return n
}
