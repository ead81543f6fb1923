package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/sink"
)

// lockFails is a store that cannot be locked while with fails: each try takes a while.
type lockFails struct {
	sink.Store
	takes time.Duration
	with  func(try int) error
	tries int
}

func (s *lockFails) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	time.Sleep(s.takes)
	s.tries++
	if err := s.with(s.tries); err != nil {
		return nil, err
	}
	return s.Store.Lock(ctx, workspaces, opts)
}

// Peek finds nothing.
func (s *lockFails) Peek(context.Context) (sink.Session, error) { return nil, sink.ErrMissing }

// A store that fails is tried for RetryFor, which begins with its first failure after
// it did something: conflicts do, and attempts that last longer may, but not for ever.
func TestRetryFor(t *testing.T) {
	const retryFor = time.Minute
	fatal := errors.New("disk on fire")
	always := func(err error) func(int) error { return func(int) error { return err } }
	after := func(n int, first, then error) func(int) error {
		return func(try int) error {
			if try <= n {
				return first
			}
			return then
		}
	}
	for name, test := range map[string]struct {
		takes       time.Duration
		with        func(int) error
		least, most time.Duration // until the run gives up
		tries       int           // 0: any number
		want        error
	}{
		"fatal":                 {time.Second, always(fatal), time.Second, time.Second, 1, fatal},
		"given up":              {time.Second, always(errors.Join(sink.ErrRetryable, sink.ErrGaveUp)), time.Second, time.Second, 1, sink.ErrGaveUp},
		"down":                  {time.Second, always(sink.ErrRetryable), retryFor, retryFor + 2*time.Second, 0, sink.ErrRetryable},
		"fatal after a while":   {time.Second, after(3, sink.ErrRetryable, fatal), 3 * time.Second, 10 * time.Second, 4, fatal},
		"down after conflicts":  {10 * time.Second, after(9, sink.ErrConflict, sink.ErrRetryable), 100*time.Second + retryFor, 100*time.Second + retryFor + 10*time.Second, 0, sink.ErrRetryable},
		"conflicts without end": {time.Second, always(sink.ErrConflict), 21 * time.Second, 21 * time.Second, 21, sink.ErrConflict},
		"long attempts":         {2 * retryFor, always(sink.ErrRetryable), 8 * retryFor, 8*retryFor + 10*time.Second, 4, sink.ErrRetryable},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			input := filepath.Join(dir, "a.txt")
			write(t, input, "http://example.com/1\n")
			synctest.Test(t, func(t *testing.T) {
				store := &lockFails{takes: test.takes, with: test.with}
				begun := time.Now()
				result, err := pipeline.Run(t.Context(), pipeline.Config{
					Inputs: []string{input}, Out: filepath.Join(dir, "out"), Workspace: "ws", Store: store, RetryFor: retryFor,
				})
				if took := time.Since(begun); took < test.least || took > test.most || test.tries > 0 && store.tries != test.tries {
					t.Errorf("gave up after %v and %d tries", took, store.tries)
				}
				if !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if got := result.Timings.Stages; len(got) < 2 || got[0].Name != "read" || got[1].Name != "wait" {
					t.Errorf("stages %v", got)
				}
			})
		})
	}
}

// A store that fails is one warning, however often it is tried. A lost connection is not
// taken for another writer.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "a.txt")
	write(t, input, "http://example.com/1\n")
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"down":     {sink.ErrRetryable, []string{"the database does not answer (" + sink.ErrRetryable.Error() + "); trying for up to 60 minutes", "the database answers again"}},
		"lost":     {fmt.Errorf("load: %w", sink.ErrLost), slices.Repeat([]string{"the connection was lost; checking what was stored and going on"}, 3)},
		"conflict": {sink.ErrConflict, slices.Repeat([]string{"another writer took a code or a URL in the meantime; looking again"}, 3)},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			store := &lockFails{Store: openStore(t, t.TempDir()), with: func(try int) error {
				if try <= 3 {
					return test.err
				}
				return nil
			}}
			_, err := pipeline.Run(t.Context(), pipeline.Config{
				Inputs: []string{input}, Out: filepath.Join(dir, name), Workspace: "ws", Store: store, RetryFor: time.Hour,
				Logger: slog.New(slog.NewTextHandler(&said, nil)),
			})
			var got []string
			for _, m := range regexp.MustCompile(`msg="(the (?:data|conn).*?|another.*?)"`).FindAllStringSubmatch(said.String(), -1) {
				got = append(got, m[1])
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%s: %q, want %q; %v", name, got, test.want, err)
			}
		})
	}
}

// What a run waits for the store, for a lock and between attempts, is a stage of its own.
func TestWaitIsTimed(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.txt", "http://example.com/1\n")
	var result *pipeline.Result
	synctest.Test(t, func(t *testing.T) {
		store := &lockFails{Store: openStore(t, "."), takes: time.Minute, with: func(try int) error {
			if try < 3 {
				return sink.ErrRetryable
			}
			return nil
		}}
		cfg := pipeline.Config{Inputs: []string{"a.txt"}, Out: "out", Workspace: "ws", Store: store, RetryFor: time.Hour}
		var err error
		if result, err = pipeline.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	})
	var got manifest.Timings
	must(t, json.Unmarshal([]byte(read(t, "out/timings.json")), &got))
	if !slices.Equal(result.Timings.Stages, got.Stages) {
		t.Errorf("the result has %v", result.Timings.Stages)
	}
	var names []string
	waited := 0.0
	for _, s := range got.Stages {
		names = append(names, s.Name)
		if s.Name == "wait" {
			waited += s.Seconds
		}
	}
	if !slices.Equal(names, []string{"read", "wait", "settle", "write", "finish", "fsync"}) || waited <= 180 || waited > got.Seconds+0.001 {
		t.Errorf("%v, %v of %v seconds waited", names, waited, got.Seconds)
	}
}

