package stage_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/stage"
	"github.com/linkforge/bulk/sink/sqlite"
)

// URLs in three workspaces, of which the sample sees two, with links that exist and have salts: two hundred
// thousand, where nearly all contest their codes, and fewer, where none does but one has more rows than a shard.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seven seconds of processor time")
	}
	for _, c := range []struct {
		length, urls, hot int
		shard             int64
	}{{3, 200_000, 0, 20_000}, {10, 80_000, 90_000, 30_000}} {
		t.Run(fmt.Sprintf("length=%d", c.length), func(t *testing.T) {
			dir := t.TempDir()
			s := set{rows: c.shard}
			s.cfg.Workspace, s.cfg.Source.WorkspaceColumn, s.cfg.CodeLength = "rest", "team", c.length
			s.cfg.Version, s.cfg.Workers, s.cfg.Out = "test", 2, filepath.Join(dir, "out")
			old := writeRows(t, filepath.Join(dir, "old.csv"), 20_000, func(n int) (int, string) { return 7 * n, "ab"[n%2:][:1] })
			s.cfg.Inputs = []string{
				writeRows(t, filepath.Join(dir, "in-1.csv"), c.urls/2, func(n int) (int, string) { return n, "ab"[n%2:][:1] }),
				writeRows(t, filepath.Join(dir, "in-2.csv.gz"), c.urls/2, func(n int) (int, string) { return n, "ac"[min(n/(c.urls/4), 1):][:1] }),
			}
			if c.hot > 0 {
				s.cfg.Inputs = append(s.cfg.Inputs, writeRows(t, filepath.Join(dir, "in-3.csv"), c.hot, func(int) (int, string) { return 1, "b" }))
			}
			s.storeOf(t, dir, old)
			s.do(t, func(_ string, _ int, task func(j *stage.Job) error) { must(t, task(s.open(t))) })
			if need := s.planned.SettleMemory() / 1024; c.length == 3 && (need < 30_000 || need > 120_000) {
				t.Errorf("the plan expects %.0f URLs that contest a code", need)
			}
			s.commitAndCompare(t)
		})
	}
}

// writeRows writes rows, each of which is the URL of a number and a workspace.
func writeRows(t *testing.T, name string, rows int, row func(n int) (url int, workspace string)) string {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	var to io.WriteCloser = f
	if filepath.Ext(name) == ".gz" {
		to = gzip.NewWriter(f)
	}
	w := bufio.NewWriter(to)
	fmt.Fprintln(w, "url,team")
	for n := range rows {
		u, team := row(n)
		fmt.Fprintf(w, "https://shop.example/products/%d,%s\n", u, team)
	}
	must(t, w.Flush())
	if to != io.WriteCloser(f) {
		must(t, to.Close())
	}
	must(t, f.Close())
	return name
}

// storeOf makes a store with the links of an input, and exports them.
func (s *set) storeOf(t *testing.T, dir, input string) {
	t.Helper()
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "links.db"))
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	cfg := s.cfg
	cfg.Inputs, cfg.Out, cfg.Store = []string{input}, filepath.Join(dir, "old"), store
	if _, err := pipeline.Run(ctx, cfg); !errors.As(err, new(*pipeline.TooManyRejectsError)) {
		must(t, err)
	}
	s.store = store
	s.export(t, store, "", filepath.Join(dir, "links.parquet"))
	if _, err := os.Stat(manifest.LinksNameOf(s.links[0])); err != nil {
		t.Fatal(err)
	}
}
