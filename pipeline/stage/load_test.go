package stage_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/internal/quick"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/load"
	"github.com/linkforge/bulk/pipeline/stage"
	"github.com/linkforge/bulk/pipeline/verify"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
	"github.com/linkforge/bulk/sink/sqlite"
	"pgregory.net/rapid"
)

var server = pgtest.New(pgtest.Options{})

func TestMain(m *testing.M) {
	quick.SetUp()
	os.Exit(server.Main(m))
}

// few has a test do so many random cases, unless a number is asked for.
func few(t *testing.T, cases int) {
	checks := flag.Lookup("rapid.checks")
	if before := checks.Value.String(); before == checks.DefValue {
		must(t, checks.Value.Set(strconv.Itoa(cases)))
		t.Cleanup(func() { must(t, checks.Value.Set(before)) })
	}
}

// eachStore does a test of random cases with what makes new stores of each kind.
func eachStore(t *testing.T, test func(r *rapid.T, open func() sink.Store)) {
	opened := func(r *rapid.T, store sink.Store, err error) sink.Store {
		must(r, err)
		r.Cleanup(func() { _ = store.Close() })
		return store
	}
	check := func(t *testing.T, open func(r *rapid.T) sink.Store) {
		rapid.Check(t, func(r *rapid.T) { test(r, func() sink.Store { return open(r) }) })
	}
	t.Run("sqlite", func(t *testing.T) {
		check(t, func(r *rapid.T) sink.Store {
			store, err := sqlite.Open(context.Background(), filepath.Join(tempDir(r), "links.db"))
			return opened(r, store, err)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		server.Need(t)
		tables, dsn := 0, server.Database(t)
		check(t, func(r *rapid.T) sink.Store {
			tables++
			store, err := postgres.Open(context.Background(), dsn, postgres.Options{Table: fmt.Sprint("links", tables)})
			return opened(r, store, err)
		})
	})
}

// linksOf returns what a store has, a line each.
func linksOf(t rapid.TB, store sink.Store) (lines []string) {
	t.Helper()
	err := store.Scan(context.Background(), func(l *sink.Stored) error {
		lines = append(lines, fmt.Sprintf("%s %s %x %s %q %v %s %v %d", l.Workspace, l.Code, l.Key, l.Canonical, l.Original, l.Alias, l.Attrs, l.Created.UTC(), l.Run))
		return nil
	})
	if !errors.Is(err, sink.ErrMissing) {
		must(t, err)
	}
	return lines
}

// stageAll does all tasks; false: the run is refused, or has no rows.
func (s *set) stageAll(t rapid.TB) bool {
	t.Helper()
	s.do(t, func(_ string, _ int, task func(j *stage.Job) error) { must(t, task(s.open(t))) })
	run, err := pipeline.CommitStages(context.Background(), s.open(t))
	if errors.As(err, new(*pipeline.TooManyRejectsError)) {
		return false
	}
	must(t, err)
	return run.Manifest.Counts.Read > 0
}

// run does the run that the stages do, into a store.
func (s *set) run(t rapid.TB, store sink.Store) {
	t.Helper()
	cfg := s.cfg
	cfg.Out, cfg.Store, cfg.AsOf = filepath.Join(tempDir(t), "run"), store, s.open(t).AsOf()
	_, err := pipeline.Run(context.Background(), cfg)
	must(t, err)
}

func (s *set) load(store sink.Store) (*pipeline.LoadResult, error) {
	return pipeline.Load(context.Background(), pipeline.LoadConfig{Dir: s.cfg.Out, Store: store, Workers: 2})
}

func sameLinks(t rapid.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%d links, want %d: %s", len(got), len(want), difference([]byte(strings.Join(got, "\n")), []byte(strings.Join(want, "\n"))))
	}
}

// A disturbed store does something before it gets each link of a load; an error ends the load.
type disturbed struct {
	sink.Store
	before func(number int, l *sink.Link) error
}

type disturbedSession struct {
	sink.Session
	before func(number int, l *sink.Link) error
}

func (d disturbed) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	s, err := d.Store.Lock(ctx, workspaces, opts)
	return disturbedSession{s, d.before}, err
}

