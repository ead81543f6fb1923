package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/sink"
)

// faultyStore fails, or does something else, at its n-th call. A chunk that is
// given to Load counts as a call.
type faultyStore struct {
	sink.Store
	left atomic.Int64 // calls until the fault
	hit  func() error
}

func (f *faultyStore) call() error {
	if f.left.Add(-1) == 0 {
		return f.hit()
	}
	return nil
}

func (f *faultyStore) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	if err := f.call(); err != nil {
		return nil, err
	}
	s, err := f.Store.Lock(ctx, workspaces, opts)
	return &faultySession{s, f}, err
}

type faultySession struct {
	sink.Session
	f *faultyStore
}

func (s *faultySession) Populated(ctx context.Context, workspaces []string) ([]bool, error) {
	if err := s.f.call(); err != nil {
		return nil, err
	}
	return s.Session.Populated(ctx, workspaces)
}

func (s *faultySession) Lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	if err := s.f.call(); err != nil {
		return err
	}
	return s.Session.Lookup(ctx, probes, visit)
}

func (s *faultySession) Unfinished(ctx context.Context) ([]sink.Run, error) {
	if err := s.f.call(); err != nil {
		return nil, err
	}
	return s.Session.Unfinished(ctx)
}

func (s *faultySession) Start(ctx context.Context, run sink.Run) (sink.Run, error) {
	if err := s.f.call(); err != nil {
		return run, err
	}
	return s.Session.Start(ctx, run)
}

func (s *faultySession) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	return s.Session.Load(ctx, run, func(yield func([]sink.Link, error) bool) {
		for links, err := range chunks {
			if err == nil {
				err = s.f.call()
			}
			if !yield(links, err) || err != nil {
				return
			}
		}
	})
}

func (s *faultySession) Loaded(ctx context.Context, run sink.Run) error {
	if err := s.f.call(); err != nil {
		return err
	}
	return s.Session.Loaded(ctx, run)
}

func (s *faultySession) Finish(ctx context.Context, run sink.Run) error {
	if err := s.f.call(); err != nil {
		return err
	}
	return s.Session.Finish(ctx, run)
}

// faultJob is a run of a few chunks with collisions and rejects.
func faultJob(t *testing.T) (cfg pipeline.Config, want map[string]string, links []string) {
	t.Helper()
	t.Chdir(t.TempDir())
	var list []string
	for i := range 9000 {
		list = append(list, fmt.Sprintf("http://example.com/%d,,", i*7919%8000))
	}
	list = append(list, rows(8, 300)...)
	if err := os.WriteFile("a.csv", []byte(csvFile(list)), 0o666); err != nil {
		t.Fatal(err)
	}
	cfg = base(3)
	cfg.Inputs, cfg.Out, cfg.AsOf, cfg.Workers, cfg.MaxRetries = []string{"a.csv"}, "out", asOf, 2, 2
	dir := t.TempDir()
	cfg.Store = openStore(t, dir)
	if _, err := pipeline.Run(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	want, links = readReports(t), dump(t, dir)
	if err := os.RemoveAll("out"); err != nil {
		t.Fatal(err)
	}
	return cfg, want, links
}

func checkRun(t *testing.T, dir string, want map[string]string, links []string) {
	t.Helper()
	sameReports(t, readReports(t), want, reports...)
	if got := dump(t, dir); !slices.Equal(got, links) {
		t.Fatalf("the store has %d links, want %d", len(got), len(links))
	}
	clean(t)
	if err := os.RemoveAll("out"); err != nil {
		t.Fatal(err)
	}
}

// clean checks that nothing but input, output and database lies in the working
// folder.
func clean(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "partial") {
			t.Fatalf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever call of the store fails, for good or for a while: nothing of the
// output appears, and the next run, or the same one, leaves what an undisturbed
// run would have left.
func TestStoreFaults(t *testing.T) {
	cfg, want, links := faultJob(t)
	for name, fault := range map[string]error{
		"fatal": errors.New("disk on fire"), "retryable": sink.ErrRetryable, "conflict": sink.ErrConflict,
	} {
		t.Run(name, func(t *testing.T) {
			for n, hit := int64(1), true; hit; n++ {
				hit = false
				dir := t.TempDir()
				store := &faultyStore{Store: openStore(t, dir), hit: func() error { hit = true; return fault }}
				store.left.Store(n)
				cfg.Store = store
				_, err := pipeline.Run(context.Background(), cfg)
				if name == "fatal" && hit {
					if !errors.Is(err, fault) {
						t.Fatalf("call %d: %v", n, err)
					}
					_, staterr := os.Stat("out")
					if late := staterr == nil; late && len(dump(t, dir)) != len(links) {
						t.Fatalf("call %d: the output is there but not the links", n)
					}
					clean(t)
					_, err = pipeline.Run(context.Background(), cfg)
				}
				if err != nil {
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

// A run that is cancelled at any call of the store, and one that is cancelled
// while it reads, stops all its goroutines and leaves no file.
func TestCancel(t *testing.T) {
	cfg, want, links := faultJob(t)
	cause := errors.New("enough")
	goroutines := runtime.NumGoroutine()
	for n, hit := int64(1), true; hit; n++ {
		hit = false
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(context.Background())
		store := &faultyStore{Store: openStore(t, dir), hit: func() error { hit = true; cancel(cause); return nil }}
		store.left.Store(n)
		cfg.Store = store
		if n == 1 {
			cancel(cause)
		}
		_, err := pipeline.Run(ctx, cfg)
		if err != nil {
			if !errors.Is(err, cause) {
				t.Fatalf("call %d: %v", n, err)
			}
			clean(t)
			if _, err = pipeline.Run(context.Background(), cfg); err != nil {
				t.Fatalf("call %d, again: %v", n, err)
			}
		}
		cancel(nil)
		checkRun(t, dir, want, links)
		hit = hit || n == 1
	}
	waitForGoroutines(t, goroutines)
}

// waitForGoroutines fails if there stay to be more goroutines than before.
func waitForGoroutines(t *testing.T, before int) {
	t.Helper()
	for range 200 {
		if runtime.NumGoroutine() <= before+2 { // database/sql keeps one for each open database until its cleanup
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}
