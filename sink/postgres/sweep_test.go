package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
	"golang.org/x/sync/errgroup"
)

// ended makes links with rules. Every other one is dead at asOf.
func ended(from, to int) []sink.Link {
	ls := generated(from, to)
	for i := range ls {
		ls[i].Rules = &sink.Rules{Owner: []byte("u1")}
		if i%2 > 0 {
			ls[i].Rules.Expires = asOf
		}
	}
	return ls
}

// loadRules stores links with rules, all of one workspace, with a run of their own.
func loadRules(ctx context.Context, s *Store, links []sink.Link) error {
	workspace := []string{string(links[0].Workspace)}
	session, err := s.Lock(ctx, workspace, sink.LockOptions{})
	if err != nil {
		return err
	}
	defer session.Close()
	run, err := session.Start(ctx, sink.Run{Fingerprint: "rules", AsOf: asOf.Add(-time.Hour), Rules: true})
	if err == nil {
		err = session.SetRules(ctx, workspace)
	}
	for _, step := range []func() error{
		func() error { return session.Load(ctx, run, pieces(links)) },
		func() error { return session.Loaded(ctx, run) },
		func() error { return session.Finish(ctx, run) },
	} {
		if err == nil {
			err = step()
		}
	}
	return err
}

// atOnce are the options of a sweep that marks and deletes at once.
var atOnce = sink.SweepOptions{AsOf: asOf}

// deadLinks is the condition that a link is dead at asOf and not marked. It says what the law
// says in other words than the code.
const deadLinks = "(status IS NULL OR status = 'ACTIVE') AND (expires_at <= '2025-03-04 05:06:07.890123Z' OR max_uses IS NOT NULL AND access_count IS NOT NULL AND access_count >= max_uses)"

// watch raises an error if two sweeps change links at the same moment, if one touches a link that
// the law does not give it, or if a run changes a link that is not Active or is used up. A sweep is
// a client with the name sweep, a run is one with the name change.
func watch(t testing.TB, dsn string) {
	t.Helper()
	script(t, dsn, `CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('application_name') = 'change' AND (OLD.status <> 'ACTIVE' OR OLD.access_count >= OLD.max_uses) THEN
				RAISE 'changed %', OLD;
			ELSIF current_setting('application_name') <> 'sweep' THEN
			ELSIF NOT pg_try_advisory_xact_lock(4711) THEN
				RAISE 'two sweep';
			ELSIF TG_OP = 'UPDATE' AND (SELECT NOT (`+deadLinks+`) FROM (SELECT OLD.*) l)
				AND NOT (OLD.status IN ('EXPIRED', 'DELETED') AND OLD.marked_at IS NULL) THEN
				RAISE 'marked %', OLD;
			ELSIF TG_OP = 'DELETE' AND (OLD.status IS DISTINCT FROM 'EXPIRED' AND OLD.status IS DISTINCT FROM 'DELETED' OR OLD.marked_at IS NULL) THEN
				RAISE 'deleted %', OLD;
			END IF;
			RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
		END $$;
		CREATE TRIGGER watch BEFORE UPDATE OR DELETE ON links FOR EACH ROW EXECUTE FUNCTION watch()`)
}

// called is an address with a name of the client.
func called(dsn, name string) string { return dsn + " application_name=" + name }

// sweeper is a process that sweeps until the first link is swept, says so, and does not go on.
func sweeper(dsn string) error {
	s, err := Open(context.Background(), dsn, Options{})
	if err != nil {
		return err
	}
	_, err = s.Sweep(context.Background(), atOnce, func(sink.Swept) error {
		fmt.Println("sweeping")
		_, err := io.Copy(io.Discard, os.Stdin)
		return errors.Join(err, errors.New("it was not killed"))
	})
	return err
}

// startSweeper starts a sweeper, waits until it sweeps, and returns what kills it.
func startSweeper(t *testing.T, dsn string) (kill func() error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BULK_TEST_SWEEPER="+dsn)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	noError(t, err)
	stdout, err := cmd.StdoutPipe()
	noError(t, err)
	noError(t, cmd.Start())
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "sweeping\n" {
		t.Fatalf("the sweeper said %q, %v", line, err)
	}
	return func() error {
		defer stdin.Close()
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return err
	}
}

