package pipeline_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/sink"
)

// A countdown does something at the n-th call, of the store or of the file
// system.
type countdown struct {
	left      atomic.Int64
	at        string       // or at each of this operation
	hit       func() error // what it returns is the error of the call
	operation atomic.Value // that was hit, a string; nil: none was
}

func newCountdown(n int64, hit func() error) *countdown {
	c := &countdown{hit: hit}
	c.left.Store(n)
	return c
}

func (c *countdown) call(operation string) error {
	if c.left.Add(-1) == 0 || operation == c.at {
		c.operation.Store(operation)
		return c.hit()
	}
	return nil
}

// A sessions is a store whose sessions are what wrap makes of them.
type sessions struct {
	sink.Store
	wrap func(sink.Session) sink.Session
}

func (s sessions) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	session, err := s.Store.Lock(ctx, workspaces, opts)
	if err != nil {
		return nil, err
	}
	return s.wrap(session), nil
}

// hooked returns a store that calls hit at each operation of that name, and returns its
// error.
func hooked(store sink.Store, operation string, hit func() error) *faultyStore {
	return &faultyStore{Store: store, countdown: &countdown{at: operation, hit: hit}}
}

// faultyStore counts its calls. A chunk that is given to Load is one.
type faultyStore struct {
	sink.Store
	*countdown
}

func (f *faultyStore) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	if err := f.call("lock"); err != nil {
		return nil, err
	}
	s, err := f.Store.Lock(ctx, workspaces, opts)
	return &faultySession{s, f}, err
}

func (f *faultyStore) Runs(ctx context.Context) ([]sink.Run, error) {
	if err := f.call("runs"); err != nil {
		return nil, err
	}
	return f.Store.Runs(ctx)
}

type faultySession struct {
	sink.Session
	f *faultyStore
}

func (s *faultySession) Populated(ctx context.Context, workspaces []string) ([]bool, error) {
	if err := s.f.call("populated"); err != nil {
		return nil, err
	}
	return s.Session.Populated(ctx, workspaces)
}

func (s *faultySession) Profiles(ctx context.Context, workspaces []string) (map[string]string, error) {
	if err := s.f.call("profiles"); err != nil {
		return nil, err
	}
	return s.Session.Profiles(ctx, workspaces)
}

func (s *faultySession) Schemes(ctx context.Context, workspaces []string) (map[string]sink.Scheme, error) {
	if err := s.f.call("schemes"); err != nil {
		return nil, err
	}
	return s.Session.Schemes(ctx, workspaces)
}

func (s *faultySession) Fingerprints(ctx context.Context) (map[string]string, error) {
	if err := s.f.call("fingerprints"); err != nil {
		return nil, err
	}
	return s.Session.Fingerprints(ctx)
}

func (s *faultySession) SetScheme(ctx context.Context, workspaces []string, scheme sink.Scheme) error {
	if err := s.f.call("set scheme"); err != nil {
		return err
	}
	return s.Session.SetScheme(ctx, workspaces, scheme)
}

func (s *faultySession) Rules(ctx context.Context, workspaces []string) (map[string]bool, error) {
	if err := s.f.call("rules"); err != nil {
		return nil, err
	}
	return s.Session.Rules(ctx, workspaces)
}

func (s *faultySession) SetRules(ctx context.Context, workspaces []string) error {
	if err := s.f.call("set rules"); err != nil {
		return err
	}
	return s.Session.SetRules(ctx, workspaces)
}

func (s *faultySession) Change(ctx context.Context, run sink.Run, changes iter.Seq2[[]sink.Change, error]) error {
	if err := s.f.call("change"); err != nil {
		return err
	}
	return s.Session.Change(ctx, run, changes)
}

func (s *faultySession) Lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	if err := s.f.call("lookup"); err != nil {
		return err
	}
	return s.Session.Lookup(ctx, probes, visit)
}

func (s *faultySession) Unfinished(ctx context.Context) ([]sink.Run, error) {
	if err := s.f.call("unfinished"); err != nil {
		return nil, err
	}
	return s.Session.Unfinished(ctx)
}