// overtakenSession takes one link at the first load, and then one of another writer, who
// has the code of the next.
type overtakenSession struct {
	sink.Session
	over *bool
}

func (s *overtakenSession) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	if *s.over {
		return s.Session.Load(ctx, run, chunks)
	}
	*s.over = true
	one := func(run sink.Run, l sink.Link) error {
		return s.Session.Load(ctx, run, func(yield func([]sink.Link, error) bool) { yield([]sink.Link{l}, nil) })
	}
	for links, err := range chunks {
		if err != nil {
			return err
		}
		other, err := s.Session.Start(ctx, sink.Run{Fingerprint: "other", AsOf: asOf})
		theirs := sink.Link{Workspace: links[1].Workspace, Code: links[1].Code, Key: sink.Key{1}, Canonical: []byte("http://example.com/theirs")}
		if err = errors.Join(err, one(run, links[0]), one(other, theirs)); err != nil {
			return err
		}
	}
	return sink.ErrConflict
}

// A run that has stored links when another writer leaves it with more rejects than
// are allowed does not say that it stored none, but how to take them back.
func TestTooManyRejectsOnceLoaded(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.txt", "http://example.com/1\nhttp://example.com/2\n")
	store, over := openStore(t, t.TempDir()), false
	cfg := pipeline.Config{Inputs: []string{"a.txt"}, Out: "out", Workspace: "ws", MaxRetries: pipeline.NoRetries,
		Store: sessions{store, func(s sink.Session) sink.Session { return &overtakenSession{s, &over} }}}
	cfg.MaxRejects, _ = manifest.ParseMaxRejects("0")
	result, err := pipeline.Run(t.Context(), cfg)
	var tooMany *pipeline.TooManyRejectsError
	if !errors.As(err, &tooMany) || tooMany.Stored != 1 || tooMany.Run != 1 || result.RunID != 1 || !strings.Contains(err.Error(), "`bulk undo 1`") {
		t.Fatalf("run %d: %v: %+v", result.RunID, err, tooMany)
	}
	if entries, err := os.ReadDir("out.failed"); err != nil || len(entries) != 3 { // manifest, rejects and timings
		t.Errorf("the output holds %v, %v", entries, err)
	}
	if undone, err := store.Undo(t.Context(), tooMany.Run, sink.LockOptions{}, nil); err != nil || undone.Deleted != tooMany.Stored {
		t.Errorf("undone: %+v, %v", undone, err)
	}
}

// spoiled is a store of which only the closing of a session tells whether what it
// saw counts: that of the first one does not.
type spoiled struct {
	sink.Store
	peeked int
}

func (s *spoiled) Peek(context.Context) (sink.Session, error) {
	s.peeked++
	return &spoiledSession{looks: s.peeked == 2}, nil
}

type spoiledSession struct {
	sink.Session
	looks, closed bool // looks: it is the first that looks up the rows; the one before asks whether workspaces fold case
}

func (s *spoiledSession) Populated(_ context.Context, workspaces []string) ([]bool, error) {
	return make([]bool, len(workspaces)), nil
}

func (s *spoiledSession) Profiles(context.Context, []string) (map[string]string, error) {
	return nil, nil
}

func (s *spoiledSession) Schemes(context.Context, []string) (map[string]sink.Scheme, error) {
	return nil, nil
}

func (s *spoiledSession) Rules(context.Context, []string) (map[string]bool, error) { return nil, nil }

func (s *spoiledSession) Unfinished(context.Context) ([]sink.Run, error) { return nil, nil }

func (s *spoiledSession) Close() error {
	if s.closed || !s.looks {
		return nil
	}
	s.closed = true
	return sink.ErrRetryable
}

// A dry run has no output before it knows that what it saw of the store counts, and
// looks again if it does not.
func TestDryRunOfAChangingStore(t *testing.T) {
	for _, url := range []string{"http://example.com/1", "refused"} {
		t.Chdir(t.TempDir())
		write(t, "a.txt", url+"\n")
		store := &spoiled{Store: openStore(t, t.TempDir())}
		cfg := pipeline.Config{Inputs: []string{"a.txt"}, Out: "out", Workspace: "ws", Store: store, DryRun: true}
		cfg.MaxRejects, _ = manifest.ParseMaxRejects("0")
		_, err := pipeline.Run(t.Context(), cfg)
		var tooMany *pipeline.TooManyRejectsError
		if refused := errors.As(err, &tooMany); refused != (url == "refused") || !refused && err != nil || store.peeked != 3 {
			t.Errorf("%s: looked %d times: %v", url, store.peeked, err)
		}
	}
}