// sweepUntil sweeps, again if another sweep is at work, until a sweep has ended well.
func sweepUntil(ctx context.Context, s *Store, opts sink.SweepOptions) error {
	for {
		_, err := s.Sweep(ctx, opts, nil)
		if !errors.Is(err, sink.ErrSweeping) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Eight sweepers and two loaders are at work, and one sweeper is killed in the middle. At no moment
// two sweep, and after the next sweep nothing is due.
func TestSweepersAndLoaders(t *testing.T) {
	t.Parallel()
	dsn := server.Database(t)
	s := openStore(t, dsn, Options{})
	g, ctx := errgroup.WithContext(context.Background())
	noError(t, loadRules(ctx, s, ended(0, 3*sweepPage)))
	watch(t, dsn)
	kill := startSweeper(t, called(dsn, "sweep"))
	if _, err := s.Sweep(ctx, atOnce, nil); !errors.Is(err, sink.ErrSweeping) || !strings.Contains(err.Error(), `"sweep" (backend `) {
		t.Errorf("error %v", err)
	}
	for range 7 {
		sweeps := openStore(t, called(dsn, "sweep"), Options{})
		g.Go(func() error { return sweepUntil(ctx, sweeps, atOnce) })
	}
	for n := range 2 {
		loads := openStore(t, dsn, Options{})
		g.Go(func() error {
			for i := range 4 {
				links := ended(100_000+(2*i+n)*500, 100_000+(2*i+n+1)*500)
				if n > 0 {
					for j := range links {
						links[j].Workspace = []byte("other")
					}
				}
				if err := loadRules(ctx, loads, links); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(kill)
	noError(t, g.Wait())
	noError(t, sweepUntil(context.Background(), openStore(t, called(dsn, "sweep"), Options{}), atOnce))
	if n := value[int](t, dsn, "SELECT count(*) FROM links WHERE NOT status = 'ACTIVE' OR "+deadLinks); n != 0 {
		t.Errorf("%d links are due", n)
	}
	if n := value[int](t, dsn, "SELECT count(*) FROM links"); n != (3*sweepPage+8*500)/2 {
		t.Errorf("%d links stay", n)
	}
}

// The server of a sweeper that was killed still works on a statement: until it has ended, no other
// sweep begins.
func TestSweepOfAKilledProcessIsStillAtWork(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{})
	noError(t, loadRules(ctx, s, ended(0, 100)))
	gate := connect(t, dsn)
	script(t, dsn, `CREATE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL client_connection_check_interval = 0;
			LOOP
				BEGIN
					PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL;
				EXCEPTION WHEN query_canceled THEN NULL; -- the time of the statement is over
				END;
			END LOOP;
		END $$;
		CREATE TRIGGER halt BEFORE UPDATE ON links EXECUTE FUNCTION halt()`)
	noError(t, execAll(ctx, gate, "SELECT pg_advisory_lock(1)"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BULK_TEST_SWEEPER="+dsn)
	noError(t, cmd.Start())
	noError(t, eventually(dsn, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND "+advisory))
	noError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	for range 20 {
		if _, err := s.Sweep(ctx, atOnce, nil); !errors.Is(err, sink.ErrSweeping) {
			t.Fatalf("error %v while another is at work", err)
		}
		time.Sleep(2 * sweepLimit / 20)
	}
	noError(t, execAll(ctx, gate, "SELECT pg_advisory_unlock(1)"))
	noError(t, sweepUntil(ctx, s, atOnce))
	if n := value[int](t, dsn, "SELECT count(*) FROM links WHERE NOT status = 'ACTIVE' OR "+deadLinks); n != 0 {
		t.Errorf("%d links are due", n)
	}
}

// beside is a test in which others work beside a sweep.
type beside struct {
	dsn   string
	links []sink.Link // of workspace demo
	done  [4]atomic.Int64
}

// How often others did something.
const (
	swept = iota
	deleted
	changed
	conflicts
)

func (b *beside) code() string { return string(b.links[rand.IntN(len(b.links))].Code) }

// service changes some links in a transaction, as a service that counts uses does, or somebody
// who revives or marks links. Some transactions are long.
func (b *beside) service(ctx context.Context, conn *pgx.Conn) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for range 1 + rand.IntN(3) {
			set := []string{"access_count = access_count + 1", "expires_at = NULL", "expires_at = '2000-01-01'", "status = 'ACTIVE', marked_at = NULL", "status = 'EXPIRED'"}[rand.IntN(5)]
			if _, err := tx.Exec(ctx, "UPDATE links SET "+set+" WHERE short_code = $1", b.code()); err != nil {
				return err
			}
		}
		if rand.IntN(50) == 0 {
			time.Sleep(sweepRowLimit * 3 / 2)
		}
		return nil
	})
	if state(err) == "40P01" { // a deadlock
		return nil
	}
	return err
}

// change gives links that are Active another owner, as a run does: it looks them up, changes
// them, and looks again after a conflict.
func (b *beside) change(ctx context.Context, s *Store) error {
	session, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{})
	if err != nil {
		return err
	}
	defer session.Close()
	run, err := session.Start(ctx, sink.Run{Fingerprint: "change", AsOf: asOf})
	if err != nil {
		return err
	}
	from := rand.IntN(len(b.links) - 200)
	for links := b.links[from : from+200]; ; {
		var changes []sink.Change
		if err := session.Lookup(ctx, asking(links), func(f sink.Found) error {
			if f.Same && f.Rules.Status == sink.Active && !f.Rules.UsedUp() {
				now := *f.Rules
				now.Owner, now.Change = fmt.Append(nil, "run ", run.ID), "claimed"
				was := *f.Rules
				was.Owner, was.Type = bytes.Clone(was.Owner), bytes.Clone(was.Type)
				now.Type = was.Type
				changes = append(changes, sink.Change{Workspace: []byte("demo"), Code: bytes.Clone(f.Code), Was: was, Now: now})
			}
			return nil
		}); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
		err := session.Change(ctx, run, func(yield func([]sink.Change, error) bool) { yield(changes, nil) })
		if err == nil {
			b.done[changed].Add(int64(len(changes)))
			return errors.Join(session.Loaded(ctx, run), session.Finish(ctx, run))
		}
		if !errors.Is(err, sink.ErrConflict) {
			return err
		}
		b.done[conflicts].Add(1)
	}
}

// asking are probes for links with their rules.
func asking(links []sink.Link) (probes []sink.Probe) {
	for _, l := range links {
		probes = append(probes, sink.Probe{Workspace: l.Workspace, Code: l.Code, Key: l.Key, Canonical: l.Canonical, WantRules: true, Parts: true})
	}
	return probes
}

// A service, a delete, runs that load and change links, and sweeps work beside each other. No
// sweep touches a link that is live then, and no run changes one that is not as it was.
func TestSweepBesideOthers(t *testing.T) {
	t.Parallel()
	b := &beside{dsn: server.Database(t), links: ended(0, 4_000)}
	for i := range b.links {
		b.links[i].Rules.MaxUses = int64(i % 5)
	}
	store := func(name string) *Store { return openStore(t, called(b.dsn, name), Options{}) }
	sweeps, deletes, changes, loads := store("sweep"), store("delete"), store("change"), store("load")
	noError(t, loadRules(context.Background(), loads, b.links))
	watch(t, b.dsn)
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Second)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	forever := func(f func() error) {
		g.Go(func() error {
			for ctx.Err() == nil {
				if err := f(); err != nil && ctx.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	service := connect(t, called(b.dsn, "service"))
	forever(func() error { return b.service(ctx, service) })
	forever(func() error {
		out, err := sweeps.Sweep(ctx, sink.SweepOptions{AsOf: asOf, Grace: time.Duration(rand.IntN(2)) * time.Hour}, nil)
		b.done[swept].Add(out.Marked + out.Deleted)
		return err
	})
	next := 10_000
	forever(func() error {
		items := []sink.Deletion{{Code: b.code()}, {Code: b.code()}}
		err := deletes.Delete(ctx, sink.DeleteOptions{Workspace: "demo", AsOf: asOf}, func(yield func([]sink.Deletion, error) bool) { yield(items, nil) }, func(n sink.Named) error {
			b.done[deleted].Add(1)
			return nil
		})
		if err == nil {
			err = b.change(ctx, changes)
		}
		if next += 100; err == nil {
			err = loadRules(ctx, loads, ended(next-100, next))
		}
		time.Sleep(20 * time.Millisecond) // a sweep passes over what a run has locked
		return err
	})
	noError(t, g.Wait())
	noError(t, sweepUntil(context.Background(), sweeps, sink.SweepOptions{AsOf: asOf, Grace: 24 * time.Hour}))
	if n := value[int](t, b.dsn, "SELECT count(*) FROM links WHERE "+deadLinks); n != 0 {
		t.Errorf("%d links are due", n)
	}
	for i, what := range []string{"swept", "deleted", "changed", "conflicts"} {
		t.Logf("%s: %d", what, b.done[i].Load())
	}
	if b.done[swept].Load() == 0 || b.done[deleted].Load() == 0 || b.done[changed].Load() == 0 {
		t.Error("somebody did nothing")
	}
}

// A row that somebody keeps locked is passed over, and the others of its page are swept. The next
// sweep takes it.
func TestSweepOfALockedRow(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{})
	links := ended(0, 100)
	noError(t, loadRules(ctx, s, links))
	service := connect(t, dsn)
	noError(t, execAll(ctx, service, "BEGIN", "SELECT FROM links WHERE short_code = '"+string(links[51].Code)+"' FOR UPDATE"))
	out, err := s.Sweep(ctx, atOnce, nil)
	if err != nil || out != (sink.Sweeping{Marked: 49, Deleted: 49, Kept: 1}) {
		t.Errorf("%+v, %v", out, err)
	}
	noError(t, execAll(ctx, service, "ROLLBACK"))
	out, err = s.Sweep(ctx, atOnce, nil)
	if err != nil || out != (sink.Sweeping{Marked: 1, Deleted: 1}) {
		t.Errorf("%+v, %v", out, err)
	}
}

// A link that a row refers to is marked and stays. If a foreign key would delete or change rows,
// nothing is swept.
func TestSweepAndForeignKeys(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), server.Database(t)
	s := openStore(t, dsn, Options{})
	links := ended(0, 100)
	noError(t, loadRules(ctx, s, links))
	script(t, dsn, "CREATE TABLE clicks (w text, c text, CONSTRAINT of_a_link FOREIGN KEY (w, c) REFERENCES links (workspace_id, short_code) ON DELETE CASCADE);"+
		" INSERT INTO clicks VALUES ('demo', '"+string(links[1].Code)+"'), ('demo', '"+string(links[2].Code)+"')")
	out, err := s.Sweep(ctx, atOnce, nil)
	if err == nil || !strings.Contains(err.Error(), "clicks: its foreign key of_a_link deletes or changes rows") || out != (sink.Sweeping{}) {
		t.Errorf("%+v, %v", out, err)
	}
	script(t, dsn, "ALTER TABLE clicks DROP CONSTRAINT of_a_link, ADD FOREIGN KEY (w, c) REFERENCES links (workspace_id, short_code)")
	for _, want := range []sink.Sweeping{{Marked: 50, Deleted: 49, Kept: 1}, {Kept: 1}} {
		if out, err := s.Sweep(ctx, atOnce, nil); err != nil || out != want {
			t.Errorf("%+v, %v; want %+v", out, err, want)
		}
	}
}

// A sweep whose connection is lost takes its locks again. If another has them by then, it ends, or
// passes over the workspace.
func TestSweepLosesItsLocks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		meanwhile func(s *Store) (end func(), err error)
		want      error
	}{
		"nobody": {func(*Store) (func(), error) { return func() {}, nil }, nil},
		"a sweep": {func(s *Store) (func(), error) {
			session, err := s.lock(ctx, []lock{{s.lockKey("sweep", ""), false}}, sink.LockOptions{})
			return func() { session.Close() }, err
		}, sink.ErrSweeping},
		"a run": {func(s *Store) (func(), error) {
			session, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{})
			return func() { session.Close() }, err
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t)
			s, other := openStore(t, dsn, Options{}), openStore(t, dsn, Options{})
			noError(t, loadRules(ctx, s, ended(0, 4*sweepPage)))
			visits, busy := 0, 0
			end := func() {}
			opts := atOnce
			opts.Busy = func(string, string) { busy++ }
			out, err := s.Sweep(ctx, opts, func(l sink.Swept) (err error) {
				if visits++; visits == 1 {
					if err = eventually(dsn, "SELECT count(pg_terminate_backend(pid)) = 0 FROM pg_locks WHERE "+advisory); err == nil {
						end, err = c.meanwhile(other)
					}
				}
				return err
			})
			defer end()
			if !errors.Is(err, c.want) || c.want == nil && err != nil || busy > 0 != (name == "a run") {
				t.Errorf("%+v, %v; busy: %d", out, err, busy)
			}
			if n := value[int](t, dsn, "SELECT count(*) FROM links WHERE status = 'ACTIVE'"); n == 2*sweepPage != (name == "nobody") {
				t.Errorf("%d links are active", n)
			}
		})
	}
}

// The connection is cut at every message of a change, a delete and a sweep, before the server has
// it or before the client has the answer. Each is told what it has done.
func TestRulesCutAtEveryMessage(t *testing.T) {
	t.Parallel()
	ctx, links := context.Background(), ended(0, 40)
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after=", after), func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t)
			database := value[string](t, dsn, "SELECT current_database()")
			step := int64(19)
			if soak {
				step = 1
			}
			for at := int64(1); ; at += step {
				script(t, dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
				direct := openStore(t, dsn, Options{})
				noError(t, loadRules(ctx, direct, links))
				noError(t, direct.Close())
				p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", server.Port()), at, after)
				err := rulesThrough(ctx, server.TCP(database, p.port()), links)
				p.close()
				if err != nil {
					t.Fatalf("cut at message %d: %v", at, err)
				}
				for what, n := range map[string]int{"true": 10, "owner_id = 'u2' AND change = 'claimed'": 10} {
					if got := value[int](t, dsn, "SELECT count(*) FROM links WHERE "+what); got != n {
						t.Fatalf("cut at message %d: %d links with %s, want %d", at, got, what, n)
					}
				}
				if p.seen.Load() < at {
					t.Logf("%d messages", p.seen.Load())
					return
				}
			}
		})
	}
}

