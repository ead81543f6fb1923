package postgres

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sinktest"
)

func TestScan(t *testing.T) {
	ctx := context.Background()
	dsn := server.Database(t)
	db := conforming(dsn, Options{RetryFor: -1})
	s := openStore(t, dsn, Options{RetryFor: -1})
	defer s.Close()
	if err := s.Scan(ctx, func(*sink.Stored) error { return errors.New("a link") }); err != nil {
		t.Fatalf("without tables: %v", err)
	}
	if err := s.Init(ctx); err != nil {
		t.Fatal(err)
	}
	for i, code := range []string{"b", "B", "a", "ä", "aa", "Z"} {
		row := sinktest.Row{Workspace: []string{"x", "X"}[i%2], Code: code, Key: sink.Key{byte(i)}, Canonical: "http://example.com/" + code,
			Run: int32(i), Created: time.UnixMicro(int64(i) * 123456789).UTC()}
		if i%3 == 0 {
			row.Original = sql.NullString{String: "HTTP://example.com/" + code, Valid: true}
		}
		db.Insert(t, row)
	}
	var got []sinktest.Row
	err := s.Scan(ctx, func(l *sink.Stored) error {
		got = append(got, sinktest.Row{Workspace: string(l.Workspace), Code: string(l.Code), Key: l.Key, Canonical: string(l.Canonical),
			Original: sql.NullString{String: string(l.Original), Valid: l.Original != nil}, Run: l.Run, Created: l.Created})
		return nil
	})
	if want := db.Dump(t); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	stop := errors.New("stop")
	if err := s.Scan(ctx, func(*sink.Stored) error { return stop }); err != stop {
		t.Errorf("stopped: %v", err)
	}
	gone, cancel := context.WithCancelCause(ctx)
	cancel(stop)
	if err := s.Scan(gone, func(*sink.Stored) error { return nil }); !errors.Is(err, stop) {
		t.Errorf("cancelled: %v", err)
	}
}
