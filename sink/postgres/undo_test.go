package postgres

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// A run is marked as undone and loses its ledger at once, or neither.
func TestUndoKeepsTheLedgerOfARunThatIsNotUndone(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	run := loadAll(t, s, generated(0, 10))
	script(t, dsn, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$;
		CREATE TRIGGER refuse BEFORE DELETE ON links_ledger EXECUTE FUNCTION refuse()`)
	_, err := s.Undo(context.Background(), run.ID, sink.LockOptions{}, func(sink.Kept) error { return nil })
	if state := value[string](t, dsn, "SELECT state FROM links_runs"); err == nil || state != string(sink.Loading) {
		t.Errorf("the run is %s, %v", state, err)
	}
}

// The commit of a page fails once, when the page is known: nothing is passed over.
func TestUndoRepeatsAPage(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
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

// Links that a foreign key refers to stay, and only these.
func TestUndoKeepsWhatIsReferredTo(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]string{
		"at_once": "", "restrict": "ON DELETE RESTRICT", "at_the_end": "DEFERRABLE INITIALLY DEFERRED",
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server.Database(t)
			var said []string
			s := openStore(t, dsn, Options{Logger: slog.New(listener(func(r slog.Record) {
				r.Attrs(func(a slog.Attr) bool { said = append(said, a.String()); return true })
			}))})
			links := generated(0, 300)
			run := loadAll(t, s, links)
			want := []string{string(links[0].Code), string(links[7].Code), string(links[8].Code), string(links[299].Code)}
			script(t, dsn, "CREATE TABLE clicks (w text, c text, FOREIGN KEY (w, c) REFERENCES links (workspace_id, short_code) "+action+
				"); INSERT INTO clicks SELECT 'demo', unnest('{"+strings.Join(want, ",")+"}'::text[])")
			if got, err := s.PreviewUndo(context.Background(), run.ID); err != nil || got.Deleted != 296 || got.Kept != 4 || got.Run.State != sink.Finished {
				t.Errorf("preview: %+v, %v", got, err)
			}
			said = nil
			var kept []string
			got, err := s.Undo(context.Background(), run.ID, sink.LockOptions{}, func(k sink.Kept) error {
				kept = append(kept, k.Code)
				return nil
			})
			if err != nil || got.Deleted != 296 || got.Kept != 4 || got.Run.State != sink.Undone {
				t.Errorf("%+v, %v", got, err)
			}
			if !slices.Equal(kept, want) {
				t.Errorf("kept %q, want %q", kept, want)
			}
			if all := strings.Join(said, " "); strings.Count(all, `on table "clicks"`) != 1 || !strings.Contains(all, "code="+want[0]) {
				t.Errorf("said %q", said)
			}
		})
	}
}

// Times that are none do not hinder the list of what stays.
func TestUndoKeepsWhatIsUpdatedAtInfinity(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	links := generated(0, 3)
	run := loadAll(t, s, links)
	for i, at := range []string{"-infinity", "infinity", "2030-01-01 00:00:00.000001Z"} {
		execute(t, dsn, "UPDATE links SET updated_at = $2::text::timestamptz WHERE short_code = $1", string(links[i].Code), at)
	}
	var got []time.Time
	_, err := s.Undo(context.Background(), run.ID, sink.LockOptions{}, func(k sink.Kept) error {
		got = append(got, k.Updated)
		return nil
	})
	if want := []time.Time{{}, {}, time.Date(2030, 1, 1, 0, 0, 0, 1000, time.UTC)}; err != nil || !slices.Equal(got, want) {
		t.Errorf("updated at %v, %v", got, err)
	}
}

// Where rows would go, or change, with the links that they refer to, nothing is undone.
func TestUndoRefusesToCascade(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"CASCADE", "SET NULL", "SET DEFAULT"} {
		dsn := server.Database(t)
		s := openStore(t, dsn, Options{})
		links := generated(0, 10)
		run := loadAll(t, s, links)
		script(t, dsn, "CREATE TABLE clicks (w text, c text, CONSTRAINT of_a_link FOREIGN KEY (w, c) REFERENCES links (workspace_id, short_code) ON DELETE "+action+
			"); INSERT INTO clicks SELECT workspace_id, short_code FROM links")
		_, err := s.Undo(context.Background(), run.ID, sink.LockOptions{}, nil)
		if err == nil || !strings.Contains(err.Error(), "clicks: its foreign key of_a_link deletes or changes rows") {
			t.Errorf("%s: %v", action, err)
		}
		if n := value[int](t, dsn, "SELECT count(*) FROM links JOIN clicks ON (w, c) = (workspace_id, short_code)"); n != len(links) {
			t.Errorf("%s: %d links and clicks are left", action, n)
		}
	}
}

// The number of a run that was killed, and that somebody then deleted, is not given to
// another: its links would be that one's.
func TestNumberOfADeletedRun(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{})
	loadAll(t, s, generated(0, 10))
	session, run := started(t, s, "demo", sink.LockOptions{})
	noError(t, session.Load(ctx, run, pieces(generated(10, 20))))
	script(t, dsn, "DELETE FROM links_runs WHERE run_id = 2")
	if run, err := session.Start(ctx, sink.Run{Fingerprint: "g", AsOf: asOf}); err != nil || run.ID != 3 {
		t.Errorf("run %d, %v", run.ID, err)
	}
}

// advisory is the condition over pg_locks that a lock is one of this database's stores.
const advisory = "locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"

// asleep are the backends of this database that sleep.
const asleep = "pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"

// If a run is resumed while its undo has lost its locks, all of its links are deleted.
func TestUndoLosesItsLocksToTheRun(t *testing.T) {
	t.Parallel()
	rerun, ctx := errgroup.WithContext(context.Background())
	dsn := server.Database(t)
	links := generated(0, undoPage+100)
	noError(t, wholeRun(ctx, dsn, batchBytes, links))
	script(t, dsn, `CREATE SEQUENCE pages;
		CREATE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('pages') = 2 THEN PERFORM pg_sleep(600); END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER halt BEFORE DELETE ON links EXECUTE FUNCTION halt()`)
	rerun.Go(func() error {
		if err := eventually(dsn, "SELECT count(*) > 0 FROM "+asleep); err != nil {
			return err
		}
		rerun.Go(func() error { return wholeRun(ctx, dsn, batchBytes, links) })
		return errors.Join(eventually(dsn, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND "+advisory),
			eventually(dsn, "SELECT count(pg_terminate_backend(pid)) > 0 FROM "+asleep))
	})
	s := openStore(t, dsn, Options{})
	got, err := s.Undo(ctx, 1, sink.LockOptions{}, func(sink.Kept) error { return nil })
	if err != nil || got.Deleted != int64(undoPage+len(links)) || got.Kept != 0 {
		t.Errorf("%d links deleted, %d kept, %v", got.Deleted, got.Kept, err)
	}
	if err := rerun.Wait(); err != nil {
		t.Error(err)
	}
	if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != 0 {
		t.Errorf("%d links stay", n)
	}
}

// A run that may have been resumed since its links were listed is not marked as undone.
func TestUndoLosesItsLocksAtTheEnd(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	run := loadAll(t, s, generated(0, 10))
	script(t, dsn, "UPDATE links SET updated_at = now() WHERE short_code = (SELECT min(short_code) FROM links)")
	_, err := s.Undo(context.Background(), run.ID, sink.LockOptions{}, func(sink.Kept) error {
		return eventually(dsn, "SELECT count(pg_terminate_backend(pid)) = 0 FROM pg_locks WHERE "+advisory)
	})
	if !errors.Is(err, sink.ErrRetryable) || !strings.Contains(err.Error(), "undo again") {
		t.Errorf("error %v, want a retryable one that says what to do", err)
	}
	if got, err := s.Undo(context.Background(), run.ID, sink.LockOptions{}, func(sink.Kept) error { return nil }); err != nil || got.Kept != 1 || got.Run.State != sink.Undone {
		t.Errorf("undone again: %+v, %v", got, err)
	}
}

// An undo does not fail if its locks are lost again while it waits for them, to list the
// links that stay.
func TestUndoLosesItsLocksTwice(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	dsn := server.Database(t)
	other := openStore(t, dsn, Options{})
	run := loadAll(t, other, generated(0, 10))
	locks := []lock{{other.lockKey("store", ""), false}}
	var holder *session
	s := openStore(t, dsn, Options{Logger: slog.New(listener(func(r slog.Record) {
		if strings.HasPrefix(r.Message, "PostgreSQL at") {
			holder.Close()
			return
		}
		go func() {
			if err := eventually(dsn, "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_locks WHERE NOT granted AND "+advisory); err != nil {
				cancel(err)
			}
		}()
	}))})
	undoing, err := s.lock(ctx, locks, sink.LockOptions{})
	noError(t, err)
	defer undoing.Close()
	terminate(t, dsn, undoing)
	holder, err = other.lock(ctx, locks, sink.LockOptions{})
	noError(t, err)
	defer holder.Close()
	if n, _, err := undoing.listKept(ctx, run.ID, func(sink.Kept) error { return nil }); err != nil || n != 10 {
		t.Errorf("%d links stay, %v", n, err)
	}
}