func (s *faultySession) Start(ctx context.Context, run sink.Run) (sink.Run, error) {
	if err := s.f.call("start"); err != nil {
		return run, err
	}
	return s.Session.Start(ctx, run)
}

func (s *faultySession) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	return s.Session.Load(ctx, run, func(yield func([]sink.Link, error) bool) {
		for links, err := range chunks {
			if err == nil {
				err = s.f.call("chunk")
			}
			if !yield(links, err) || err != nil {
				return
			}
		}
	})
}

func (s *faultySession) Loaded(ctx context.Context, run sink.Run) error {
	if err := s.f.call("loaded"); err != nil {
		return err
	}
	return s.Session.Loaded(ctx, run)
}

func (s *faultySession) Finish(ctx context.Context, run sink.Run) error {
	if err := s.f.call("finish"); err != nil {
		return err
	}
	return s.Session.Finish(ctx, run)
}

// faultJob is a run of a few chunks with collisions and rejects.
func faultJob(t *testing.T) (cfg pipeline.Config, want map[string]string, links []string) {
	t.Helper()
	var list []string
	for i := range 9000 {
		list = append(list, fmt.Sprintf("http://example.com/%d,,", i*7919%8000))
	}
	list = append(list, rows(8, 300)...)
	return faultJobOn(t, "a.csv", []byte(csvFile(list)), base(3), t.TempDir())
}

// faultJobOn is a run of one input over the store in a directory, with what it
// leaves when nothing fails.
func faultJobOn(t *testing.T, name string, data []byte, cfg pipeline.Config, filled string) (_ pipeline.Config, want map[string]string, links []string) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, name, string(data))
	cfg.Inputs, cfg.Out, cfg.AsOf, cfg.Workers, cfg.MaxRetries = []string{name}, "out", asOf, 2, 2
	dir := copyStore(t, filled)
	cfg.Store = openStore(t, dir)
	if _, err := pipeline.Run(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	must(t, cfg.Store.Close())
	want, links = readReports(t), dump(t, dir)
	must(t, os.RemoveAll("out"))
	return cfg, want, links
}

func checkRun(t *testing.T, dir string, want map[string]string, links []string) {
	t.Helper()
	sameReports(t, readReports(t), want, reports...)
	if got := dump(t, dir); !slices.Equal(got, links) {
		t.Fatalf("the store has %d links, want %d", len(got), len(links))
	}
	clean(t)
	must(t, os.RemoveAll("out"))
}

// clean checks that nothing but input and output, and what TestKill has beside
// them, lies in the working directory.
func clean(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(".")
	must(t, err)
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, "a.") && !slices.Contains([]string{"out", "tmp", "calls", "urls.txt"}, name) {
			t.Fatalf("%s was left behind", name)
		}
	}
}

// Whatever call of the store fails for a while (-short: each third), the run leaves what
// an undisturbed one would have left. (For good: TestFaults.)
func TestStoreFaults(t *testing.T) {
	step := int64(1)
	if testing.Short() {
		step = 3
	}
	cfg, want, links := faultJob(t)
	for name, fault := range map[string]error{"retryable": sink.ErrRetryable, "conflict": sink.ErrConflict} {
		t.Run(name, func(t *testing.T) {
			for n, hit := int64(1), true; hit; n += step {
				hit = false
				dir := t.TempDir()
				cfg.Store = &faultyStore{Store: openStore(t, dir), countdown: newCountdown(n, func() error { hit = true; return fault })}
				if _, err := pipeline.Run(context.Background(), cfg); err != nil {
					t.Fatalf("call %d: %v", n, err)
				}
				checkRun(t, dir, want, links)
				if n > 200 {
					t.Fatal("the run never gets through")
				}
			}
		})
	}
}

// copyStore copies the store in a directory, if there is one, to a new directory.
func copyStore(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	must(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// waitForGoroutines fails if there stay to be more goroutines than before.
func waitForGoroutines(t *testing.T, before int) {
	t.Helper()
	for range 60_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}