// rulesThrough changes 10 links, deletes 10 others, and sweeps the dead ones.
func rulesThrough(ctx context.Context, dsn string, links []sink.Link) error {
	s, err := Open(ctx, dsn, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	session, err := s.Lock(ctx, []string{"demo"}, sink.LockOptions{})
	if err != nil {
		return err
	}
	defer session.Close()
	run, err := session.Start(ctx, sink.Run{Fingerprint: "change", AsOf: asOf})
	if err != nil {
		return err
	}
	was := sink.Rules{Owner: []byte("u1"), Status: sink.Active}
	var changes []sink.Change
	var items []sink.Deletion
	for i, l := range links {
		switch i % 4 {
		case 0:
			changes = append(changes, sink.Change{Workspace: l.Workspace, Code: l.Code, Was: was, Now: sink.Rules{Owner: []byte("u2"), Status: sink.Active, Change: "claimed"}})
		case 2:
			items = append(items, sink.Deletion{Code: string(l.Code)})
		}
	}
	for {
		err = session.Change(ctx, run, func(yield func([]sink.Change, error) bool) { yield(changes, nil) })
		if err == nil {
			err = session.Loaded(ctx, run)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, sink.ErrLost) {
			return err
		}
	}
	if err := errors.Join(session.Finish(ctx, run), session.Close()); err != nil {
		return err
	}
	marked := 0
	if err := s.Delete(ctx, sink.DeleteOptions{Workspace: "demo", AsOf: asOf}, func(yield func([]sink.Deletion, error) bool) { yield(items, nil) }, func(n sink.Named) error {
		if n.Marked {
			marked++
		}
		return nil
	}); err != nil || marked != len(items) {
		return fmt.Errorf("%d of %d links marked, %v", marked, len(items), err)
	}
	out, err := s.Sweep(ctx, sink.SweepOptions{AsOf: asOf.Add(-1), AtLeast: time.Millisecond}, nil)
	if err != nil || out != (sink.Sweeping{}) {
		return fmt.Errorf("nothing was due: %+v, %v", out, err)
	}
	time.Sleep(time.Millisecond)
	if out, err = s.Sweep(ctx, sink.SweepOptions{AsOf: asOf, Grace: time.Hour}, nil); err != nil || out != (sink.Sweeping{Marked: 20}) {
		return fmt.Errorf("marked: %+v, %v", out, err)
	}
	if out, err = s.Sweep(ctx, sink.SweepOptions{AsOf: asOf.Add(30 * time.Minute), Grace: 15 * time.Minute}, nil); err != nil || out.Deleted != 30 {
		return fmt.Errorf("deleted: %+v, %v", out, err)
	}
	return nil
}