func (d disturbedSession) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) (err error) {
	failed := d.Session.Load(ctx, run, func(yield func([]sink.Link, error) bool) {
		number := 0
		for chunk := range chunks {
			for i := range chunk {
				if err = d.before(number, &chunk[i]); err != nil || !yield(chunk[i:i+1], nil) {
					return
				}
				number++
			}
		}
	})
	return cmp.Or(failed, err)
}

var errKilled = errors.New("killed")

// killed is a store whose loads end after some links, as if the process was killed.
func killed(store sink.Store, after int) sink.Store {
	return disturbed{store, func(number int, _ *sink.Link) error {
		if number < after {
			return nil
		}
		return errKilled
	}}
}

// A mapping in parts that is loaded makes the links that the run makes, also if loads were ended; then
// there is nothing to do; the run finds all links, verify finds no fault, and an undo takes them back.
func TestLoadSameAsRun(t *testing.T) {
	few(t, 15)
	eachStore(t, func(r *rapid.T, open func() sink.Store) {
		s := draw(r, tempDir(r))
		if !s.stageAll(r) {
			return
		}
		by, into := open(), open()
		s.run(r, by)
		want := linksOf(r, by)
		ended := rapid.IntRange(0, 2).Draw(r, "ended")
		for range ended {
			_, err := s.load(killed(into, rapid.SampledFrom([]int{0, 1, 10, 100}).Draw(r, "links before the end")))
			if err != nil && !errors.Is(err, errKilled) || err == nil && len(linksOf(r, into)) < len(want) {
				r.Fatal("the load did not end:", err)
			}
		}
		got, err := s.load(into)
		must(r, err)
		sameLinks(r, linksOf(r, into), want)
		if (got.Resumed || got.Repeated) != (ended > 0) || got.RunID != 1 {
			r.Errorf("loaded: %+v", got)
		}
		s.afterLoad(r, into, want)
	})
}

// afterLoad does what comes after a load.
func (s *set) afterLoad(t rapid.TB, store sink.Store, want []string) {
	t.Helper()
	ctx := context.Background()
	got, err := s.load(store)
	must(t, err)
	if !got.Repeated || got.RunID != 1 {
		t.Errorf("loaded again: %+v", got)
	}
	v, err := verify.Run(ctx, verify.Config{Dir: s.cfg.Out, Inputs: s.cfg.Inputs, Store: store, Version: "test", Secret: s.cfg.Scheme.Secret, Memory: 64 << 20, Workers: 2})
	must(t, err)
	if v.Failed() > 0 {
		t.Errorf("verify: %+v", v.Findings)
	}
	s.run(t, store)
	sameLinks(t, linksOf(t, store), want)
	done, err := store.Undo(ctx, 1, sink.LockOptions{}, func(sink.Kept) error { return nil })
	must(t, err)
	if int(done.Deleted) != len(want) {
		t.Errorf("undo deleted %d of %d links", done.Deleted, len(want))
	}
	got, err = s.load(store)
	must(t, err)
	if got.Repeated || got.RunID != 3 || len(linksOf(t, store)) != len(want) {
		t.Errorf("loaded after the undo: %+v", got)
	}
}

