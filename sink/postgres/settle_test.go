package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sinktest"
)

var asOf = time.Date(2025, 3, 4, 5, 6, 7, 890123000, time.UTC)

// settle does what the pipeline does with a session: starts or goes on with the
// run, and until everything is stored looks up what there is, salts the codes
// that others own, and loads the rest. It changes the codes of links.
func settle(ctx context.Context, s sink.Session, run sink.Run, links []sink.Link) (sink.Run, error) {
	unfinished, err := again(func() ([]sink.Run, error) { return s.Unfinished(ctx) })
	if err != nil {
		return run, err
	}
	if i := slices.IndexFunc(unfinished, func(r sink.Run) bool { return r.Fingerprint == run.Fingerprint }); i >= 0 {
		run = unfinished[i]
	}
	if run, err = s.Start(ctx, run); err != nil {
		return run, err
	}
	for tries := 0; ; tries++ {
		rest, err := again(func() ([]sink.Link, error) { return unsettled(ctx, s, links) })
		if err != nil {
			return run, err
		}
		if len(rest) > 0 {
			err = s.Load(ctx, run, pieces(rest))
		} else {
			run.Counts = sink.Counts{Read: int64(len(links)), Created: int64(len(links))}
			run.ManifestSHA256 = "00ff"
			if err = s.Loaded(ctx, run); err == nil {
				return run, s.Finish(ctx, run)
			}
		}
		if err != nil && !errors.Is(err, sink.ErrRetryable) && !errors.Is(err, sink.ErrConflict) || tries == 1000 {
			return run, err
		}
	}
}

// again calls f until it does not fail retryably.
func again[T any](f func() (T, error)) (v T, err error) {
	for range 1000 {
		if v, err = f(); !errors.Is(err, sink.ErrRetryable) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return v, err
}

// unsettled returns the links that are not stored, under the first codes that
// nobody owns.
func unsettled(ctx context.Context, s sink.Session, links []sink.Link) ([]sink.Link, error) {
	rest := slices.Clone(links)
	salts := map[sink.Key]int{}
	for contested := rest; len(contested) > 0; {
		probes := make([]sink.Probe, len(rest))
		for i, l := range rest {
			probes[i] = sink.Probe{Workspace: l.Workspace, Code: l.Code, Key: l.Key, Canonical: l.Canonical}
		}
		contested = nil
		done := make([]bool, len(rest))
		err := s.Lookup(ctx, probes, func(f sink.Found) error {
			if f.Same {
				done[f.Probe] = true
				return nil
			}
			l := &rest[f.Probe]
			salts[l.Key]++
			l.Code = salted(*l, salts[l.Key])
			contested = rest
			return nil
		})
		if err != nil {
			return nil, err
		}
		var left []sink.Link
		for i, l := range rest {
			if !done[i] {
				left = append(left, l)
			}
		}
		slices.SortFunc(left, byCode)
		rest = left
	}
	return rest, nil
}

func salted(l sink.Link, salt int) []byte {
	scheme, err := codegen.New(codegen.DefaultLength)
	if err != nil {
		panic(err)
	}
	return scheme.AppendCode(nil, codegen.Sum(codegen.AppendInput(nil, l.Canonical, l.Workspace, salt)))
}

// explained fails unless each URL is stored once, under a code that one of its
// salts gives.
func explained(t testing.TB, stored []sinktest.Row, links []sink.Link) {
	t.Helper()
	codes := map[string]string{}
	for _, r := range stored {
		if codes[r.Canonical] != "" {
			t.Errorf("%s is there twice", r.Canonical)
		}
		codes[r.Canonical] = r.Code
	}
	for _, l := range links {
		if err := explain(l, codes[string(l.Canonical)]); err != nil {
			t.Error(err)
		}
	}
}

func explain(l sink.Link, code string) error {
	for salt := range 11 {
		if string(salted(l, salt)) == code {
			return nil
		}
	}
	return fmt.Errorf("%s has the code %q, which no salt explains", l.Canonical, code)
}

// clean fails if a store has left anything on the server but its tables: a
// session, a lock, a temporary table, a row in the ledger.
func clean(t testing.TB, dsn string) {
	t.Helper()
	conn := connect(t, dsn)
	defer conn.Close(context.Background())
	cleanOn(t, conn)
}

func cleanOn(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	const left = `SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
		+ (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'bulk run')
		+ (SELECT count(*) FROM pg_class WHERE relpersistence = 't')
		+ (SELECT count(*) FROM links_ledger)
		+ (SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'links%')`
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		n := valueOf[int](t, conn, left)
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d things are left on the server", n)
		}
	}
}
