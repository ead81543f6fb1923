package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// What somebody set to be created at infinity, or after the last of our years, was
// created at no time that can be told.
func TestScanCreatedAtInfinity(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	links := generated(0, 4)
	loadAll(t, s, links)
	for i, at := range []string{"-infinity", "infinity", "294276-12-31 00:00:00Z", "2030-01-01 00:00:00.000001Z"} {
		execute(t, dsn, "UPDATE links SET created_at = $2::text::timestamptz WHERE short_code = $1", string(links[i].Code), at)
	}
	var got []time.Time
	err := s.Scan(context.Background(), func(l *sink.Stored) error {
		got = append(got, l.Created)
		return nil
	})
	if want := []time.Time{{}, {}, {}, time.Date(2030, 1, 1, 0, 0, 0, 1000, time.UTC)}; err != nil || !slices.Equal(got, want) {
		t.Errorf("created at %v, %v", got, err)
	}
}

// The same for runs: they are listed and do not affect others, but a run without a valid
// as_of cannot continue.
func TestRunsAtInfinity(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{})
	session, first := started(t, s, "demo", sink.LockOptions{})
	session.Close()
	execute(t, dsn, "UPDATE links_runs SET as_of = 'infinity', started = '-infinity', finished = 'infinity'")
	loadAll(t, s, generated(0, 10))
	runs, err := s.Runs(ctx)
	if err != nil || len(runs) != 2 || !runs[0].AsOf.IsZero() || !runs[0].Started.IsZero() || !runs[0].Finished.IsZero() || runs[1].State != sink.Finished {
		t.Errorf("runs %+v, %v", runs, err)
	}
	session = locked(t, s, "demo", sink.LockOptions{})
	if _, err := session.Start(ctx, first); err == nil || !strings.Contains(err.Error(), "as_of") {
		t.Errorf("it goes on: %v", err)
	}
}