// With links that exist, a load makes those of the run. Where the store has changed since the export it stores
// nothing.
func TestLoadWithLinks(t *testing.T) {
	few(t, 30)
	rapid.Check(t, func(r *rapid.T) {
		dir := tempDir(r)
		s := draw(r, dir)
		s.withLinks(r, dir)
		if s.store == nil || !s.stageAll(r) {
			return
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "change"), 4))
		before := linksOf(r, s.store)
		undone := rnd.IntN(3) == 0
		if undone { // the existing links are gone
			_, err := s.store.Undo(context.Background(), 1, sink.LockOptions{}, func(sink.Kept) error { return nil })
			must(r, err)
			before = nil
		}
		got, err := s.load(s.store)
		existing := got.Manifest.Counts.Existing
		if undone && existing > 0 {
			conflict, ok := errors.AsType[*pipeline.LoadConflictError](err)
			if !ok || conflict.Conflicts < existing || conflict.First[0].Kind != load.LinkGone || len(conflict.First) != min(int(conflict.Conflicts), load.Examples) {
				r.Fatalf("%d existing links are gone: %v", existing, err)
			}
			sameLinks(r, linksOf(r, s.store), nil)
			return
		}
		must(r, err)
		if n := len(linksOf(r, s.store)); n != len(before)+int(got.Manifest.Counts.Created) {
			r.Errorf("%d links of %d and %d new ones", n, len(before), got.Manifest.Counts.Created)
		}
		must(r, func() error { _, err := s.load(s.store); return err }())
		s.run(r, s.store)
		if n := len(linksOf(r, s.store)); n != len(before)+int(got.Manifest.Counts.Created) {
			r.Errorf("the run made links: there are %d", n)
		}
	})
}

// Another writer that takes a code after the check ends a load, whose run stays unfinished. Once the code is free,
// the load is resumed; an undo takes it back.
func TestLoadIsOvertaken(t *testing.T) {
	server.Need(t)
	s, dsn := small(t), server.Database(t)
	s.cfg.Out = filepath.Join(t.TempDir(), "other") // which has no plan
	s.stageAll(t)
	store, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	must(t, err)
	defer store.Close()
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer conn.Close(t.Context())
	sql := func(text string, args ...any) error { _, err := conn.Exec(t.Context(), text, args...); return err }
	_, err = store.Init(t.Context())
	must(t, err)
	insert := func(workspace, code, canonical string) error {
		return sql("INSERT INTO links (workspace_id, short_code, url_key, canonical_url, run_id, created_at, updated_at) VALUES ($1, $2, md5($3)::uuid, $3, 0, now(), now())", workspace, code, canonical)
	}
	const other = "https://other.example"
	must(t, insert("any", "code", "https://e.example")) // or the table, which is empty, would be locked
	_, err = s.load(disturbed{store, func(number int, l *sink.Link) error {
		if number != 50 {
			return nil
		}
		return insert("demo", string(l.Code), other)
	}})
	conflict, ok := errors.AsType[*pipeline.LoadConflictError](err)
	if !ok || conflict.Run.ID != 1 || conflict.Stored != 0 || conflict.Conflicts != 1 || conflict.First[0].Found != other {
		t.Fatal("the load was overtaken:", err)
	}
	runs, err := store.Runs(t.Context())
	must(t, err)
	if len(runs) != 1 || runs[0].State != sink.Loading {
		t.Fatalf("runs: %+v", runs)
	}
	must(t, sql("DELETE FROM links WHERE canonical_url = $1", other))
	got, err := s.load(store)
	must(t, err)
	if !got.Resumed || len(linksOf(t, store)) != 101 {
		t.Errorf("resumed: %+v", got)
	}
}

// cancelling is a store during whose lookups the load is interrupted.
type cancelling struct {
	sink.Store
	cancel func()
}

type cancellingSession struct {
	sink.Session
	cancel func()
}

func (c cancelling) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	s, err := c.Store.Lock(ctx, workspaces, opts)
	return cancellingSession{s, c.cancel}, err
}

func (c cancellingSession) Lookup(context.Context, []sink.Probe, func(sink.Found) error) error {
	c.cancel()
	return nil
}

// A load that is interrupted while it looks does not say what it has not seen.
func TestLoadIsInterrupted(t *testing.T) {
	s := small(t)
	s.cfg.Out = filepath.Join(t.TempDir(), "other")
	s.stageAll(t)
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "links.db"))
	must(t, err)
	defer store.Close()
	must(t, func() error { _, err := s.load(store); return err }())
	ctx, cancel := context.WithCancel(t.Context())
	_, err = pipeline.Load(ctx, pipeline.LoadConfig{Dir: s.cfg.Out, Store: cancelling{store, cancel}, Workers: 2})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
