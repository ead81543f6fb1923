package postgres

import (
	"context"
	"testing"

	"github.com/linkforge/bulk/sink"
)

// A session that lost its locks may meet its run taken back: it does not go on.
func TestUndoneRun(t *testing.T) {
	ctx := context.Background()
	s := openStore(t, server.Database(t), Options{})
	defer s.Close()
	links := generated(0, 100)
	run := loadAll(t, s, links)
	if _, err := s.Undo(ctx, run.ID, sink.LockOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	session, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.Start(ctx, run); err == nil {
		t.Error("an undone run goes on")
	}
	if err := session.Load(ctx, run, pieces(links)); err == nil {
		t.Error("an undone run loads")
	}
	if err := session.Loaded(ctx, run); err == nil {
		t.Error("an undone run is marked as loaded")
	}
}
