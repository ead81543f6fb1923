package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sinktest"
)

func TestScan(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "links.db")
	s := open(t, path)
	defer s.Close()
	if err := s.Scan(ctx, func(*sink.Stored) error { return errors.New("a link") }); err != nil {
		t.Fatalf("without a file: %v", err)
	}
	session, err := s.Lock(ctx, []string{"x"}, sink.LockOptions{})
	noError(t, err)
	noError(t, session.Close())
	for i, code := range []string{"b", "B", "a", "ä", "aa", "Z"} {
		row := sinktest.Row{Workspace: []string{"x", "X"}[i%2], Code: code, Key: sink.Key{byte(i)}, Canonical: "http://example.com/" + code,
			Run: int32(i), Created: time.UnixMicro(int64(i) * 123456789).UTC()}
		if i%3 == 0 {
			row.Original = sql.NullString{String: "HTTP://example.com/" + code, Valid: true}
		}
		plain(t, path, func(db *sql.DB) {
			_, err := db.Exec("INSERT INTO links VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
				row.Workspace, row.Code, row.Key[:], row.Canonical, row.Original, row.Run, stamp(row.Created), stamp(row.Created))
			noError(t, err)
		})
	}
	var got []sinktest.Row
	err = s.Scan(ctx, func(l *sink.Stored) error {
		got = append(got, sinktest.Row{Workspace: string(l.Workspace), Code: string(l.Code), Key: l.Key, Canonical: string(l.Canonical),
			Original: sql.NullString{String: string(l.Original), Valid: l.Original != nil}, Run: l.Run, Created: l.Created})
		return nil
	})
	if want := dump(t, path); err != nil || !slices.Equal(got, want) {
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
