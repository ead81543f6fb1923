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

// The commit of a page fails once, when the page is known: nothing is passed over.
func TestUndoRepeatsAPage(t *testing.T) {
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	defer s.Close()
	links := generated(0, undoPage+100)
	run := loadAll(t, s, links)
	script(t, dsn, `CREATE SEQUENCE tries;
		CREATE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('tries') = 1 THEN RAISE 'not now' USING ERRCODE = '40P01'; END IF;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER once AFTER DELETE ON links DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION once()`)
	got, err := s.Undo(context.Background(), run.ID, sink.LockOptions{}, func(sink.Kept) error { return nil })
	if err != nil || got.Deleted != int64(len(links)) || got.Kept != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != 0 {
		t.Errorf("%d links stay", n)
	}
}
