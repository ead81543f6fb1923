package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/linkforge/bulk/sink"
)

func TestUndo(t *testing.T) {
	ctx := context.Background()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	defer s.Close()
	all := generated(0, 25_100)
	first, second := all[:100], all[100:]
	loadAll(t, s, first)
	run := loadAll(t, s, second)
	script(t, dsn, "UPDATE links SET original_url = 'mine', updated_at = '2030-01-01 00:00:00Z' WHERE short_code IN ('"+
		string(second[7].Code)+"', '"+string(second[20_000].Code)+"', '"+string(first[3].Code)+"')")

	held, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(ctx, run.ID, sink.LockOptions{NoWait: true}, nil); !errors.Is(err, sink.ErrLocked) {
		t.Errorf("while a run is at work: %v", err)
	}
	held.Close()
	if _, err := s.Undo(ctx, 99, sink.LockOptions{}, nil); err == nil {
		t.Error("run 99 was undone")
	}

	var kept []sink.Kept
	keep := func(k sink.Kept) error { kept = append(kept, k); return nil }
	got, err := s.Undo(ctx, run.ID, sink.LockOptions{}, keep)
	if err != nil {
		t.Fatal(err)
	}
	if got.Deleted != int64(len(second)-2) || got.Kept != 2 || got.Run.State != sink.Undone || got.Run.ID != run.ID {
		t.Errorf("%+v", got)
	}
	if len(kept) != 2 || kept[0].Code != string(second[7].Code) || kept[0].Updated.Year() != 2030 {
		t.Errorf("%+v", kept)
	}
	if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != len(first)+2 {
		t.Errorf("%d links stay", n)
	}
	if got, err = s.Undo(ctx, run.ID, sink.LockOptions{}, keep); err != nil || got.Deleted != 0 || got.Kept != 2 {
		t.Errorf("a second time: %+v, %v", got, err)
	}

	session, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if runs, err := session.Unfinished(ctx); err != nil || len(runs) != 0 {
		t.Errorf("unfinished: %+v, %v", runs, err)
	}
	if _, err := session.Start(ctx, run); err == nil {
		t.Error("an undone run goes on")
	}
	run.State = sink.Undone
	if err := session.Load(ctx, run, pieces(second[:10])); err == nil {
		t.Error("an undone run loads")
	}
}
