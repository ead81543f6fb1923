package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
	"github.com/linkforge/bulk/pipeline/source"
	"github.com/linkforge/bulk/pipeline/terms"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/sqlite"
)

var errEnough = errors.New("enough")

// storedRun is a run of standard input with collisions and rejects, and what verifies it.
func storedRun(t *testing.T) (cfg Config, input string) {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.Open(context.Background(), filepath.Join(dir, "links.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	var list strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&list, "http://example.com/%d\nftp://example.com/%d\n", i, i)
	}
	input = list.String()
	out := filepath.Join(dir, "out")
	if _, err := pipeline.Run(context.Background(), pipeline.Config{Workspace: "w", CodeLength: 2, Store: store, Out: out,
		Inputs: []string{"-"}, Source: source.Options{Stdin: strings.NewReader(input)}}); err != nil {
		t.Fatal(err)
	}
	return Config{Dir: out, Inputs: []string{"-"}, Store: store, Workers: 2, Memory: 1 << 10, TempDir: t.TempDir()}, input
}

// A scanned store calls a function before it gives a link.
type scanned struct {
	sink.Store
	before func()
}

func (s *scanned) Scan(ctx context.Context, visit func(*sink.Stored) error) error {
	return s.Store.Scan(ctx, func(l *sink.Stored) error {
		s.before()
		return visit(l)
	})
}

type reader func(p []byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// A call that is cancelled before it begins, while it reads an input, or lists the
// store, ends with the cause, all its goroutines and no file.
func TestVerifyCancelled(t *testing.T) {
	cfg, input := storedRun(t)
	store, goroutines := cfg.Store, runtime.NumGoroutine()
	for _, n := range []int{0, 1, 2, 4, 8, 16, 32, 256, 1024} { // calls; the first 25 or so are reads
		ctx, cancel := context.WithCancelCause(context.Background())
		calls := -1
		call := func() {
			if calls++; calls == n {
				cancel(errEnough)
			}
		}
		call()
		text := strings.NewReader(input)
		cfg.Source.Stdin = reader(func(p []byte) (int, error) {
			if call(); ctx.Err() != nil { // there is no end to it
				return copy(p, "http://example.com/\n"), nil
			}
			return text.Read(p[:min(len(p), 4<<10)])
		})
		cfg.Store = &scanned{store, call}
		if _, err := Run(ctx, cfg); !errors.Is(err, errEnough) {
			t.Errorf("cancelled at call %d: %v", n, err)
		}
		for range 60_000 {
			if runtime.NumGoroutine() <= goroutines {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if now := runtime.NumGoroutine(); now > goroutines {
			t.Fatalf("cancelled at call %d: %d goroutines, %d before", n, now, goroutines)
		}
		if left, err := os.ReadDir(cfg.TempDir); err != nil || len(left) > 0 {
			t.Errorf("cancelled at call %d: temporary files %v, %v", n, left, err)
		}
	}
}

// No part of it goes on to its end, or waits for those that do not go on.
func TestVerifyPartsCancelled(t *testing.T) {
	cfg, input := storedRun(t)
	cfg.Source.Stdin = strings.NewReader(input)
	v := newVerifier(cfg)
	defer v.close()
	m, _, err := manifest.ReadDir(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	run, _ := understand(m, v.findings)
	if err := v.begin(run); err != nil {
		t.Fatal(err)
	}
	one := v.sorts.new(compareClaims)
	defer one.Close()
	file(one.NewWriter(), v.sorts.groups.id([]byte("w")), &claim{})
	if err := errors.Join(v.sorts.stored.Finish(t.Context()), one.Finish(t.Context())); err != nil {
		t.Fatal(err)
	}
	runs, sums := new(storeRuns), v.newSums()
	meet := func(ctx context.Context, store sink.Store, wanted *extsort.Sorter, list func(*storeCheck, *storeMatcher) error) error {
		v.cfg.Store = store
		c := v.links(0)
		return list(c, c.newMatcher(ctx, runs, &schemes{findings: v.findings, run: run, runs: runs}, wanted))
	}
	for name, part := range map[string]func(context.Context) error{
		"digests":    v.reports.checkDigests,
		"mapping":    func(ctx context.Context) error { return v.mapping(sums).check(ctx, new(mapped)) },
		"collisions": func(ctx context.Context) error { return verifyCollisions(ctx, v.reports, v.sorts) },
		"rejects":    func(ctx context.Context) error { return v.rejects(sums).check(ctx, new(rejected)) },
		"inputs":     func(ctx context.Context) error { _, err := v.records(sums).read(ctx, true); return err },
		"rows again": v.records(sums).fileRun,
		"rows held": func(ctx context.Context) error {
			held := v.sorts.new(bytes.Compare)
			defer held.Close()
			newHeldWriter(run, newGrouper(v.sorts.groups), held).link(new(link))
			return verifyHeld(ctx, held, run, true, v.findings)
		},
		"store": func(ctx context.Context) error {
			return meet(ctx, endless{}, v.sorts.stored, func(c *storeCheck, s *storeMatcher) error {
				_, _, err := c.links(ctx, s, v.sorts.claims, v.sorts.claims, new(Since))
				return err
			})
		},
		"rest of the store": func(ctx context.Context) error {
			return meet(ctx, &ailing{lists: 1}, one, func(c *storeCheck, s *storeMatcher) error {
				_, _, err := c.links(ctx, s, v.sorts.claims, v.sorts.claims, new(Since))
				return err
			})
		},
		"store again": func(ctx context.Context) error {
			return meet(ctx, &ailing{lists: 1}, one, func(c *storeCheck, s *storeMatcher) error { return c.listAgain(ctx, s, new(Since)) })
		},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errEnough)
		if err := part(ctx); !errors.Is(err, errEnough) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An endless store lists links for as long as somebody takes them.
type endless struct{ sink.Store }

func (endless) Scan(_ context.Context, visit func(*sink.Stored) error) error {
	for {
		if err := visit(&sink.Stored{}); err != nil {
			return err
		}
	}
}

// An ailing store is empty, and fails once it was listed so often.
type ailing struct {
	sink.Store
	lists int
}

var errAiling = errors.New("the store has failed")

func (*ailing) Runs(context.Context) ([]sink.Run, error) { return nil, nil }

func (*ailing) Peek(context.Context) (sink.Session, error) { return unset{}, nil }

// unset is a session of a store in which no profile and no scheme was set, and no link has rules.
type unset struct{ sink.Session }

func (unset) Profiles(context.Context, []string) (map[string]string, error) { return nil, nil }

func (unset) Rules(context.Context, []string) (map[string]bool, error) { return nil, nil }

func (unset) Schemes(context.Context, []string) (map[string]sink.Scheme, error) { return nil, nil }

func (unset) Close() error { return nil }

func (s *ailing) Scan(context.Context, func(*sink.Stored) error) error {
	if s.lists--; s.lists < 0 {
		return errAiling
	}
	return nil
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// What a store did not list before it failed is not said to be missing.
func TestVerifyStoreFails(t *testing.T) {
	for lists := range 2 {
		v := newVerifier(Config{Dir: t.TempDir(), Store: &ailing{lists: lists}, Workers: 1, MaxFindings: 10})
		run := &run{terms: &terms.Terms{}, manifest: &manifest.Manifest{Inputs: []manifest.Input{{Name: "in.csv"}}}, mapping: report.CSV.FileName()}
		run.manifest.Scheme = manifest.Scheme{Name: codegen.Name, CodeLength: 10}
		run.readScheme(func(field string, _, _ any) { t.Error(field) })
		if err := errors.Join(run.take(codegen.Secret{}, nil), v.begin(run)); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(v.cfg.Dir, run.mapping), "source,row,workspace_id,original_url,canonical_url,short_code,short_url,outcome,salt\nin.csv,1,demo,u,u,c,,created,0\n")
		w := newWantWriter(run, newGrouper(v.sorts.groups), v.seed, v.sorts.stored)
		w.add(&link{MappingRow: readback.MappingRow{Row: report.Row{Outcome: outcome.Existing}}})
		faults := &v.findings.faults
		if err := v.stored(t.Context(), 1); !errors.Is(err, errAiling) || faults.kinds[StoreMissing] != int64(lists) { // what it lists is not that sum
			t.Errorf("listed %d times: %v, found %v", lists, err, faults.kinds)
		}
		if err := v.close(); err != nil {
			t.Error(err)
		}
	}
}
