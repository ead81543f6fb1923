package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/benchmarks/gen"
	_ "modernc.org/sqlite"
)

const dumpLinks = `SELECT workspace_id, short_code, canonical_url, coalesce(original_url, ''), CAST(run_id AS text), CAST(created_at AS text) FROM links ORDER BY 1, 2`

// A killable is a store that the kill test can make, as a copy of another one that nobody has open, or,
// if that is "", empty. And it can look into it.
type killable struct {
	fresh func(t *testing.T, like string) (dsn string)
	dump  func(t *testing.T, dsn string) []string
}

func sqliteStore() killable {
	return killable{
		fresh: func(t *testing.T, like string) string {
			dir := t.TempDir()
			if file, ok := strings.CutPrefix(like, "sqlite:"); ok {
				must(t, os.CopyFS(dir, os.DirFS(filepath.Dir(file))))
			}
			return "sqlite:" + filepath.Join(dir, "links.db")
		},
		dump: func(t *testing.T, dsn string) []string {
			db, err := sql.Open("sqlite", dsn[len("sqlite:"):])
			must(t, err)
			defer db.Close()
			rows, err := db.Query(dumpLinks)
			must(t, err)
			defer rows.Close()
			return scan(t, rows)
		},
	}
}

func postgresStore() killable {
	return killable{
		fresh: func(t *testing.T, like string) string {
			if like == "" {
				return postgresURL(server.Database(t))
			}
			u, err := url.Parse(like)
			must(t, err)
			return postgresURL(server.Database(t, "TEMPLATE "+u.Query().Get("dbname")))
		},
		dump: func(t *testing.T, dsn string) []string {
			ctx := context.Background()
			conn, err := pgx.Connect(ctx, dsn)
			must(t, err)
			defer conn.Close(ctx)
			rows, err := conn.Query(ctx, dumpLinks)
			must(t, err)
			defer rows.Close()
			return scan(t, rows)
		},
	}
}

// postgresURL writes an address of keyword=value pairs as a URL.
func postgresURL(address string) string {
	q := url.Values{}
	for _, pair := range strings.Fields(address) {
		name, value, _ := strings.Cut(pair, "=")
		q.Set(name, value)
	}
	return "postgres:///?" + q.Encode()
}

type scanner interface {
	Next() bool
	Scan(...any) error
	Err() error
}

func scan(t *testing.T, rows scanner) (lines []string) {
	t.Helper()
	for rows.Next() {
		var c [6]string
		must(t, rows.Scan(&c[0], &c[1], &c[2], &c[3], &c[4], &c[5]))
		lines = append(lines, fmt.Sprint(c))
	}
	must(t, rows.Err())
	return lines
}

// content returns the links and the runs of a store, but not when and where these ran.
func (k killable) content(t *testing.T, dsn string) []string {
	t.Helper()
	o := storeOptions{db: dsn}
	store, err := o.open(t.Context(), slog.New(slog.DiscardHandler))
	must(t, err)
	runs, err := store.Runs(t.Context())
	must(t, errors.Join(err, store.Close()))
	lines := k.dump(t, dsn)
	for _, r := range runs {
		r.Started, r.Finished, r.Out = time.Time{}, time.Time{}, ""
		lines = append(lines, fmt.Sprint(r))
	}
	return lines
}

// soak is the number of points at which a run is killed; make soak asks for many.
func soak(t *testing.T) int {
	n := 4
	if v := os.Getenv("BULK_SOAK"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// A run that is killed at any moment and repeated leaves the store and the
// reports that an undisturbed one would have left: into an empty store, and, with
// the mapping in the order of the input, into one that has a part of the links.
// (Package pipeline kills at each call.)
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("package pipeline kills")
	}
	for name, store := range map[string]killable{"sqlite": sqliteStore(), "postgres": postgresStore()} {
		for _, filled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/filled=%v", name, filled), func(t *testing.T) {
				if name == "postgres" {
					server.Need(t)
				}
				testKill(t, store, filled)
			})
		}
	}
}

func testKill(t *testing.T, store killable, filled bool) {
	t.Chdir(t.TempDir())
	list(t, "links.csv", gen.Options{Rows: 10_000, Duplicates: 0.1, Dirty: 0.1, Rejects: 0.01, Workspaces: 3})
	list(t, "before.csv", gen.Options{Rows: 4000, First: 1250, Workspaces: 3})
	before := ""
	if filled {
		before = store.fresh(t, "")
		command(t, exitDone, "run", "before.csv", "--workspace-column", "workspace", "--db", before, "--out", filepath.Join(t.TempDir(), "before"), "--code-length", "3", "--as-of", "2026-01-01")
	}
	order := map[bool]string{false: "sort", true: "input"}[filled]
	args := func(dsn, out string) []string {
		return []string{"run", "links.csv", "--workspace-column", "workspace", "--db", dsn, "--out", out, "--code-length", "3", "--as-of", "2026-01-02", "--report-order", order}
	}
	dsn := store.fresh(t, before)
	start := time.Now()
	command(t, exitRejected, args(dsn, "want")...)
	whole := time.Since(start)
	want := store.content(t, dsn)
	points, seed := soak(t), rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	for i := 0; i < points || killed == 0 && i < 10*points; i++ {
		dsn := store.fresh(t, before)
		out := fmt.Sprint("got", i)
		after := (whole*time.Duration(i%points) + time.Duration(rnd.Int64N(int64(whole)))) / time.Duration(points)
		if code, output := execute(t, &after, args(dsn, out)...); code == -1 {
			killed++
		} else if code != exitRejected {
			t.Fatalf("exit code %d: %s", code, output)
		}
		finish(t, args(dsn, out))
		if got := store.content(t, dsn); !slices.Equal(got, want) {
			t.Fatalf("killed after %v of %v: the store has %d links and runs, want %d", after, whole, len(got), len(want))
		}
		for _, file := range []string{"mapping.csv", "rejects.csv", "collisions.csv", "manifest.json"} {
			if string(read(t, out, file)) != string(read(t, "want", file)) {
				t.Fatalf("killed after %v of %v: %s differs", after, whole, file)
			}
		}
		if left, _ := filepath.Glob(".*.partial"); len(left) > 0 {
			t.Fatalf("killed after %v of %v: %v was left", after, whole, left)
		}
	}
	if killed == 0 {
		t.Error("every run came to its end")
	}
}

// finish repeats a run that was killed. If that had finished, there is nothing to do.
func finish(t *testing.T, args []string) {
	t.Helper()
	code, output := execute(t, nil, args...)
	if code != exitRejected {
		t.Fatalf("exit code %d: %s", code, output)
	}
}
